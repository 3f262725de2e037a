package tracetools

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/simcore/workload"
)

// wekaTrace is one conversation as kv-cache-tester records it (spec/workloads.md §1.6); it has no field that AIPerf, which
// is strict, does not know.
type wekaTrace struct {
	ID           string   `json:"id"`
	Models       []string `json:"models"`
	BlockSize    int      `json:"block_size"`
	HashIDScope  string   `json:"hash_id_scope"`
	ToolTokens   int      `json:"tool_tokens"`
	SystemTokens int      `json:"system_tokens"`
	Requests     []any    `json:"requests"` // wekaRequest or wekaSubagent
}

type wekaRequest struct {
	T           float64  `json:"t"` // s from the start of the conversation
	Type        string   `json:"type"`
	Model       string   `json:"model"`
	In          int32    `json:"in"`
	Out         int32    `json:"out"`
	HashIDs     []uint64 `json:"hash_ids"`
	InputTypes  []string `json:"input_types"`
	OutputTypes []string `json:"output_types"`
	Stop        string   `json:"stop"`
	APITime     *float64 `json:"api_time,omitempty"` // s
}

type wekaSubagent struct {
	T            float64       `json:"t"`
	Type         string        `json:"type"`
	AgentID      string        `json:"agent_id"`
	SubagentType string        `json:"subagent_type"`
	DurationMs   float64       `json:"duration_ms"`
	TotalTokens  int           `json:"total_tokens"`
	Status       string        `json:"status"`
	Requests     []wekaRequest `json:"requests"`
	Models       []string      `json:"models"`
	ToolTokens   int           `json:"tool_tokens"`
	SystemTokens int           `json:"system_tokens"`
}

// wekaWriter makes one file of each session that no other one spawned.
type wekaWriter struct {
	w        *workload.Workload
	prompts  *prompts
	times    schedule
	children [][]int32 // of each session, by their start
	parent   []int32
	scope    string
}

// writeWeka makes the files of a workload. Deeper trees than subagents of a main agent, and sessions that wait for others
// in another way, have no place in the format and are an error that names them.
func writeWeka(files func(name string, write func(io.Writer) error) error, w *workload.Workload, blockSize int, scope string) (notes, error) {
	p, err := newPrompts(w, blockSize)
	if err != nil {
		return nil, err
	}
	k := wekaWriter{w: w, prompts: p, times: newSchedule(w), children: make([][]int32, w.Sessions()), scope: scope}
	if err := k.findParents(); err != nil {
		return nil, err
	}
	var said notes
	if k.scope == "" {
		k.scope = "local"
		if k.shares() {
			k.scope = "global"
			said.add("conversations share blocks, so hash_id_scope is global, which AIPerf 0.13 refuses; --hash-id-scope local keeps what each shares with itself alone")
		}
	}
	digits := len(fmt.Sprint(w.Sessions()))
	planned := false
	for s := range int32(w.Sessions()) {
		for i := w.SessionStart[s]; i < w.SessionStart[s+1]; i++ {
			planned = planned || w.PlannedOutput(int(i)) != nil
		}
		if k.parent[s] >= 0 {
			continue
		}
		name := fmt.Sprintf("%0*d-%s.json", digits, s+1, fileName(w.SessionName(int(s))))
		err := files(name, func(out io.Writer) error {
			encoder := json.NewEncoder(out)
			encoder.SetEscapeHTML(false)
			return encoder.Encode(k.trace(s))
		})
		if err != nil {
			return nil, err
		}
	}
	said.prompts(p)
	if spread := k.startsSpread(); spread > 0 {
		said.add("the times between the starts of %d conversations are left out: each counts from its own first request", spread)
	}
	if w.HasHints() {
		said.add("priorities and policy classes are left out")
	}
	if planned {
		said.add("the exact tokens of answers are left out")
	}
	return said, nil
}

