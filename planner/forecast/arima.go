package forecast

import "math"

// autoARIMA is the model of the kind arima (planner specification §7, §19 C5). With five values that are not all equal it
// selects an order, which it keeps; later values are added to the series, and the parameters follow them in a few
// iterations. So the forecasts depend on when they are asked for.
type autoARIMA struct {
	values []float64
	// mayLog lets it turn to logarithms when the order that it selects expects nothing but a mean, or a straight line.
	mayLog bool
	// logged is set from then on: values are logarithms.
	logged bool
	// fitted is the model; known is the number of values it is fitted to, 0 without one.
	fitted arimaModel
	known  int
	// next is what is expected after those.
	next float64
}

// add takes a value.
func (m *autoARIMA) add(value float64) {
	if m.logged {
		value = math.Log1p(max(0, value))
	}
	m.values = append(m.values, value)
}

// forecast brings the model up to date and returns what it expects.
func (m *autoARIMA) forecast() (float64, bool) {
	if len(m.values) < minPoints {
		return 0, false
	}
	switch {
	case m.known == len(m.values):
	case m.known > 0:
		m.fitted = m.fitted.update(m.values, len(m.values)-m.known)
	case allEqual(m.values) || !m.selectOrder():
		return 0, false
	}
	if m.known < len(m.values) {
		m.known = len(m.values)
		_, m.next = m.fitted.run(m.values)
	}
	if m.logged {
		return math.Expm1(m.next), true
	}
	return m.next, true
}

// selectOrder chooses the model, and the logarithms if they are to be.
func (m *autoARIMA) selectOrder() (ok bool) {
	if m.fitted, ok = selectARIMA(m.values); !ok || !m.mayLog || m.fitted.order.p > 0 || m.fitted.order.q > 0 {
		return ok
	}
	logs := make([]float64, len(m.values))
	for i, v := range m.values {
		logs[i] = math.Log1p(max(0, v))
	}
	if m.fitted, ok = selectARIMA(logs); ok {
		m.values, m.logged = logs, true
	}
	return ok
}
