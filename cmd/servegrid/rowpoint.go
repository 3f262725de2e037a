package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/files"
)

// pointOfRow returns the point that a row of results came from: its complete configuration and workload. It reads the
// row's command rather than the spec, so it needs neither the spec's folder nor to expand a space. The error says so when the command now gives
// another point than the row's, since a file has changed.
func pointOfRow(system files.System, t *results.Table, row int) (gridspec.Point, error) {
	command := t.Column(results.CommandColumn)
	if command == nil || command.Kind != gridspec.KindString || command.Null[row] {
		return gridspec.Point{}, fmt.Errorf("row %d does not say its configuration: that needs the column %s, which sweep writes", row+1, results.CommandColumn)
	}
	point, err := pointOfCommand(system, command.Strings[row])
	if err != nil {
		return gridspec.Point{}, fmt.Errorf("row %d: %s: %w", row+1, results.CommandColumn, err)
	}
	if c := t.Column(replicateColumn); c != nil && c.Kind == gridspec.KindInt && !c.Null[row] {
		point.Replicate = int(c.Ints[row])
	}
	field := func(name string) string {
		if c := t.Column(name); c != nil && c.Kind == gridspec.KindString {
			return c.Text(row)
		}
		return ""
	}
	id, digest := field("id"), field("workload_digest")
	if id != "" && digest != "" && field("simulator_version") == simcore.SemanticVersion && point.ContentID(digest) != id {
		return gridspec.Point{}, fmt.Errorf("row %d: its command gives another configuration now, so a file that it names has changed since: %s", row+1, command.Strings[row])
	}
	return point, nil
}

// replicateColumn numbers the repetitions of a configuration.
const replicateColumn = "replicate"

// pointOfCommand reads a command as [reproduceCommand] writes it.
func pointOfCommand(system files.System, command string) (gridspec.Point, error) {
	words, err := unquoteCommand(command)
	if err != nil {
		return gridspec.Point{}, err
	}
	if len(words) < 2 || words[0] != "servegrid" || words[1] != "replay" {
		return gridspec.Point{}, errors.New("is not a servegrid replay command")
	}
	var f replayFlags
	cmd := &cobra.Command{Use: "replay"}
	f.add(cmd.Flags())
	if err := cmd.Flags().Parse(words[2:]); err != nil {
		return gridspec.Point{}, err
	}
	point, _, err := f.point(cmd, system, cmd.Flags().Args())
	if err != nil {
		return gridspec.Point{}, err
	}
	return *point, nil
}

// unquoteCommand splits a command that [shellQuote] has quoted.
func unquoteCommand(command string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord := false
	for i := 0; i < len(command); i++ {
		switch c := command[i]; c {
		case ' ':
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		case '\'':
			end := strings.IndexByte(command[i+1:], '\'')
			if end < 0 {
				return nil, errors.New("a quote is not closed")
			}
			word.WriteString(command[i+1 : i+1+end])
			i += end + 1
			inWord = true
		case '\\':
			if i++; i == len(command) {
				return nil, errors.New("ends in a backslash")
			}
			word.WriteByte(command[i])
			inWord = true
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}
