package profile

import (
	"archive/zip"
	"math"
	"os"
	"testing"
)

// checkProfile checks that a profile that was accepted gives durations everywhere.
func checkProfile(t *testing.T, p *Profile, err error) {
	t.Helper()
	if err != nil {
		if err.Error() == "" {
			t.Error("an error says nothing")
		}
		return
	}
	for _, n := range []int{0, 1, 7, 1 << 20, math.MaxInt32} {
		for _, context := range []int{0, 1, 999, math.MaxInt32} {
			for _, ms := range []float64{p.PrefillMs(n, context, n), p.DecodeMs(n, context, n), p.DecodeMs(1, n, context)} {
				if !(ms >= 0) || math.IsInf(ms, 0) {
					t.Fatalf("a pass of %d and %d takes %v ms", n, context, ms)
				}
			}
		}
	}
}

func FuzzNPZ(f *testing.F) {
	f.Add(zipped(zip.Store, worked()...))
	f.Add(zipped(zip.Deflate, worked()...))
	f.Add(zipped(zip.Store, worked(member{"prefill_isl", nil})...))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := parseArchive(data)
		if err != nil {
			return
		}
		p, err := profileOf(a)
		checkProfile(t, p, err)
	})
}

// FuzzNPY fuzzes one array, which the checksums of a zip keep mutations from.
func FuzzNPY(f *testing.F) {
	for _, m := range worked() {
		f.Add(m.data)
	}
	f.Add(npyFile("{'descr': '>u4', 'fortran_order': True, 'shape': (2, 1), }", []uint32{1, 2}))
	f.Add(npyFile("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", []float64{1}))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := parseNPY(data)
		count := 1
		for _, n := range a.shape {
			count *= n
		}
		if err == nil && (len(a.values) != count || len(a.shape) > 2) {
			t.Errorf("%d values have the shape %v", len(a.values), a.shape)
		}
		p, err := profileOf(&archive{})
		if p != nil || err == nil {
			t.Error("an empty archive is a profile")
		}
	})
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte(smallCSV))
	f.Add([]byte("phase;new_tokens;batch;prefix;ms\nprefill;1;1;0;1\nprefill;2;1;0;2\ndecode;;1;;1\ndecode;;2;;1e12\n"))
	f.Add([]byte("# c\nphase\tms\n\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, err := parseCSV(data)
		if err != nil {
			return
		}
		p, err := rowsProfile(rows)
		checkProfile(t, p, err)
	})
}

func FuzzParquet(f *testing.F) {
	f.Add(parquetFile(f, parquetRows()))
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, err := parseParquet(data)
		if err != nil {
			return
		}
		p, err := rowsProfile(rows)
		checkProfile(t, p, err)
	})
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(goodPrefill), []byte(goodDecode))
	f.Add([]byte(`{"prefill_isl":[1,1e15],"prefill_ttft":[1e-300,9e12]}`), []byte(`{"x_kv_usage":[1],"y_context_length":[1e-300],"z_itl":[1],"max_kv_tokens":1e15}`))
	f.Fuzz(func(t *testing.T, prefill, decode []byte) {
		dir := t.TempDir()
		if os.WriteFile(dir+"/"+prefillJSON, prefill, 0o666) != nil || os.WriteFile(dir+"/"+decodeJSON, decode, 0o666) != nil {
			t.Skip("the temporary folder can't be written")
		}
		p, err := Read(dir)
		checkProfile(t, p, err)
	})
}
