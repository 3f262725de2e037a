package tables

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/simcore/perfmodel/memory"
)

// CheckReport says what a folder of tables holds and how well it agrees with whole passes of its source.
type CheckReport struct {
	// Systems lists the systems, in alphabetical order.
	Systems []string
	// Configs, Curves and Grids count rows, curves and grids; Anomalies the rows that are suspect at their source.
	Configs, Curves, Grids, Anomalies int
	// Prefill and Decode compare the tables with the points of checks.csv.gz; without that file they are empty.
	Prefill, Decode CheckedPoints
}

// CheckedPoints is a comparison with whole passes that the tables were not made from.
type CheckedPoints struct {
	// Count is the number of points.
	Count int
	// Errors are their absolute errors, in %.
	Errors ErrorFigures
	// Worst describes the point with the greatest error.
	Worst string
}

// Check reads all of a folder of tables: that each row, curve and grid is well formed, that ids are the hashes of
// their contents, that rows find their curves and need a sensible amount of memory. Its error is a [Faults] with
// everything that is wrong; the set and the report are then of no use.
func Check(dir string) (*Set, CheckReport, error) {
	s, err := Open(dir)
	if err != nil {
		return nil, CheckReport{}, err
	}
	report, err := s.Check()
	if err != nil {
		return nil, CheckReport{}, fmt.Errorf("%s: %w", dir, err)
	}
	return s, report, nil
}

// Check validates every file of the set, as the function [Check] does for a folder. Its error is a [Faults].
func (s *Set) Check() (CheckReport, error) {
	report, faults := s.check()
	return report, faults.err()
}

// check validates every file of the set.
func (s *Set) check() (CheckReport, Faults) {
	report := CheckReport{Systems: s.Systems()}
	var faults Faults
	configs := map[checkKey][]*Config{}
	for _, name := range s.names {
		rows, bad := s.checkSystem(name, &report)
		faults = append(faults, bad...)
		for _, c := range rows {
			configs[keyForChecks(c)] = append(configs[keyForChecks(c)], c)
		}
	}
	if _, err := s.Unavailable(); err != nil {
		faults = append(faults, faultsOf(err, unavailableFile)...)
	}
	points, bad := readChecks(s.files, configs)
	faults = append(faults, bad...)
	if len(faults) == 0 {
		faults = s.compare(points, &report)
	}
	return report, faults
}

// checkSystem validates the files of one system and returns its well-formed rows.
func (s *Set) checkSystem(name string, report *CheckReport) ([]*Config, Faults) {
	path := name + "/" + configsFile
	var configs []*Config
	text, err := readPackedFile(s.files, path)
	faults := faultsOf(err, path)
	if err == nil {
		configs, faults = parseConfigs(path, text, name)
	}
	packed, bad := readPacked(s.files, name)
	faults = append(faults, bad...)
	faults = append(faults, packed.check(name)...)
	for _, c := range configs {
		for _, err := range packed.checkConfig(c) {
			faults = append(faults, Fault{path, c.line, fmt.Sprintf("%s: %v", c, err)})
		}
		if c.Anomaly {
			report.Anomalies++
		}
	}
	report.Configs += len(configs)
	report.Curves += len(packed.curves)
	report.Grids += len(packed.grids)
	return configs, faults
}

// check decodes all curves and grids and compares them with their ids.
func (p *packedText) check(system string) Faults {
	var faults Faults
	add := func(name, id string, r record, errs ...error) {
		if err := errors.Join(errs...); err != nil {
			faults = append(faults, Fault{system + "/" + name, r.line, fmt.Sprintf("%s: %s", id, strings.ReplaceAll(err.Error(), "\n", "; "))})
		}
	}
	for _, id := range p.curveOrder {
		r := p.curves[id]
		_, err := decodeCurve(r)
		add(curvesFile, id, r, err, verifyCurve(id, r))
	}
	for _, id := range p.gridOrder {
		r := p.grids[id]
		_, err := decodeGrid(r)
		add(gridsFile, id, r, err, verifyGrid(id, r))
	}
	return faults
}

// checkConfig finds what is wrong with a row beyond its syntax.
func (p *packedText) checkConfig(c *Config) []error {
	var errs []error
	for _, part := range [][2]string{{"c_tok", c.tokensCurve}, {"c_log", c.requestsCurve}, {"g_tok", c.generationCurve}} {
		if _, ok := p.curves[part[1]]; !ok {
			errs = append(errs, fmt.Errorf("%s is %s, which %s does not have", part[0], part[1], curvesFile))
		}
	}
	errs = append(errs, p.checkAttention("ctx_att", c.prefillAttention, kindPrefill)...)
	errs = append(errs, p.checkAttention("gen_att", c.generationAttention, kindDecode)...)
	return append(errs, c.checkMemory()...)
}

func (p *packedText) checkAttention(column, text, kind string) []error {
	terms, err := parseAttention(text, kind)
	if err != nil {
		return []error{fmt.Errorf("%s: %w", column, err)}
	}
	var errs []error
	for _, t := range terms {
		if r, ok := p.grids[t.grid]; !ok {
			errs = append(errs, fmt.Errorf("%s is %s, which %s does not have", column, t.grid, gridsFile))
		} else if r.fields[0] != kind {
			errs = append(errs, fmt.Errorf("%s is %s, a grid of kind %s; it must be of kind %s", column, t.grid, r.fields[0], kind))
		}
	}
	return errs
}

// kvTolerance is the relative error that the source states for its estimate of KV tokens.
const kvTolerance = 0.02

