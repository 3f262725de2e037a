package page

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/live/fidelity"
)

func run(n int, factor float64) *fidelity.Run {
	r := &fidelity.Run{Name: "<script>alert(1)</script>", Kind: fidelity.KindLive}
	for i := range n {
		at := float64(i)
		r.Requests = append(r.Requests, fidelity.Request{
			ID: fmt.Sprint("r", i), Session: fmt.Sprint("s", i/2), Turn: i % 2, StartMs: 100 * at, LagMs: factor, TTFTMs: factor * (10 + at), ITLMs: factor * 5, E2EMs: factor * (500 + at),
			Input: 100, Output: 9, Tokens: 9, Cached: i % 100, Completed: true,
		})
	}
	return r
}

// TestWrite writes pages of all sizes: well-formed, without scripts and without what is no number, and equal each time.
func TestWrite(t *testing.T) {
	silent := run(3, 1)
	for i := range silent.Requests {
		q := &silent.Requests[i]
		q.StartMs, q.TTFTMs, q.ITLMs, q.E2EMs, q.LagMs = math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()
	}
	bound, err := fidelity.ParseBound("ttft=1%")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		a, b   *fidelity.Run
		charts int
	}{
		"many":         {run(1600, 1), run(1600, 1.2), 16},
		"one":          {run(1, 1), run(1, 1), 16},
		"says nothing": {silent, run(3, 1), 4},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := fidelity.Compare(test.a, test.b, fidelity.JoinAuto, []fidelity.Bound{bound})
			if err != nil {
				t.Fatal(err)
			}
			var page, again bytes.Buffer
			if err := errors.Join(Write(&page, c), Write(&again, c)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(page.Bytes(), again.Bytes()) {
				t.Error("the page differs from time to time")
			}
			text := page.String()
			for _, bad := range []string{"<script", "http:", "https:", "NaN", "Inf", "ZgotmplZ"} {
				if strings.Contains(strings.ReplaceAll(text, "Content-Security-Policy", ""), bad) {
					t.Errorf("the page has %q", bad)
				}
			}
			if got := strings.Count(text, `<svg viewBox="-58`); got != test.charts {
				t.Errorf("%d plots", got)
			}
			if dots := strings.Count(text, "<circle"); dots > 11*mostDots {
				t.Errorf("%d dots", dots)
			}
			_, body, _ := strings.Cut(text, "<body>")
			decoder := xml.NewDecoder(strings.NewReader("<body>" + strings.TrimSuffix(strings.TrimSpace(body), "</html>")))
			for {
				if _, err := decoder.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
