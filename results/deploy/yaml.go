package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// yamlWriter writes YAML line by line, with comments.
type yamlWriter struct{ bytes.Buffer }

// line writes a line of text at a depth of indentation.
func (y *yamlWriter) line(depth int, text string) {
	y.WriteString(strings.Repeat("  ", depth) + text + "\n")
}

func (y *yamlWriter) comment(depth int, text string) { y.line(depth, "# "+oneLine(text)) }

// entry writes a key with a scalar; from says which setting it comes from, if any.
func (y *yamlWriter) entry(depth int, key string, value any, from string) {
	y.line(depth, key+": "+yamlScalar(value)+behind(from))
}

// item writes an element of a list.
func (y *yamlWriter) item(depth int, value, from string) {
	y.line(depth, "- "+yamlScalar(value)+behind(from))
}

func behind(from string) string {
	if from == "" {
		return ""
	}
	return " # " + from
}

// options writes a section of options.
func (y *yamlWriter) options(depth int, options []option) {
	for _, o := range options {
		if section, ok := o.value.([]option); ok {
			y.line(depth, o.name+":")
			y.options(depth+1, section)
		} else {
			y.entry(depth, o.name, o.value, o.from)
		}
	}
}

var (
	plainScalar = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./-]*$`)
	// notText is what YAML 1.1, which Kubernetes reads, takes for something else than text.
	notText = regexp.MustCompile(`(?i)^(true|false|null|yes|no|on|off|y|n)$`)
)

// yamlScalar writes a scalar so that it reads back with the same type in YAML 1.1 and 1.2.
func yamlScalar(v any) string {
	switch v := v.(type) {
	case string:
		if plainScalar.MatchString(v) && !notText.MatchString(v) {
			return v
		}
		if !strings.ContainsAny(v, "'\n\r\t") && isPrintable(v) {
			return "'" + v + "'"
		}
		text, err := json.Marshal(v)
		if err != nil {
			return strconv.Quote(v)
		}
		return string(text)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

func isPrintable(s string) bool {
	for _, r := range s {
		if !strconv.IsPrint(r) {
			return false
		}
	}
	return true
}
