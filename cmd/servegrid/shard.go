package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/sweep"
)

// shardFlag is the flag of commands that work on a part of a spec's points.
type shardFlag struct {
	shardText string
	// shard is what the flag says, once the spec is loaded; the zero value is all points.
	shard gridspec.Shard
}

func (f *shardFlag) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.shardText, "shard", "", "the part of the points for this machine, such as 3/8; auto takes it from a Slurm array job, auto/8 also from an Indexed Job of Kubernetes")
}

// read reads the flag.
func (f *shardFlag) read(env []string) error {
	if f.shardText == "" {
		return nil
	}
	var err error
	if f.shard, err = sweep.ParseShard(f.shardText, lookupIn(env)); err != nil {
		err = fmt.Errorf("--shard: %w", err)
	}
	return err
}

// lookupIn returns the lookup of an environment.
func lookupIn(env []string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, kv := range slices.Backward(env) {
			if value, found := strings.CutPrefix(kv, name+"="); found {
				return value, true
			}
		}
		return "", false
	}
}

// refuseSearch refuses a shard of a search.
func (f *shardFlag) refuseSearch(spec *gridspec.Spec) error {
	if f.shard.Count == 0 || spec.Search.Method == gridspec.SearchNone {
		return nil
	}
	return errors.New("--shard: a search chooses its next points by all that it has seen, and a shard would see its own only; search on one machine, or sweep without search")
}

// concludeEmptyShard says that the shard has no points. Its folder shows that it is done.
func (j *sweepJob) concludeEmptyShard() error {
	if err := j.writeSpec(); err != nil || j.flags.quiet || j.flags.jsonl {
		return err
	}
	return printText(j.state.stdout, "%snone of the spec's points are in it\n", j.flags.label())
}

// label begins what is said about a shard's points.
func (f *shardFlag) label() string {
	if f.shard.Count == 0 {
		return ""
	}
	return "shard " + f.shard.String() + ": "
}
