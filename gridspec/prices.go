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
