package simcore

// RequestOverheadMs is how long a request takes from its arrival to the router: that of the workers which get it first.
func (c Config) RequestOverheadMs() float64 { return c.Stages()[0].Timing.RequestOverheadMs }

// laterDriver hands requests over a constant time after they became ready, so in the same order.
type laterDriver struct {
	driver
	overheadMs float64
}

func (d laterDriver) peek() float64 { return d.driver.peek() + d.overheadMs }

// afterOverhead returns a driver whose requests are seen when they are at the router; when they became ready stays what it is.
func (s *simulation) afterOverhead(d driver) driver {
	if s.overheadMs == 0 {
		return d
	}
	return laterDriver{d, s.overheadMs}
}
