// Package roofline prices passes from the speeds of a GPU and the shape of a model, for deployments that no table
// covers: each operator takes as long as its arithmetic or its memory traffic, whichever is slower, at the share of
// the peak that kernels were measured to reach (perfmodel specification §4). Its results are estimates; [Roofline.Band]
// says how far off they were where tables exist.
//
// Read deployment.go for what is priced, roofline.go for the formulas, requirements.go for the memory that the
// deployment needs, band.go for the error.
package roofline

import (
	"math"

	"github.com/servegrid/servegrid/simcore/perfmodel/memory"
	"github.com/servegrid/servegrid/simcore/problem"
)

// Roofline prices the passes of one attention data-parallel rank of a deployment. All results are ms. It is immutable
// and safe for concurrent use; its methods allocate nothing.
type Roofline struct {
	// products are the matrix products of all layers, each over the tokens of the pass.
	products []product
	// experts are the routed experts of all layers.
	experts experts
	// tokenMs is what every token costs that moves bytes only (element-wise kernels, communication); passMs is what
	// a pass costs however small it is.
	tokenMs, passMs float64
	// logits is the projection to the vocabulary.
	logits product
	// attention is that of the layers that see the whole context, then of those that see a window.
	attention [2]attention

	requirements            memory.Requirements
	prefillBand, decodeBand float64
}

// New prepares a deployment, or returns all its problems; their paths are keys of the timing section.
func New(d Deployment) (*Roofline, problem.List) {
	d = d.withDefaults()
	if l := d.validate(); len(l) > 0 {
		return nil, l
	}
	r := &Roofline{requirements: requirements(d)}
	r.prefillBand, r.decodeBand = band(d)
	r.addLayers(d)
	r.addElementwise(d)
	r.addCommunication(d)
	r.attention = attentionOf(d)
	return r, nil
}

// Memory is what the deployment needs of each GPU.
func (r *Roofline) Memory() memory.Requirements { return r.requirements }

// Band is the error to expect of a prefill and of a decode pass, in per cent of the true duration: of deployments of
// the same class that have tables, at least two thirds of the estimates were closer.
func (r *Roofline) Band() (prefillPct, decodePct float64) { return r.prefillBand, r.decodeBand }

// Tokens is what x prompt tokens cost besides attention and logits: matrix products, experts, element-wise kernels
// and communication. x is of one rank.
func (r *Roofline) Tokens(x int) float64 {
	if x <= 0 {
		return 0
	}
	n := float64(x)
	ms := r.passMs + float64(r.tokenMs*n) + r.experts.ms(n)
	for i := range r.products {
		ms += r.products[i].ms(n)
	}
	return ms
}

// Requests is the projection of b requests to logits.
func (r *Roofline) Requests(b int) float64 {
	if b <= 0 {
		return 0
	}
	return r.logits.ms(float64(b))
}

// Generation is a decode pass of b requests without its attention.
func (r *Roofline) Generation(b int) float64 { return r.Tokens(b) + r.Requests(b) }

// PrefillAttention is the attention of b prompts that have length tokens after the pass and had prefix before it.
// Without new tokens only launching the kernels is left.
func (r *Roofline) PrefillAttention(b, length, prefix int) float64 {
	if b <= 0 || length <= 0 {
		return 0
	}
	n, f := float64(b), float64(length)
	p := min(max(float64(prefix), 0), f)
	return r.attention[0].prefillMs(n, f, p) + r.attention[1].prefillMs(n, f, p)
}

// GenerationAttention is the attention of a decode pass of b requests whose sequences, with the token being made,
// have so many tokens on average.
func (r *Roofline) GenerationAttention(b, sequence int) float64 {
	if b <= 0 || sequence <= 0 {
		return 0
	}
	n, s := float64(b), float64(sequence)
	return r.attention[0].decodeMs(n, s) + r.attention[1].decodeMs(n, s)
}

const (
	giga = 1e9
	tera = 1e12
	// perUs and perSecond turn into ms.
	perUs     = 1e-3
	perSecond = 1e3
)

// smoothMax is max(a, b) with a round corner: work and traffic overlap well except where they are alike.
func smoothMax(a, b float64) float64 {
	a, b = a*a, b*b
	return math.Sqrt(math.Sqrt(float64(a*a) + float64(b*b)))
}

// product is a matrix product of n rows with weights, summed over layers: n·computeMs of arithmetic against readMs
// for the weights, and the launch of its kernels.
type product struct{ computeMs, readMs, launchMs float64 }

func (p *product) ms(n float64) float64 { return smoothMax(n*p.computeMs, p.readMs) + p.launchMs }

// newProduct is a product of the given parameters on one GPU in each of so many layers.
func newProduct(d Deployment, f format, layers, parameters float64, kernels int) product {
	c := constantsOf(d)
	return product{
		computeMs: layers * 2 * parameters / (f.flops * f.efficiency) * perSecond,
		readMs:    layers * parameters * f.bytes / (d.GPU.MemoryGBps * giga * c.WeightReadEfficiency) * perSecond,
		launchMs:  layers * float64(kernels) * c.GEMMLaunchUs * perUs,
	}
}

// addLayers adds the matrix products and experts of all layers, and the logits.
func (r *Roofline) addLayers(d Deployment) {
	f, _ := formatsOf(d)
	m, layers := d.Model, float64(d.Model.Layers)
	for _, w := range attentionWeights(d, f) {
		r.products = append(r.products, newProduct(d, w.format, layers, w.parameters, w.kernels))
	}
	h, tp := float64(m.Hidden), float64(d.TP)
	if m.IsMoE() {
		r.products = append(r.products, newProduct(d, f.plain, layers, h*float64(m.Experts), 1))
		if m.SharedIntermediate > 0 {
			r.products = append(r.products, newProduct(d, f.linear, layers, 3*h*float64(m.SharedIntermediate)/tp, 2))
		}
		r.experts = expertsOf(d, f.experts)
	} else {
		width := h * float64(m.Intermediate) / tp
		r.products = append(r.products, newProduct(d, f.linear, layers, 2*width, 1), newProduct(d, f.linear, layers, width, 1))
	}
	r.logits = newProduct(d, f.plain, 1, h*float64(m.Vocabulary)/tp, 1)
}

