package gridspec

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/servegrid/servegrid/simcore/files"
)

// Limits on a spec file. They keep hostile or accidental input (a trace instead of a spec, a bomb of aliases)
// from taking all memory; real specs are far below.
const (
	maxSpecBytes  = 4 << 20
	maxNesting    = 64
	maxTreeValues = 1 << 20
)

// Format is the syntax of a spec.
type Format string

// The formats of a spec. The zero value chooses by the file's extension.
const (
	YAML Format = "yaml"
	TOML Format = "toml"
	JSON Format = "json"
)

func formatOf(path string) (Format, error) {
	if files.IsURL(path) {
		path = files.Base(path)
	}
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".yaml", ".yml", "":
		return YAML, nil
	case ".toml":
		return TOML, nil
	case ".json":
		return JSON, nil
	default:
		return "", fmt.Errorf("%s: a spec ends in .yaml, .yml, .toml or .json, not in %s", path, ext)
	}
}

// strictParser reads one file. It implements koanf.Parser and records, beside the tree, where every key stands;
// duplicate keys are problems.
type strictParser struct {
	// collector holds the problems of a tree that can still be read, such as duplicate keys.
	collector
	// warnings are about what is allowed but hardly meant.
	warnings Problems
	// syntax holds those that end the reading.
	syntax Problems
	format Format
	// name is the file's name in problems.
	name string
	// values counts the tree's values, aliases included.
	values int
}

// Unmarshal parses a spec into a tree. The error is a [Problems]; those that leave a tree stay in the parser.
func (p *strictParser) Unmarshal(data []byte) (map[string]any, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if p.guard(data); len(p.syntax) > 0 {
		return nil, p.syntax
	}
	var tree map[string]any
	switch p.format {
	case TOML:
		tree = p.parseTOML(data)
	case JSON:
		tree = p.parseJSON(data)
	default:
		tree = p.parseYAML(data)
	}
	if len(p.syntax) > 0 {
		return nil, p.syntax
	}
	p.normalize(tree)
	return tree, nil
}

// Marshal writes a tree as canonical YAML, its keys in the order in which they were written.
func (p *strictParser) Marshal(tree map[string]any) ([]byte, error) {
	return marshalYAML(tree, p.origins), nil
}

// at formats a place of the file.
func (p *strictParser) at(line, column int) string {
	return fmt.Sprintf("%s:%d:%d", p.name, line, column)
}

// fail reports a problem that ends the reading.
func (p *strictParser) fail(line, column int, format string, args ...any) {
	p.failAt("", line, column, format, args...)
}

// failAt is fail for a problem with the value at a key path.
func (p *strictParser) failAt(path string, line, column int, format string, args ...any) {
	problem := Problem{Where: p.at(line, column)}
	problem.Path, problem.Allowed = path, fmt.Sprintf(format, args...)
	p.syntax = append(p.syntax, problem)
}

// duplicate reports a key that is written twice.
func (p *strictParser) duplicate(path string, line, column int) {
	twice := Problem{Where: p.at(line, column)}
	twice.Path, twice.Allowed = path, fmt.Sprintf("this key is already at %s; write it once", p.origins.places[path].where)
	p.problems = append(p.problems, twice)
}

// count takes one value into account and reports whether the tree is still of a reasonable size and depth.
func (p *strictParser) count(n, depth, line, column int) bool {
	p.values += n
	if p.values > maxTreeValues {
		p.failOnce(line, column, "the spec has more than %d values, aliases included", maxTreeValues)
		return false
	}
	if depth > maxNesting {
		p.failOnce(line, column, "nested deeper than %d levels", maxNesting)
		return false
	}
	return true
}

// failOnce is fail for a problem that would repeat itself with every further value.
func (p *strictParser) failOnce(line, column int, format string, args ...any) {
	if text := fmt.Sprintf(format, args...); len(p.syntax) == 0 || p.syntax[len(p.syntax)-1].Allowed != text {
		p.fail(line, column, "%s", text)
	}
}

// guard refuses what would make a recursive parser overflow its stack, and what is no text.
func (p *strictParser) guard(data []byte) {
	if len(data) > maxSpecBytes {
		p.fail(1, 1, "the file has %d bytes; a spec has at most %d", len(data), maxSpecBytes)
		return
	}
	line, column, depth, indicators := 1, 0, 0, 0
	leading := true
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		i += size
		column++
		if r == 0 || r == utf8.RuneError && size == 1 {
			p.fail(line, column, "this is no UTF-8 text; a spec is written in YAML, TOML or JSON")
			return
		}
		switch r {
		case '\n':
			line, column, indicators, leading = line+1, 0, 0, true
		case '[', '{':
			depth, leading = depth+1, false
		case ']', '}':
			depth, leading = max(0, depth-1), false
		case '-', '?', ':':
			if leading {
				indicators++
			}
		case ' ', '\t', '\r':
		default:
			leading = false
		}
		if depth > maxNesting || indicators > maxNesting {
			p.fail(line, column, "nested deeper than %d levels", maxNesting)
			return
		}
	}
}
