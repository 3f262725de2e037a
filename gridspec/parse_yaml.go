package gridspec

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// parseYAML builds the tree of the only document of a YAML file. An empty file is an empty mapping.
func (p *strictParser) parseYAML(data []byte) map[string]any {
	body := p.yamlDocument(data)
	if body == nil {
		return map[string]any{}
	}
	y := yamlReader{strictParser: p, anchors: map[string]anchored{}}
	switch tree := y.value("", body, 0).(type) {
	case map[string]any:
		return tree
	case nil:
		return map[string]any{}
	default:
		line, column := position(body)
		p.fail(line, column, "a spec is a mapping such as `engine: {block_size: 64}`")
		return nil
	}
}

// ReadMapping reads a YAML mapping as strictly as a spec: one document, each key once, of a reasonable size with its aliases
// written out. The error is a [Problems], which calls the text by the name.
func ReadMapping(name string, data []byte) (map[string]any, error) {
	p := &strictParser{collector: collector{origins: newOrigins()}, format: YAML, name: name}
	if p.guard(data); len(p.syntax) > 0 {
		return nil, p.syntax
	}
	tree := p.parseYAML(data)
	if wrong := append(p.syntax, p.problems...); len(wrong) > 0 {
		return nil, wrong
	}
	return tree, nil
}

// yamlDocument parses the syntax; nil means that there is nothing or that a problem was reported.
func (p *strictParser) yamlDocument(data []byte) (body ast.Node) {
	// The library is known to panic on some malformed input; for the user that is a syntax error.
	defer func() {
		if r := recover(); r != nil {
			body = nil
			p.fail(1, 1, "this is not valid YAML (%v)", r)
		}
	}()
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var syntax yaml.Error
		if errors.As(err, &syntax) && syntax.GetToken() != nil {
			at := syntax.GetToken().Position
			p.fail(at.Line, at.Column, "%s", syntax.GetMessage())
		} else {
			p.fail(1, 1, "%v", err)
		}
		return nil
	}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			line, column := position(doc.Body)
			p.fail(line, column, "a spec is one document; a second one starts here")
			return nil
		}
		body = doc.Body
	}
	return body
}

// yamlReader turns the nodes of one document into values.
type yamlReader struct {
	*strictParser
	anchors map[string]anchored
}

// anchored is a value that an alias may repeat, and how many values it consists of.
type anchored struct {
	value any
	size  int
}

// position is the place of a node; that of a mapping is its first key, not the colon after it.
func position(n ast.Node) (line, column int) {
	switch m := n.(type) {
	case *ast.MappingValueNode:
		return position(m.Key)
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			return position(m.Values[0].Key)
		}
	case nil:
		return 1, 1
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line, t.Position.Column
	}
	return 1, 1
}

func (y *yamlReader) value(path string, n ast.Node, depth int) any {
	line, column := position(n)
	if !y.count(1, depth, line, column) {
		return nil
	}
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return nil
	case *ast.MappingNode:
		return y.mapping(path, n.Values, depth)
	case *ast.MappingValueNode:
		return y.mapping(path, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		list := make([]any, len(n.Values))
		for i, element := range n.Values {
			at := indexed(path, i)
			if element != nil {
				y.origins.set(at, y.at(position(element)))
			}
			list[i] = y.value(at, element, depth+1)
		}
		return list
	case *ast.AnchorNode:
		before := y.values
		v := y.value(path, n.Value, depth)
		y.anchors[nameOf(n.Name)] = anchored{v, y.values - before}
		return v
	case *ast.AliasNode:
		a, ok := y.anchors[nameOf(n.Value)]
		if !ok {
			y.fail(line, column, "the alias *%s has no anchor before it", nameOf(n.Value))
		} else if !y.count(a.size, depth, line, column) {
			return nil
		}
		return a.value
	}
	return y.scalar(n)
}

func nameOf(n ast.Node) string {
	if n == nil || n.GetToken() == nil {
		return ""
	}
	return n.GetToken().Value
}

var (
	leadingZero = regexp.MustCompile(`^[-+]?0[0-9_]+$`)
	// largeOrExponent matches plain numbers such as 1e3 and whole ones of more than 64 bits.
	largeOrExponent = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
)

