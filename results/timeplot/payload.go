package timeplot

import (
	"math"
	"strconv"
)

// payload is the data inside a page. Times that several series share are written once, and figures with five digits, more
// than the page shows.
type payload struct {
	End    float64        `json:"end"`
	Times  []seconds      `json:"times"`
	Charts []payloadChart `json:"charts"`
	Tracks []payloadTrack `json:"tracks"`
	States []payloadState `json:"states"`
	Linked bool           `json:"linked"`
}

type payloadChart struct {
	Title  string          `json:"title"`
	Note   string          `json:"note"`
	Unit   string          `json:"unit"`
	Series []payloadSeries `json:"series"`
	Levels []payloadLevel  `json:"levels"`
}

// payloadSeries is a series without the gaps at its ends: Values are those of the times number Times from place From on.
type payloadSeries struct {
	Name   string  `json:"name"`
	Colour int     `json:"colour"`
	Look   Look    `json:"look"`
	Times  int     `json:"times"`
	From   int     `json:"from"`
	Values figures `json:"values"`
}

type payloadLevel struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

type payloadTrack struct {
	Title string       `json:"title"`
	Note  string       `json:"note"`
	Rows  []payloadRow `json:"rows"`
}

// payloadRow holds the places in States, -1 for none; a state that goes on is written once.
type payloadRow struct {
	Name   string  `json:"name"`
	Times  seconds `json:"times"`
	States []int   `json:"states"`
}

type payloadState struct {
	Name    string `json:"name"`
	Meaning string `json:"meaning"`
	Kind    Kind   `json:"kind"`
}

// mostPoints bounds the points of a series: beyond it, each of so many windows gives its least and its greatest value.
const mostPoints = 2400

func newPayload(p Page, states []State) *payload {
	out := &payload{End: p.EndSeconds, Times: []seconds{}, Charts: []payloadChart{}, Tracks: []payloadTrack{}, States: []payloadState{}, Linked: p.Linked}
	shared := map[*float64]int{}
	for _, c := range p.Charts {
		chart := payloadChart{Title: c.Title, Note: c.Note, Unit: c.Unit, Series: []payloadSeries{}, Levels: []payloadLevel{}}
		for _, s := range c.Series {
			if series, ok := out.series(s, shared); ok {
				chart.Series = append(chart.Series, series)
			}
		}
		for _, l := range c.Levels {
			chart.Levels = append(chart.Levels, payloadLevel(l))
		}
		out.Charts = append(out.Charts, chart)
	}
	for _, s := range states {
		out.States = append(out.States, payloadState(s))
	}
	for _, t := range p.Tracks {
		out.Tracks = append(out.Tracks, out.track(t))
	}
	return out
}

// series is false for one without values. Equal times are those of the same slice.
func (p *payload) series(s Series, shared map[*float64]int) (payloadSeries, bool) {
	at, values := s.AtSeconds, s.Values
	first, last := 0, len(values)-1
	for first <= last && math.IsNaN(values[first]) {
		first++
	}
	for last >= first && math.IsNaN(values[last]) {
		last--
	}
	if first > last {
		return payloadSeries{}, false
	}
	out := payloadSeries{Name: s.Name, Colour: s.Colour, Look: s.Look}
	if last-first >= mostPoints {
		at, values = thin(at[first:last+1], values[first:last+1])
		first, last = 0, len(values)-1
	}
	out.From, out.Values = first, figures(values[first:last+1])
	place, known := shared[&at[0]]
	if !known {
		place = len(p.Times)
		shared[&at[0]] = place
		p.Times = append(p.Times, seconds(at))
	}
	out.Times = place
	return out, true
}

// thin keeps the least and the greatest value of each window, in their order, so that peaks stay.
func thin(at, values []float64) (times, kept []float64) {
	const windows = mostPoints / 2
	for i := range windows {
		low, high := -1, -1
		for k := i * len(values) / windows; k < (i+1)*len(values)/windows; k++ {
			if v := values[k]; !math.IsNaN(v) {
				if low < 0 || v < values[low] {
					low = k
				}
				if high < 0 || v > values[high] {
					high = k
				}
			}
		}
		if low < 0 {
			continue
		}
		for _, k := range []int{min(low, high), max(low, high)} {
			times, kept = append(times, at[k]), append(kept, values[k])
			if low == high {
				break
			}
		}
	}
	return times, kept
}

func (p *payload) track(t Track) payloadTrack {
	out := payloadTrack{Title: t.Title, Note: t.Note, Rows: []payloadRow{}}
	for _, r := range t.Rows {
		row := payloadRow{Name: r.Name, Times: seconds{}, States: []int{}}
		for i, name := range r.States {
			if place := p.state(name); i == 0 || place != row.States[len(row.States)-1] {
				row.Times, row.States = append(row.Times, r.AtSeconds[i]), append(row.States, place)
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// state finds a state by its name; one that nobody described is added as it is.
func (p *payload) state(name string) int {
	if name == "" {
		return -1
	}
	for i, s := range p.States {
		if s.Name == name {
			return i
		}
	}
	p.States = append(p.States, payloadState{Name: name, Kind: KindQuiet})
	return len(p.States) - 1
}

// figures are written with five digits, what is no number as null.
type figures []float64

// MarshalJSON writes the figures.
func (f figures) MarshalJSON() ([]byte, error) {
	return appendNumbers(f, func(b []byte, v float64) []byte {
		if v == math.Trunc(v) && math.Abs(v) < 1e7 {
			return strconv.AppendInt(b, int64(v), 10)
		}
		return strconv.AppendFloat(b, v, 'g', 5, 64)
	}), nil
}

// seconds are written to the millisecond.
type seconds []float64

// MarshalJSON writes the times.
func (s seconds) MarshalJSON() ([]byte, error) {
	return appendNumbers(s, func(b []byte, v float64) []byte {
		return strconv.AppendFloat(b, math.Round(v*1000)/1000, 'f', -1, 64)
	}), nil
}

func appendNumbers(values []float64, one func([]byte, float64) []byte) []byte {
	b := []byte{'['}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			b = append(b, "null"...)
		} else {
			b = one(b, v)
		}
	}
	return append(b, ']')
}
