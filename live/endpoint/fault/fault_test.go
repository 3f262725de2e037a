package fault

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Rule{
		"status=429,share=0.1":                           {Kind: Status, Code: 429, Share: 0.1},
		"status=503, every=2, retry_after=3s":            {Kind: Status, Code: 503, Every: 2, RetryAfter: 3 * time.Second},
		"stall=5s,after_tokens=10,share=.05":             {Kind: Stall, For: 5 * time.Second, AfterTokens: 10, Share: 0.05},
		"slow=3x,share=.1":                               {Kind: Slow, Factor: 3, Share: 0.1},
		"slow=1.5":                                       {Kind: Slow, Factor: 1.5},
		"drop,after_tokens=20,every=100":                 {Kind: Drop, AfterTokens: 20, Every: 100},
		"malformed_sse,session=s-*,model=a/b,path=/v1/*": {Kind: MalformedSSE, Session: "s-*", Model: "a/b", Path: "/v1/*"},
		"error_event,times=1":                            {Kind: ErrorEvent, Times: 1},
		"no_done":                                        {Kind: NoDone},
		"status=503,from=30s,until=1m30s":                {Kind: Status, Code: 503, From: 30 * time.Second, Until: 90 * time.Second},
	} {
		got, err := Parse(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if again, err := Parse(got.String()); err != nil || again != want {
			t.Errorf("%s as %s: %+v, %v", text, got, again, err)
		}
	}
}

// All that is wrong with a rule is said at once, and nothing twice.
func TestParseRefuses(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                      {`"" is not known`},
		"share=0.5":                             {"says nothing to do"},
		"status=99,every=0":                     {"status=99 is not allowed", "every=0 is no request"},
		"status=abc,share=2":                    {"status=abc cannot be read", "share=2 is not allowed"},
		"drop,stall=5s":                         {"drop and stall are two rules"},
		"drop=1":                                {"drop takes no value"},
		"slow=1x,share=0":                       {"slow=1x is not allowed", "share=0 is no request"},
		"slow=nan":                              {"is not allowed"},
		"drop,share=.1,every=2":                 {"share and every are two ways"},
		"no_done,after_tokens=3,retry_after=1s": {"after_tokens is not for no_done", "retry_after is for status"},
		"drop,drop":                             {"drop is given twice"},
		"drop,session=[a":                       {"session=[a is no pattern"},
		"drop,after_tokens=-1,times=-2":         {"after_tokens=-1 is not allowed", "times=-2 is not allowed"},
		"drop,speed=4":                          {`"speed" is not known`},
		"drop,from=-1s,until=0s":                {"from=-1s is not allowed", "until=0 is never"},
		"drop,from=2m,until=1m":                 {"until=1m0s is not after from=2m0s"},
		"drop,from=soon":                        {"from=soon cannot be read"},
	} {
		_, err := Parse(text)
		if err == nil {
			t.Errorf("%s is taken", text)
			continue
		}
		for _, part := range want {
			if strings.Count(err.Error(), part) != 1 {
				t.Errorf("%s: the error must say once that %s:\n%v", text, part, err)
			}
		}
		if parts := strings.Count(err.Error(), ";") + 1; parts > 2*len(want) {
			t.Errorf("%s: the error says more than is wrong:\n%v", text, err)
		}
	}
}

