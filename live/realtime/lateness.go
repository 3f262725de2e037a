package realtime

import (
	"math"
	"time"
)

// Lateness is how long after their time events were told, in real time.
type Lateness struct {
	// Events is how many there were, Sum what all of them were late together.
	Events int64
	Sum    time.Duration
	// P50 and P99 are quantiles, within 10 %.
	P50, P99, Max time.Duration
}

// lateness counts events by how late they were: less than a microsecond, or in bins that each reach a tenth further.
type lateness struct {
	bins   [256]int64
	events int64
	sum    time.Duration
	max    time.Duration
	groups []group // told of, but not counted yet
}

// group is some events of one time.
type group struct {
	due    time.Duration
	events int64
}

var binWidth = math.Log(1.1)

// due notes events that are told of next.
func (l *lateness) due(at time.Duration, events int64) {
	if n := len(l.groups); n > 0 && l.groups[n-1].due == at {
		l.groups[n-1].events += events
		return
	}
	l.groups = append(l.groups, group{at, events})
}

// told notes that what was due has been told by now.
func (l *lateness) told(now time.Duration) {
	for _, g := range l.groups {
		late := max(0, now-g.due)
		l.events += g.events
		l.sum += late * time.Duration(g.events)
		l.max = max(l.max, late)
		bin := 0
		if late >= time.Microsecond {
			bin = min(1+int(math.Log(float64(late)/1e3)/binWidth), len(l.bins)-1)
		}
		l.bins[bin] += g.events
	}
	l.groups = l.groups[:0]
}

func (l *lateness) summary() Lateness {
	return Lateness{Events: l.events, Sum: l.sum, P50: l.quantile(.5), P99: l.quantile(.99), Max: l.max}
}

// quantile is the lateness that a share of the events do not exceed.
func (l *lateness) quantile(share float64) time.Duration {
	rank, seen := int64(share*float64(l.events-1)), int64(0)
	for bin, n := range l.bins {
		if seen += n; seen > rank {
			if bin == 0 {
				return 0
			}
			return min(time.Duration(1e3*math.Exp((float64(bin)-.5)*binWidth)), l.max)
		}
	}
	return 0
}
