package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/perfmodel/catalogue"
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
		words = append(words, "--trace-format", w.Trace.Format, "--trace-block-size", fmt.Sprint(w.Trace.BlockSize))
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
	standard, _ := simcore.DefaultConfig().Resolve()
	for _, kv := range differences("", p.Config, standard) {
		words = append(words, "--set", kv)
	}
	if gpu, err := catalogue.FindGPU(p.Config.Timing.GPU); p.GPUPrice.USDPerHour > 0 && (err != nil || gpu.USDPerHour != p.GPUPrice.USDPerHour) {
		words = append(words, "--set", fmt.Sprintf("prices.%s=%v", p.Config.Timing.GPU, p.GPUPrice.USDPerHour))
	}
	for i, w := range words {
		words[i] = shellQuote(w)
	}
	return strings.Join(words, " ")
}

// differences lists the settings that are not the defaults, as key.path=value. The prefix comes before the keys.
func differences(prefix string, settings, defaults any) []string {
	got, base := map[string]string{}, map[string]string{}
	flatten(reflect.ValueOf(settings), prefix, got)
	flatten(reflect.ValueOf(defaults), prefix, base)
	var out []string
	for path, value := range got {
		if value != base[path] {
			out = append(out, path+"="+value)
		}
	}
	slices.Sort(out)
	return out
}

func flatten(v reflect.Value, prefix string, into map[string]string) {
	for _, f := range reflect.VisibleFields(v.Type()) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "" || key == "-" {
			continue
		}
		if field := v.FieldByIndex(f.Index); field.Kind() == reflect.Struct {
			flatten(field, prefix+key+".", into)
		} else {
			into[prefix+key] = settingText(prefix+key, field)
		}
	}
}

// settingText is a setting as --set takes it.
func settingText(path string, v reflect.Value) string {
	if gridspec.IsNullable(path) && v.IsZero() {
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
