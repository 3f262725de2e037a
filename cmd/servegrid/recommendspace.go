package main

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results/recommend"
	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/perfmodel/catalogue"
	"github.com/servegrid/servegrid/simcore/perfmodel/tables"
	"github.com/servegrid/servegrid/simcore/router"
)

const (
	// defaultSpaceGPUs bounds the GPUs of a configuration for a trace when no flag does.
	defaultSpaceGPUs = 8
	// spaceBandwidth is that of a 400 Gb/s network adapter, in GB/s: what hands KV caches from prefill to decode workers.
	spaceBandwidth = 50
	// largestTP bounds the tensor parallelism to a usual node.
	largestTP = 8
)

// traceSpace says which configurations to try for a trace.
type traceSpace struct {
	model, dtype, backend string
	gpuTypes              []string
	speedup, rate         float64
	concurrency           int
	format                string
	blockSize             int
}

func (s *traceSpace) add(fs *pflag.FlagSet) {
	fs.StringVar(&s.model, "model", "", "trace: model to serve: its name here or on Hugging Face; perf list shows them")
	fs.StringVar(&s.dtype, "dtype", "", "trace: variant of the model's weights; the default is the model's own")
	fs.StringVar(&s.backend, "backend", "", "trace: serving engine: "+strings.Join(perfmodel.Backends(), ", ")+" (default vllm)")
	fs.StringSliceVar(&s.gpuTypes, "gpu", nil, "trace: GPU types to try; the default is all that have tables of the model")
	fs.StringVar(&s.format, "trace-format", "", "trace: its format; the default is to tell by its content")
	fs.IntVar(&s.blockSize, "trace-block-size", 0, "trace: tokens per hash id; the default is the format's own")
	fs.Float64Var(&s.speedup, "speedup", 0, "load of a spec or trace: divide arrival times by this")
	fs.Float64Var(&s.rate, "rate", 0, "load of a spec or trace: sessions started per second")
	fs.IntVar(&s.concurrency, "concurrency", 0, "load of a spec or trace: sessions in flight")
}

// ofTraces are the flags that only a trace needs, loadFlags those of the load.
var (
	ofTraces  = []string{"model", "dtype", "backend", "gpu", "trace-format", "trace-block-size"}
	loadFlags = []string{"speedup", "rate", "concurrency"}
)

// given reports whether flags say that the input is a trace.
func (s *traceSpace) given() bool {
	return s.model != "" || s.dtype != "" || s.backend != "" || len(s.gpuTypes) > 0 || s.format != "" || s.blockSize != 0
}

// refuse lists the flags that mean nothing for other inputs.
func (s *traceSpace) refuse(flags *pflag.FlagSet, kind string) []error {
	var problems []error
	for _, name := range ofTraces {
		if kind == inputSpec && flags.Changed(name) {
			problems = append(problems, fmt.Errorf("--%s is for traces; the spec says it, or --set does", name))
		}
	}
	for _, name := range loadFlags {
		if kind == inputResults && flags.Changed(name) {
			problems = append(problems, fmt.Errorf("--%s is for specs and traces; choose a load of the results with --where, such as --where '%s == %s'", name, name, flags.Lookup(name).Value))
		}
	}
	return append(problems, s.oneLoad()...)
}

func (s *traceSpace) oneLoad() []error {
	if n := len(s.load()); n > 1 {
		return []error{errors.New("--speedup, --rate and --concurrency are three ways to say the load; give one")}
	}
	return nil
}

// load is the load as settings of a spec.
func (s *traceSpace) load() []string {
	var out []string
	if s.speedup > 0 {
		out = append(out, fmt.Sprintf("load.speedup=%v", s.speedup))
	}
	if s.rate > 0 {
		out = append(out, fmt.Sprintf("load.rate=%v", s.rate))
	}
	if s.concurrency > 0 {
		out = append(out, fmt.Sprintf("load.concurrency=%d", s.concurrency))
	}
	return out
}

