package fidelity

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// made is a run of sessions with three turns each.
func made(sessions int) *Run {
	run := &Run{Name: "made", Kind: KindReplay}
	for s := range sessions {
		for turn := range 3 {
			n := float64(3*s + turn)
			run.Requests = append(run.Requests, Request{
				ID: fmt.Sprintf("r%d-%d", s, turn), Session: fmt.Sprintf("s%d", s), Turn: turn, Number: 3*s + turn,
				StartMs: 1000 + 100*n, LagMs: 0, TTFTMs: 20 + n, ITLMs: 5, E2EMs: 20 + n + 5*49, Input: 100, Output: 50, Tokens: 50, Cached: 40, Completed: true,
			})
		}
	}
	return run
}

func compare(t *testing.T, a, b *Run, how Join, bounds ...string) *Comparison {
	t.Helper()
	var parsed []Bound
	for _, text := range bounds {
		bound, err := ParseBound(text)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, bound)
	}
	c, err := Compare(a, b, how, parsed)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// failedOf names the checks that fail.
func failedOf(c *Comparison) []string {
	var names []string
	for _, check := range c.Checks {
		if check.Outcome == Fails {
			names = append(names, check.Name)
		}
	}
	return names
}

// TestChecks changes one thing in a run and finds just what that is about.
func TestChecks(t *testing.T) {
	for name, test := range map[string]struct {
		change func(b *Run)
		fails  []string
		detail string
	}{
		"nothing":        {func(*Run) {}, nil, "They did the same work: 10 checks hold"},
		"a request less": {func(b *Run) { b.Requests = b.Requests[:29] }, []string{"requests", "requests that were sent", "requests that completed", "requests without a partner", "turns of each session", "output tokens", "input tokens"}, "only in A: r9-2"},
		"a request more": {func(b *Run) {
			b.Requests = append(b.Requests, Request{ID: "extra", StartMs: 1, Tokens: 0, Completed: true})
		}, []string{"requests", "requests that were sent", "requests that completed", "requests without a partner"}, "only in B: extra"},
		"an error":         {func(b *Run) { b.Requests[4].Completed, b.Requests[4].Problem = false, "timeout" }, []string{"requests that completed", "errors"}, "B: timeout 1"},
		"never sent":       {func(b *Run) { b.Requests[4].StartMs = math.NaN() }, []string{"requests that were sent"}, "1 of B were never sent"},
		"planned and not":  {func(b *Run) { b.Planned = 32 }, []string{"requests that were sent"}, "2 of B were never sent"},
		"an answer longer": {func(b *Run) { b.Requests[7].Tokens = 51 }, []string{"output length of each request", "output tokens"}, "1 of 30 differ: r2-1 50 and 51"},
		"lengths swapped":  {func(b *Run) { b.Requests[7].Tokens, b.Requests[8].Tokens = 49, 51 }, []string{"output length of each request"}, "2 of 30 differ: r2-1 50 and 49, r2-2 50 and 51"},
		"a prompt longer":  {func(b *Run) { b.Requests[7].Input = 101 }, []string{"input tokens"}, "B has +1"},
		"a session's turn": {func(b *Run) { b.Requests[7].Session = "s3" }, []string{"turns of each session"}, "s2 is in B partly s2 and partly s3"},
		"a session alone":  {func(b *Run) { b.Requests[7].Session = "new" }, []string{"sessions", "turns of each session"}, "B has +1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := made(10)
			test.change(b)
			c := compare(t, made(10), b, JoinID)
			if got := failedOf(c); !slices.Equal(got, test.fails) || c.Verdict.Agrees != (len(test.fails) == 0) {
				t.Errorf("these fail: %q; agrees: %v", got, c.Verdict.Agrees)
			}
			if all := c.Verdict.Sentence + strings.Join(c.Verdict.Failures, "\n"); !strings.Contains(all, test.detail) {
				t.Errorf("%q is not in:\n%s", test.detail, all)
			}
		})
	}
}

// TestNotStated compares with a run that says little, which is no failure.
func TestNotStated(t *testing.T) {
	b := made(4)
	for i := range b.Requests {
		q := &b.Requests[i]
		*q = Request{ID: q.ID, Turn: Unknown, Number: Unknown, StartMs: q.StartMs, LagMs: math.NaN(), TTFTMs: math.NaN(), ITLMs: math.NaN(), E2EMs: math.NaN(), Input: Unknown, Output: Unknown, Tokens: Unknown, Cached: Unknown, Completed: true}
	}
	c := compare(t, made(4), b, JoinAuto, "ttft=5%", "arrival.max=0")
	if len(failedOf(c)) > 0 || len(c.Deltas) != 1 || c.LagB != nil {
		t.Errorf("%q fail, %d deltas", failedOf(c), len(c.Deltas))
	}
	if !slices.Equal(c.Verdict.Failures, []string{"bound ttft.mean=5%: a run does not state it, or it is a share of 0"}) {
		t.Errorf("%q", c.Verdict.Failures)
	}
	if data, err := json.Marshal(c); err != nil {
		t.Errorf("%v: %s", err, data)
	}
}

