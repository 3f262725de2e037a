package sweep

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// group is the points that replay one workload. Points run group by group, so that a workload is loaded once and
// can be forgotten as soon as its last point is done.
type group struct {
	spec   workload.Spec
	source workload.Source
	// points are indices into the expansion, in its order.
	points []int
	// blockSizes are the KV block sizes of the points.
	blockSizes map[int]struct{}
	// err is set when the points name no rule set that exists; nothing can be loaded then.
	err error
}

// groupKey tells the groups apart. Points that name no rule set that exists are in groups of their own.
type groupKey struct {
	WorkloadKey
	badCompat rules.Compat
}

// groupByWorkload groups the points that need a simulation, in order of first appearance.
func groupByWorkload(points []gridspec.Point, stdin io.Reader) []*group {
	var groups []*group
	byKey := map[groupKey]*group{}
	texts := map[workload.Spec]string{}
	for i := range points {
		p := &points[i]
		if p.SkipReason != "" {
			continue
		}
		key, err := keyOf(p, texts)
		g := byKey[key]
		if g == nil {
			g = &group{
				spec:       p.Workload,
				source:     workload.Source{Rules: key.rules, EngineBlockSize: p.Config.BlockSize(), Stdin: stdin},
				blockSizes: map[int]struct{}{},
				err:        err,
			}
			byKey[key] = g
			groups = append(groups, g)
		}
		g.points = append(g.points, i)
		g.blockSizes[p.Config.BlockSize()] = struct{}{}
	}
	return groups
}

// keyOf returns the key of a point's group, and an error when the point names no rule set that exists. The points
// of an expansion share a few specs by pointer; texts remembers how those read.
func keyOf(p *gridspec.Point, texts map[workload.Spec]string) (groupKey, error) {
	text, ok := texts[p.Workload]
	if !ok {
		text = specText(p.Workload)
		texts[p.Workload] = text
	}
	key := groupKey{WorkloadKey: WorkloadKey{spec: text}}
	if p.Workload.DependsOnEngine() {
		key.blockSize = p.Config.BlockSize()
	}
	set, err := rules.For(p.Config.Compat)
	if err != nil {
		key.badCompat = p.Config.Compat
	}
	key.rules = set
	return key, err
}

// specText writes the value of a spec down, so that equal specs have equal texts. Unlike JSON it takes every float.
func specText(s workload.Spec) string {
	text := fmt.Sprintf("%q %v", s.Name, s.Share)
	if s.Trace != nil {
		text += fmt.Sprintf(" %#v", *s.Trace)
	}
	if s.Preset != nil {
		text += fmt.Sprintf(" %#v", *s.Preset)
	}
	if s.Synthetic != nil {
		text += fmt.Sprintf(" %#v", *s.Synthetic)
	}
	return text
}

// readsStdin reports whether a workload is a trace from the standard input.
func readsStdin(s *workload.Spec) bool {
	return s.Trace != nil && (s.Trace.Path == "-" || slices.Contains(s.Trace.Paths, "-"))
}

// shareStdin lets several groups read the standard input, which is there only once.
func shareStdin(groups []*group) error {
	var readers []*group
	for _, g := range groups {
		if readsStdin(&g.spec) && g.source.Stdin != nil {
			readers = append(readers, g)
		}
	}
	if len(readers) < 2 {
		return nil
	}
	text, err := io.ReadAll(readers[0].source.Stdin)
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	for _, g := range readers {
		g.source.Stdin = bytes.NewReader(text)
	}
	return nil
}

// load loads the group's workload. A panic in a loader is an error like any other.
func (g *group) load(ctx context.Context, opt *Options) (w *workload.Workload, err error) {
	if g.err != nil {
		return nil, g.err
	}
	defer func() {
		if v := recover(); v != nil {
			w, err = nil, fmt.Errorf("workload %s: %s", g.spec.Label(), describePanic(v))
		}
	}()
	w, err = opt.Load(ctx, g.spec, g.source)
	if err == nil && w == nil {
		err = fmt.Errorf("workload %s: the loader returned nothing", g.spec.Label())
	}
	return w, err
}

// reason is the category of the group's rows when it cannot be loaded.
func (g *group) reason() string {
	if g.err != nil {
		return ReasonInvalidConfig
	}
	return ReasonWorkload
}

// lease counts the users of something that is released when the last one is done.
type lease struct {
	users   atomic.Int64
	release func()
}

// newLease starts with one user.
func newLease(release func()) *lease {
	l := &lease{release: release}
	l.users.Store(1)
	return l
}

func (l *lease) add() { l.users.Add(1) }

func (l *lease) done() {
	if l.users.Add(-1) == 0 {
		l.release()
	}
}
