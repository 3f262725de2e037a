package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/files"
)

const (
	plannerFlag     = "planner-config"
	granularityFlag = "benchmark-granularity"
)

// plannerNames maps names of the reference's planner configuration to the keys of the spec's planner section.
var plannerNames = map[string]string{
	"throughput_adjustment_interval": "throughput_adjustment_interval_seconds",
	"load_adjustment_interval":       "load_adjustment_interval_seconds",
	"ttft":                           "ttft_ms",
	"itl":                            "itl_ms",
}

// inertPlannerArgs belong to live serving, or have no effect in the reference either.
var inertPlannerArgs = map[string]inertArg{
	"environment":                  {oneOf("kubernetes", "virtual", "global-planner"), false},
	"namespace":                    {anyText, true},
	"backend":                      {oneOf("vllm", "sglang", "trtllm", "mocker"), false},
	"log_dir":                      {anyText, true},
	"profile_results_dir":          {anyText, true},
	"aic_interpolation":            {anything, true},
	"aic_perf_model":               {anything, true},
	"throughput_metrics_source":    {oneOf("frontend", "router"), false},
	"model_name":                   {anyText, true},
	"global_planner_namespace":     {anyText, true},
	"pre_deployment_sweeping_mode": {oneOf("none", "rapid", "thorough"), true},
	"load_metric_samples":          {wholeAtLeast(0), true},
	"kalman_min_points":            {wholeAtLeast(0), true},
	"report_write_gzip_log":        {anyBool, false},
	"advisory":                     {anyBool, false},
}

// plannerPage says where the page about the planner goes.
type plannerPage struct {
	// dir and file are empty where the configuration does not say.
	dir, file string
	// off leaves the page out.
	off bool
}

// plannerFlags are those of a planner in the loop.
type plannerFlags struct {
	plannerConfig string
	granularity   int
}

func (f *plannerFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.plannerConfig, plannerFlag, "", "planner in the loop: its configuration as JSON or YAML, or the path of one, such as '{\"optimization_target\":\"sla\",\"ttft\":1500}'")
	fs.IntVar(&f.granularity, granularityFlag, 8, "steps in which the planner's performance model is filled before the simulation")
}

// plannerArgs fills in the planner section of a spec from --planner-config, and returns where that wants a page. compat says that
// the rules are those of the reference. given is false without a planner, or when that is refused.
func (f *plannerFlags) plannerArgs(b *specBuilder, compat bool) (page plannerPage, given bool) {
	granularity := b.flags.Changed(granularityFlag)
	if !b.flags.Changed(plannerFlag) {
		if granularity {
			b.notes = append(b.notes, "--"+granularityFlag+" changes nothing here: only a planner's models have it")
		}
		return page, false
	}
	config, err := plannerSection("--"+plannerFlag, f.plannerConfig)
	if err != nil {
		b.refuse(err)
		return page, false
	}
	a := plannerConfig{config: config, builder: b, compat: compat}
	a.rename()
	a.checkMode(b.flags.Changed("prefill-engine-args"))
	page = a.page()
	a.dropInert()
	if a.compat {
		a.dropUnknown()
		a.readLaxly()
	}
	if config["policy"] == nil {
		config["policy"] = string(planner.PolicyDynamo)
	}
	if granularity {
		config["benchmark_granularity"] = f.granularity
	}
	b.spec["planner"] = config
	return page, true
}

// plannerSection reads a planner configuration: a file by its extension, or JSON or YAML in place.
func plannerSection(flag, text string) (map[string]any, error) {
	isYAML := func(path string) bool {
		return slices.Contains([]string{".yaml", ".yml"}, strings.ToLower(filepath.Ext(path)))
	}
	if isArgumentFile(text) {
		data, err := readArgument(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		if name := files.Base(text); strings.EqualFold(filepath.Ext(name), ".json") || !isYAML(name) && json.Valid(data) {
			return jsonSection(flag, text)
		}
		return yamlSection(flag, gridspec.Excerpt(files.Shown(text))+": its content", data)
	}
	trimmed := strings.TrimSpace(text)
	switch {
	case isYAML(trimmed) && !strings.ContainsAny(trimmed, "\n:{"):
		return nil, fmt.Errorf("%s: there is no file %s", flag, gridspec.Excerpt(text))
	case strings.Contains(trimmed, ":") && !json.Valid([]byte(trimmed)) && !strings.HasPrefix(trimmed, `{"`):
		return yamlSection(flag, gridspec.Excerpt(text), []byte(text))
	}
	return jsonSection(flag, text)
}

// yamlSection reads a YAML mapping as [jsonSection] reads a JSON object.
func yamlSection(flag, shown string, data []byte) (map[string]any, error) {
	section, err := gridspec.ReadMapping("YAML", data)
	if err == nil && len(section) == 0 {
		err = errors.New("it is empty")
	}
	if wrong := notFinite(section, ""); len(wrong) > 0 {
		return nil, fmt.Errorf("%s: %s", flag, strings.Join(wrong, "\n"+flag+": "))
	}
	var text []byte
	if err == nil {
		text, err = json.Marshal(section)
	}
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, fmt.Errorf("%s: %s is not a YAML mapping: %s", flag, shown, first)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&section)
	return section, err
}

// notFinite says which values below a path are no finite numbers.
func notFinite(value any, path string) (wrong []string) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			wrong = append(wrong, notFinite(v[key], strings.TrimPrefix(path+"."+key, "."))...)
		}
	case []any:
		for _, element := range v {
			wrong = append(wrong, notFinite(element, path)...)
		}
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			wrong = append(wrong, fmt.Sprintf("%s: %v is not allowed; give a finite number", path, v))
		}
	}
	return wrong
}

