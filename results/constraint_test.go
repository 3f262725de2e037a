package results

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore"
)

func TestParseConstraints(t *testing.T) {
	cases := []struct {
		in   string
		want []Constraint
	}{
		{"p99_ttft_ms <= 1500", []Constraint{{"p99_ttft_ms", "<=", integer(1500)}}},
		{"ok && `is ok`", []Constraint{{"ok", "==", gridspec.Value{Kind: gridspec.KindBool, Bool: true}}, {"is ok", "==", gridspec.Value{Kind: gridspec.KindBool, Bool: true}}}},
		{" a<1e-3 ", []Constraint{{"a", "<", float(1e-3)}}},
		{"a >= -2 && b != 'x && y'", []Constraint{{"a", ">=", integer(-2)}, {"b", "!=", text("x && y")}}},
		{`status == "o\"k"`, []Constraint{{"status", "==", text(`o"k`)}}},
		{"status == ok", []Constraint{{"status", "==", text("ok")}}},
		{"`two words` > 1", []Constraint{{"two words", ">", integer(1)}}},
		{"on == true", []Constraint{{"on", "==", gridspec.Value{Kind: gridspec.KindBool, Bool: true}}}},
	}
	for _, c := range cases {
		got, err := ParseConstraints(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.in, diff)
		}
	}
}

func TestParseConstraintsErrors(t *testing.T) {
	cases := []struct{ in, want string }{
		{"", `constraint "", column 1: a column name is missing`},
		{"a b", "column 3: an operator is missing; use one of: <= >= == != < > (a name with spaces needs backquotes, as in `p99 ms` <= 1500)"},
		{"a = 1", "column 3: an operator is missing"},
		{"a <=", "a bound is missing"},
		{"a <= 15ms", `column 6: "15ms" is no number`},
		{"a <= 'x", "the string is not closed"},
		{`a <= "x`, "the string is not closed"},
		{"`a <= 1", "needs a closing one"},
		{"a <= 1 || b <= 2", `unexpected "|| b <= 2"; join constraints by "&&"`},
		{"a <= 1 &&", "a column name is missing"},
		{"a <= 1 " + strings.Repeat("x", 1000), `unexpected "` + strings.Repeat("x", 80) + `…"`},
	}
	for _, c := range cases {
		_, err := ParseConstraints(c.in)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v; want one with %q", c.in, err, c.want)
		}
	}
}

func TestFeasible(t *testing.T) {
	table := smallTable()
	cases := []struct {
		in   string
		want []bool
	}{
		{"n <= 2", []bool{true, true, false}},
		{"n != 2", []bool{true, false, false}},
		{"x > 1.5", []bool{false, false, true}},
		{"s == 'b'", []bool{false, true, false}},
		{"s != 'b'", []bool{true, false, false}},
		{"s >= b", []bool{false, true, false}},
		{"b == true", []bool{true, false, false}},
		{"b != true && n < 9", []bool{false, true, false}},
	}
	for _, c := range cases {
		constraints, err := ParseConstraints(c.in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Feasible(table, constraints)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.in, diff)
		}
	}
}

func TestFeasibleListsAllProblems(t *testing.T) {
	constraints, err := ParseConstraints("nn < 1 && s < 2 && n == 'x' && b == 1")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Feasible(smallTable(), constraints)
	if err == nil {
		t.Fatal("no error")
	}
	want := `constraint nn < 1: unknown column "nn"; did you mean n? known columns: n, x, s, b
constraint s < 2: column s holds text; compare it with text in quotes
constraint n == "x": column n holds numbers; compare it with a number
constraint b == 1: column b holds booleans; compare it with true or false`
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func TestSLAConstraints(t *testing.T) {
	got := SLAConstraints(simcore.SLA{TTFTMs: 1e6, ITLMs: 50.25, E2EMs: 1e-9})
	var text []string
	for _, c := range got {
		text = append(text, c.String())
	}
	if diff := cmp.Diff([]string{"p99_ttft_ms <= 1000000", "p99_tpot_ms <= 50.25", "p99_e2e_latency_ms <= 1e-09"}, text); diff != "" {
		t.Errorf("constraints (-want +got):\n%s", diff)
	}
}

// FuzzParseConstraints checks that what is accepted prints in a form that means the same.
func FuzzParseConstraints(f *testing.F) {
	for _, seed := range []string{"a <= 1", "`a b`!='x'&&c==true", "a == \"\\u00e9\"", "a<=1e999", "a == 'NaN'", "a == inf"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		first, err := ParseConstraints(in)
		if err != nil {
			return
		}
		parts := make([]string, len(first))
		for i, c := range first {
			parts[i] = c.String()
		}
		again, err := ParseConstraints(strings.Join(parts, " && "))
		if err != nil {
			t.Fatalf("%q prints as %q, which is refused: %v", in, parts, err)
		}
		for _, constraints := range [][]Constraint{first, again} {
			for i, c := range constraints { // 1.0 prints as 1
				if c.Bound.Kind == gridspec.KindInt {
					constraints[i].Bound = float(float64(c.Bound.Int))
				}
			}
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
	})
}

// smallTable has a column of each kind; its third row is null but for x.
func smallTable() *Table {
	n := NewColumn("n", gridspec.KindInt, 3)
	x := NewColumn("x", gridspec.KindFloat, 3)
	s := NewColumn("s", gridspec.KindString, 3)
	b := NewColumn("b", gridspec.KindBool, 3)
	for i, v := range []string{"a", "b"} {
		n.Set(i, integer(i+1))
		x.Set(i, float(float64(i)/2))
		s.Set(i, text(v))
		b.Set(i, gridspec.Value{Kind: gridspec.KindBool, Bool: i == 0})
	}
	x.Set(2, float(2.5))
	return &Table{Columns: []*Column{n, x, s, b}}
}
