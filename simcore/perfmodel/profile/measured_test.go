package profile

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"
)

// smallCSV has prefill over the new tokens of the pass and decode over batch and context.
const smallCSV = `phase,new_tokens,batch,context,ms
prefill,100,,,10
prefill,1000,,,50
prefill,4000,,,300
decode,,1,100,2
decode,,1,1000,3
decode,,9,100,4
decode,,9,1000,6
`

func TestCSV(t *testing.T) {
	p := mustRead(t, written(t, "p.csv", []byte(smallCSV)))
	for _, test := range []struct {
		what      string
		got, want float64
	}{
		{"prefill at a point", p.PrefillMs(1, 1000, 0), 50},
		{"prefill between", p.PrefillMs(1, 640, 0), 34},
		{"prefill of more requests", p.PrefillMs(4, 160, 500), 34},
		{"prefill below", p.PrefillMs(1, 10, 0), 6},
		{"prefill above", p.PrefillMs(2, 2500, 0), 300 + 1000*250./3000},
		{"no request", p.PrefillMs(0, 100, 0), 0},
		{"no new token", p.PrefillMs(3, 0, 100), 0},
		{"decode at a point", p.DecodeMs(9, 1e6, 1000), 6},
		{"decode inside", p.DecodeMs(5, 0, 550), 3.75},
		{"decode above", p.DecodeMs(17, 0, 1900), 2 + 2*1 + 2*(2+2*1)},
		{"decode of none", p.DecodeMs(0, 0, 100), 0},
	} {
		if math.Abs(test.got-test.want) > 1e-12 {
			t.Errorf("%s takes %v ms, want %v", test.what, test.got, test.want)
		}
	}
	if !p.MeasuredDecode(9, 1e9, 100) || p.MeasuredDecode(10, 0, 100) || p.MeasuredDecode(1, 0, 99) {
		t.Error("the measured range of decode is wrong")
	}
	if !p.MeasuredPrefill(40, 100, 1e6) || p.MeasuredPrefill(41, 100, 0) {
		t.Error("the measured range of prefill is wrong")
	}
	if p.ContextFree() {
		t.Error("decode depends on the context")
	}
}

// TestAxes checks the optional axes: absent, constant and full.
func TestAxes(t *testing.T) {
	const decode = "decode,,1,,,2\ndecode,,9,,,4\n"
	full := "phase,new_tokens,batch,prefix,context,ms\n" + decode
	for _, batch := range []int{1, 4} {
		for _, tokens := range []int{100, 200} {
			for _, prefix := range []int{0, 1000} {
				full += fmt.Sprintf("prefill,%d,%d,%d,,%v\n", tokens, batch, prefix, float64(batch)*(float64(tokens)*.1+float64(prefix)*.01))
			}
		}
	}
	p := mustRead(t, written(t, "p.csv", []byte(full)))
	if got, want := p.PrefillMs(3, 150, 600), 3*(15.+6); math.Abs(got-want) > 1e-9 {
		t.Errorf("prefill takes %v ms, want %v", got, want)
	}
	if !p.MeasuredPrefill(4, 200, 1000) || p.MeasuredPrefill(4, 200, 1001) || p.MeasuredPrefill(5, 200, 0) || p.MeasuredPrefill(4, 201, 0) {
		t.Error("the measured range of prefill is wrong")
	}
	if !p.ContextFree() || p.DecodeMs(5, 0, 123456) != 3 || !p.MeasuredDecode(5, 0, 123456) {
		t.Error("decode without a context depends on it")
	}

	oneBatch := mustRead(t, written(t, "p.csv", []byte("phase,new_tokens,batch,prefix,context,ms\nprefill,100,4,7,,10\nprefill,200,4,7,,20\n"+
		"decode,,1,,50,2\ndecode,,9,,50,4\n")))
	if got := oneBatch.PrefillMs(1, 600, 0); got != 15 {
		t.Errorf("600 new tokens take %v ms; 400 take 10 and 800 take 20", got)
	}
	if !oneBatch.MeasuredPrefill(2, 300, 7) || oneBatch.MeasuredPrefill(2, 300, 8) {
		t.Error("the prefix was measured at 7 alone")
	}
	if !oneBatch.ContextFree() || oneBatch.DecodeMs(5, 0, 9999) != 3 || oneBatch.MeasuredDecode(5, 0, 9999) || !oneBatch.MeasuredDecode(5, 0, 50) {
		t.Error("a single context is not constant or not the only measured one")
	}
}

