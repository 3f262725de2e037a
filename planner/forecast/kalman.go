package forecast

// levelTrend is the model of the kind kalman: a level that grows by a trend each interval, both disturbed, seen through noise
// (planner specification §7). A Kalman filter follows them, from an uncertain start.
type levelTrend struct {
	// level and trend are the state; pLevel, pCross and pTrend its covariance.
	level, trend           float64
	pLevel, pCross, pTrend float64
	// qLevel, qTrend and r are the variances of the disturbances and of the noise.
	qLevel, qTrend, r float64
	// begun is set from the first value on; predicted says that the state is already that of the next interval.
	begun, predicted bool
}

// newLevelTrend makes the filter; variances too small to divide by are raised.
func newLevelTrend(qLevel, qTrend, r float64) *levelTrend {
	const startVariance = 1000
	return &levelTrend{
		pLevel: startVariance, pTrend: startVariance,
		qLevel: max(1e-12, qLevel), qTrend: max(1e-12, qTrend), r: max(1e-9, r),
	}
}

// add takes a value. The first one sets the level and leaves the uncertainty of the start as it is.
func (m *levelTrend) add(value float64) {
	if !m.begun {
		m.level, m.begun = value, true
		return
	}
	if !m.predicted {
		m.predict()
	}
	m.update(value)
	m.predicted = false
}

// forecast moves the state to the next interval, once, and returns its level.
func (m *levelTrend) forecast() (float64, bool) {
	if m.begun && !m.predicted {
		m.predict()
		m.predicted = true
	}
	return m.level, true
}

// predict moves the state by one interval.
func (m *levelTrend) predict() {
	m.level += m.trend
	m.pLevel += 2*m.pCross + m.pTrend + m.qLevel
	m.pCross += m.pTrend
	m.pTrend += m.qTrend
}

// update corrects the state by what was measured. The covariance is updated in Joseph's form, which keeps it one.
func (m *levelTrend) update(value float64) {
	variance := m.pLevel + m.r
	gainLevel, gainTrend := m.pLevel/variance, m.pCross/variance
	surprise := value - m.level
	m.level += gainLevel * surprise
	m.trend += gainTrend * surprise

	keep := 1 - gainLevel
	pLevel := keep*keep*m.pLevel + gainLevel*gainLevel*m.r
	pCross := keep*(m.pCross-gainTrend*m.pLevel) + gainLevel*gainTrend*m.r
	pTrend := m.pTrend - 2*gainTrend*m.pCross + gainTrend*gainTrend*(m.pLevel+m.r)
	m.pLevel, m.pCross, m.pTrend = pLevel, pCross, pTrend
}
