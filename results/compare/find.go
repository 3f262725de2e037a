package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

// rowNumber reads the number of a row.
func rowNumber(t *results.Table, text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > t.Rows() {
		return 0, fmt.Errorf("point %q: the file has no column id, so give the number of a row from 1 to %d", gridspec.Excerpt(text), t.Rows())
	}
	return n - 1, nil
}

// mostCandidates bounds the IDs that an error lists.
const mostCandidates = 5

// uniquePrefix is the row of the only ID that begins so; a whole ID always counts.
func uniquePrefix(ids []string, prefix string) (int, error) {
	if row := slices.Index(ids, prefix); row >= 0 && prefix != "" {
		return row, nil
	}
	var rows []int
	var found []string
	for row, id := range ids {
		if prefix != "" && strings.HasPrefix(id, prefix) {
			rows, found = append(rows, row), append(found, id[:min(len(id), len(prefix)+8)])
		}
	}
	switch {
	case len(rows) == 1:
		return rows[0], nil
	case len(rows) == 0:
		return 0, fmt.Errorf("no point's ID begins with %q; pareto --format csv lists them in the column id", gridspec.Excerpt(prefix))
	case len(found) > mostCandidates:
		return 0, fmt.Errorf("%d IDs begin with %q, such as %s; give more of it", len(rows), gridspec.Excerpt(prefix), strings.Join(found[:mostCandidates], ", "))
	}
	return 0, fmt.Errorf("%d IDs begin with %q: %s; give more of it", len(rows), gridspec.Excerpt(prefix), strings.Join(found, ", "))
}