// TestCSVForms reads one profile as different tools write it.
func TestCSVForms(t *testing.T) {
	want := mustRead(t, written(t, "p.csv", []byte(smallCSV))).Digest()
	lines := strings.SplitAfter(strings.TrimSuffix(smallCSV, "\n"), "\n")
	shuffled := lines[0] + lines[7] + "\n" + lines[3] + lines[6] + lines[1] + lines[2] + lines[5] + lines[4]
	for name, text := range map[string]string{
		"semicolons":     strings.ReplaceAll(smallCSV, ",", ";"),
		"tabs":           strings.ReplaceAll(smallCSV, ",", "\t"),
		"Windows":        "\ufeff" + strings.ReplaceAll(smallCSV, "\n", "\r\n"),
		"comments":       "# H200, our engine\n" + strings.ReplaceAll(smallCSV, "decode,,1,100", "# steps\ndecode,,1,100"),
		"empty lines":    strings.ReplaceAll(smallCSV, "\n", "\n\n"),
		"NaN and spaces": strings.ReplaceAll(strings.ReplaceAll(smallCSV, ",,", ",NaN, "), ",9,", ", 9.0 ,"),
		"quotes":         strings.ReplaceAll(smallCSV, "decode", `"decode"`),
		"other order":    shuffled,
		"row labels":     strings.TrimSuffix("0,"+strings.ReplaceAll(smallCSV, "\n", "\n1,"), "1,")[1:],
	} {
		if got := mustRead(t, written(t, "P.CSV", []byte(text))).Digest(); got != want {
			t.Errorf("%s: is not the same profile", name)
		}
	}
	if other := mustRead(t, written(t, "p.csv", []byte(strings.Replace(smallCSV, ",300", ",301", 1)))).Digest(); other == want || len(other) != 64 {
		t.Errorf("the digest of another profile is %q", other)
	}
}

func TestDamagedCSV(t *testing.T) {
	change := func(old, new string) string {
		if !strings.Contains(smallCSV, old) {
			panic(old)
		}
		return strings.Replace(smallCSV, old, new, 1)
	}
	for _, test := range []struct{ name, text, want string }{
		{"empty", "", "is empty; give a header line"},
		{"comments only", "# nothing\n", "is empty; give a header line"},
		{"no rows", "phase,new_tokens,batch,context,ms\n", "no row has the phase prefill"},
		{"no header", "prefill,100,,,10\n", `column "prefill" is unknown`},
		{"missing column", "phase,new_tokens,batch,context\n", "column ms is missing"},
		{"misspelt column", change("new_tokens", "new_token"), `column "new_token" is unknown, perhaps new_tokens; the columns are: phase, new_tokens, batch, prefix, context, ms`},
		{"column twice", change("context", "batch"), "column batch is there twice"},
		{"fields", change("prefill,1000,,,50", "prefill,1000,,50"), "line 3: the number of fields differs"},
		{"quote", change("prefill,1000", `pre"fill,1000`), `line 3: bare "`},
		{"phase", change("decode,,9,1000,6", "decoding,,9,1000,6"), `line 8: phase is "decoding"; use prefill or decode`},
		{"no decode", smallCSV[:strings.Index(smallCSV, "decode")], "no row has the phase decode"},
		{"text", change("1000,,,50", "1000,,,fifty"), `line 3: ms is "fifty", which is no number`},
		{"decimal comma", strings.Replace(strings.ReplaceAll(smallCSV, ",", ";"), ";50\n", ";50,5\n", 1), `ms is "50,5", which is no number`},
		{"no ms", change("1000,,,50", "1000,,,"), "line 3: ms is empty; give a duration in ms"},
		{"zero", change("1000,,,50", "1000,,,0"), "line 3: ms is 0; give a duration in ms, above 0"},
		{"negative", change("1000,,,50", "1000,,,-50"), "line 3: ms is -50"},
		{"infinite", change("1000,,,50", "1000,,,1e999"), "line 3: ms is +Inf"},
		{"negative tokens", change("prefill,100,", "prefill,-100,"), "line 2: new_tokens is -100"},
		{"no tokens", change("prefill,100,", "prefill,,"), "line 2: new_tokens is empty"},
		{"fraction of a request", change("decode,,9,1000", "decode,,0.5,1000"), "line 8: batch is 0.5; give a number of requests, 1 or more"},
		{"no batch", change("decode,,9,1000", "decode,,,1000"), "line 8: batch is empty"},
		{"some context", change("decode,,9,1000", "decode,,9,"), "line 8: context is empty, but line 7 has one"},
		{"context of prefill", change("1000,,,50", "1000,,70,50"), "line 3: context is 70, but prefill does not depend on it"},
		{"new tokens of decode", change("decode,,9,1000", "decode,1,9,1000"), "line 8: new_tokens is 1, but decode does not depend on it"},
		{"repeated", change("decode,,1,1000,3", "decode,,1,100,3"), "line 6 repeats the pass of line 5"},
		{"ragged", change("decode,,9,1000,6\n", ""), "the decode rows do not fill a grid; measure also: decode batch 9, context 1000"},
		{"one prefill", change("prefill,1000,,,50\nprefill,4000,,,300\n", ""), "new_tokens of the prefill rows has 1 values; an axis needs 2 or more"},
		{"one batch", change("decode,,9,100,4\ndecode,,9,1000,6\n", ""), "batch of the decode rows has 1 values"},
		{"near", change("prefill,1000,", "prefill,100.0000001,"), "new_tokens of the prefill rows value 2, 100.0000001, is not above"},
	} {
		refused(t, test.name, written(t, "p.csv", []byte(test.text)), test.want)
	}
	var many strings.Builder
	many.WriteString("phase,new_tokens,batch,context,ms\n")
	for i := range 30 {
		fmt.Fprintf(&many, "decode,,%d,%d,1\n", i+1, i+1)
	}
	many.WriteString("prefill,1,,,1\nprefill,2,,,2\n")
	refused(t, "diagonal", written(t, "p.csv", []byte(many.String())), "and 862 more")
	refused(t, "many problems", written(t, "p.csv", []byte(strings.ReplaceAll(many.String(), ",1\n", ",x\n"))), "and 21 more problems")
}

