package results

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
)

// hiveNull is how Hive writes a missing value in a path.
const hiveNull = "__HIVE_DEFAULT_PARTITION__"

// longestName is the most bytes that file systems allow a name of a folder to have.
const longestName = 255

// HiveFolder is the folder of a point's files where a data set is partitioned by columns as Hive does it: a level
// COLUMN=VALUE for each of them, which DuckDB, Spark, pyarrow and Polars read back as columns. Letters, digits and -_. stay as they are, other bytes are
// percent-encoded, and a column that the point lacks or whose value is empty has the value __HIVE_DEFAULT_PARTITION__. A value that makes no name of a folder
// is an error. Without columns the folder is empty.
func HiveFolder(columns []string, p *gridspec.Point) (string, error) {
	levels := make([]string, len(columns))
	for i, name := range columns {
		value := ""
		for _, a := range p.Axes {
			if a.Column == name {
				value = formatValue(a.Value)
			}
		}
		level := percentEncode(name) + "=" + hiveNull
		if value != "" {
			level = percentEncode(name) + "=" + percentEncode(value)
		}
		if len(level) > longestName {
			return "", fmt.Errorf("output.partition_by: the %s of a point is too long for the name of a folder: %s; leave the column out",
				gridspec.Excerpt(name), gridspec.Excerpt(value))
		}
		levels[i] = level
	}
	return filepath.Join(levels...), nil
}

// percentEncode encodes all bytes of a text but letters, digits and -_. as in a URL.
func percentEncode(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_.", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
