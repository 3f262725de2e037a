package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/servegrid/servegrid/results/timelines"
	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/simcore/workload"
	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/storage"
)

// placeFlags say where files may lie.
type placeFlags struct {
	allow        []string
	maxExpansion int
	system       *storage.System
}

// The variables of the environment that stand for flags that are not given.
const (
	allowVariable        = "SERVEGRID_ALLOW"
	maxExpansionVariable = "SERVEGRID_MAX_EXPANSION"
)

func (p *placeFlags) add(fs *pflag.FlagSet) {
	fs.StringArrayVar(&p.allow, "allow", nil, "folder or URL that files of a spec may lie in, and results; others are refused (repeatable; "+allowVariable+" is a list of them)")
	fs.IntVar(&p.maxExpansion, "max-expansion", workload.DefaultMaxExpansion, "refuse compressed traces that become more than this many times as large ("+maxExpansionVariable+")")
}

// read reads what the environment says, and opens the file system.
func (p *placeFlags) read(fs *pflag.FlagSet, env []string) error {
	lookup := lookupIn(env)
	if list, ok := lookup(allowVariable); ok && !fs.Changed("allow") {
		p.allow = splitPlaces(list)
	}
	if text, ok := lookup(maxExpansionVariable); ok && !fs.Changed("max-expansion") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%s: %q is no whole number", maxExpansionVariable, text)
		}
		p.maxExpansion = n
	}
	if p.maxExpansion < 1 {
		return fmt.Errorf("--max-expansion: %d is not allowed; give 1 or more", p.maxExpansion)
	}
	roots, err := storage.NewRoots(p.allow)
	p.system = &storage.System{Roots: roots}
	return err
}

// splitPlaces splits a list of paths as that of PATH, in which URLs may stand too.
func splitPlaces(list string) []string {
	var out []string
	for _, part := range filepath.SplitList(list) {
		if n := len(out) - 1; n >= 0 && strings.HasPrefix(part, "//") && !strings.ContainsAny(out[n], "/\\") {
			out[n] += ":" + part // what follows the scheme of a URL
		} else if n >= 0 && files.IsURL(out[n]) && startsWithPort(part) {
			out[n] += ":" + part
		} else if part != "" {
			out = append(out, part)
		}
	}
	return out
}

// startsWithPort reports whether a part of a list is the end of a URL with a port.
func startsWithPort(part string) bool {
	end := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' })
	return part != "" && end != 0
}

// fileSystem opens the files that people name, at URLs too.
func (st *state) fileSystem() files.System { return st.places.open() }

func (p *placeFlags) open() *storage.System {
	if p.system == nil {
		p.system = &storage.System{}
	}
	return p.system
}

// maxSpecFile is more than a spec may have; see gridspec.
const maxSpecFile = 16 << 20

// readSpec reads a spec, which may lie where its files may not: people name it themselves. Nil means that the spec is read as
// its files are.
func (p *placeFlags) readSpec(path string) ([]byte, error) {
	if len(p.allow) == 0 {
		return nil, nil
	}
	var anywhere storage.System
	f, err := anywhere.Open(context.Background(), path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSpecFile))
	return data, errors.Join(err, f.Close(), anywhere.Close())
}

// source is how the commands read workloads.
func (st *state) source() workload.Source {
	return workload.Source{Stdin: st.stdin, Files: st.fileSystem(), MaxExpansion: st.places.maxExpansion}
}

// localResults returns a path of this machine for results that are only read: that of a file or folder itself, or that of a copy
// for a URL, whose journal is put together and whose timelines are copied when that is asked for.
func (st *state) localResults(ctx context.Context, arg string, opt storage.PullOptions) (string, error) {
	path, point, isPoint := arg, "", false
	if files.IsURL(arg) {
		path, point, isPoint = strings.Cut(arg, "#")
	}
	if !files.IsURL(path) {
		return arg, storage.CheckPath(path)
	}
	local, err := st.places.open().PullResults(ctx, path, opt)
	if isPoint {
		local += "#" + point
	}
	return local, err
}

// readsResults lets a command take results at URLs: it sees copies of this machine.
func readsResults(st *state, cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var opt storage.PullOptions
		if name := cmd.Name(); name == "report" || name == "timeline" {
			opt.Folders = []string{timelines.Folder}
		}
		local := make([]string, len(args))
		for i, arg := range args {
			if local[i] = arg; isSpecName(arg) {
				continue
			}
			var err error
			if local[i], err = st.localResults(cmd.Context(), arg, opt); err != nil {
				return err
			}
			if err := st.checkCopy(cmd.Context(), arg, local[i]); err != nil {
				return err
			}
		}
		return run(cmd, local)
	}
	return cmd
}

// checkCopy refuses the copy of a folder at a URL that has no results, and names the URL.
func (st *state) checkCopy(ctx context.Context, url, copied string) error {
	if !files.IsURL(url) || !isFolder(copied) || isFile(filepath.Join(copied, sweep.ResultsFile)) {
		return nil
	}
	entries, err := st.fileSystem().List(ctx, url)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(entries, func(e files.Entry) bool {
		_, shard := sweep.ShardOfFolder(e.Name)
		return shard
	}) {
		return shardsError(files.Shown(url))
	}
	return fmt.Errorf("%s has no %s; name the output folder of a sweep", files.Shown(url), sweep.ResultsFile)
}

// isSpecName reports whether a path or URL ends like that of a spec. JSON may be results too.
func isSpecName(path string) bool {
	path, _, _ = strings.Cut(path, "#")
	switch strings.ToLower(filepath.Ext(files.Base(path))) {
	case ".yaml", ".yml", ".toml":
		return true
	}
	return false
}
