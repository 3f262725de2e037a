package gridspec

import (
	"maps"
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/perfmodel/catalogue"
)

// prices returns what each GPU costs and draws: the figures of the catalogue with the prices that a spec overrides.
// With tables of the user's own there may be GPUs that the catalogue does not know.
func (c *collector) prices(override priceMap, ownGPUs bool) map[string]metrics.GPUPrice {
	out := map[string]metrics.GPUPrice{}
	for _, g := range catalogue.GPUs() {
		out[g.ID] = metrics.GPUPrice{USDPerHour: g.USDPerHour, TDPWatts: g.TDPWatts}
	}
	given := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(override)) {
		price, at := override[name], join("prices", name)
		gpu, err := catalogue.FindGPU(name)
		switch id := gpu.ID; {
		case err != nil && !ownGPUs:
			c.addMessage(at, "%v", err)
			continue
		case err != nil:
			given[name] = name
		case given[id] != "":
			c.addMessage(at, "this is the same GPU as %s, which has a price too", given[id])
		default:
			given[id] = name
			name = id
		}
		if !(price > 0) || math.IsInf(price, 0) {
			c.add(at, price, "give USD per GPU-hour, above 0")
		}
		entry := out[name]
		entry.USDPerHour = price
		out[name] = entry
	}
	return out
}

// gpuPrice is what one GPU of a configuration costs and draws: the mean over all of them, or nothing where one of them is
// not known.
func (s *Spec) gpuPrice(c *Config) metrics.GPUPrice {
	pools := c.Stages()
	mean := s.prices[pools[0].Timing.GPU]
	gpus := float64(pools[0].Workers * pools[0].GPUsPerWorker())
	for _, pool := range pools[1:] {
		price, more := s.prices[pool.Timing.GPU], float64(pool.Workers*pool.GPUsPerWorker())
		if price == mean || more <= 0 {
			continue
		}
		share := more / (gpus + more)
		mean.USDPerHour = meanOfKnown(mean.USDPerHour, price.USDPerHour, share)
		mean.TDPWatts = meanOfKnown(mean.TDPWatts, price.TDPWatts, share)
		gpus += more
	}
	return mean
}

// RepricedGPUs names the types of GPU that the point uses at a price other than the catalogue's, each once: GPUPrice.USDPerHour.
func (p Point) RepricedGPUs() []string {
	var out []string
	for _, pool := range p.Config.Stages() {
		name := pool.Timing.GPU
		if name == "" || !(p.GPUPrice.USDPerHour > 0) || slices.Contains(out, name) {
			continue
		}
		if gpu, err := catalogue.FindGPU(name); err != nil || gpu.USDPerHour != p.GPUPrice.USDPerHour {
			out = append(out, name)
		}
	}
	return out
}

// meanOfKnown weighs two figures, of which 0 is not known.
func meanOfKnown(a, b, shareOfB float64) float64 {
	if a == 0 || b == 0 {
		return 0
	}
	return a + (b-a)*shareOfB
}