// findParents says which session spawned each, and refuses what the format has no place for.
func (k *wekaWriter) findParents() error {
	w := k.w
	k.parent = make([]int32, w.Sessions())
	for s := range k.parent {
		k.parent[s] = -1
	}
	if w.Graph == nil {
		return nil
	}
	session := make([]int32, w.Requests())
	for s := range w.Sessions() {
		for i := w.SessionStart[s]; i < w.SessionStart[s+1]; i++ {
			session[i] = int32(s)
		}
	}
	for s := range w.Sessions() {
		k.parent[s] = w.Graph.Parent[s]
		for _, e := range w.Graph.Edges(w.SessionStart[s]) {
			if from := session[e.From]; e.Relation == workload.Spawn && from != int32(s) && k.parent[s] < 0 {
				k.parent[s] = from
			}
		}
	}
	for s := range int32(w.Sessions()) {
		if parent, ok := w.Graph.Orphans[s]; ok {
			return fmt.Errorf("session %s is a subagent of session %s, of which the trace has no request; weka traces cannot say that, and would show it as a conversation of its own; convert to agentic_mooncake instead",
				w.SessionName(int(s)), parent)
		}
	}
	for s := range w.Sessions() {
		if path := k.path(int32(s)); len(path) > 2 {
			return fmt.Errorf("session %s is a subagent of a subagent, which weka traces cannot say; convert to agentic_mooncake instead", strings.Join(path, " > "))
		}
		for i := w.SessionStart[s]; i < w.SessionStart[s+1]; i++ {
			for _, e := range w.Graph.Edges(i) {
				if from := session[e.From]; e.Relation != workload.Barrier && from != int32(s) && k.parent[s] != from && k.parent[from] != int32(s) {
					return fmt.Errorf("session %s waits for session %s, which is neither its subagent nor the one that spawned it; weka traces cannot say that; convert to agentic_mooncake instead",
						w.SessionName(s), w.SessionName(int(from)))
				}
			}
		}
		if parent := k.parent[s]; parent >= 0 {
			k.children[parent] = append(k.children[parent], int32(s))
		}
	}
	for _, c := range k.children {
		slices.SortStableFunc(c, func(a, b int32) int {
			return cmp.Compare(k.times.start[w.SessionStart[a]], k.times.start[w.SessionStart[b]])
		})
	}
	return nil
}

// path names a session and those that it was spawned through, the first of them first.
func (k *wekaWriter) path(s int32) []string {
	var names []string
	for at := s; at >= 0 && len(names) <= len(k.parent); at = k.parent[at] {
		names = append(names, k.w.SessionName(int(at)))
	}
	slices.Reverse(names)
	return names
}

// shares reports whether a block occurs in two conversations.
func (k *wekaWriter) shares() bool {
	of := map[uint64]int32{}
	for s := range int32(k.w.Sessions()) {
		root := s
		if k.parent[s] >= 0 {
			root = k.parent[s]
		}
		for i := k.w.SessionStart[s]; i < k.w.SessionStart[s+1]; i++ {
			for _, id := range k.w.Hashes(int(i)) {
				if first, known := of[id]; known && first != root {
					return true
				}
				of[id] = root
			}
		}
	}
	return k.prompts.table != nil && k.prompts.table.Shared > 0
}

// startsSpread counts the conversations that do not start with the first one.
func (k *wekaWriter) startsSpread() int {
	n, first := 0, math.NaN()
	for s := range k.w.Sessions() {
		if at := k.times.start[k.w.SessionStart[s]]; k.parent[s] < 0 {
			if math.IsNaN(first) {
				first = at
			} else if at != first {
				n++
			}
		}
	}
	return n
}

// trace makes one conversation. A subagent stands behind the turn that spawned it; times of subagents count from the start
// of the conversation, as those of turns.
func (k *wekaWriter) trace(s int32) wekaTrace {
	w := k.w
	first, end := w.SessionStart[s], w.SessionStart[s+1]
	zero := k.times.start[first]
	t := wekaTrace{ID: w.SessionName(int(s)), BlockSize: k.prompts.blockSize, HashIDScope: k.scope}
	next := 0
	children := k.children[s]
	for i := first; i < end; i++ {
		r := k.request(i, zero, i == end-1)
		t.Requests = append(t.Requests, r)
		t.Models = addModel(t.Models, r.Model)
		for next < len(children) && (i == end-1 || k.spawner(children[next], first) <= i) {
			agent := k.subagent(children[next], zero)
			t.Requests = append(t.Requests, agent)
			for _, m := range agent.Models {
				t.Models = addModel(t.Models, m)
			}
			next++
		}
	}
	return t
}

