package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// maxPointsToChoose bounds the points of a spec of which one is chosen.
const maxPointsToChoose = 100_000

// pointOfSpec is the only point of a spec, or the one of that number where the flag --point is given, with the spec and what it
// warns of. done says what is done with it: needed, served.
func pointOfSpec(flags *pflag.FlagSet, st *state, path string, set []string, number int, done string) (*gridspec.Spec, *gridspec.Point, []string, error) {
	load := specFlags{set: set, maxPoints: maxPointsToChoose}
	spec, points, err := load.load(st, path)
	if err != nil {
		return nil, nil, nil, err
	}
	var warnings []string
	for _, w := range spec.Warnings() {
		warnings = append(warnings, w.Error())
	}
	switch n := len(points); {
	case n == 0:
		return nil, nil, nil, fmt.Errorf("%s has no points", path)
	case n > 1 && !flags.Changed("point"):
		return nil, nil, nil, fmt.Errorf("%s has %d points, and one is %s; choose it with --point 0 to %d, which servegrid spec expand lists", path, n, done, n-1)
	case number < 0 || number >= n:
		return nil, nil, nil, fmt.Errorf("--point: %d is not allowed; %s has the points 0 to %d", number, path, n-1)
	}
	return spec, &points[number], warnings, nil
}

// givenBesideSpec names the given ones of some flags, which a spec says itself. --set is for a spec too.
func givenBesideSpec(flags *pflag.FlagSet, kinds ...interface{ add(*pflag.FlagSet) }) []string {
	described := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, kind := range kinds {
		kind.add(described)
	}
	var given []string
	flags.Visit(func(flag *pflag.Flag) {
		if flag.Name != "set" && described.Lookup(flag.Name) != nil {
			given = append(given, "--"+flag.Name)
		}
	})
	return given
}

// refuseBesideSpec refuses traces and flags that a spec says itself. describes names what that is.
func refuseBesideSpec(given []string, describes string) error {
	if len(given) == 0 {
		return nil
	}
	return fmt.Errorf("%s: the spec describes %s; say it there or with --set", strings.Join(given, ", "), describes)
}

// load reads the workload of a point, and notes what is special about it.
func (st *state) load(ctx context.Context, point *gridspec.Point) (*workload.Workload, error) {
	set, err := rules.For(point.Config.Compat)
	if err != nil {
		return nil, err
	}
	source := st.source()
	source.Rules, source.EngineBlockSize = set, point.Config.BlockSize()
	w, err := point.Workload.Load(ctx, source)
	if err != nil {
		return nil, err
	}
	return w, printNotes(st.stderr, workloadNotes(w))
}
