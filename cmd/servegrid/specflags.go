package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/gridspec"
)

// specFlags are the flags of every command that reads a grid spec.
type specFlags struct {
	set       []string
	maxPoints int
	// equal counts the points that were left out since they repeat others.
	equal int
}

func (f *specFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.set, "set", nil, "override one key of the spec: key.path=value (repeatable)")
	cmd.Flags().IntVar(&f.maxPoints, "max-points", 0, "refuse specs with more points than this; 0 means 1,000,000")
}

// loadChecked is load for commands that simulate or say whether a spec is sound: trace files are there too.
func (f *specFlags) loadChecked(st *state, path string) (*gridspec.Spec, []gridspec.Point, error) {
	spec, points, err := f.load(st, path)
	if err == nil {
		err = spec.CheckTraces(points)
	}
	return spec, points, err
}

// warn prints what is allowed in a spec but hardly meant.
func (f *specFlags) warn(st *state, spec *gridspec.Spec) {
	for _, w := range spec.Warnings() {
		_ = printText(st.stderr, "warning: %v\n", w)
	}
	if f.equal > 0 {
		_ = printText(st.stderr, "note: left out %s equal to an earlier one\n", plural(f.equal, "point"))
	}
}

// load reads and expands a spec; the path "-" is the standard input.
func (f *specFlags) load(st *state, path string) (*gridspec.Spec, []gridspec.Point, error) {
	src := gridspec.Source{Path: path, Env: st.env, Set: f.set}
	if path == "-" {
		data, err := io.ReadAll(st.stdin)
		if err != nil {
			return nil, nil, fmt.Errorf("read the spec from the standard input: %w", err)
		}
		src = gridspec.Source{Path: "(standard input)", Data: data, Format: gridspec.YAML, Dir: ".", Env: st.env, Set: f.set}
	}
	if f.maxPoints < 0 {
		return nil, nil, fmt.Errorf("--max-points: %d is not allowed; give 1 or more, or 0 for 1,000,000", f.maxPoints)
	}
	spec, err := gridspec.Load(src)
	if err != nil {
		return nil, nil, err
	}
	points, err := spec.Expand(gridspec.ExpandOptions{MaxPoints: f.maxPoints, LeftOut: func(n int) { f.equal = n }})
	if err != nil {
		return nil, nil, err
	}
	if path == "-" && slices.ContainsFunc(points, readsStdin) {
		return nil, nil, errors.New("the standard input is the spec, so the trace cannot be read from it too; put one of them into a file")
	}
	return spec, points, nil
}

// readsStdin reports whether a point replays a trace from the standard input.
func readsStdin(p gridspec.Point) bool {
	t := p.Workload.Trace
	return t != nil && (t.Path == "-" || slices.Contains(t.Paths, "-"))
}
