package forecast

import "math"

// autoARIMA is the model of the kind arima (planner specification §7, §19 C5). With five values that are not all equal it
// selects an order; later values are added to the series, and the parameters follow them in a few iterations. So the
// forecasts depend on when they are asked for. When the order that it selects expects nothing but a mean, or a straight
// line, it selects another for logarithms and stays with these.
type autoARIMA struct {
	// reselect makes it select an order anew now and then; straight keeps it from turning to logarithms.
	reselect, straight bool
	values             []float64
	// fitted is the model, selectedAt the number of values when it was selected, 0 without one.
	fitted     arimaModel
	selectedAt int
	// logs are the logarithms of the values, when the model is one for these.
	logs []float64
	// next is what is expected after the first known values.
	next  float64
	known int
}

// add takes a value.
func (m *autoARIMA) add(value float64) {
	m.values = append(m.values, value)
	if m.logs != nil {
		m.logs = append(m.logs, logOf(value))
	}
}

// logOf returns the logarithm that stands for a value.
func logOf(value float64) float64 { return math.Log1p(max(0, value)) }

// forecast brings the model up to date and returns what it expects.
func (m *autoARIMA) forecast() (float64, bool) {
	if m.known < len(m.values) {
		if !m.selected() {
			return 0, false
		}
		m.known = len(m.values)
		_, m.next = m.fitted.run(m.series())
	}
	if m.logs != nil {
		return math.Expm1(m.next), m.known > 0
	}
	return m.next, m.known > 0
}

// series returns what the model is for: the values, or their logarithms.
func (m *autoARIMA) series() []float64 {
	if m.logs != nil {
		return m.logs
	}
	return m.values
}

// selected selects a model when one is due, or fits the one there is to the values that are new. It returns false when there
// is none yet.
func (m *autoARIMA) selected() bool {
	due := m.selectedAt == 0 || m.reselect && len(m.values)-m.selectedAt >= max(1, m.selectedAt/5)
	if due && len(m.values) >= minPoints && !allEqual(m.values) && m.selectOrder() {
		m.selectedAt = len(m.values)
		return true
	}
	if m.selectedAt == 0 {
		return false
	}
	if updated := m.fitted.update(m.series(), len(m.values)-m.known); allFinite(updated.parameters) {
		m.fitted = updated // otherwise the parameters are at the edge of what is stationary, and stay there
	}
	return true
}

// selectOrder chooses the model, and whether it is one for logarithms.
func (m *autoARIMA) selectOrder() bool {
	fitted, ok := selectARIMA(m.values)
	var logs []float64
	if ok && !m.straight && fitted.order.p == 0 && fitted.order.q == 0 {
		for _, v := range m.values {
			logs = append(logs, logOf(v))
		}
		fitted, ok = selectARIMA(logs)
	}
	if ok {
		m.fitted, m.logs = fitted, logs
	}
	return ok
}

// allFinite reports whether all values are numbers, and none infinite.
func allFinite(values []float64) bool {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}
