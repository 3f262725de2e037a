package tiers

import "math"

// link moves bytes one way. The transfers under way share its bandwidth equally: n of them get 1/n each, which changes
// whenever one starts or ends. When a transfer has got all its bytes, they arrive after the link's latency.
//
// All get the same number of bytes in the same time, so a single count of bytes tells how far each is: a transfer of b
// bytes that starts when the count is c has got its last one when the count is c+b. Only the first in that order has to
// be looked at.
type link struct {
	rate      float64 // bytes/ms; 0 means that bytes take no time
	latencyMs float64

	now      float64
	count    float64 // bytes that each transfer has got since the link was last at rest
	started  int64   // transfers since then
	sharing  []share // a heap, by count at the end
	arriving []arrival
	first    int // in arriving

	bytes, busyMs float64 // of transfers that have got all, and while there was any
}

// share is a transfer that gets bytes.
type share struct {
	until    float64 // the count when it has got all
	bytes    float64
	order    int64 // the first to start is the first of those that end together
	transfer int32
}

func (s share) before(o share) bool {
	return s.until < o.until || s.until == o.until && s.order < o.order
}

// arrival is a transfer that has got all bytes.
type arrival struct {
	at       float64
	transfer int32
}

// start begins a transfer.
func (l *link) start(now, bytes float64, transfer int32) {
	l.run(now)
	if l.rate == 0 || bytes == 0 {
		l.bytes += bytes
		l.arriving = append(l.arriving, arrival{now + l.latencyMs, transfer})
		return
	}
	if len(l.sharing) == 0 {
		l.count, l.started = 0, 0
	}
	l.started++
	l.push(share{l.count + bytes, bytes, l.started, transfer})
}

// nextEnd returns when the next transfer has got all bytes, if none starts before.
func (l *link) nextEnd() float64 {
	left := max(0, l.sharing[0].until-l.count)
	return l.now + float64(left*float64(len(l.sharing))/l.rate)
}

// run lets time pass.
func (l *link) run(to float64) {
	for len(l.sharing) > 0 {
		end := l.nextEnd()
		if end > to {
			l.count += float64((to - l.now) * l.rate / float64(len(l.sharing)))
			l.busyMs += to - l.now
			break
		}
		l.busyMs += end - l.now
		s := l.pop()
		l.count, l.now = s.until, end
		l.bytes += s.bytes
		l.arriving = append(l.arriving, arrival{end + l.latencyMs, s.transfer})
	}
	l.now = to
}

// next returns when the next transfer arrives, if none starts before; infinity when there is none.
func (l *link) next() float64 {
	if l.first < len(l.arriving) {
		return l.arriving[l.first].at
	}
	if len(l.sharing) > 0 {
		return l.nextEnd() + l.latencyMs
	}
	return math.Inf(1)
}

// take returns the next transfer that has arrived by now, and when.
func (l *link) take(now float64) (a arrival, ok bool) {
	l.run(max(l.now, now))
	if l.first == len(l.arriving) || l.arriving[l.first].at > now {
		return arrival{}, false
	}
	a = l.arriving[l.first]
	if l.first++; l.first == len(l.arriving) {
		l.arriving, l.first = l.arriving[:0], 0
	}
	return a, true
}

// predict returns how long a transfer would take that starts now, if as many share the link all the time.
func (l *link) predict(bytes float64) float64 {
	if l.rate == 0 {
		return l.latencyMs
	}
	return l.latencyMs + bytes*float64(len(l.sharing)+1)/l.rate
}

func (l *link) push(s share) {
	l.sharing = append(l.sharing, s)
	for i := len(l.sharing) - 1; i > 0; {
		parent := (i - 1) / 2
		if !l.sharing[i].before(l.sharing[parent]) {
			return
		}
		l.sharing[i], l.sharing[parent] = l.sharing[parent], l.sharing[i]
		i = parent
	}
}

func (l *link) pop() share {
	top, last := l.sharing[0], len(l.sharing)-1
	l.sharing[0] = l.sharing[last]
	l.sharing = l.sharing[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return top
		}
		if child+1 < last && l.sharing[child+1].before(l.sharing[child]) {
			child++
		}
		if !l.sharing[child].before(l.sharing[i]) {
			return top
		}
		l.sharing[i], l.sharing[child] = l.sharing[child], l.sharing[i]
		i = child
	}
}
