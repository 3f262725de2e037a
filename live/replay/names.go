package replay

import (
	"fmt"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

// names says what requests and sessions are called: as in the workload and as simulated ones, and in the AgentX scenario with
// what tells the plays of a conversation apart.
type names struct {
	w *workload.Workload
	// repeated says that requests of the workload have equal names.
	repeated bool
}

func newNames(w *workload.Workload) names {
	n := names{w: w}
	seen, named := make(map[string]struct{}), false
	for r := range w.Requests() {
		named = named || w.ID(r) != ""
	}
	for r := 0; named && !n.repeated && r < w.Requests(); r++ {
		id := w.RequestName(r)
		_, n.repeated = seen[id]
		seen[id] = struct{}{}
	}
	return n
}

// request is the name of a request, unique in a run.
func (n *names) request(r *simcore.Release) string {
	id := n.w.RequestName(int(r.Request))
	if n.repeated {
		id = fmt.Sprintf("%s-%d", id, r.Request)
	}
	switch {
	case r.WarmUp:
		return fmt.Sprintf("%s#warm-up-%d", id, r.Number)
	case r.Play >= 0:
		return fmt.Sprintf("%s#%d", id, r.Play)
	}
	return id
}

// sessions are the names of the session of a request and of the one that spawned it. What warms up is of the session that it
// warms up for, so that it gets to the same worker. A request that stands alone, without a name for its session, has none.
func (n *names) sessions(r *simcore.Release) (session, parent string) {
	if turns := n.w.SessionStart[r.Session+1] - n.w.SessionStart[r.Session]; turns == 1 && n.w.Graph == nil && !n.w.SessionNamed(int(r.Session)) {
		return "", ""
	}
	session = n.session(r, r.Session)
	if g := n.w.Graph; g != nil {
		if g.Parent[r.Session] >= 0 {
			parent = n.session(r, g.Parent[r.Session])
		} else {
			parent = g.Orphans[r.Session]
		}
	}
	return session, parent
}

func (n *names) session(r *simcore.Release, session int32) string {
	name := n.w.SessionName(int(session))
	if r.Play >= 0 {
		return fmt.Sprintf("%s#%d", name, r.Play)
	}
	return name
}