func (s *traceSpace) check(input string) []error {
	problems := s.oneLoad()
	if s.model == "" {
		problems = append(problems, errors.New("--model is needed for a trace: the name of the model, here or on Hugging Face; perf list shows them"))
	}
	if isFolder(input) && isFile(filepath.Join(input, "results.parquet")) {
		problems = append(problems, fmt.Errorf("%s holds results, which say model and GPUs themselves; leave --model and --gpu out, and use --where", input))
	} else if _, err := os.Stat(input); err != nil && input != "-" && !files.IsURL(input) {
		problems = append(problems, err)
	}
	if input == "-" {
		problems = append(problems, errors.New("a trace from the standard input can be read only once; put it into a file"))
	}
	if s.backend != "" && !slices.Contains(perfmodel.Backends(), s.backend) {
		problems = append(problems, fmt.Errorf("--backend: %q is not allowed; use one of: %s", s.backend, strings.Join(perfmodel.Backends(), ", ")))
	}
	return problems
}

// chooseFolder fills in what flags leave open for a trace.
func (f *recommendFlags) chooseFolder(trace string) {
	if f.output == "" {
		name, _, _ := strings.Cut(files.Base(trace), ".")
		f.output = filepath.Join("runs", "recommend-"+fileName(name))
	}
	if f.gpus == 0 {
		f.gpus = defaultSpaceGPUs
	}
}

// spaceText is the spec of what to try for a trace: every GPU, tensor parallelism, number of workers, split into prefill and
// decode pools and router that the number of GPUs allows. What does not fit into a GPU, or has no tables, is left out.
func (f *recommendFlags) spaceText(trace string) (string, error) {
	s := &f.space
	gpus, err := f.pricedGPUs()
	if err != nil {
		return "", err
	}
	source := []string{"path: " + strconv.Quote(filepath.ToSlash(trace))}
	if s.format != "" {
		source = append(source, "format: "+gridspec.OverrideText(s.format))
	}
	if s.blockSize != 0 {
		source = append(source, fmt.Sprintf("block_size: %d", s.blockSize))
	}
	timing := []string{"model: " + gridspec.OverrideText(s.model), "backend: " + s.engine()}
	if s.dtype != "" {
		timing = append(timing, "dtype: "+gridspec.OverrideText(s.dtype))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\n", gridspec.OverrideText(fileName(filepath.Base(f.output))))
	fmt.Fprintf(&b, "workload:\n  trace: {%s}\n", strings.Join(source, ", "))
	fmt.Fprintf(&b, "timing: {%s}\n", strings.Join(timing, ", "))
	fmt.Fprintf(&b, "engine: {type: %s}\n", s.engine())
	b.WriteString("cases:\n")
	cases, parallel := splits(f.gpus), powersOfTwo(0, bits.Len(uint(min(f.gpus, largestTP)))-1)
	for _, c := range cases {
		fmt.Fprintf(&b, "  %s\n", c)
	}
	fmt.Fprintf(&b, "grid:\n  timing.gpu: [%s]\n  timing.tp: %s\n  router.policy: [%s, %s]\n",
		strings.Join(gpus, ", "), listText(parallel), router.PolicyRoundRobin, router.PolicyKVRouter)
	fmt.Fprintf(&b, "exclude:\n  - gpus > %d\n  - case == 'w1' && router.policy != '%s'\n", f.gpus, router.PolicyRoundRobin)
	b.WriteString(searchText(f.gpus, len(gpus), cases, parallel))
	b.WriteString("objectives: {minimize: [cost_usd_per_mtok_output], maximize: [mean_output_token_throughput_per_user]}\nexecution: {on_invalid: skip}\n")
	return b.String(), nil
}

func (s *traceSpace) engine() string {
	if s.backend == "" {
		return perfmodel.Backends()[0]
	}
	return s.backend
}

// pricedGPUs are the GPU types to try. Where the answer needs a price, those without one are left out, and kept in mind to be
// named: they could not be chosen. When none has a price, all stay, and are compared by GPU-hours.
func (f *recommendFlags) pricedGPUs() ([]string, error) {
	all, err := f.space.gpus()
	if err != nil || !f.needsPrice() {
		return all, err
	}
	priced := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return !f.hasPrice(id) })
	if len(priced) == 0 {
		return all, nil
	}
	f.unpriced = slices.DeleteFunc(all, func(id string) bool { return slices.Contains(priced, id) })
	return priced, nil
}

// needsPrice reports whether a configuration without a price cannot be chosen.
func (f *recommendFlags) needsPrice() bool {
	_, column, _ := strings.Cut(f.objective, ":")
	column = cmp.Or(column, f.objective)
	return f.usdPerHour > 0 || column == "cost" || column == recommend.HourlyCostColumn || strings.HasPrefix(column, "cost_usd")
}