// weight is one matrix of a layer on one GPU, computed by so many kernels.
type weight struct {
	format     format
	parameters float64
	kernels    int
}

// attentionWeights are the projections around attention.
func attentionWeights(d Deployment, f formats) []weight {
	m := d.Model
	h, n := float64(m.Hidden), float64(m.Heads)/float64(d.TP)
	if !m.IsMLA() {
		width := float64(m.HeadDim)
		return []weight{{f.latent, h * width * (n + 2*kvHeads(d)), 1}, {f.output, n * width * h, 1}}
	}
	rope, nope, value := float64(m.RopeHeadDim), float64(m.NopeHeadDim), float64(m.ValueHeadDim)
	latent, q := float64(m.KVLoRARank), float64(m.QLoRARank)
	queries := weight{f.latent, h*q + q*n*(nope+rope), 2}
	if m.QLoRARank == 0 {
		queries = weight{f.latent, h * n * (nope + rope), 1}
	}
	return []weight{
		queries,
		{f.latent, h * (latent + rope), 1},
		{f.latent, latent * n * (nope + value), 2},
		{f.output, n * value * h, 1},
	}
}

// kvHeads is the number of key-value heads on one GPU; with more GPUs than heads each has a copy.
func kvHeads(d Deployment) float64 { return max(float64(d.Model.KVHeads)/float64(d.TP), 1) }

// experts are the routed experts of all layers on one GPU.
type experts struct {
	// computeMs is the arithmetic that one token of the rank brings to this GPU.
	computeMs float64
	// readMs is for the weights of all experts on the GPU, of which a share 1-exp(idle·tokens) is touched.
	readMs, idle float64
	// activationMs is for reading and writing one token's activations.
	activationMs, launchMs float64
}

func (e *experts) ms(n float64) float64 {
	if e.launchMs == 0 {
		return 0
	}
	touched := -math.Expm1(e.idle * n)
	return smoothMax(e.computeMs*n, float64(e.readMs*touched)+float64(e.activationMs*n)) + e.launchMs
}

// expertsOf assumes that tokens choose experts evenly and at random.
func expertsOf(d Deployment, f format) experts {
	m, c, layers := d.Model, constantsOf(d), float64(d.Model.Layers)
	all, chosen := float64(m.Experts), float64(m.ExpertsPerToken)
	dp, ep := float64(d.DP), float64(d.EP)
	h, width := float64(m.Hidden), float64(m.ExpertIntermediate)/float64(d.expertTP())
	perToken := dp * chosen / ep // tokens of all ranks, of which this GPU's group serves its share
	read := d.GPU.MemoryGBps * giga * c.ExpertReadEfficiency
	e := experts{
		computeMs:    layers * 2 * perToken * 3 * h * width / (f.flops * c.ExpertEfficiency) * perSecond,
		readMs:       layers * all / ep * 3 * h * width * f.bytes / read * perSecond,
		activationMs: layers * perToken * (3*h + float64(2*width)) * 2 / read * perSecond,
		launchMs:     layers * c.ExpertLaunchUs * perUs,
		idle:         math.Inf(-1),
	}
	if all > 1 {
		e.idle = dp * chosen * math.Log1p(-1/all)
	}
	return e
}

// addElementwise adds the kernels that move activations only: eight passes over the residual stream in each layer
// and three over the width of an MLP, in bf16.
func (r *Roofline) addElementwise(d Deployment) {
	m, c, layers := d.Model, constantsOf(d), float64(d.Model.Layers)
	width := float64(m.Intermediate) / float64(d.TP)
	if m.IsMoE() {
		perToken := float64(d.DP*m.ExpertsPerToken) / float64(d.EP)
		width = perToken * float64(m.ExpertIntermediate) / float64(d.expertTP())
	}
	bytes := layers * 2 * (8*float64(m.Hidden) + float64(3*width))
	r.tokenMs += float64(bytes / (d.GPU.MemoryGBps * giga * c.ElementwiseEfficiency) * perSecond)
	r.passMs += float64(layers * c.ElementwiseLaunchUs * perUs)
}

// pcieGBps is the link bandwidth below which GPUs are taken to be connected by PCIe.
const pcieGBps = 100

// addCommunication adds two all-reduces a layer of tensor parallelism, and of data-parallel ranks that share experts
// the exchange of tokens before and after the experts.
func (r *Roofline) addCommunication(d Deployment) {
	c, calls := constantsOf(d), 2*float64(d.Model.Layers)
	efficiency := c.LinkEfficiency
	if d.GPU.LinkGBps < pcieGBps {
		efficiency = c.PCIeEfficiency
	}
	link := d.GPU.LinkGBps * giga * efficiency
	message := float64(d.Model.Hidden) * 2
	if tp := float64(d.TP); d.TP > 1 {
		r.tokenMs += float64(calls * 2 * (tp - 1) / tp * message / link * perSecond)
		r.passMs += float64(calls * c.AllReduceUs * perUs)
	}
	if dp := float64(d.DP); d.DP > 1 && d.Model.IsMoE() {
		r.tokenMs += float64(calls * (dp - 1) / dp * message / link * perSecond)
		r.passMs += float64(calls * c.AllReduceUs * perUs)
	}
}
