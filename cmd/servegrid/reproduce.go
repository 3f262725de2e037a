package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// reproduceCommand returns the replay command line that simulates one point by itself.
func reproduceCommand(p gridspec.Point) string {
	words := []string{"servegrid", "replay"}
	switch w := p.Workload; {
	case w.Trace != nil:
		files := w.Trace.Paths
		if w.Trace.Path != "" {
			files = []string{w.Trace.Path}
		}
		words = append(words, files...)
		words = append(words, "--trace-format", w.Trace.Format)
		if w.Trace.BlockSize != 0 {
			words = append(words, "--trace-block-size", fmt.Sprint(w.Trace.BlockSize))
		}
		trace, standard := *w.Trace, workload.DefaultTraceSpec()
		trace.Path, trace.Paths, trace.Format, trace.BlockSize = standard.Path, standard.Paths, standard.Format, standard.BlockSize
		for _, kv := range differences("workload.trace.", trace, standard) {
			words = append(words, "--set", kv)
		}
	case w.Preset != nil:
		words = append(words, "--preset", w.Preset.Name)
		for _, kv := range differences("workload.preset.", *w.Preset, workload.PresetSpec{Name: w.Preset.Name}) {
			words = append(words, "--set", kv)
		}
	case w.Synthetic != nil:
		s, standard := *w.Synthetic, workload.DefaultSyntheticSpec()
		words = append(words, "--input-tokens", fmt.Sprint(s.InputTokens), "--output-tokens", fmt.Sprint(s.OutputTokens), "--request-count", fmt.Sprint(s.Requests))
		standard.InputTokens, standard.OutputTokens, standard.Requests = s.InputTokens, s.OutputTokens, s.Requests
		for _, kv := range differences("workload.synthetic.", s, standard) {
			words = append(words, "--set", kv)
		}
	}
	if s := p.Workload.Share; s > 0 && s < 1 {
		words = append(words, "--set", fmt.Sprint("workload.share=", s))
	}
	for _, kv := range append(configDifferences(p.Config), priceDifferences(p)...) {
		words = append(words, "--set", kv)
	}
	for i, w := range words {
		words[i] = shellQuote(w)
	}
	return strings.Join(words, " ")
}

// configDifferences lists the settings of a configuration that are not the defaults. What both stages of a disaggregated
// deployment have is said once.
func configDifferences(c gridspec.Config) []string {
	standard := standardConfig()
	if c.Deployment.Mode != simcore.ModeDisaggregated {
		own := standardStage(c.Compat, simcore.Stage{Engine: c.Engine, Timing: c.Timing})
		standard.Engine, standard.Timing = own.Engine, own.Timing
		return differences("", c, standard)
	}
	prefill := differences("", c.Prefill, standardStage(c.Compat, c.Prefill))
	decode := differences("", c.Decode, standardStage(c.Compat, c.Decode))
	c.Engine, c.Timing = standard.Engine, standard.Timing
	c.Prefill, c.Decode = standard.Prefill, standard.Decode
	out := differences("", c, standard)
	for _, kv := range prefill {
		if slices.Contains(decode, kv) {
			out = append(out, kv)
		} else {
			out = append(out, "prefill."+kv)
		}
	}
	for _, kv := range decode {
		if !slices.Contains(prefill, kv) {
			out = append(out, "decode."+kv)
		}
	}
	return out
}

// priceDifferences lists the prices of GPUs that are not those of the catalogue.
func priceDifferences(p gridspec.Point) []string {
	var out []string
	for _, gpu := range p.RepricedGPUs() {
		out = append(out, fmt.Sprintf("prices.%s=%v", gpu, p.GPUPrice.USDPerHour))
	}
	return out
}

// standardConfig is what a replay without any settings has.
var standardConfig = sync.OnceValue(func() gridspec.Config {
	c, _ := gridspec.DefaultConfig().Resolve()
	return c
})

// standardStage is what a pool has without any settings. What would become something else with the settings that this one has is
// left open, so that it counts as a difference.
func standardStage(compat rules.Compat, s simcore.Stage) simcore.Stage {
	c := standardConfig()
	standard := simcore.Stage{Engine: c.Engine, Timing: c.Timing}
	if s.Engine.Type != standard.Engine.Type {
		standard.Engine.BlockSize = 0
	}
	if s.Timing.GPU != "" {
		standard.Engine.NumGPUBlocks, standard.Timing.Source = 0, perfmodel.SourceAuto
	}
	if compat != rules.Default {
		standard.Engine.KVTransferTimingMode = ""
	}
	return standard
}

// differences lists the settings that are not the defaults, as key.path=value. The prefix comes before the keys.
func differences(prefix string, settings, defaults any) []string {
	out := appendDifferences(nil, prefix, reflect.ValueOf(settings), reflect.ValueOf(defaults))
	slices.Sort(out)
	return out
}

func appendDifferences(out []string, prefix string, settings, defaults reflect.Value) []string {
	t := settings.Type()
	for i := range t.NumField() {
		key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		got, standard := settings.Field(i), defaults.Field(i)
		if t.Field(i).Anonymous {
			out = appendDifferences(out, prefix, got, standard)
			continue
		}
		if key == "" || key == "-" {
			continue
		}
		switch {
		case got.Comparable() && got.Equal(standard): // also whole sections
		case got.Kind() == reflect.Struct:
			out = appendDifferences(out, prefix+key+".", got, standard)
		case !reflect.DeepEqual(got.Interface(), standard.Interface()):
			out = append(out, prefix+key+"="+settingText(prefix+key, got))
		}
	}
	return out
}

// settingText is a setting as --set takes it.
func settingText(path string, v reflect.Value) string {
	if gridspec.IsNull(path, v) {
		return "null"
	}
	if v.Kind() == reflect.String {
		return gridspec.OverrideText(v.String())
	}
	return fmt.Sprint(v.Interface())
}

// shellQuote quotes a word for a POSIX shell when it needs to be.
func shellQuote(word string) string {
	plain := strings.IndexFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:,+@%", r))
	}) < 0
	if plain && word != "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