// hasPrice reports whether the catalogue or --set prices.GPU has a price of a GPU.
func (f *recommendFlags) hasPrice(id string) bool {
	gpu, err := catalogue.FindGPU(id)
	if err == nil && gpu.USDPerHour > 0 {
		return true
	}
	return slices.ContainsFunc(f.set, func(kv string) bool {
		key, _, _ := strings.Cut(kv, "=")
		name, ok := strings.CutPrefix(strings.TrimSpace(key), "prices.")
		given, err := catalogue.FindGPU(name)
		return ok && (name == id || err == nil && given.ID == id)
	})
}

// unpricedCautions say which GPUs were left out.
func (f *recommendFlags) unpricedCautions() []string {
	if len(f.unpriced) == 0 {
		return nil
	}
	keys := make([]string, len(f.unpriced))
	for i, id := range f.unpriced {
		keys[i] = fmt.Sprintf("--set prices.%s=…", id)
	}
	return []string{fmt.Sprintf("Not tried, since no price is known: %s. With USD per GPU-hour they are: %s.", strings.Join(f.unpriced, ", "), strings.Join(keys, " "))}
}

// gpus are the GPU types to try, as a spec names them.
func (s *traceSpace) gpus() ([]string, error) {
	if len(s.gpuTypes) > 0 {
		var problems []error
		out := make([]string, len(s.gpuTypes))
		for i, name := range s.gpuTypes {
			gpu, err := catalogue.FindGPU(name)
			if err != nil {
				problems = append(problems, fmt.Errorf("--gpu: %w", err))
			}
			out[i] = gpu.ID
		}
		return out, errors.Join(problems...)
	}
	set := tables.Embedded()
	var out []string
	for _, id := range set.Systems() {
		if set.HasModel(id, s.model) {
			out = append(out, id)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("--model: no GPU has tables of %s; name GPUs with --gpu to price it by a roofline, or a model that perf list shows", s.model)
	}
	return out, nil
}

// split is a case of a space: so many workers that do both, or some for prefill and the rest for decode.
type split struct{ workers, prefill int }

func (s split) String() string {
	if s.prefill == 0 {
		return fmt.Sprintf("w%d: {deployment.workers: %d}", s.workers, s.workers)
	}
	decode := s.workers - s.prefill
	return fmt.Sprintf("%dp%dd: {deployment: {prefill_workers: %d, decode_workers: %d}, engine: {kv_transfer_bandwidth: %d}}",
		s.prefill, decode, s.prefill, decode, spaceBandwidth)
}

// splits are the cases for a number of GPUs: numbers of workers, and ways to divide them between prefill and decode.
func splits(gpus int) []split {
	var whole, divided []split
	for _, n := range workerCounts(gpus) {
		whole = append(whole, split{workers: n})
		last := 0
		for _, quarter := range []int{1, 2, 3} {
			prefill := max(1, min(n-1, (n*quarter+2)/4))
			if n > 1 && prefill != last {
				divided, last = append(divided, split{n, prefill}), prefill
			}
		}
	}
	return append(whole, divided...)
}

// searchFrom is the number of combinations from which on a space is searched, and the least that a search simulates; beyond
// it is a quarter of them. docs/search.md says what that costs in quality.
const searchFrom = 100

// searchText is the section of the spec that makes a sweep of a large space a search.
func searchText(gpus, types int, cases []split, parallel []int) string {
	combinations := 0
	for _, tp := range parallel {
		for _, c := range cases {
			switch {
			case c.workers*tp > gpus:
			case c.workers == 1:
				combinations += types
			default:
				combinations += 2 * types // a router or none
			}
		}
	}
	if combinations <= searchFrom {
		return ""
	}
	return fmt.Sprintf("search: {method: refine, points: %d}\n", max(searchFrom, combinations/4))
}

// workerCounts are 1, 2, 3, 4, 6, 8, 12, … up to a number: steps of a half and a third.
func workerCounts(most int) []int {
	var out []int
	for n := 1; n <= most; n *= 2 {
		out = append(out, n)
		if half := n + n/2; n > 1 && half <= most {
			out = append(out, half)
		}
	}
	if out[len(out)-1] != most {
		out = append(out, most)
	}
	return out
}

func listText(numbers []int) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	return "[" + strings.Join(words, ", ") + "]"
}
