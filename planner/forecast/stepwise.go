package forecast

import "math"

// selectARIMA chooses the order of a model for a series, and fits it, as pmdarima's auto_arima does with its defaults: the
// least information criterion of Akaike on a walk through neighbouring orders (Hyndman and Khandakar, 2008). ok is false when
// no order can be trusted.
func selectARIMA(values []float64) (m arimaModel, ok bool) {
	s := searchOrders(values)
	return s.best, !math.IsInf(s.criterion, 1)
}

// searchOrders walks through the orders for a series.
func searchOrders(values []float64) *orderSearch {
	d := differencing(values)
	diffed := values
	for range d {
		diffed = differences(diffed)
	}
	s := &orderSearch{values: values, d: d, constant: d < 2, tried: map[order]bool{}, criterion: math.Inf(1)}
	if allEqual(diffed) {
		s.try(order{d: d, constant: true})
		return s
	}
	limit := min(maxOrder, len(values)/3)
	start := min(2, limit)
	if len(values) < 10 {
		start = min(1, limit)
	}
	s.walk(start, limit)
	return s
}

// orderSearch looks for the order with the least information criterion.
type orderSearch struct {
	values []float64
	d      int
	// constant says whether models have one unless told otherwise.
	constant bool
	// tried are the orders that were tried, best the best model so far, criterion its information criterion.
	tried     map[order]bool
	best      arimaModel
	criterion float64
}

// try fits a model of an order that was not tried yet, and reports whether it is the best so far.
func (s *orderSearch) try(o order) bool {
	if s.tried[o] {
		return false
	}
	s.tried[o] = true
	m := o.fit(s.values)
	criterion := m.aic(s.values)
	if !(criterion < s.criterion) {
		return false
	}
	s.best, s.criterion = m, criterion
	return true
}

// maxFits is the number of fits after which no round is begun, nor a fit in it.
const maxFits = 100

// walk tries some orders to start with, then the neighbours of the best one until none is better.
func (s *orderSearch) walk(start, limit int) {
	p, q := start, start
	s.try(order{p, s.d, q, s.constant})
	for _, o := range []order{{0, s.d, 0, s.constant}, {1, s.d, 0, s.constant}, {0, s.d, 1, s.constant}, {0, s.d, 0, false}} {
		if s.try(o) {
			p, q = o.p, o.q
		}
	}
	neighbours := [][2]int{{-1, 0}, {0, -1}, {1, 0}, {0, 1}, {-1, -1}, {-1, 1}, {1, -1}, {1, 1}}
	for before := 0; before < len(s.tried) && len(s.tried) < maxFits; {
		before = len(s.tried)
		moved := false
		for _, step := range neighbours {
			o := order{p + step[0], s.d, q + step[1], s.constant}
			if o.p < 0 || o.p > limit || o.q < 0 || o.q > limit || len(s.tried) >= maxFits {
				continue
			}
			if moved = s.try(o); moved {
				p, q = o.p, o.q
				break
			}
		}
		if !moved && len(s.tried) < maxFits && s.try(order{p, s.d, q, !s.constant}) {
			s.constant = !s.constant
		}
	}
}