// spawner is the request that a subagent's first one waits for.
func (k *wekaWriter) spawner(child, otherwise int32) int32 {
	for _, e := range k.w.Graph.Edges(k.w.SessionStart[child]) {
		if e.Relation == workload.Spawn {
			return e.From
		}
	}
	return otherwise
}

func addModel(models []string, name string) []string {
	if slices.Contains(models, name) {
		return models
	}
	return append(models, name)
}

// request makes one request. It has the ids of whole blocks, as the recorder writes them: whoever reads the trace takes a prompt that
// begins with all ids of another one for its continuation.
func (k *wekaWriter) request(i int32, zero float64, last bool) wekaRequest {
	w := k.w
	whole := int(w.Input[i]) / k.prompts.blockSize
	r := wekaRequest{
		T: seconds(k.times.start[i] - zero), Type: "n", Model: unknownModel, In: w.Input[i], Out: w.Output[i], HashIDs: k.prompts.appendKnown([]uint64{}, int(i), whole),
		InputTypes: []string{"text"}, OutputTypes: []string{"text"}, Stop: "tool_use",
	}
	if last {
		r.Stop = "end_turn"
	}
	if g := w.Graph; g != nil && g.Model[i] >= 0 {
		r.Model = g.ModelNames[g.Model[i]]
	}
	if took := k.times.end[i] - k.times.start[i]; took > 0 {
		took = seconds(took)
		r.APITime = &took
	}
	return r
}

func (k *wekaWriter) subagent(s int32, zero float64) wekaSubagent {
	w := k.w
	first, end := w.SessionStart[s], w.SessionStart[s+1]
	a := wekaSubagent{T: seconds(k.times.start[first] - zero), Type: "subagent", AgentID: k.agentID(s), SubagentType: "general-purpose", Status: "completed"}
	latest := k.times.end[first]
	for i := first; i < end; i++ {
		r := k.request(i, zero, i == end-1)
		a.Requests = append(a.Requests, r)
		a.Models = addModel(a.Models, r.Model)
		a.TotalTokens += int(r.In) + int(r.Out)
		latest = max(latest, k.times.end[i])
	}
	ended, joined := k.ended(s, latest)
	if !joined {
		a.Status = "async_launched"
	}
	a.DurationMs = rounded(ended - k.times.start[first])
	return a
}

// ended is when a subagent must be said to have ended, so that the turn which waits for it, if one does, is the first that
// starts after that: this is how readers of the format find it.
func (k *wekaWriter) ended(s int32, latest float64) (at float64, joined bool) {
	w := k.w
	parent := k.parent[s]
	last := w.SessionStart[parent+1] - 1
	turn := last + 1
	for i := w.SessionStart[s]; i < w.SessionStart[s+1]; i++ {
		for _, e := range w.Graph.Dependants(i) {
			if e.Relation == workload.Join && e.From >= w.SessionStart[parent] && e.From <= last {
				turn = min(turn, e.From)
			}
		}
	}
	if joined = turn <= last; !joined && k.times.start[last] >= latest {
		return k.times.start[last] + 1, false
	}
	for i := w.SessionStart[parent]; i < turn && joined; i++ {
		if k.times.start[i] >= latest {
			return k.times.start[turn], true
		}
	}
	return latest, joined
}

// agentID names a subagent within its conversation; traces that were read as weka have the conversation's name before it.
func (k *wekaWriter) agentID(s int32) string {
	return strings.TrimPrefix(k.w.SessionName(int(s)), k.w.SessionName(int(k.parent[s]))+"/")
}

// seconds are whole microseconds.
func seconds(ms float64) float64 { return math.Round(ms*1000) / 1e6 }

// fileName makes a file name of a session's name.
func fileName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '_'
	}, name)
	const most = 80
	return strings.Trim(name[:min(len(name), most)], ".")
}
