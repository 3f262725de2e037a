package workload

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/simcore/rules"
)

// FuzzDynamo feeds captures to the loader under all settings. What is accepted must be a sound workload, and settings
// that only change what is refused must not change it.
func FuzzDynamo(f *testing.F) {
	files, err := filepath.Glob("testdata/dynamo/*")
	if err != nil || len(files) == 0 {
		f.Fatalf("no captures: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(dynamoRow("a", "r", "k", 0, 10) + dynamoRow("b", "k", "r", 0, 10) + dynamoToolRow("r", "t", 9, 3, `{"child_session_id":"k","source_request_id":"b","consumer_request_id":"a"}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		load := func(compat rules.Compat, change func(*TraceSpec)) (*Workload, error) {
			s := DefaultTraceSpec()
			s.Path, s.Format = "-", FormatDynamo
			if change != nil {
				change(&s)
			}
			set, err := rules.For(compat)
			if err != nil {
				t.Fatal(err)
			}
			w, err := Spec{Trace: &s}.Load(context.Background(), Source{Rules: set, Stdin: bytes.NewReader(data)})
			switch {
			case err == nil:
				checkWorkload(t, w)
				checkCapturedGraph(t, w)
			case w != nil || err.Error() == "":
				t.Errorf("a workload comes with the error %q", err)
			}
			return w, err
		}
		plain, refused := load("", nil)
		_, _ = load(rules.Dynamo13, func(s *TraceSpec) { s.Salvage = true })
		floored, flooredErr := load("", func(s *TraceSpec) {
			s.Pacing, s.SpawnTrigger, s.JoinDelay = PacingWithFloor, SpawnCompletion, JoinNone
		})
		checkReadings(t, FormatDynamo, data, func(w *Workload) { checkWorkload(t, w); checkCapturedGraph(t, w) })
		if (flooredErr == nil) != (refused == nil) {
			t.Errorf("pacing decides what is accepted: %v, %v", refused, flooredErr)
		}
		if floored != nil && floored.Requests() != plain.Requests() {
			t.Errorf("%d requests with floors, %d without", floored.Requests(), plain.Requests())
		}
	})
}

// checkReadings reads a trace as it is, strictly and salvaging: the last two must not change what is sound, and what is salvaged
// must be sound too. A check finds what strict reading refuses, and counts what salvaging keeps.
func checkReadings(t *testing.T, format string, data []byte, checkLoaded func(*Workload)) {
	t.Helper()
	load := func(strict, salvage bool) (*Workload, error) {
		s := DefaultTraceSpec()
		s.Path, s.Format, s.Strict, s.Salvage = "-", format, strict, salvage
		w, err := Spec{Trace: &s}.Load(context.Background(), Source{Stdin: bytes.NewReader(data)})
		if err == nil {
			checkLoaded(w)
		}
		return w, err
	}
	plain, refused := load(false, false)
	strict, strictErr := load(true, false)
	salvaged, salvageErr := load(false, true)
	if strictErr == nil && (refused != nil || strict.Digest() != plain.Digest()) {
		t.Errorf("strict reading accepts it, plain does not, or reads something else: %v", refused)
	}
	if refused == nil && (salvageErr != nil || salvaged.Digest() != plain.Digest() || salvaged.LeftOut > 0) {
		t.Errorf("salvaging changes a sound trace: %v", salvageErr)
	}
	s := DefaultTraceSpec()
	s.Path, s.Format = "-", format
	check, err := s.Check(context.Background(), Source{Stdin: bytes.NewReader(data)})
	if err != nil {
		return
	}
	if check.Sound() != (strictErr == nil) {
		t.Errorf("the check finds %q, strict reading says %v", check.Problems, strictErr)
	}
	if salvageErr == nil && check.Requests != salvaged.Requests() {
		t.Errorf("the check counts %d requests, salvaging keeps %d", check.Requests, salvaged.Requests())
	}
}

// checkCapturedGraph checks that all times of a graph are in range, and that everything can be released, whatever takes how long.
func checkCapturedGraph(t *testing.T, w *Workload) {
	t.Helper()
	if w.Graph == nil {
		return
	}
	for i := range w.Requests() {
		if floor := w.Graph.NotBeforeMs[i]; math.IsNaN(floor) || floor > maxTimeMs || floor < 0 && !math.IsInf(floor, -1) {
			t.Errorf("request %d has the floor %v ms", i, floor)
		}
		waits := w.Graph.Edges(int32(i))
		for _, e := range waits {
			if !(e.DelayMs >= 0 && e.DelayMs <= 2*maxTimeMs) {
				t.Errorf("request %d waits for %v ms", i, e.DelayMs)
			}
		}
		if len(waits) == 0 && math.IsInf(w.Graph.NotBeforeMs[i], -1) {
			t.Errorf("request %d has neither a floor nor anything to wait for", i)
		}
	}
	if w.Requests() < 1000 {
		for id, ms := range releases(w, func(output int) float64 { return float64(output) }) {
			if math.IsNaN(ms) || math.IsInf(ms, 0) {
				t.Errorf("request %s is released at %v ms", shortened(strings.ToValidUTF8(id, "")), ms)
			}
		}
	}
}