func TestOtherPaths(t *testing.T) {
	refused(t, "other name", written(t, "p.json", nil), "is no profile by its name")
	refused(t, "absent", t.TempDir()+"/absent.npz", "no such file")
}

// parquetRow is a measured pass with the types that tools write.
type parquetRow struct {
	Phase     string   `parquet:"phase,dict"`
	NewTokens *int64   `parquet:"new_tokens,optional"`
	Batch     *int32   `parquet:"batch,optional"`
	Context   float64  `parquet:"context"`
	Ms        *float32 `parquet:"ms,optional"`
}

func parquetRows() []parquetRow {
	var rows []parquetRow
	for _, v := range [][2]float64{{100, 10}, {1000, 50}, {4000, 300}} {
		rows = append(rows, parquetRow{Phase: "prefill", NewTokens: new(int64(v[0])), Context: math.NaN(), Ms: new(float32(v[1]))})
	}
	for _, v := range [][3]float64{{1, 100, 2}, {1, 1000, 3}, {9, 100, 4}, {9, 1000, 6}} {
		rows = append(rows, parquetRow{Phase: "decode", Batch: new(int32(v[0])), Context: v[1], Ms: new(float32(v[2]))})
	}
	return rows
}

func parquetFile[T any](t testing.TB, rows []T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := parquet.Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestParquet(t *testing.T) {
	want := mustRead(t, written(t, "p.csv", []byte(smallCSV))).Digest()
	if got := mustRead(t, written(t, "p.parquet", parquetFile(t, parquetRows()))).Digest(); got != want {
		t.Error("is not the profile of the CSV file")
	}
}

func TestDamagedParquet(t *testing.T) {
	whole := parquetFile(t, parquetRows())
	noTime := parquetRows()
	noTime[4].Ms = nil
	type texts struct {
		Phase     string `parquet:"phase"`
		NewTokens int64  `parquet:"new_tokens"`
		Batch     int64  `parquet:"batch"`
		Ms        string `parquet:"ms"`
	}
	type numbers struct {
		Phase     int64 `parquet:"phase"`
		NewTokens int64 `parquet:"new_tokens"`
		Batch     int64 `parquet:"batch"`
		Ms        int64 `parquet:"ms"`
	}
	type decimals struct {
		Phase     string `parquet:"phase"`
		NewTokens int64  `parquet:"new_tokens"`
		Batch     int64  `parquet:"batch"`
		Ms        int64  `parquet:"ms,decimal(2:9)"`
	}
	type lists struct {
		Phase     string    `parquet:"phase"`
		NewTokens int64     `parquet:"new_tokens"`
		Batch     int64     `parquet:"batch"`
		Ms        []float64 `parquet:"ms"`
	}
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "the Parquet file is damaged"},
		{"cut off", whole[:len(whole)/2], "the Parquet file is damaged"},
		{"no ms", parquetFile(t, noTime), "row 5: ms is empty"},
		{"text", parquetFile(t, []texts{{"prefill", 1, 1, "1"}}), "column ms holds no plain numbers but STRING"},
		{"decimal", parquetFile(t, []decimals{{"prefill", 1, 1, 1}}), "column ms holds no plain numbers but DECIMAL"},
		{"number as phase", parquetFile(t, []numbers{{1, 1, 1, 1}}), "column phase holds no text"},
		{"list", parquetFile(t, []lists{{"prefill", 1, 1, []float64{1}}}), "column ms is nested"},
		{"other columns", parquetFile(t, []struct{ A int }{{1}}), "column phase is missing"},
	} {
		refused(t, test.name, written(t, "p.parquet", test.data), test.want)
	}
}

