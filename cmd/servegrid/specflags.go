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
	shardFlag
	// equal counts the points that were left out since they repeat others.
	equal int
}

func (f *specFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.set, "set", nil, "override one key of the spec: key.path=value (repeatable)")
	cmd.Flags().IntVar(&f.maxPoints, "max-points", 0, "refuse specs with more points than this; 0 means 1,000,000")
}

// expandChecked expands a spec and looks for its trace files.
func (f *specFlags) expandChecked(spec *gridspec.Spec, path string) ([]gridspec.Point, error) {
	points, err := f.expand(spec, path)
	if err == nil {
		err = spec.CheckTraces(points)
	}
	return points, err
}

// expand expands a spec and counts the points that were left out.
func (f *specFlags) expand(spec *gridspec.Spec, path string) ([]gridspec.Point, error) {
	points, err := spec.Expand(gridspec.ExpandOptions{MaxPoints: f.maxPoints, Shard: f.shard, LeftOut: func(n int) { f.equal = n }})
	if err == nil {
		err = checkStdin(path, points)
	}
	return points, err
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
	spec, err := f.loadSpec(st, path)
	if err != nil {
		return nil, nil, err
	}
	points, err := f.expand(spec, path)
	return spec, points, err
}

// loadSpec reads a spec.
func (f *specFlags) loadSpec(st *state, path string) (*gridspec.Spec, error) {
	src := gridspec.Source{Path: path, Env: st.env, Set: f.set, Files: st.fileSystem()}
	if path == "-" {
		data, err := io.ReadAll(st.stdin)
		if err != nil {
			return nil, fmt.Errorf("read the spec from the standard input: %w", err)
		}
		src = gridspec.Source{Path: "(standard input)", Data: data, Format: gridspec.YAML, Dir: ".", Env: st.env, Set: f.set, Files: st.fileSystem()}
	}
	if path != "-" {
		var err error
		if src.Data, err = st.places.readSpec(path); err != nil {
			return nil, err
		}
	}
	if f.maxPoints < 0 {
		return nil, fmt.Errorf("--max-points: %d is not allowed; give 1 or more, or 0 for 1,000,000", f.maxPoints)
	}
	shardErr := f.shardFlag.read(st.env)
	spec, err := gridspec.Load(src)
	if err == nil {
		err = f.refuseSearch(spec)
	}
	if err = errors.Join(shardErr, err); err != nil {
		return nil, err
	}
	return spec, nil
}

// checkStdin refuses to read spec and trace from the standard input.
func checkStdin(path string, points []gridspec.Point) error {
	if path == "-" && slices.ContainsFunc(points, readsStdin) {
		return errors.New("the standard input is the spec, so the trace cannot be read from it too; put one of them into a file")
	}
	return nil
}

// readsStdin reports whether a point replays a trace from the standard input.
func readsStdin(p gridspec.Point) bool {
	t := p.Workload.Trace
	return t != nil && (t.Path == "-" || slices.Contains(t.Paths, "-"))
}
