package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/sizing"
)

// clusterFlags are the flags that turn the estimate of a sweep into what it needs of a Kubernetes cluster.
type clusterFlags struct {
	helmValues string
	wish       sizing.Wish
}

func (f *clusterFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.helmValues, "helm-values", "", "with --estimate: write what the sweep needs of a cluster into this file, as values of the Helm chart; - is the standard output")
	fs.DurationVar(&f.wish.Within, "within", time.Hour, "with --helm-values: time in which the cluster shall finish")
	fs.IntVar(&f.wish.Jobs, "worker-jobs", 4, "with --helm-values: points that a worker simulates at the same time, each on a core")
	fs.IntVar(&f.wish.MaxWorkers, "max-workers", 0, fmt.Sprintf("with --helm-values: refuse to need more workers than this; 0 means %d", sizing.MostWorkers))
}

func (f *clusterFlags) check(cmd *cobra.Command, estimate bool) error {
	var errs []error
	if f.helmValues != "" && !estimate {
		errs = append(errs, errors.New("--helm-values: the values follow from an estimate; add --estimate"))
	}
	for _, name := range []string{"within", "worker-jobs", "max-workers"} {
		if f.helmValues == "" && cmd.Flags().Changed(name) {
			errs = append(errs, fmt.Errorf("--%s: it says what a cluster shall do, and nothing is asked about one; add --helm-values", name))
		}
	}
	return errors.Join(errs...)
}

// text is where text for people goes: not between the values.
func (f *clusterFlags) text(st *state) io.Writer {
	if f.helmValues == "-" {
		return st.stderr
	}
	return st.stdout
}

// write says what the sweep needs of a cluster and writes it as values; it does nothing unless that is asked for.
func (f *clusterFlags) write(st *state, spec *gridspec.Spec, cost sweep.Cost) error {
	if f.helmValues == "" {
		return nil
	}
	c, err := sizing.For(cost, f.wish)
	if err != nil {
		return fmt.Errorf("--helm-values: %w", err)
	}
	searches := spec.Search.Method != gridspec.SearchNone
	if searches {
		c.Shards = 0 // a search chooses its points as it goes, so they cannot be dealt out before
	}
	if err := f.print(st, spec, cost, c); err != nil {
		return err
	}
	values := c.HelmValues(
		fmt.Sprintf("For %s to finish within %s, by servegrid spec expand --estimate --helm-values.", plural(cost.Points, "point"), f.wish.Within),
		fmt.Sprintf("Measured: %s a point on average, %s at most.", cost.PointMean.Round(100*time.Microsecond), cost.PointMax.Round(100*time.Microsecond)),
	)
	if f.helmValues == "-" {
		_, err = st.stdout.Write(values)
		return err
	}
	return results.WriteFile(f.helmValues, func(w io.Writer) error {
		_, err := w.Write(values)
		return err
	})
}

func (f *clusterFlags) print(st *state, spec *gridspec.Spec, cost sweep.Cost, c sizing.Cluster) error {
	about := "about"
	if c.AtLeast {
		about = "at least"
	}
	out := f.text(st)
	err := printText(out, "cluster: %s of %d cores and %s finish in %s %s, given up after %s; coordinator %d core and %s; results %s, queue %s\n",
		plural(c.Workers, "worker"), c.CPU, mebibytes(c.MemoryBytes), about, c.Expected.Round(time.Second), c.Deadline,
		c.CoordinatorCPU, mebibytes(c.CoordinatorBytes), sizing.Quantity(c.ResultBytes), sizing.Quantity(c.QueueBytes))
	if cost.Total <= c.Expected && !cost.AtLeast {
		err = errors.Join(err, printText(out, "this machine does it sooner, in about %s: servegrid sweep needs no cluster for it\n", cost.Total.Round(100*time.Millisecond)))
	}
	if c.Shards > 0 {
		err = errors.Join(err, printText(out, "without a queue: %s, %d at a time, given up after %s\n", plural(c.Shards, "shard"), c.Parallelism(), c.ShardsDeadline))
	}
	if spec.Output.PerRequest || spec.Output.Timelines {
		err = errors.Join(err, printText(st.stderr, "note: the files of every point (output.per_request, output.timelines) are not in the space for the results\n"))
	}
	return err
}
