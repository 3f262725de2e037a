// Package problem describes what is wrong with a configuration in terms of the user's key paths, so that one
// error can list all problems at once.
package problem

import (
	"fmt"
	"strings"
)

// Problem is one invalid setting.
type Problem struct {
	// Path is the setting's key path, such as "engine.block_size".
	Path string
	// Value is the offending value as the user would write it; empty when the setting is missing.
	Value string
	// Allowed says what would be accepted.
	Allowed string
	// Reason is a stable category for failed rows, such as "invalid_config".
	Reason string
}

// Error formats the problem as "path: value is not allowed: what is".
func (p Problem) Error() string {
	if p.Value == "" {
		return fmt.Sprintf("%s: %s", p.Path, p.Allowed)
	}
	return fmt.Sprintf("%s: %s is not allowed; %s", p.Path, p.Value, p.Allowed)
}

// List collects problems. A nil or empty list is no error; use [List.Err].
type List []Problem

// Add appends a problem; value is printed with %v.
func (l *List) Add(path string, value any, format string, args ...any) {
	*l = append(*l, Problem{Path: path, Value: fmt.Sprintf("%v", value), Allowed: fmt.Sprintf(format, args...)})
}

// Under returns the list with every path moved below prefix.
func (l List) Under(prefix string) List {
	out := make(List, len(l))
	for i, p := range l {
		p.Path = prefix + "." + p.Path
		out[i] = p
	}
	return out
}

// Err returns the list as an error, or nil when it is empty.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}

// Error lists every problem on a line of its own.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, p := range l {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}
