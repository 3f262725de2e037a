package gridspec

import (
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// parseTOML builds the tree of a TOML file. Values come from the decoder; a walk over the expressions gives
// every key its place and finds duplicates, for which the decoder has none.
func (p *strictParser) parseTOML(data []byte) map[string]any {
	t := tomlPlaces{strictParser: p, elements: map[string]int{}, defined: map[string]bool{}}
	t.walk(data)
	if len(p.problems) > 0 { // the decoder refuses duplicates without their place
		p.syntax = append(p.syntax, p.problems...)
		return nil
	}
	tree := map[string]any{}
	if err := toml.Unmarshal(data, &tree); err != nil {
		var syntax *toml.DecodeError
		line, column := 1, 1
		if errors.As(err, &syntax) {
			line, column = syntax.Position()
		}
		p.fail(line, column, "%s", strings.TrimPrefix(err.Error(), "toml: "))
		return nil
	}
	return tree
}

type tomlPlaces struct {
	*strictParser
	parser unstable.Parser
	// elements counts the tables of every array of tables.
	elements map[string]int
	// defined holds the tables and values that may not be defined again.
	defined map[string]bool
}

func (t *tomlPlaces) walk(data []byte) {
	t.parser.Reset(data)
	table := ""
	for t.parser.NextExpression() {
		e := t.parser.Expression()
		switch e.Kind {
		case unstable.Table:
			table = t.key("", e.Key(), true)
		case unstable.ArrayTable:
			table = t.key("", e.Key(), false)
			t.elements[table]++
			table = indexed(table, t.elements[table]-1)
		case unstable.KeyValue:
			t.keyValue(table, e)
		}
	}
	// A syntax error is reported by the decoder, which has a better message for it.
}

// key records the place of every part of a dotted key. define says that the last part must be new.
func (t *tomlPlaces) key(path string, parts unstable.Iterator, define bool) string {
	for parts.Next() {
		n := parts.Node()
		start := t.parser.Shape(n.Raw).Start
		path = join(path, string(n.Data))
		if _, known := t.origins.places[path]; !known {
			t.origins.set(path, t.at(start.Line, start.Column))
		}
		if define && parts.IsLast() {
			if t.defined[path] {
				t.duplicate(path, start.Line, start.Column)
			}
			t.defined[path] = true
		}
		if count := t.elements[path]; count > 0 && !parts.IsLast() {
			path = indexed(path, count-1)
		}
	}
	return path
}

func (t *tomlPlaces) keyValue(path string, e *unstable.Node) {
	t.value(t.key(path, e.Key(), true), e.Value())
}

func (t *tomlPlaces) value(path string, n *unstable.Node) {
	children := n.Children()
	switch n.Kind {
	case unstable.InlineTable:
		for children.Next() {
			t.keyValue(path, children.Node())
		}
	case unstable.Array:
		for i := 0; children.Next(); {
			if children.Node().Kind == unstable.Comment {
				continue
			}
			t.value(indexed(path, i), children.Node())
			i++
		}
	}
}