// TestInterpolation checks on random grids that measured passes come back, that a value between two neighbours lies
// between theirs, and that the order of rows doesn't matter.
func TestInterpolation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		axis := func(name string, least int) []int {
			return rapid.SliceOfNDistinct(rapid.IntRange(1, 5000), least, 5, rapid.ID[int]).Draw(t, name)
		}
		duration := rapid.Float64Range(1e-3, 1e3)
		batches, tokens, prefixes, contexts := axis("batches", 2), axis("tokens", 2), axis("prefixes", 1), axis("contexts", 1)
		var rows []row
		add := func(phase string, ms float64, cells map[int]int) {
			r := row{at: fmt.Sprint("row ", len(rows)), phase: phase}
			for c := range r.cells {
				r.cells[c] = math.NaN()
			}
			for c, v := range cells {
				r.cells[c] = float64(v)
			}
			r.cells[columnMs] = ms
			rows = append(rows, r)
		}
		for _, b := range batches {
			for _, n := range tokens {
				for _, p := range prefixes {
					add("prefill", duration.Draw(t, "prefill"), map[int]int{columnBatch: b, columnNewTokens: n, columnPrefix: p})
				}
			}
			for _, c := range contexts {
				add("decode", duration.Draw(t, "decode"), map[int]int{columnBatch: b, columnContext: c})
			}
		}
		p, err := rowsProfile(rows)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			batch := int(r.cells[columnBatch])
			got, measured := 0.0, false
			if r.phase == "prefill" {
				n, prefix := int(r.cells[columnNewTokens]), int(r.cells[columnPrefix])
				got, measured = p.PrefillMs(batch, n, prefix), p.MeasuredPrefill(batch, n, prefix)
			} else {
				c := int(r.cells[columnContext])
				got, measured = p.DecodeMs(batch, 1, c), p.MeasuredDecode(batch, 1, c)
			}
			if math.Abs(got-r.cells[columnMs]) > 1e-9*r.cells[columnMs] || !measured {
				t.Fatalf("%+v takes %v ms, measured: %v", r, got, measured)
			}
		}
		shuffled, err := rowsProfile(rapid.Permutation(rows).Draw(t, "shuffled"))
		if err != nil || shuffled.Digest() != p.Digest() {
			t.Fatalf("the order of rows matters: %v", err)
		}
		least, most := math.Inf(1), 0.0
		for _, v := range p.decode.values {
			least, most = min(least, v), max(most, v)
		}
		b, c := rapid.IntRange(1, 6000).Draw(t, "batch"), rapid.IntRange(1, 6000).Draw(t, "context")
		ms := p.DecodeMs(b, 0, c)
		if ms < 0 || math.IsNaN(ms) || math.IsInf(ms, 0) {
			t.Fatalf("a step takes %v ms", ms)
		}
		if p.MeasuredDecode(b, 0, c) && (ms < least*(1-1e-9) || ms > most*(1+1e-9)) {
			t.Fatalf("a step inside the grid takes %v ms, outside of %v to %v", ms, least, most)
		}
	})
}
