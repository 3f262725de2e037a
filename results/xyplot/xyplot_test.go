package xyplot

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

// TestHTML checks that plots of any values are well-formed and stay in their frame.
func TestHTML(t *testing.T) {
	cases := map[string]struct {
		x, y                 []float64
		horizontal, vertical Scale
	}{
		"line":         {[]float64{0, 1, 2}, []float64{3, 1, 2}, Linear, Linear},
		"below zero":   {[]float64{-5, 1, 2}, []float64{-3.2, 1, 27}, Linear, Linear},
		"all below":    {[]float64{1, 2}, []float64{-3, -2}, Linear, Linear},
		"one value":    {[]float64{7}, []float64{0}, Linear, Linear},
		"logarithmic":  {[]float64{0, 1, 1e6}, []float64{0, 5, 2e5}, Logarithmic, Logarithmic},
		"equal values": {[]float64{4, 4}, []float64{4, 4}, Logarithmic, Logarithmic},
		"large":        {[]float64{1e12, 2e12}, []float64{-1e9, 1e9}, Linear, Linear},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			c := Chart{Title: "<b>", XLabel: "x", YLabel: "y", Diagonal: true, Series: []Series{{Name: "a & b", Dots: true}, {Apart: true, Dots: true, Colour: 1}}}
			for i := range test.x {
				c.Series[0].Add(test.x[i], test.y[i])
				c.Series[1].Add(test.x[i], test.y[i])
			}
			c.Lay(test.horizontal, test.vertical)
			for _, p := range c.Series[0].points {
				if !(p[0] >= -1e-6 && p[0] <= width+1e-6 && p[1] >= -1e-6 && p[1] <= height+1e-6) {
					t.Errorf("a point is at %v", p)
				}
			}
			text, err := HTML([]Chart{c})
			if err != nil {
				t.Fatal(err)
			}
			for _, bad := range []string{"NaN", "Inf", "ZgotmplZ", "<b>"} {
				if strings.Contains(string(text), bad) {
					t.Errorf("the plot has %s: %s", bad, text)
				}
			}
			if n := strings.Count(string(text), "<circle"); n != 2*len(test.x) {
				t.Errorf("%d dots", n)
			}
			decoder := xml.NewDecoder(strings.NewReader(string(text)))
			for {
				if _, err := decoder.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%v in %s", err, text)
				}
			}
		})
	}
}

func TestTicks(t *testing.T) {
	for _, test := range []struct {
		low, high float64
		n         int
		want      []float64
	}{{0, 10, 5, []float64{0, 2, 4, 6, 8, 10}}, {0, .31, 5, []float64{0, .1, .2, .3}}, {3, 52, 5, []float64{10, 20, 30, 40, 50}}} {
		got := steps(test.low, test.high, test.n)
		if len(got) != len(test.want) {
			t.Errorf("%g to %g: %v", test.low, test.high, got)
			continue
		}
		for i := range got {
			if math.Abs(got[i]-test.want[i]) > 1e-12 {
				t.Errorf("%g to %g: %v", test.low, test.high, got)
			}
		}
	}
	if got := powers(16, 100); len(got) != 3 || got[0] != 16 {
		t.Errorf("%v", got)
	}
	if got := label(1_500_000) + " " + label(20) + " " + label(.125); got != "1.5M 20 0.125" {
		t.Error(got)
	}
}