func TestJoin(t *testing.T) {
	renamed := func(change func(i int, q *Request)) *Run {
		run := made(5)
		for i := range run.Requests {
			change(i, &run.Requests[i])
		}
		return run
	}
	for name, test := range map[string]struct {
		a, b *Run
		how  Join
		want Join
		err  string
	}{
		"names":           {made(5), made(5), JoinAuto, JoinID, ""},
		"names of client": {made(5), renamed(func(_ int, q *Request) { q.ClientID, q.ID = q.ID, "server-"+q.ID }), JoinAuto, JoinID, ""},
		"both of clients": {renamed(func(i int, q *Request) { q.ClientID, q.ID = fmt.Sprint("x", i), "a"+q.ID }), renamed(func(i int, q *Request) { q.ClientID, q.ID = fmt.Sprint("x", i), "b"+q.ID }), JoinAuto, JoinID, ""},
		"sessions":        {made(5), renamed(func(_ int, q *Request) { q.ID = "b" + q.ID }), JoinAuto, JoinSession, ""},
		"nothing":         {made(5), renamed(func(_ int, q *Request) { q.ID, q.Session = "b"+q.ID, "b"+q.Session }), JoinAuto, JoinOrder, ""},
		"asked for":       {made(5), made(5), JoinSession, JoinSession, ""},
		"order":           {made(5), made(5), JoinOrder, JoinOrder, ""},
		"no names":        {made(5), renamed(func(_ int, q *Request) { q.ID = "b" + q.ID }), JoinID, "", `their first names are "r0-0" and "br0-0"`},
		"no sessions":     {made(5), renamed(func(_ int, q *Request) { q.Session = "" }), JoinSession, "", `"0 of s0" and none`},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Compare(test.a, test.b, test.how, nil)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Join != test.want || c.Pairs != 15 || !c.Verdict.Agrees {
				t.Errorf("%d pairs by %s: %s", c.Pairs, c.Join, c.Verdict.Sentence)
			}
		})
	}
}

// TestDoubledNames pairs requests of one name in order, and says so.
func TestDoubledNames(t *testing.T) {
	twice := func() *Run {
		run := made(2)
		more := made(2).Requests
		for i := range more {
			more[i].StartMs += 10_000
		}
		run.Requests = append(run.Requests, more...)
		return run
	}
	c := compare(t, twice(), twice(), JoinID)
	if c.Pairs != 12 || c.Deltas[0].Absolute.Max != 0 {
		t.Errorf("%d pairs, arrivals up to %g ms apart", c.Pairs, c.Deltas[0].Absolute.Max)
	}
	if !slices.ContainsFunc(c.Verdict.Cautions, func(s string) bool { return strings.HasPrefix(s, "6 requests of A under a name that another one has") }) {
		t.Errorf("%q", c.Verdict.Cautions)
	}
}

func TestDeltas(t *testing.T) {
	a, b := made(10), made(10)
	for i := range b.Requests {
		q := &b.Requests[i]
		q.StartMs += 7777 + float64(i%2)
		q.TTFTMs *= 1.1
		q.ITLMs -= 1
		q.E2EMs = q.TTFTMs + 49*q.ITLMs
		q.Cached, q.LagMs = 20, float64(i)
	}
	c := compare(t, a, b, JoinAuto, "ttft=9.9%", "ttft=10.1%", "itl.max=1", "itl.p50=19.9%", "reuse=0.21", "reuse.max=50%", "arrival.p99=1", "arrival=0.4", "lag.p99=29", "lag=14", "input=0")
	kept := []bool{false, true, true, false, true, true, true, false, true, false, true}
	for i, bound := range c.Bounds {
		if bound.Kept != kept[i] {
			t.Errorf("%s: there is %g", bound, *bound.Value)
		}
	}
	for _, d := range c.Deltas {
		switch d.Metric {
		case "arrival":
			if d.Signed.Min != 0 || d.Signed.Max != 1 || d.A.Min != 0 || d.B.Min != 0 || d.Ratio != nil {
				t.Errorf("arrival: %+v", d.Signed)
			}
		case "itl":
			if want := (Distribution{Count: 30, Mean: -1, Min: -1, P50: -1, P90: -1, P99: -1, Max: -1}); *d.Signed != want || d.Ratio.P50 != .8 || math.Abs(d.Relative.Max-.2) > 1e-12 {
				t.Errorf("itl: %+v, %+v", d.Signed, d.Ratio)
			}
		case "reuse":
			if math.Abs(d.Signed.Mean+.2) > 1e-12 {
				t.Errorf("reuse: %+v", d.Signed)
			}
		}
	}
	if len(c.Worst) != 5 || !strings.HasPrefix(c.Worst[0].Request, "r0-0 (turn 0 of s0)") {
		t.Errorf("%+v", c.Worst)
	}
}