func TestParseFile(t *testing.T) {
	rules, err := ParseFile([]byte("- {status: 429, share: 0.1}\n- {drop: true, after_tokens: 20}\n- stall: 5s\n  session: slow-*\n"))
	want := []Rule{{Kind: Status, Code: 429, Share: 0.1}, {Kind: Drop, AfterTokens: 20}, {Kind: Stall, For: 5 * time.Second, Session: "slow-*"}}
	if diff := cmp.Diff(want, rules); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	_, err = ParseFile([]byte("- {status: 42}\n- {drop: false}\n- {slow: [1]}\n"))
	for _, part := range []string{"rule 1: status=42", "rule 2: drop is false", "rule 3: slow must be one value"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error must say %q: %v", part, err)
		}
	}
	if _, err = ParseFile([]byte("status: 429\n")); err == nil || !strings.Contains(err.Error(), "must be a YAML list of rules") {
		t.Errorf("a mapping: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"status=429,share=0.1", "drop,after_tokens=20,every=100", "stall=5s", "slow=3x,session=[a-b]*", ",,=", "status=429,status=429"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rule, err := Parse(text)
		if err != nil || strings.ContainsAny(rule.Session+rule.Model+rule.Path, ", \t\r\n\v\f\u0085\u00a0") {
			return
		}
		again, err := Parse(rule.String())
		if err != nil || again != rule {
			t.Errorf("%q is %+v, and %q is %+v: %v", text, rule, rule.String(), again, err)
		}
	})
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte("- {status: 429, share: 0.1}\n- {drop: true}\n"))
	f.Add([]byte("- stall: 5s\n  after_tokens: 1e3\n"))
	f.Add([]byte("! 0000")) // makes the library panic
	f.Fuzz(func(t *testing.T, data []byte) {
		rules, err := ParseFile(data)
		if err != nil {
			return
		}
		NewInjector(rules, 1).Plan(Request{})
	})
}

func TestInjectorChooses(t *testing.T) {
	rules := []Rule{
		{Kind: Status, Code: 500, Every: 3, Model: "m"},
		{Kind: Status, Code: 429, Share: 0.25},
		{Kind: Drop, AfterTokens: 7, Times: 2, Session: "s-*"},
	}
	count := func(seed uint64) (fails, busy, drops int) {
		in := NewInjector(rules, seed)
		for i := range 3000 {
			q := Request{Session: "other", Model: "m", Path: "/v1/completions"}
			if i%10 == 0 {
				q.Session = "s-1"
			}
			p := in.Plan(q)
			switch p.Code {
			case 500:
				fails++
			case 429:
				busy++
			}
			if p.DropAfter != None {
				drops++
			}
		}
		return fails, busy, drops
	}
	fails, busy, drops := count(1)
	if fails != 1000 || drops != 2 {
		t.Errorf("%d of 3000 fail where every third should, and %d are dropped where 2 should be", fails, drops)
	}
	if busy < 400 || busy > 600 { // a quarter of the 2000 that do not fail
		t.Errorf("%d of 2000 get 429, and a quarter should", busy)
	}
	if f2, b2, _ := count(1); f2 != fails || b2 != busy {
		t.Error("the same seed gives other faults")
	}
	if _, b2, _ := count(2); b2 == busy {
		t.Error("another seed gives the same faults")
	}
	if p := (*Injector)(nil).Plan(Request{}); len(p.Kinds) > 0 {
		t.Error("no injector makes faults")
	}
}

// A rule with a time is about what comes in that time, and counts nothing else.
func TestInjectorWindow(t *testing.T) {
	in := NewInjector([]Rule{{Kind: Drop, From: 10 * time.Second, Until: 20 * time.Second, Times: 2}, {Kind: NoDone, From: 20 * time.Second}}, 0)
	for _, c := range []struct {
		at             time.Duration
		drops, endless bool
	}{{0, false, false}, {10*time.Second - 1, false, false}, {10 * time.Second, true, false}, {20*time.Second - 1, true, false}, {20 * time.Second, false, true}, {time.Hour, false, true}} {
		if p := in.Plan(Request{At: c.at}); (p.DropAfter != None) != c.drops || p.NoDone != c.endless {
			t.Errorf("at %s: %+v", c.at, p)
		}
	}
}

// Of several rules of a kind the first counts; of several kinds each does.
func TestPlanCombines(t *testing.T) {
	in := NewInjector([]Rule{{Kind: Stall, For: time.Second}, {Kind: Stall, For: time.Minute}, {Kind: NoDone}, {Kind: Slow, Factor: 2, AfterTokens: 3}}, 0)
	want := NoFault()
	want.Stall, want.StallAfter, want.NoDone, want.Slow, want.SlowAfter = time.Second, 0, true, 2, 3
	want.Kinds = []Kind{Stall, NoDone, Slow}
	if diff := cmp.Diff(want, in.Plan(Request{})); diff != "" {
		t.Error(diff)
	}
}
