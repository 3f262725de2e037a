package roofline

import (
	"math"

	"github.com/servegrid/servegrid/simcore/perfmodel/memory"
)

const mebi, gibi = 1 << 20, 1 << 30

// requirements is the memory that a deployment takes of one GPU, by the formulas of the tables' source (perfmodel
// specification §1.4) from the model's shape.
func requirements(d Deployment) memory.Requirements {
	perToken := activationBytesPerToken(d)
	r := memory.Requirements{
		WeightsBytes:            math.Floor(weightsBytes(d)),
		Activations8192Bytes:    math.Floor(perToken * memory.DefaultBatchedTokens),
		ActivationBytesPerToken: perToken,
		MinActivationBytes:      70 * mebi,
		CommunicationBytes:      communicationBytes(d.TP),
		OtherBytes:              3.5 * gibi,
		GPUBytes:                d.GPU.MemoryGiB * gibi,
		KV:                      kvCurve(d),
		DefaultFraction:         .90,
		Backend:                 d.Backend,
	}
	if d.Backend == backendSGLang {
		r.MinActivationBytes = math.Floor(90 * mebi * sglangActivations)
		r.OtherBytes = math.Floor(r.OtherBytes * 1.2)
		r.DefaultFraction = .88
	}
	return r
}

// weightsBytes is the size of the parameters on one GPU. It counts as the source does: every layer of a mixture of
// experts has experts, tied embeddings are two matrices, and the embedding is divided among the GPUs in dense models,
// whole with latent attention and left out in other mixtures of experts.
func weightsBytes(d Deployment) float64 {
	f, _ := formatsOf(d)
	m, tp := d.Model, float64(d.TP)
	h := float64(m.Hidden)
	layer := 0.
	for _, w := range attentionWeights(d, f) {
		layer += w.parameters * w.format.bytes
	}
	embedding := h * float64(m.Vocabulary) * f.plain.bytes
	vocabulary := embedding / tp // the projection to logits
	switch {
	case m.IsMLA():
		vocabulary += embedding
	case !m.IsMoE():
		vocabulary += embedding / tp
	}
	if m.IsMoE() {
		layer += 3 * h * float64(m.SharedIntermediate) / tp * f.linear.bytes
		layer += h * float64(m.Experts) * f.plain.bytes
		layer += 3 * h * float64(m.Experts) * float64(m.ExpertIntermediate) / float64(d.TP*d.DP) * f.experts.bytes
	} else {
		layer += 3 * h * float64(m.Intermediate) / tp * f.linear.bytes
	}
	return float64(m.Layers)*layer + vocabulary
}

// sglangActivations is what SGLang's activations take on top.
const sglangActivations = 1.15

// activationFactors say how many times a layer's queries, in bf16, the activations of a token take on 1, on 2 or 3,
// and on 4 and more GPUs of a rank.
type activationFactors [3]float64

func (f activationFactors) on(tp int) float64 { return f[min(tp/2, len(f)-1)] }

// factorsOf returns the factors of a kind of model on a backend.
func factorsOf(wide, sglang bool) activationFactors {
	switch {
	case wide && sglang:
		return activationFactors{28, 17, 13}
	case wide:
		return activationFactors{22, 13, 10}
	case sglang:
		return activationFactors{14, 8.5, 6.5}
	}
	return activationFactors{11, 6.5, 5}
}

// activationBytesPerToken is what a pass needs for one of its tokens.
func activationBytesPerToken(d Deployment) float64 {
	m, sglang := d.Model, d.Backend == backendSGLang
	bytes := 2 * float64(m.Heads*m.HeadDim) * factorsOf(m.IsMoE() || m.IsMLA(), sglang).on(d.TP)
	if m.IsMLA() && m.IsMoE() { // the buffers in which tokens travel to their experts
		bytes += 4 * float64(m.Hidden) * float64(d.DP*m.Experts*m.ExpertsPerToken) / float64(d.EP) / 128
	}
	if sglang {
		bytes *= sglangActivations
	}
	return bytes
}

// communicationBytes are the buffers of collective operations between tp GPUs.
func communicationBytes(tp int) float64 {
	switch {
	case tp == 1:
		return 0
	case tp == 2:
		return 342 * mebi
	}
	return 392 * mebi
}

// kvCurve is the KV cache of a sequence; layers with a window stop growing at it.
func kvCurve(d Deployment) memory.KVCurve {
	layer := kvBytes(d)
	windowed := float64(d.Model.WindowLayers)
	at := func(tokens float64) float64 {
		return layer * ((float64(d.Model.Layers)-windowed)*tokens + windowed*min(tokens, float64(d.Model.Window)))
	}
	return memory.KVCurve{Bytes64: at(64), Bytes4096: at(4096), Bytes131072: at(131072)}
}
