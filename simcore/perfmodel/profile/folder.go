package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// readFolder reads the results of the reference's profiler and reduces them as the reference does: a linear fit of
// each phase, evaluated on a regular grid.
func readFolder(dir string) (*Profile, error) {
	prefill, err1 := readPrefillRuns(dir)
	decode, err2 := readDecodeRuns(dir)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	var p Profile
	p.prefill, err1 = prefill.grid()
	p.decode, err2 = decode.grid()
	p.decodeByHeldTokens = true
	return &p, errors.Join(inFile(prefill.file, err1), inFile(decode.file, err2))
}

// resolution is the number of points of each axis of the regular grid.
const resolution = 100

// leastSeconds is the least time that the fits predict.
const leastSeconds = 1e-6

// prefillRuns are the profiler's prefill measurements: one prompt each.
type prefillRuns struct {
	file          string
	inputTokens   []float64
	firstTokensMs []float64
}

func (r *prefillRuns) grid() (grid, error) {
	tokens, seconds := make([]float64, len(r.inputTokens)), make([]float64, len(r.inputTokens))
	least, most := math.Inf(1), math.Inf(-1)
	for i, n := range r.inputTokens {
		tokens[i], seconds[i] = math.Trunc(n), r.firstTokensMs[i]/1000
		least, most = min(least, tokens[i]), max(most, tokens[i])
	}
	if most-least < minGap {
		return grid{}, fmt.Errorf("all prompts have %v tokens; measure at least two lengths", least)
	}
	fit := fitPlane(tokens, make([]float64, len(tokens)), seconds)
	if fit.slope < 0 {
		return grid{}, fmt.Errorf("prefill_ttft falls by %.3g ms a token of prefill_isl; a longer prompt can't be faster, measure again", -1000*fit.slope)
	}
	g := grid{axes: [maxAxes]axis{nil, regular(least, most)}, values: make([]float64, resolution)}
	for i, x := range g.axes[1] {
		g.values[i] = 1000 * max(leastSeconds, fit.at(x, 0))
	}
	return g, nil
}

// decodeRuns are the profiler's decode measurements: a batch at a share of the KV pool and a context each.
type decodeRuns struct {
	file     string
	usage    []float64 // share of the KV pool, 0 to 1
	context  []float64 // tokens
	stepMs   []float64
	kvTokens float64 // of the KV pool
}

func (r *decodeRuns) grid() (grid, error) {
	n := len(r.usage)
	requests, held, seconds := make([]float64, n), make([]float64, n), make([]float64, n)
	mostHeld, mostContext := 0.0, 0.0
	for i := range n {
		held[i] = math.RoundToEven(r.usage[i] * r.kvTokens)
		requests[i] = max(1, math.RoundToEven(held[i]/r.context[i]))
		seconds[i] = r.stepMs[i] / 1000
		mostHeld, mostContext = max(mostHeld, held[i]), max(mostContext, held[i]/requests[i])
	}
	if mostHeld < 1 || mostContext < 1+minGap*resolution {
		return grid{}, fmt.Errorf("at most %v KV tokens and %v tokens of context are held; measure larger batches", mostHeld, mostContext)
	}
	fit := fitPlane(held, requests, seconds)
	if fit.slope < 0 {
		return grid{}, fmt.Errorf("z_itl falls by %.3g ms a KV token; more of them can't be faster, measure again", -1000*fit.slope)
	}
	// More requests with the same KV tokens can look faster by noise; the reference ignores them then, and keeps the
	// rest of the fit.
	if fit.slope2 < -leastSeconds {
		fit.slope2 = 0
	}
	g := grid{axes: [maxAxes]axis{regular(0, mostHeld), regular(1, mostContext)}}
	for _, kv := range g.axes[0] {
		for _, context := range g.axes[1] {
			g.values = append(g.values, 1000*max(leastSeconds, fit.at(kv, max(1, kv/context))))
		}
	}
	return g, nil
}

// regular returns equally spaced points from the first to the last.
func regular(first, last float64) []float64 {
	out := make([]float64, resolution)
	step := (last - first) / (resolution - 1)
	for i := range out {
		out[i] = float64(float64(i)*step) + first
	}
	out[resolution-1] = last
	return out
}

