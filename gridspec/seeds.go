package gridspec

import "github.com/servegrid/servegrid/simcore/workload"

// deriveSeeds gives the workload of a replicate a seed of its own. The first keeps the spec's, so that asking for
// more replicates later leaves it as it is.
func deriveSeeds(w *workload.Spec, replicate int) {
	if replicate == 0 {
		return
	}
	if w.Preset != nil {
		w.Preset.Seed = derivedSeed(w.Preset.Seed, replicate)
	}
	if w.Synthetic != nil {
		w.Synthetic.Seed = derivedSeed(w.Synthetic.Seed, replicate)
	}
}

// derivedSeed mixes a seed and a replicate (the finalizer of SplitMix64), so that neighbouring seeds with
// neighbouring replicates have nothing in common. It has 53 bits, which every tool that reads results can show.
func derivedSeed(seed uint64, replicate int) uint64 {
	z := seed + uint64(replicate)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return (z ^ z>>31) >> 11
}
