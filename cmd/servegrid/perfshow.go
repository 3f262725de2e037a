package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/perfmodel/memory"
	"github.com/servegrid/servegrid/simcore/perfmodel/tables"
	"github.com/servegrid/servegrid/simcore/rules"
)

// perfShowFlags are the keys of a spec's timing section, what of its engine section decides the memory, and a pass.
type perfShowFlags struct {
	timing    perfmodel.Config
	memory    memory.Settings
	blockSize int
	pass      passFlags
	svg       string
	json      bool
}

func newPerfShow(st *state) *cobra.Command {
	f := perfShowFlags{timing: perfmodel.DefaultConfig()}
	cmd := &cobra.Command{
		Use:   "show --gpu GPU --model MODEL",
		Short: "Show what a pass takes, with its parts, and the memory of a deployment",
		Long: `show prices passes of one worker, says where the prices come from and how far they may be off, and divides the
memory of a GPU. All --prefill and --decode together make up one pass, whose price is shown with its parts:

  --prefill 4x2048        4 prompts, of which 2048 tokens each are computed
  --prefill 4x512+8192    the same of 512 tokens after 8192 that exist already
  --decode 32x2048        a token for each of 32 sequences that have 2048

Without them it shows the prices of prefill and decode passes over batch, context and prefix. The other flags have the
names of the keys of a spec's timing and engine sections.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkFinite(cmd.Flags()); err != nil {
				return err
			}
			return f.run(st)
		},
	}
	f.add(cmd)
	return cmd
}

func (f *perfShowFlags) add(cmd *cobra.Command) {
	fs, t := cmd.Flags(), &f.timing
	fs.StringVar(&t.GPU, "gpu", "", "GPU, such as h200_sxm; perf list shows them")
	fs.StringVar(&t.Model, "model", "", "model: its name here or on Hugging Face, or the path of a config.json")
	fs.StringVar(&t.DType, "dtype", "", "variant of the weights, such as fp8; the default is that of the model's name")
	fs.StringVar(&t.Backend, "backend", "", "serving engine: "+strings.Join(perfmodel.Backends(), ", ")+"; the default is vllm")
	fs.StringVar(&t.BackendVersion, "backend-version", "", "release of the engine, current or legacy; the default is current")
	fs.IntVar(&t.TP, "tp", t.TP, "tensor parallelism")
	fs.IntVar(&t.DP, "dp", t.DP, "attention data parallelism")
	fs.IntVar(&t.EP, "ep", t.EP, "expert parallelism; 0 means 1 where that was measured")
	fs.StringVar(&t.Mode, "mode", t.Mode, "how the prices of a mixed pass combine: "+strings.Join(perfmodel.Modes(), ", "))
	fs.StringVar(&t.Source, "source", t.Source, "auto, table or analytic")
	fs.StringVar(&t.Tables, "tables", "", "a folder of tables; the default is those that servegrid contains")
	fs.BoolVar(&t.Corrections, "corrections", t.Corrections, "repair what is known to be wrong with the tables")
	fs.StringVar(&t.GEMMDType, "gemm-dtype", "", "dtype of the matrix products")
	fs.StringVar(&t.MoEDType, "moe-dtype", "", "dtype of the experts")
	fs.StringVar(&t.FMHADType, "fmha-dtype", "", "dtype of attention")
	fs.StringVar(&t.KVCacheDType, "kv-cache-dtype", "", "dtype of the KV cache")

	e := engine.DefaultConfig()
	blockSize, _ := e.ResolvedBlockSize()
	fs.IntVar(&f.blockSize, "block-size", blockSize, "tokens in a KV block")
	fs.IntVar(&f.memory.MaxBatchedTokens, "max-num-batched-tokens", e.MaxNumBatchedTokens, "tokens of a pass that activations are for")
	fs.Float64Var(&f.memory.GPUMemoryUtilization, "gpu-memory-utilization", 0, "vLLM's share of the memory; 0 means 0.9")
	fs.Float64Var(&f.memory.MemFractionStatic, "mem-fraction-static", 0, "SGLang's share of the memory; 0 means 0.88")
	fs.Float64Var(&f.memory.FreeGPUMemoryFraction, "free-gpu-memory-fraction", 0, "TensorRT-LLM's share of the free memory; 0 means 0.9")

	fs.StringArrayVar(&f.pass.prefill, "prefill", nil, "prompts of the pass: BATCHxNEW or BATCHxNEW+PREFIX (repeatable)")
	fs.StringArrayVar(&f.pass.decode, "decode", nil, "sequences of the pass: BATCHxCONTEXT (repeatable)")
	fs.StringVar(&f.svg, "svg", "", "file for a plot of latency over batch and context")
	fs.BoolVar(&f.json, "json", false, "print everything as one JSON object")
}

func (f *perfShowFlags) run(st *state) error {
	pass, err := f.pass.pass()
	if err != nil {
		return err
	}
	d, err := f.deployment()
	if err != nil {
		return err
	}
	if d.provenance.Anomaly {
		_ = printText(st.stderr, "warning: the source of these tables is suspect: %s\n", perfmodel.AnomalyMeaning)
	}
	if f.svg != "" {
		plot := newLatencyPlot(d)
		if err := results.WriteFile(f.svg, func(w io.Writer) error { return plot.write(w) }); err != nil {
			return err
		}
	}
	var shown *shownPass
	if f.pass.given() {
		shown = d.price(&pass)
	}
	if f.json {
		return printJSON(st, d.document(shown))
	}
	return f.print(st, d, shown)
}

// deployment is a priced deployment: its model of time and its memory.
type deployment struct {
	timing     perfmodel.Config
	model      perfmodel.Explainer
	provenance perfmodel.Provenance
	row        *tables.Config // nil when analytic
	plan       memory.Plan
	full       *memory.DoesNotFit // set when the model does not fit
	blockSize  int
}

// deployment resolves what the flags name.
func (f *perfShowFlags) deployment() (*deployment, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	resolved, problems := f.timing.Resolve(rules.Set{}, engine.TypeVLLM)
	if err := asFlags(problems); err != nil {
		return nil, err
	}
	d := &deployment{timing: resolved.Config, provenance: resolved.Config.Provenance(), blockSize: f.blockSize}
	model, err := perfmodel.New(d.timing)
	if err != nil {
		return nil, err
	}
	explainer, ok := model.(perfmodel.Explainer)
	if !ok || resolved.Memory == nil {
		return nil, fmt.Errorf("--source: %s is not allowed; a pass has parts with table and analytic only", d.timing.Source)
	}
	d.model = explainer
	if d.timing.Source == perfmodel.SourceTable {
		if d.row, err = d.timing.Row(); err != nil {
			return nil, err
		}
	}
	d.plan, err = resolved.Memory.Plan(f.memory)
	if errors.As(err, &d.full) {
		err = nil
	}
	return d, err
}

// check refuses what has no place in a table of problems with the timing section.
func (f *perfShowFlags) check() error {
	var problems []error
	for _, needed := range []struct{ flag, value, hint string }{
		{"gpu", f.timing.GPU, "such as --gpu h200_sxm; servegrid perf list shows them"},
		{"model", f.timing.Model, "such as --model llama-3.1-8b; servegrid perf list shows them"},
	} {
		if needed.value == "" {
			problems = append(problems, fmt.Errorf("--%s is missing; give one, %s", needed.flag, needed.hint))
		}
	}
	if sources := []string{perfmodel.SourceAuto, perfmodel.SourceTable, perfmodel.SourceAnalytic}; !slices.Contains(sources, f.timing.Source) {
		problems = append(problems, fmt.Errorf("--source: %s is not allowed; use one of: %s", f.timing.Source, strings.Join(sources, ", ")))
	}
	if f.blockSize < 1 {
		problems = append(problems, fmt.Errorf("--block-size: %d is not allowed; give 1 token or more", f.blockSize))
	}
	return errors.Join(problems...)
}

// kvTokens is the number of tokens whose KV cache fits into a worker; blocks the number of whole KV blocks.
func (d *deployment) kvTokens() int { return d.plan.KVTokens * d.timing.DP }
func (d *deployment) blocks() int   { return d.plan.KVTokens / d.blockSize * d.timing.DP }

// name is "llama-3.1-8b bf16 on h200_sxm".
func (d *deployment) name() string {
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s on %s", d.timing.Model, d.timing.DType, d.timing.GPU)), " ")
}

// engineText is "vllm 0.24.0, tp 1".
func (d *deployment) engineText() string {
	return strings.TrimSpace(d.timing.Backend+" "+d.timing.BackendVersion) + ", " + parallelism(d.timing.TP, d.timing.DP, cmp.Or(d.timing.EP, 1))
}

// shownPass is a priced pass.
type shownPass struct {
	pass  *perfmodel.Pass
	price perfmodel.Price
	parts []perfmodel.Part
	// fits says that there is room for the KV cache of its prompts and sequences.
	fits bool
}

func (d *deployment) price(p *perfmodel.Pass) *shownPass {
	tokens := p.Decode.Requests * (p.Decode.Context + 1)
	for _, c := range p.Prefill.Chunks {
		tokens += c.Length
	}
	return &shownPass{pass: p, price: d.model.Price(p), parts: d.model.Parts(p), fits: tokens <= d.kvTokens()}
}

func (s *shownPass) ms() float64 { return s.price.PrefillMs + s.price.DecodeMs }
