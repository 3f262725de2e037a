package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore"
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
		words = append(words, "--preset", compactJSON(w.Preset))
	case w.Synthetic != nil:
		s := w.Synthetic
		words = append(words, "--input-tokens", fmt.Sprint(s.InputTokens), "--output-tokens", fmt.Sprint(s.OutputTokens), "--request-count", fmt.Sprint(s.Requests))
		words = append(words, "--set", "workload.synthetic="+compactJSON(s))
	}
	for _, kv := range differences(p.Config) {
		words = append(words, "--set", kv)
	}
	for i, w := range words {
		words[i] = shellQuote(w)
	}
	return strings.Join(words, " ")
}

func compactJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(data)
}

// differences lists the settings that are not the defaults, as key.path=value.
func differences(cfg simcore.Config) []string {
	got, base := map[string]string{}, map[string]string{}
	flatten(reflect.ValueOf(cfg), "", got)
	flatten(reflect.ValueOf(simcore.DefaultConfig()), "", base)
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
			into[prefix+key] = fmt.Sprint(field.Interface())
		}
	}
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
