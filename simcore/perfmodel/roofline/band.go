package roofline

import "github.com/servegrid/servegrid/simcore/perfmodel/catalogue"

// class groups deployments that the formulas price about equally well.
type class int

const (
	// dense models on one GPU or on GPUs with a fast link.
	dense class = iota
	// experts: mixtures of experts and 4-bit weights, where kernels differ more than hardware does.
	experted
	// foreign GPUs that nothing was fitted on.
	foreign
	// pcie: GPUs that exchange activations over PCIe, which its bandwidth doesn't predict.
	pcie
	// spread over more GPUs than exchange tokens fast; the cost of crossing nodes isn't in the formulas.
	spread
)

func (c class) String() string {
	return [...]string{"dense", "experts", "foreign", "pcie", "spread"}[c]
}

// bands are the errors to expect of each class, in per cent of the true duration of a prefill and a decode pass. At
// least two thirds of the estimates lie inside where there are tables to compare with (testdata/accuracy.txt); for
// foreign GPUs the band is that of experts, and it is a guess.
var bands = [...]struct{ prefillPct, decodePct float64 }{
	dense:    {20, 20},
	experted: {40, 40},
	foreign:  {40, 40},
	pcie:     {100, 50},
	spread:   {100, 100},
}

func band(d Deployment) (prefillPct, decodePct float64) {
	b := bands[classOf(d)]
	return b.prefillPct, b.decodePct
}

// fastGPUs is the number of GPUs that the tables have inside one node.
const fastGPUs = 8

// classOf returns the widest class that a deployment belongs to.
func classOf(d Deployment) class {
	gpus := d.TP * d.DP
	exchanges := d.TP > 1 || d.DP > 1 && d.Model.IsMoE()
	switch {
	case exchanges && gpus > fastGPUs:
		return spread
	case exchanges && d.GPU.LinkGBps < pcieGBps:
		return pcie
	case d.GPU.Vendor == amd:
		return foreign
	case d.Model.IsMoE() || d.DType == catalogue.NVFP4 || d.DType == catalogue.MXFP4 || d.DType == catalogue.INT4,
		d.Backend == backendVLLM && d.DType == catalogue.FP8Block: // fitted on other backends, see constants
		return experted
	}
	return dense
}
