package deploy

import (
	"fmt"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/perfmodel/catalogue"
)

// The roles of workers. Those of an aggregated deployment have none.
const (
	rolePrefill = "prefill"
	roleDecode  = "decode"
)

// worker is one of the equal workers of a pool.
type worker struct {
	simcore.Pool
	role string
	// ownPool says that the number of KV blocks was chosen, and does not follow from the memory of the GPUs.
	ownPool bool
	checkpoint
	launch
}

// launch is how a server is started.
type launch struct {
	env  []argument
	args []argument
	// options are those of a file of options.
	options []option
}

// argument is a flag of a server or a variable of its environment.
type argument struct {
	// name is with its dashes, if any; a flag without a value is a switch.
	name, value string
	// from says which setting it comes from.
	from string
}

// backend is a kind of server.
type backend struct {
	// name is that of engine.type, title for people.
	name, title string
	// launch translates the settings of a worker, and notes what has no counterpart.
	launch func(*deployment, worker) launch
	// command is what starts a server by itself; model is the flag that names the model, or empty when it is the first argument.
	command []string
	model   string
	// module is the Python module of Dynamo's worker, and image the name of its container.
	module, image string
	// services names Dynamo's services by role; its planner looks for these names.
	services map[string]string
}

// backends are the servers by engine.type.
var backends = map[string]backend{
	engine.TypeVLLM: {
		name: "vllm", title: "vLLM", launch: vllmLaunch, command: []string{"vllm", "serve"}, module: "dynamo.vllm", image: "vllm-runtime",
		services: map[string]string{"": "VllmWorker", rolePrefill: "VllmPrefillWorker", roleDecode: "VllmDecodeWorker"},
	},
	engine.TypeSGLang: {
		name: "sglang", title: "SGLang", launch: sglangLaunch, command: []string{"python3", "-m", "sglang.launch_server"}, model: "--model-path",
		module: "dynamo.sglang", image: "sglang-runtime",
		services: map[string]string{"": "worker", rolePrefill: "prefill", roleDecode: "decode"},
	},
	engine.TypeTensorRTLLM: {
		name: "trtllm", title: "TensorRT-LLM", launch: trtllmLaunch, command: []string{"trtllm-serve"}, module: "dynamo.trtllm", image: "tensorrtllm-runtime",
		services: map[string]string{"": "worker", rolePrefill: "prefill", roleDecode: "decode"},
	},
}

// workersOf returns a worker of each pool.
func workersOf(c gridspec.Config) []worker {
	pools, roles := c.Stages(), []string{""}
	if c.Deployment.Mode == simcore.ModeDisaggregated {
		roles = []string{rolePrefill, roleDecode}
	}
	open := c.Config
	open.Engine.NumGPUBlocks, open.Prefill.Engine.NumGPUBlocks, open.Decode.Engine.NumGPUBlocks = 0, 0, 0
	open, problems := open.Resolve()
	var out []worker
	for i, p := range pools {
		p.Timing.TP, p.Timing.DP = max(1, p.Timing.TP), max(1, p.Timing.DP)
		own := len(problems) > 0 || open.Stages()[i].Engine.NumGPUBlocks != p.Engine.NumGPUBlocks
		out = append(out, worker{Pool: p, role: roles[i], ownPool: own})
	}
	return out
}

// suffix tells the files of pools apart.
func (w worker) suffix() string {
	if w.role == "" {
		return ""
	}
	return "-" + w.role
}

// describe says how many workers there are and what each occupies.
func (w worker) describe() string {
	kind := "GPU"
	if g, err := catalogue.FindGPU(w.Timing.GPU); err == nil && w.hasGPU() {
		kind = g.Name
	}
	workers := "workers"
	if w.Workers == 1 {
		workers = "worker"
	}
	if w.role != "" {
		workers = w.role + " " + workers
	}
	return fmt.Sprintf("%d %s of %d × %s", w.Workers, workers, w.GPUsPerWorker(), kind)
}

// blocksPerRank is the size of the KV pool of a data-parallel rank: ranks have memory of their own.
func (w worker) blocksPerRank() int { return max(1, w.Engine.NumGPUBlocks/w.Timing.DP) }

// nodes is the number of servers that a worker occupies, where that is known of its GPU.
func (w worker) nodes() int {
	g, err := catalogue.FindGPU(w.Timing.GPU)
	if err != nil || !w.hasGPU() || g.GPUsPerNode < 1 {
		return 1
	}
	return max(1, (w.GPUsPerWorker()+g.GPUsPerNode-1)/g.GPUsPerNode)
}

// hasGPU reports whether the configuration says which GPU it is about.
func (w worker) hasGPU() bool { return w.Timing.GPU != "" }

// attentionDP reports whether attention is data parallel within the worker, as mixtures of experts are served; other models have
// whole copies.
func (w worker) attentionDP() bool { return w.Timing.DP > 1 && w.experts }

// expertParallel is the expert-parallel size.
func (w worker) expertParallel() int { return max(1, w.Timing.EP) }

// tierBytes is the memory of so many blocks of a lower tier on all GPUs of a rank together, in bytes; 0 when it is not known.
func (w worker) tierBytes(blocks int) float64 {
	return float64(blocks) / float64(w.Timing.DP) * float64(w.Engine.BlockSize) * float64(w.Engine.KVBytesPerToken) * float64(w.Timing.TP)
}

// parallelism is how a worker spreads the model over its GPUs, as Dynamo's planner is told.
func (w worker) parallelism() []option {
	out := []option{{"tp", w.Timing.TP, ""}, {"dp", w.Timing.DP, ""}}
	if w.experts {
		ep := w.expertParallel()
		out = append(out, option{"moe_tp", max(1, w.GPUsPerWorker()/ep), ""}, option{"moe_ep", ep, ""})
	}
	return out
}
