package sweep

import (
	"context"
	"fmt"

	"github.com/servegrid/servegrid/gridspec"
)

// Action says what a sweep would do with a point.
type Action string

// The actions.
const (
	// ActionRun simulates the point.
	ActionRun Action = "run"
	// ActionReuse takes the row from the journal or from an equal point.
	ActionReuse Action = "reuse"
	// ActionSkip makes a skipped row.
	ActionSkip Action = "skip"
	// ActionFail makes a failed row, because the workload cannot be loaded.
	ActionFail Action = "fail"
)

// PlannedPoint is what a sweep would do with a point.
type PlannedPoint struct {
	// Point is the point and ID its content ID.
	Point gridspec.Point
	ID    string
	// Action is what would be done and Why the reason, as a sentence without its full stop.
	Action Action
	Why    string
}

// Preview is what a sweep would do.
type Preview struct {
	// Points holds every point in the order of the expansion.
	Points []PlannedPoint
	// Run, Reuse, Skip and Fail count the points by action.
	Run, Reuse, Skip, Fail int
	// Journal says what the folder's journal holds.
	Journal JournalState
}

// Plan says what Run would do, without simulating or writing anything. It loads every workload, one at a time,
// since a point's name depends on the requests. A workload that cannot be loaded shows in its points.
func Plan(ctx context.Context, points []gridspec.Point, opt Options) (Preview, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return Preview{}, err
	}
	if err := checkFolder(&opt); err != nil {
		return Preview{}, err
	}
	j := &journal{}
	if !opt.Fresh {
		if j, err = loadJournal(&opt); err != nil {
			return Preview{}, err
		}
	}
	groups := groupByWorkload(points, opt.Stdin)
	if err := shareStdin(groups); err != nil {
		return Preview{}, err
	}
	preview := Preview{
		Points:  make([]PlannedPoint, len(points)),
		Journal: journalState(j, opt.Dir, opt.semanticVersion),
	}
	for i, p := range points {
		preview.Points[i].Point = p
		if p.SkipReason != "" {
			preview.Points[i] = PlannedPoint{p, opt.ContentID(p, ""), ActionSkip, fmt.Sprintf("%s: %s", p.SkipReason, p.SkipMessage)}
		}
	}
	first := map[string]int{}
	for _, g := range groups {
		if err := g.plan(ctx, &opt, j, first, preview.Points); err != nil {
			return Preview{}, err
		}
	}
	preview.count()
	return preview, nil
}

// plan fills in the group's points. First holds the first point of each ID so far.
func (g *group) plan(ctx context.Context, opt *Options, j *journal, first map[string]int, planned []PlannedPoint) error {
	w, loadErr := g.load(ctx, opt)
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, i := range g.points {
		p := &planned[i]
		if loadErr != nil {
			p.ID, p.Action, p.Why = opt.ContentID(p.Point, ""), ActionFail, loadErr.Error()
			continue
		}
		p.ID = opt.ContentID(p.Point, w.Digest())
		if equal, ok := first[p.ID]; ok {
			p.Action, p.Why = ActionReuse, fmt.Sprintf("it is equal to point %d", planned[equal].Point.Index)
			continue
		}
		first[p.ID] = i
		p.Action, p.Why = ActionRun, "it is new"
		if s, ok := j.results[p.ID]; ok {
			var reuse bool
			if reuse, p.Why = decide(s, p.Point, opt); reuse {
				p.Action = ActionReuse
			}
		}
	}
	return nil
}

func (p *Preview) count() {
	for i := range p.Points {
		switch p.Points[i].Action {
		case ActionRun:
			p.Run++
		case ActionReuse:
			p.Reuse++
		case ActionSkip:
			p.Skip++
		case ActionFail:
			p.Fail++
		}
	}
}
