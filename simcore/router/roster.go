package router

import "slices"

// Member is a worker of the pool.
type Member struct {
	// Worker is its id, which no other worker of the pool ever has.
	Worker int32
	// Seat is its number in the index and in the router's tables, Tier that in the lower memory tiers, or -1 without any. Once
	// a worker is gone another one may have them.
	Seat, Tier int32
}

// roster says which workers take requests. Routers know workers by their seats, of which there are not more than workers
// at a time.
type roster struct {
	ready []int32  // the seats of those that take requests, in the order of their ids
	at    []Member // by seat
	takes []bool   // by seat: whether its worker is among the ready ones
}

// newRoster is the roster of workers that are numbered from 0.
func newRoster(workers int) roster {
	var r roster
	for w := range int32(workers) {
		r.join(Member{w, w, w})
	}
	return r
}

// seats is the number of seats that there are.
func (r *roster) seats() int { return len(r.at) }

func (r *roster) join(m Member) {
	for int(m.Seat) >= len(r.at) {
		r.at, r.takes = append(r.at, Member{}), append(r.takes, false)
	}
	r.at[m.Seat], r.takes[m.Seat] = m, true
	r.ready = append(r.ready, m.Seat)
}

func (r *roster) leave(worker int32) {
	r.ready = slices.DeleteFunc(r.ready, func(seat int32) bool {
		if r.at[seat].Worker != worker {
			return false
		}
		r.takes[seat] = false
		return true
	})
}

// grown returns a table that has a place for each of so many seats.
func grown[T any](table []T, seats int) []T {
	for len(table) < seats {
		var none T
		table = append(table, none)
	}
	return table
}