// checkMemory requires a plan of the memory that agrees with the source's own estimate.
func (c *Config) checkMemory() []error {
	plan, err := c.requirements.Plan(memory.Settings{})
	if full := (*memory.DoesNotFit)(nil); errors.As(err, &full) {
		plan.KVTokens = 0
	} else if err != nil {
		return []error{err}
	}
	if c.requirements.GPUBytes == 0 || c.requirements.WeightsBytes == 0 {
		return []error{errors.New("gpu_mem_bytes and weights_bytes must be over 0")}
	}
	if difference := math.Abs(float64(plan.KVTokens - c.MaxKVTokens)); difference > 1+kvTolerance*float64(c.MaxKVTokens) {
		return []error{fmt.Errorf("max_kv_tokens is %d, but the memory columns leave room for %d", c.MaxKVTokens, plan.KVTokens)}
	}
	return nil
}

// checkColumns are the columns of checks.csv.gz.
var checkColumns = []string{
	"slot", "system", "backend", "backend_version", "hf_path", "dtype", "tp", "dp", "moe_tp", "moe_ep", "corrected",
	"kind", "batch", "new", "prefix_or_context", "ms",
}

// checkKey is how checks.csv.gz names a row.
type checkKey struct {
	system, backend, version, hfPath, dtype string
	tp, dp, moeTP, moeEP                    int
	corrected                               bool
}

func keyForChecks(c *Config) checkKey {
	return checkKey{c.System, c.Backend, c.BackendVersion, c.HFPath, c.DType, c.TP, c.DP, c.MoETP, c.MoEEP, c.Corrected}
}

// checkPoint is a whole pass of the source.
type checkPoint struct {
	config *Config
	line   int
	decode bool
	// batch prompts or sequences; fresh new tokens each, of prompts; held tokens each before the pass.
	batch, fresh, held int
	ms                 float64
}

// readChecks reads checks.csv.gz; a folder without it has none.
func readChecks(files fs.FS, configs map[checkKey][]*Config) ([]checkPoint, Faults) {
	if _, err := fs.Stat(files, checksFile); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	text, err := readPackedFile(files, checksFile)
	if err != nil {
		return nil, faultsOf(err, checksFile)
	}
	var points []checkPoint
	faults := readTable(checksFile, text, checkColumns, func(line int, get func(string) string) error {
		key, point, err := parseCheck(get)
		if err != nil {
			return err
		}
		found := configs[key]
		if len(found) != 1 {
			return fmt.Errorf("%d rows of %s/%s are of this deployment; there must be one", len(found), key.system, configsFile)
		}
		point.config, point.line = found[0], line
		points = append(points, point)
		return nil
	})
	return points, faults
}

// parseCheck parses a line of checks.csv.gz.
func parseCheck(get func(string) string) (checkKey, checkPoint, error) {
	f := fieldParser{get: get}
	key := checkKey{
		system: f.word("system"), backend: f.word("backend"), version: f.word("backend_version"), hfPath: f.word("hf_path"), dtype: f.word("dtype"),
		tp: f.count("tp"), dp: f.count("dp"), moeTP: f.count("moe_tp"), moeEP: f.count("moe_ep"), corrected: f.flag("corrected"),
	}
	point := checkPoint{
		decode: f.oneOf("kind", "prefill", "decode") == "decode", batch: f.count("batch"), fresh: f.count("new"),
		held: int(f.amount("prefix_or_context")), ms: f.amount("ms"),
	}
	if point.ms == 0 {
		f.fail("ms", "a pass takes longer than 0")
	}
	if point.held > math.MaxInt32 || point.batch > maxKnot/point.fresh {
		f.fail("prefix_or_context", "the pass has too many tokens")
	}
	return key, point, f.err()
}

// compare prices the points as the source does, without corrections.
func (s *Set) compare(points []checkPoint, report *CheckReport) Faults {
	var prefill, decode comparison
	for _, p := range points {
		t, err := s.Load(p.config, false)
		if err != nil {
			return faultsOf(err, checksFile)
		}
		to, ms := &prefill, t.Tokens(p.batch*p.fresh)+t.Requests(p.batch)+t.PrefillAttention(p.batch, p.fresh+p.held, p.held)
		if p.decode {
			to, ms = &decode, t.Generation(p.batch)+t.GenerationAttention(p.batch, p.held+1)
		}
		to.add(p, ms)
	}
	report.Prefill, report.Decode = prefill.points(), decode.points()
	return nil
}

// comparison collects errors.
type comparison struct {
	errors []float64 // absolute, in %
	worst  float64
	where  checkPoint
	ms     float64
}

func (c *comparison) add(p checkPoint, ms float64) {
	e := 100 * math.Abs(ms/p.ms-1)
	c.errors = append(c.errors, e)
	if e > c.worst {
		c.worst, c.where, c.ms = e, p, ms
	}
}

func (c *comparison) points() CheckedPoints {
	out := CheckedPoints{Count: len(c.errors), Errors: errorFigures(c.errors)}
	if p := c.where; p.config != nil {
		out.Worst = fmt.Sprintf("%s:%d: %s, batch %d, new %d, before %d: %s ms, source %s ms", checksFile, p.line, p.config,
			p.batch, p.fresh, p.held, strconv.FormatFloat(c.ms, 'g', 5, 64), strconv.FormatFloat(p.ms, 'g', 5, 64))
	}
	return out
}

// errorFigures are the nearest-rank median and 99th percentile and the maximum; it sorts the errors.
func errorFigures(errors []float64) ErrorFigures {
	if len(errors) == 0 {
		return ErrorFigures{}
	}
	slices.Sort(errors)
	rank := func(percent int) float64 { return errors[(len(errors)*percent+99)/100-1] }
	return ErrorFigures{Median: rank(50), P99: rank(99), Max: rank(100)}
}
