package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results/compare"
	"github.com/servegrid/servegrid/results/deploy"
	"github.com/servegrid/servegrid/simcore/files"
)

// deployFlags say what to write where.
type deployFlags struct {
	specFlags
	output, name, checkpoint string
}

func newDeploy(st *state) *cobra.Command {
	var f deployFlags
	cmd := &cobra.Command{
		Use:   "deploy INPUT",
		Short: "Write the files that deploy a configuration",
		Long: `deploy writes the files that deploy one configuration: a spec that simulates just this point, a script that starts a vLLM,
SGLang or TensorRT-LLM server, a DynamoGraphDeployment for Kubernetes, and notes on what the servers have no setting for.

INPUT is a point of a sweep, as in RUN#3f2a: the sweep's folder and how the point's ID begins, where there is more than one; or a
grid spec (YAML or TOML) with one point.`,
		Args: exactlyOne("INPUT"),
		RunE: func(_ *cobra.Command, args []string) error { return f.run(st, args[0]) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.output, "output", "o", "", "folder for the files; the default is deploy-NAME, after the point's ID or the spec's name")
	fs.StringVar(&f.name, "name", "", "name of the deployment; the default is the spec's")
	fs.StringVar(&f.checkpoint, "checkpoint", "", "what servers load, a Hugging Face name or a path; the default is the usual checkpoint of timing.model")
	fs.StringArrayVar(&f.set, "set", nil, "override one key of the spec: key.path=value (repeatable)")
	return cmd
}

func (f *deployFlags) run(st *state, input string) error {
	read := f.pointOfResults
	if isSpecName(input) {
		read = f.pointOfSpec
	}
	point, name, label, err := read(st, input)
	if err != nil {
		return err
	}
	if f.name != "" {
		name = f.name
	}
	dir := f.output
	if dir == "" {
		dir = "deploy-" + fileName(label)
	}
	plan := deploy.Plan{Config: point.Config, Workload: point.Workload, GPUPrice: point.GPUPrice, Name: name, Checkpoint: f.checkpoint}
	return writeDeployment(st, dir, plan)
}

// pointOfResults finds the point that RUN#POINT names; the label is its ID.
func (f *deployFlags) pointOfResults(st *state, input string) (point gridspec.Point, name, label string, err error) {
	if len(f.set) > 0 {
		return point, "", "", errors.New("--set changes a spec, but this is a point of results")
	}
	path, id, ok := splitPoint(input)
	t, err := readWhere(st, path, "")
	if err != nil {
		return point, "", "", err
	}
	row := 0
	switch {
	case ok:
		if row, err = compare.FindPoint(t, id); err != nil {
			return point, "", "", fmt.Errorf("%s: %w", path, err)
		}
	case t.Rows() != 1:
		return point, "", "", fmt.Errorf("%s has %d points; name one, such as %s#3f2a: its ID is in the report and in the column id", path, t.Rows(), path)
	default:
		id = filepath.Base(path)
	}
	point, err = pointOfRow(st.fileSystem(), t, row)
	return point, specName(t.Metadata.Spec), id, err
}

// pointOfSpec returns the only point of a spec; the label is the spec's name.
func (f *deployFlags) pointOfSpec(st *state, input string) (point gridspec.Point, name, label string, err error) {
	spec, points, err := f.load(st, input)
	if err != nil {
		return point, "", "", err
	}
	f.warn(st, spec)
	if len(points) != 1 {
		return point, "", "", fmt.Errorf("%s has %d points; sweep it and name one as FOLDER#ID, or give the spec of one", input, len(points))
	}
	if points[0].SkipReason != "" {
		return point, "", "", fmt.Errorf("%s: %s", input, points[0].SkipMessage)
	}
	label = spec.Name
	if label == "" {
		label = strings.TrimSuffix(files.Base(input), filepath.Ext(files.Base(input)))
	}
	return points[0], spec.Name, label, nil
}

// writeDeployment writes the files of a deployment into a folder and says what they are.
func writeDeployment(st *state, dir string, plan deploy.Plan) error {
	written, err := deploy.Files(plan)
	if err != nil {
		return err
	}
	if err := deploy.Write(dir, written); err != nil {
		return err
	}
	if err := printText(st.stderr, "Files to deploy in %s:\n", dir); err != nil {
		return err
	}
	for _, file := range written {
		if err := printText(st.stderr, "  %-18s %s\n", file.Name, file.Note); err != nil {
			return err
		}
	}
	return nil
}
