package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/workload"
	"github.com/servegrid/servegrid/sweep"

	"github.com/jedib0t/go-pretty/v6/table"
)

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func newSpec(st *state) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "spec",
		Short: "Start, check and expand grid specs",
		Args:  onlySubcommands,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSpecInit(st), newSpecValidate(st), newSpecExpand(st), newSpecSchema(st))
	return cmd
}

func newSpecInit(st *state) *cobra.Command {
	return &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a commented starter spec",
		Long:  "init writes a commented starter spec into FILE, which must not exist. Without FILE it prints the starter.",
		Args:  atMostOne("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := st.stdout.Write(gridspec.Starter())
				return err
			}
			file, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s exists already; name another file", args[0])
			}
			if err != nil {
				return err
			}
			_, err = file.Write(gridspec.Starter())
			if err = errors.Join(err, file.Close()); err != nil {
				return err
			}
			return printText(st.stdout, "Wrote %s. Next: servegrid sweep %s\n", args[0], args[0])
		},
	}
}

func newSpecValidate(st *state) *cobra.Command {
	var f specFlags
	cmd := &cobra.Command{
		Use:   "validate SPEC",
		Short: "Check a spec and list everything that is wrong with it",
		Long: `validate checks a spec and every point that it makes, and lists everything that is wrong at once, with its place. It
looks whether trace files can be read, but does not read them: a damaged trace shows when the sweep loads it.`,
		Args: exactlyOne("SPEC"),
		RunE: func(_ *cobra.Command, args []string) error {
			spec, err := f.loadSpec(st, args[0])
			if err != nil {
				return err
			}
			if spec.Search.Method != gridspec.SearchNone {
				return f.validateSearch(st, spec, args[0])
			}
			points, err := f.expandChecked(spec, args[0])
			if err != nil {
				return err
			}
			f.warn(st, spec)
			impossible := ""
			if n := countSkipped(points); n > 0 {
				impossible = fmt.Sprintf(", of which %d are impossible and stay rows with the reason", n)
			}
			return printText(st.stdout, "%s is valid: %s%s\n", args[0], plural(len(points), "point"), impossible)
		},
	}
	f.add(cmd)
	return cmd
}

func newSpecSchema(st *state) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of specs, for editors",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := st.stdout.Write(gridspec.JSONSchema())
			return err
		},
	}
}

func newSpecExpand(st *state) *cobra.Command {
	var f specFlags
	var format string
	var estimate bool
	var cluster clusterFlags
	cmd := &cobra.Command{
		Use:   "expand SPEC",
		Short: "List the points of a spec without running them",
		Long: `expand lists the points that a spec makes, and simulates none of them.

With --estimate it simulates a few points, spread over all, and says how long the sweep takes on this machine and with how
much memory. With --helm-values it also says what the sweep needs of a Kubernetes cluster to finish --within a time, and writes
that as values of the Helm chart in deploy/helm/servegrid.`,
		Args: exactlyOne("SPEC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cluster.check(cmd, estimate); err != nil {
				return err
			}
			spec, err := f.loadSpec(st, args[0])
			if err != nil {
				return err
			}
			if estimate && spec.Search.Method != gridspec.SearchNone {
				return f.estimateSearch(cmd, st, spec, args[0], &cluster)
			}
			points, err := f.expand(spec, args[0])
			if err != nil {
				return err
			}
			f.warn(st, spec)
			if n := countSkipped(points); n > 0 {
				_ = printText(st.stderr, "note: %d of %s are impossible; a sweep skips them and keeps their rows with the reason\n", n, plural(len(points), "point"))
			}
			if estimate {
				return printEstimate(cmd, st, spec, points, &cluster)
			}
			switch format {
			case "count":
				_, err = fmt.Fprintln(st.stdout, len(points))
			case "table":
				_, err = fmt.Fprintln(st.stdout, renderPoints(points))
			case "json":
				err = printPoints(st, points)
			default:
				err = fmt.Errorf("--format: %q is not a format; use one of: table, json, count", format)
			}
			return err
		},
	}
	f.add(cmd)
	f.shardFlag.add(cmd.Flags())
	cmd.Flags().StringVar(&format, "format", "table", "table, json or count")
	cmd.Flags().BoolVar(&estimate, "estimate", false, "simulate a few points to estimate the time and memory of the sweep")
	cluster.add(cmd.Flags())
	return cmd
}

// countSkipped counts the points that on_invalid: skip leaves out of the simulation.
func countSkipped(points []gridspec.Point) int {
	n := 0
	for i := range points {
		if points[i].SkipReason != "" {
			n++
		}
	}
	return n
}

func renderPoints(points []gridspec.Point) string {
	out := newTableWriter()
	header := table.Row{"#"}
	if len(points) > 0 {
		for _, a := range points[0].Axes {
			header = append(header, cellText(a.Column))
		}
	}
	out.AppendHeader(append(header, "skipped"))
	for n, p := range points {
		if n == maxShownRows {
			out.AppendFooter(table.Row{fmt.Sprintf("… %d more", len(points)-n)})
			break
		}
		cells := table.Row{p.Index}
		for _, a := range p.Axes {
			cells = append(cells, cellText(a.Value.String()))
		}
		out.AppendRow(append(cells, visible(p.SkipMessage)))
	}
	return out.Render()
}

// expandedPoint is one point as spec expand --format json prints it.
type expandedPoint struct {
	Index    int            `json:"index"`
	Axes     map[string]any `json:"axes"`
	Config   any            `json:"config"`
	Workload any            `json:"workload"`
	Skipped  string         `json:"skipped,omitempty"`
}

func printPoints(st *state, points []gridspec.Point) error {
	out := make([]expandedPoint, len(points))
	for i, p := range points {
		out[i] = expandedPoint{p.Index, axesByColumn(p.Axes), p.Config, p.Workload, p.SkipMessage}
	}
	encoder := json.NewEncoder(st.stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}

func printEstimate(cmd *cobra.Command, st *state, spec *gridspec.Spec, points []gridspec.Point, cluster *clusterFlags) error {
	cost, err := sweep.Estimate(cmd.Context(), points, sweep.Options{
		Jobs: int(spec.Execution.Jobs), MemoryLimit: int64(spec.Execution.MaxMemory), Timeout: spec.Execution.Timeout, Stdin: st.stdin,
		Load: func(ctx context.Context, s workload.Spec, src workload.Source) (*workload.Workload, error) {
			src.Files, src.MaxExpansion = st.fileSystem(), st.places.maxExpansion
			return s.Load(ctx, src)
		},
	})
	if err != nil {
		return err
	}
	about := "about"
	if cost.AtLeast {
		about = "at least"
	}
	_, err = fmt.Fprintf(cluster.text(st), "%s, %s: %s %s with %d at a time, %s of memory (%s, %s a point on average, %s at most)\n",
		plural(cost.Points, "point"), plural(cost.Workloads, "workload"), about, cost.Total.Round(100*time.Millisecond), cost.Concurrent, mebibytes(cost.MemoryBytes),
		plural(cost.Probes, "probe"), cost.PointMean.Round(100*time.Microsecond), cost.PointMax.Round(100*time.Microsecond))
	return errors.Join(err, cluster.write(st, spec, cost))
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", (n+1<<20-1)>>20) }
