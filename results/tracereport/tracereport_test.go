package tracereport

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/simcore/workload"
)

// summary measures a preset, or a workload of one request that says nothing else.
func summary(t *testing.T, w *workload.Workload) Summary {
	t.Helper()
	s := workload.Stats(w)
	if s.Reuse != nil {
		s = workload.Stats(w, workload.CacheSizes(16, s.Reuse.UniqueBlocks, 4)...)
	}
	rates := workload.ServiceRates{PrefillTokensPerSecond: 1e4, DecodeTokensPerSecond: 50}
	return Summary{Name: w.Name, Format: "mooncake", Digest: w.Digest(), Statistics: s, Histograms: workload.NewHistograms(w), Timeline: workload.NewTimeline(w, rates, 100), Rates: rates}
}

// TestPage checks that the page is well-formed, loads nothing, shows what it should, and is the same each time.
func TestPage(t *testing.T) {
	chat, err := workload.PresetSpec{Name: workload.PresetAgentic, Requests: 300}.Generate()
	if err != nil {
		t.Fatal(err)
	}
	b := workload.NewBuilder("one", 0)
	b.Add(workload.Request{ArrivalMs: math.NaN(), Input: 1})
	one, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]Summary{"sessions": summary(t, chat), "one request": summary(t, one)} {
		s.Name = "<script>alert(1)</script>"
		s.Warnings = []string{"7 rows & more"}
		var page, again bytes.Buffer
		if err := errors.Join(Write(&page, s), Write(&again, s)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(page.Bytes(), again.Bytes()) {
			t.Errorf("%s: the page differs from time to time", name)
		}
		text := page.String()
		for _, bad := range []string{"<script", "http:", "https:", "NaN", "Inf", "ZgotmplZ"} {
			if strings.Contains(strings.ReplaceAll(text, "Content-Security-Policy", ""), bad) {
				t.Errorf("%s: the page has %q", name, bad)
			}
		}
		if !strings.Contains(text, "7 rows &amp; more") || !strings.Contains(text, s.Digest) {
			t.Errorf("%s: the page lacks its warning or its digest", name)
		}
		if got, want := strings.Count(text, "<svg viewBox=\"-58"), len(s.charts()); got != want || want < 5 {
			t.Errorf("%s: %d plots of %d", name, got, want)
		}
		for rest := text; ; {
			_, after, found := strings.Cut(rest, "<svg")
			if !found {
				break
			}
			plot, next, _ := strings.Cut(after, "</svg>")
			decoder := xml.NewDecoder(strings.NewReader("<svg" + plot + "</svg>"))
			for {
				if _, err := decoder.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%s: %v in %.200s", name, err, plot)
				}
			}
			rest = next
		}
	}
}