// text returns a string, or the number that a plain one is: the library takes some for text.
func (y *yamlReader) text(n *ast.StringNode, line, column int) any {
	if n.Token.Type != token.StringType || !largeOrExponent.MatchString(n.Value) {
		return n.Value
	}
	f, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || !strings.ContainsAny(n.Value, "eE") {
		y.fail(line, column, "%s: the number is too large", n.Value)
	}
	return f
}

func (y *yamlReader) scalar(n ast.Node) any {
	line, column := position(n)
	switch n := n.(type) {
	case *ast.BoolNode:
		return n.Value
	case *ast.IntegerNode:
		if leadingZero.MatchString(n.Token.Value) {
			y.fail(line, column, "%s: write the number without leading zeros", n.Token.Value)
		}
		switch v := n.Value.(type) {
		case int64:
			return v
		case uint64:
			if v <= 1<<63-1 {
				return int64(v)
			}
			return v
		}
		y.fail(line, column, "%s: the number is too large", n.Token.Value)
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return n.(ast.ScalarNode).GetValue()
	case *ast.StringNode:
		return y.text(n, line, column)
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.TagNode:
		y.fail(line, column, "tags such as %s are not supported; write the value as it is, text in quotes", n.Start.Value)
	default:
		y.fail(line, column, "%s is not supported here", n.Type())
	}
	return nil
}

func (y *yamlReader) mapping(path string, entries []*ast.MappingValueNode, depth int) map[string]any {
	m := make(map[string]any, len(entries))
	var merged []map[string]any
	for _, entry := range entries {
		line, column := position(entry.Key)
		if entry.Key.IsMergeKey() {
			merged = append(merged, y.mergeSources(path, entry.Value, depth)...)
			continue
		}
		name, ok := keyName(entry.Key)
		if !ok {
			y.fail(line, column, "%s: a key is text", entry.Key.GetToken().Value)
			continue
		}
		at := join(path, name)
		if _, twice := m[name]; twice {
			y.duplicate(at, line, column)
			continue
		}
		y.origins.set(at, y.at(line, column))
		m[name] = y.value(at, entry.Value, depth+1)
	}
	for _, source := range merged {
		for k, v := range source {
			if _, own := m[k]; !own {
				m[k] = v
			}
		}
	}
	return m
}

// mergeSources returns the mappings that a merge key (<<) brings in.
func (y *yamlReader) mergeSources(path string, n ast.Node, depth int) []map[string]any {
	switch v := y.value(path, n, depth+1).(type) {
	case map[string]any:
		return []map[string]any{v}
	case []any:
		var out []map[string]any
		for _, element := range v {
			if m, ok := element.(map[string]any); ok {
				out = append(out, m)
			}
		}
		if len(out) == len(v) {
			return out
		}
	}
	line, column := position(n)
	y.failOnce(line, column, "<< takes a mapping or a list of mappings")
	return nil
}

func keyName(k ast.MapKeyNode) (string, bool) {
	switch k := k.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.MappingKeyNode:
		if inner, ok := k.Value.(ast.MapKeyNode); ok {
			return keyName(inner)
		}
	case ast.ScalarNode:
		// Keys such as `on` or `1` are text for people; as names of cases they are welcome.
		if t := k.GetToken(); t != nil && t.Type != token.NullType {
			return t.Value, true
		}
	}
	return "", false
}

// parseOverride reads the value of an environment variable or a --set flag: a scalar or a collection in brackets
// as in YAML. Text that is neither stands for itself.
func parseOverride(text string) (any, error) {
	p := &strictParser{collector: collector{origins: newOrigins()}, format: YAML, name: "value"}
	if p.guard([]byte(text)); len(p.syntax) > 0 {
		return nil, errors.New(p.syntax[0].Allowed)
	}
	body := p.yamlDocument([]byte(text))
	quoted := len(text) > 0 && (text[0] == '[' || text[0] == '{' || text[0] == '"' || text[0] == '\'')
	if len(p.syntax) > 0 && quoted {
		return nil, fmt.Errorf("column %s", p.syntax[0].Error()[len("value:1:"):])
	}
	_, scalar := body.(ast.ScalarNode)
	if !quoted && (len(p.syntax) > 0 || body != nil && !scalar) {
		return text, nil
	}
	if body == nil {
		return nil, nil
	}
	y := yamlReader{strictParser: p, anchors: map[string]anchored{}}
	v := y.value("", body, 0)
	if wrong := append(p.syntax, p.problems...); len(wrong) > 0 {
		return nil, errors.New(wrong[0].Allowed)
	}
	return v, nil
}
