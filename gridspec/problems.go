package gridspec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/servegrid/servegrid/simcore/problem"
)

// Problem is one thing that is wrong with a spec.
type Problem struct {
	// Where is the place as file:line:col, the environment variable or the --set flag; empty when the key is
	// missing altogether.
	Where string
	problem.Problem
}

// Error formats the problem as "where: path: value is not allowed; what is", in one line unless what is allowed has
// several. Of a long path or value it repeats the beginning.
func (p Problem) Error() string {
	p.Path, p.Value = Excerpt(oneLine(p.Path)), Excerpt(oneLine(p.Value))
	p.Where = oneLine(p.Where)
	text := p.Problem.Error()
	if p.Path == "" {
		text = p.Allowed
	}
	if p.Where == "" {
		return text
	}
	return p.Where + ": " + text
}

// Problems lists everything that is wrong with a spec. It is the type of every error that the user's input
// causes in this package.
type Problems []Problem

// Error lists every problem on a line of its own.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// sort puts problems into the order of their places in the file of that name; those from elsewhere follow.
func (ps Problems) sort(file string) {
	place := func(p Problem) (line, column int) {
		if rest, inFile := strings.CutPrefix(p.Where, file+":"); inFile {
			if _, err := fmt.Sscanf(rest, "%d:%d", &line, &column); err == nil {
				return line, column
			}
		}
		return math.MaxInt, 0
	}
	slices.SortStableFunc(ps, func(a, b Problem) int {
		lineA, columnA := place(a)
		lineB, columnB := place(b)
		return cmp.Or(cmp.Compare(lineA, lineB), cmp.Compare(columnA, columnB))
	})
}

func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// collector gathers problems and finds the place of each by its key path.
type collector struct {
	origins  *origins
	problems Problems
}

// add reports that the value at a path is not allowed.
func (c *collector) add(path string, value any, format string, args ...any) {
	c.addProblem(problem.Problem{Path: path, Value: show(value), Allowed: fmt.Sprintf(format, args...)})
}

// addMessage reports a problem at a path that is not about one value.
func (c *collector) addMessage(path, format string, args ...any) {
	c.addProblem(problem.Problem{Path: path, Allowed: fmt.Sprintf(format, args...)})
}

func (c *collector) addProblem(p problem.Problem) {
	c.problems = append(c.problems, Problem{Where: c.origins.where(p.Path), Problem: p})
}

// addUnknown reports a key that does not exist, with the nearest that does.
func (c *collector) addUnknown(path, key string, known []string) {
	if _, ok := configKeys.find(key); ok && strings.Contains(key, ".") {
		section, last := key[:strings.LastIndexByte(key, '.')], key[strings.LastIndexByte(key, '.')+1:]
		c.addMessage(path, "unknown key here; write it below its section: `%s: {%s: ...}`", section, last)
		return
	}
	if near := problem.Nearest(key, known); near != "" {
		c.addMessage(path, "unknown key; the nearest is %s", near)
	} else if home := configKeys.homeOf(key); home != "" {
		c.addMessage(path, "unknown key here; it belongs to %s", home)
	} else {
		c.addMessage(path, "unknown key; use one of: %s", strings.Join(known, ", "))
	}
}

// maxShown bounds how much of a value an error repeats, in bytes.
const maxShown = 80

// Excerpt returns the text as an error repeats it: whole, or its first 80 bytes and an ellipsis.
func Excerpt(text string) string {
	const ellipsis = "…"
	if len(text) <= maxShown+len(ellipsis) {
		return text
	}
	end := maxShown
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// oneLine writes line breaks as escapes, since names may hold them and an error has one line for each problem.
func oneLine(text string) string { return strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(text) }

// show formats a value of the tree for an error message.
func show(v any) string {
	text, err := jsonText(v)
	if err != nil {
		text = fmt.Sprint(v)
	}
	return Excerpt(text)
}

// jsonText is JSON in one line, for people: < and > stay as they are.
func jsonText(v any) (string, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(buf.String(), "\n"), err
}
