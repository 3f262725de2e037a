package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/simcore"
)

// standInWorkload takes the place of a workload in what is served, which needs none.
const standInWorkload = `{"synthetic": {"input_tokens": 1, "output_tokens": 1, "requests": 1}}`

// deployment is the point that a spec or the flags describe, with what changes nothing.
func (f *serveFlags) deployment(cmd *cobra.Command, st *state, args []string) (point *gridspec.Point, notes []string, err error) {
	if len(args) == 1 {
		point, notes, err = f.specPoint(cmd.Flags(), st, args[0])
	} else {
		point, notes, err = f.flagsPoint(cmd.Flags(), st)
	}
	if err != nil {
		return nil, nil, err
	}
	if point.SkipReason != "" {
		return point, notes, fmt.Errorf("the point is impossible: %s", point.SkipMessage)
	}
	point.Config.AgentX = simcore.DefaultAgentX() // like the workload, it is about who sends requests
	return point, notes, nil
}

// planned is the planner of a point and the deployment that it plans; nil where the number of workers does not change.
func planned(ctx context.Context, point *gridspec.Point) (*planner.Online, simcore.Config, error) {
	if !point.Config.Planned() {
		return nil, point.Config.Config, nil
	}
	return planner.NewOnline(ctx, point.Config.Config, point.Config.Planner)
}

// flagsPoint is what the flags describe.
func (f *serveFlags) flagsPoint(flags *pflag.FlagSet, st *state) (*gridspec.Point, []string, error) {
	b := specBuilder{flags: flags, files: st.fileSystem(), spec: map[string]any{"workload": json.RawMessage(standInWorkload)}}
	if flags.Changed("point") {
		b.refuse(errors.New("--point is for a SPEC of several points"))
	}
	f.addSections(&b)
	if page, _ := f.plannerArgs(&b, f.compat != ""); page.dir+page.file != "" {
		b.notes = append(b.notes, "--"+plannerFlag+": what it says of a report changes nothing here: /metrics shows what the planner does")
	}
	f.addDeployment(&b)
	f.addRouter(&b)
	point, err := b.point(f.set)
	return point, append(b.notes, b.cautions...), err
}

// specPoint is a point of a spec.
func (f *serveFlags) specPoint(flags *pflag.FlagSet, st *state, path string) (*gridspec.Point, []string, error) {
	if err := refuseBesideSpec(givenBesideSpec(flags, &deploymentFlags{}, &plannerFlags{}), "the deployment"); err != nil {
		return nil, nil, err
	}
	_, point, warnings, err := pointOfSpec(flags, st, path, f.set, f.point, "served")
	if lacksWorkload(err) {
		_, point, warnings, err = pointOfSpec(flags, st, path, append([]string{"workload=" + standInWorkload}, f.set...), f.point, "served")
	}
	return point, warnings, err
}

// lacksWorkload reports whether the only thing wrong with a spec is that it has no workload.
func lacksWorkload(err error) bool {
	var problems gridspec.Problems
	if !errors.As(err, &problems) {
		return false
	}
	return !slices.ContainsFunc(problems, func(p gridspec.Problem) bool { return p.Path != "workload" })
}
