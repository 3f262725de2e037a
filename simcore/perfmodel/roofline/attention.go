package roofline

import (
	"math"

	"github.com/servegrid/servegrid/simcore/perfmodel/catalogue"
)

// attention is that of all layers of one kind.
type attention struct {
	// window is the number of tokens that a token attends to, infinite for the whole context.
	window float64
	// pairMs is the arithmetic of prefill for one pair of tokens, counted twice; cachedMs is for reading the keys and
	// values of a token, queryMs for the query and output of a new one.
	pairMs, cachedMs, queryMs float64
	// decodeTokenMs is a decode step's arithmetic and reading for one token of the context.
	decodeTokenMs float64
	launchMs      float64
}

// prefillMs is for b prompts that grow from p to f tokens.
func (a *attention) prefillMs(b, f, p float64) float64 {
	if f <= p {
		return a.launchMs
	}
	pairs := a.pairs(f) - a.pairs(p)
	read := min(f, f-p+a.window)
	return smoothMax(b*pairs*a.pairMs, b*(float64(read*a.cachedMs)+float64((f-p)*a.queryMs))) + a.launchMs
}

// pairs is twice the number of pairs of tokens that attend to each other in a sequence of t tokens.
func (a *attention) pairs(t float64) float64 {
	if t <= a.window {
		return t * t
	}
	return a.window * (2*t - a.window)
}

func (a *attention) decodeMs(b, s float64) float64 {
	return float64(b*min(s, a.window)*a.decodeTokenMs) + a.launchMs
}

// attentionOf returns the attention of the layers that see the whole context and of those that see a window.
func attentionOf(d Deployment) [2]attention {
	one := attentionOfLayer(d)
	windowed := float64(d.Model.WindowLayers)
	full, window := one.times(float64(d.Model.Layers)-windowed), one.times(windowed)
	full.window, window.window = math.Inf(1), float64(max(d.Model.Window, 1))
	return [2]attention{full, window}
}

func (a attention) times(layers float64) attention {
	a.pairMs *= layers
	a.cachedMs *= layers
	a.queryMs *= layers
	a.decodeTokenMs *= layers
	a.launchMs *= layers
	return a
}

// attentionOfLayer counts the work of one layer on one GPU.
func attentionOfLayer(d Deployment) attention {
	m, c := d.Model, constantsOf(d)
	flops := d.GPU.BF16TFLOPS * tera * c.AttentionEfficiency
	read := d.GPU.MemoryGBps * giga * c.KVReadEfficiency
	n := float64(m.Heads) / float64(d.TP)
	a := attention{launchMs: c.AttentionLaunchUs * perUs}
	var decodeFLOP float64
	if m.IsMLA() {
		latent, rope := float64(m.KVLoRARank), float64(m.RopeHeadDim)
		// Prefill expands the latent into keys and values; decode works on the latent itself.
		a.pairMs = n * (float64(m.NopeHeadDim) + rope + float64(m.ValueHeadDim)) / flops * perSecond
		decodeFLOP = 2 * n * (2*latent + rope)
	} else {
		width := float64(m.HeadDim)
		a.pairMs = 2 * n * width / flops * perSecond
		a.queryMs = 2 * n * width * 2 / read * perSecond
		decodeFLOP = 4 * n * width
	}
	a.cachedMs = kvBytes(d) / read * perSecond
	a.decodeTokenMs = smoothMax(decodeFLOP/flops*perSecond, a.cachedMs)
	return a
}

// kvBytes is the KV cache of one token in one layer on one GPU. The latent of MLA isn't divided: each GPU has a copy.
func kvBytes(d Deployment) float64 {
	m, bytes := d.Model, 2.
	if d.KVDType == catalogue.FP8 {
		bytes = 1
	}
	if m.IsMLA() {
		return float64(m.KVLoRARank+m.RopeHeadDim) * bytes
	}
	return 2 * kvHeads(d) * float64(m.HeadDim) * bytes
}