// runs are the arrays of one phase in a folder of the profiler.
type runs interface {
	vector(name string) ([]float64, error)
}

// openRuns opens the arrays of a phase. The profiler writes an .npz file, its deployment the same as JSON; where both
// exist the first counts.
func openRuns(dir, phase string) (file string, r runs, err error) {
	npz := filepath.Join("selected_"+phase+"_interpolation", "raw_data.npz")
	jsonFile := phase + "_raw_data.json"
	if _, err := os.Stat(filepath.Join(dir, npz)); err == nil {
		a, err := openArchive(filepath.Join(dir, npz))
		return npz, a, inFile(npz, err)
	}
	data, err := readBounded(filepath.Join(dir, jsonFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("has neither %s nor %s; a folder of the profiler has one of them", npz, jsonFile)
	}
	var object jsonRuns
	if err == nil {
		err = json.Unmarshal(data, &object)
	}
	return jsonFile, object, inFile(jsonFile, err)
}

func inFile(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

// jsonRuns are the arrays of one phase in a JSON object.
type jsonRuns map[string]json.RawMessage

func (r jsonRuns) vector(name string) ([]float64, error) {
	raw, ok := r[name]
	if !ok {
		return nil, fmt.Errorf("array %s is missing; the file holds: %s", name, listed(slices.Sorted(maps.Keys(r)), ", "))
	}
	var one float64
	if json.Unmarshal(raw, &one) == nil && string(raw) != "null" {
		return []float64{one}, nil
	}
	var all []*float64
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("array %s is no list of numbers: %w", name, err)
	}
	out := make([]float64, len(all))
	for i, v := range all {
		if v == nil {
			return nil, fmt.Errorf("array %s: value %d is null; give a number", name, i+1)
		}
		out[i] = *v
	}
	return out, nil
}

// readColumns reads arrays that pair up, each with its least value.
func readColumns(r runs, columns ...column) error {
	var errs []error
	for _, c := range columns {
		values, err := r.vector(c.name)
		*c.to = values
		errs = append(errs, err)
		if err == nil {
			errs = append(errs, inArray(c.name, c.check()))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	first := columns[0]
	for _, c := range columns[1:] {
		if len(*c.to) != len(*first.to) {
			return fmt.Errorf("array %s has %d values, %s %d; they must pair up", c.name, len(*c.to), first.name, len(*first.to))
		}
	}
	return nil
}

// column is an array that must be finite, above zero and at most some limit.
type column struct {
	name string
	to   *[]float64
	most float64
}

func (c column) check() error {
	if len(*c.to) == 0 {
		return errors.New("is empty")
	}
	for i, v := range *c.to {
		if !(v > 0 && v <= c.most) {
			return fmt.Errorf("value %d is %v; give a number above 0, at most %.3g", i+1, v, c.most)
		}
	}
	return nil
}

func readPrefillRuns(dir string) (*prefillRuns, error) {
	file, r, err := openRuns(dir, "prefill")
	if err != nil {
		return nil, err
	}
	p := prefillRuns{file: file}
	err = readColumns(r, column{"prefill_isl", &p.inputTokens, maxCoordinate}, column{"prefill_ttft", &p.firstTokensMs, maxMs})
	return &p, inFile(file, err)
}

func readDecodeRuns(dir string) (*decodeRuns, error) {
	file, r, err := openRuns(dir, "decode")
	if err != nil {
		return nil, err
	}
	d := decodeRuns{file: file}
	var pool []float64
	err = errors.Join(
		readColumns(r, column{"x_kv_usage", &d.usage, maxUsage}, column{"y_context_length", &d.context, maxCoordinate}, column{"z_itl", &d.stepMs, maxMs}),
		readColumns(r, column{"max_kv_tokens", &pool, maxCoordinate}))
	if err != nil {
		return nil, inFile(file, err)
	}
	d.kvTokens = math.Trunc(pool[0])
	return &d, nil
}

// maxUsage bounds the share of the KV pool; the profiler computes it from lengths and may pass 1 a little.
const maxUsage = 100