func TestParseBound(t *testing.T) {
	for _, bad := range []string{"", "ttft", "ttft=", "ttft=-1", "ttft=NaN", "ttft=Inf%", "ttft=1ms", "speed=1", "ttft.p95=1", "lag=5%", ".=%"} {
		if b, err := ParseBound(bad); err == nil {
			t.Errorf("%q is taken for %s", bad, b)
		}
	}
	for text, want := range map[string]string{"ttft=5%": "ttft.mean=5%", "arrival.p99=10": "arrival.p99=10", "itl.max=0.125%": "itl.max=0.125%"} {
		if b, err := ParseBound(text); err != nil || b.String() != want {
			t.Errorf("%q is %s: %v", text, b, err)
		}
	}
}

// TestProperties draws runs with gaps and compares them: with themselves nothing differs, the other way round everything has the
// other sign, the order of the source does not matter, and all of it can be written as JSON.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) *Run {
			run := made(rapid.IntRange(1, 6).Draw(t, label))
			for i := range run.Requests {
				q := &run.Requests[i]
				times := rapid.OneOf(rapid.Float64Range(0, 1e6), rapid.Just(math.NaN()))
				counts := rapid.OneOf(rapid.IntRange(0, 1000), rapid.Just(Unknown))
				q.StartMs, q.TTFTMs, q.ITLMs, q.E2EMs, q.LagMs = times.Draw(t, "start"), times.Draw(t, "ttft"), times.Draw(t, "itl"), times.Draw(t, "e2e"), times.Draw(t, "lag")
				q.Input, q.Tokens, q.Cached = counts.Draw(t, "input"), counts.Draw(t, "tokens"), counts.Draw(t, "cached")
				q.Completed = rapid.Bool().Draw(t, "completed")
			}
			return run
		}
		a, b := draw("a"), draw("b")
		forth, err := Compare(a, b, JoinID, nil)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Compare(b, a, JoinID, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(forth.Deltas) != len(back.Deltas) || forth.Pairs != back.Pairs {
			t.Fatalf("%d deltas of %d pairs and %d of %d", len(forth.Deltas), forth.Pairs, len(back.Deltas), back.Pairs)
		}
		for i := range forth.Deltas {
			x, y := forth.Deltas[i], back.Deltas[i]
			if x.Signed.Max != -y.Signed.Min || x.Absolute.P90 != y.Absolute.P90 {
				t.Errorf("%s: %+v and back %+v", x.Metric, x.Signed, y.Signed)
			}
		}
		if _, err := json.Marshal(forth); err != nil {
			t.Fatal(err)
		}
		for _, run := range []*Run{a, b} {
			rand.New(rand.NewPCG(1, 1)).Shuffle(len(run.Requests), func(i, k int) {
				run.Requests[i], run.Requests[k] = run.Requests[k], run.Requests[i]
			})
		}
		self, err := Compare(a, a, JoinAuto, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range self.Deltas {
			if d.Absolute.Max != 0 {
				t.Errorf("%s of a run and itself differs by %g", d.Metric, d.Absolute.Max)
			}
		}
		again, err := Compare(a, b, JoinID, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, check := range again.Checks {
			if was := forth.Checks[i]; check.A != was.A || check.B != was.B || check.Outcome != was.Outcome {
				t.Errorf("the order of requests matters: %+v and %+v", was, check)
			}
		}
	})
}

// The name of a served model is compared with another such name, and not with that of a model whose times are simulated.
func TestModelsOfConditions(t *testing.T) {
	live, other := &Run{Facts: Facts{Model: "my-model"}}, &Run{Facts: Facts{Model: "your-model"}}
	simulated, dear := &Run{Facts: Facts{Timing: "qwen3-32b"}}, &Run{Facts: Facts{Timing: "llama-3.1-70b"}}
	for _, c := range []struct {
		a, b              *Run
		served, simulated Outcome
	}{{live, simulated, NotStated, NotStated}, {live, live, Holds, NotStated}, {live, other, Differs, NotStated}, {simulated, dear, NotStated, Differs}} {
		got := map[string]Outcome{}
		for _, condition := range conditionsOf(c.a, c.b) {
			got[condition.Name] = condition.Outcome
		}
		if got["served model"] != c.served || got["simulated model"] != c.simulated {
			t.Errorf("%+v and %+v: %v", c.a.Facts, c.b.Facts, got)
		}
	}
}