// plannerConfig turns the reference's planner configuration into the spec's section.
type plannerConfig struct {
	config  map[string]any
	builder *specBuilder
	compat  bool
}

func (a *plannerConfig) refuse(format string, args ...any) {
	a.builder.refuse(fmt.Errorf("--"+plannerFlag+": "+format, args...))
}

// take removes a key and returns its value.
func (a *plannerConfig) take(key string) (v any, given bool) {
	v, given = a.config[key]
	delete(a.config, key)
	return v, given
}

// rename gives settings the names that a spec has.
func (a *plannerConfig) rename() {
	for _, name := range slices.Sorted(maps.Keys(plannerNames)) {
		v, given := a.take(name)
		if !given {
			continue
		}
		key := plannerNames[name]
		if _, twice := a.config[key]; twice {
			a.refuse("%s is another name of %s, and both are given; give one", name, key)
		}
		a.config[key] = v
	}
	if v, given := a.take("scheduling"); given && v != nil {
		scheduling, ok := v.(map[string]any)
		if !ok {
			a.refuse("scheduling: %s is not allowed; give {\"scale_interval_seconds\": …}", briefly(v))
		}
		for _, key := range slices.Sorted(maps.Keys(scheduling)) {
			if key != "scale_interval_seconds" && !a.compat {
				a.refuse("scheduling.%s: unknown key; it has scale_interval_seconds only", key)
			} else if key == "scale_interval_seconds" {
				a.config[key] = scheduling[key]
			}
		}
	}
}

// checkMode compares what the configuration is made for with the deployment.
func (a *plannerConfig) checkMode(pools bool) {
	v, given := a.take("mode")
	deployment := map[bool]string{false: "agg", true: "disagg"}[pools]
	switch {
	case !given || v == any(deployment):
	case v == any("prefill") || v == any("decode"):
		a.refuse("mode: %v plans a single pool of a live deployment; a replay has all workers, so give %s or leave it out", v, deployment)
	case v == any("agg"):
		a.refuse("mode: agg needs aggregated workers, and there are prefill and decode workers; give disagg or leave it out")
	case v == any("disagg"):
		a.refuse("mode: disagg needs --prefill-engine-args and --decode-engine-args; give these, or agg for %s workers", simcore.ModeAggregated)
	default:
		a.refuse("mode: %s is not allowed; use agg or disagg", briefly(v))
	}
}

// page takes what is about the page. The reference writes none when neither a report nor a dashboard is asked for.
func (a *plannerConfig) page() plannerPage {
	var page plannerPage
	for key, to := range map[string]*string{"report_output_dir": &page.dir, "report_filename": &page.file} {
		v, given := a.take(key)
		text, isText := v.(string)
		if *to = text; given && v != nil && !isText {
			a.refuse("%s: %s is not allowed; give text", key, briefly(v))
		}
	}
	hours, given := a.take("report_interval_hours")
	if n, ok := jsonNumber(hours); given && hours != nil && !(ok && n > 0) {
		a.refuse("report_interval_hours: %s is not allowed; give a number above 0, or null for no page", briefly(hours))
	}
	dashboard, dashboardGiven := a.take("live_dashboard_port")
	if dashboardGiven && port(dashboard) != "" {
		a.refuse("live_dashboard_port: %s is not allowed; %s", briefly(dashboard), port(dashboard))
	}
	page.off = given && hours == nil && (!a.compat || dashboard == any(json.Number("0")))
	return page
}

// dropInert checks and drops what is about live serving.
func (a *plannerConfig) dropInert() {
	given, wrong := dropInert(a.config, inertPlannerArgs)
	for _, key := range slices.Sorted(maps.Keys(a.config)) {
		if strings.HasPrefix(key, "metric_") && strings.Contains(key, "prometheus") {
			delete(a.config, key)
			given = append(given, key)
		}
	}
	for _, w := range wrong {
		a.refuse("%s", w)
	}
	for _, key := range given {
		if key != "advisory" && key != "pre_deployment_sweeping_mode" && key != "report_write_gzip_log" {
			a.builder.notes = append(a.builder.notes, fmt.Sprintf("--%s: %s changes nothing here: it is for live serving", plannerFlag, key))
		}
	}
}

// dropUnknown drops unknown keys, as the reference does, with a note that even its rules do not silence. Otherwise they are
// refused with the rest of the spec.
func (a *plannerConfig) dropUnknown() {
	known := gridspec.SectionKeys("planner")
	for _, key := range slices.Sorted(maps.Keys(a.config)) {
		if !slices.Contains(known, key) {
			delete(a.config, key)
			a.builder.cautions = append(a.builder.cautions, fmt.Sprintf("--%s: %s is no known key and ignored, as in the reference", plannerFlag, gridspec.Excerpt(key)))
		}
	}
}

// readLaxly reads numbers and truth values that are written as text, as the reference does, and takes null for what a
// setting is without it.
func (a *plannerConfig) readLaxly() {
	for key, v := range a.config {
		text, isText := v.(string)
		switch {
		case v == nil && !gridspec.Nullable("planner."+key):
			delete(a.config, key)
		case !isText:
		case text == "true" || text == "false":
			a.config[key] = text == "true"
		case json.Valid([]byte(text)) && strings.Trim(text, "+-.0123456789eE") == "":
			a.config[key] = json.Number(text)
		}
	}
}
