package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

func TestUnquotingIsTheOppositeOfQuoting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.String(), 1, 6).Draw(t, "words")
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = shellQuote(w)
		}
		got, err := unquoteCommand(strings.Join(quoted, " "))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(words, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestPointOfRowRefusals(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	mustRun(t, "sweep", writeSpec(t, "workload: {preset: {name: chat, requests: 20}}\ngrid: {deployment.workers: [1, 2]}"), "-q", "-o", dir)
	for want, command := range map[string]string{
		"a quote is not closed":           "servegrid replay --preset 'chat",
		"ends in a backslash":             `servegrid replay \`,
		"is not a servegrid replay":       "rm -rf runs",
		"unknown flag: --presets":         "servegrid replay --presets chat",
		"gives another configuration now": "servegrid replay --preset chat --set deployment.workers=3",
		"does not say its configuration":  "",
	} {
		table := readResultsFile(t, filepath.Join(dir, "results.parquet"))
		column := table.Column(results.CommandColumn)
		column.Set(1, gridspec.Value{Kind: gridspec.KindString, Str: command})
		column.Null[1] = command == ""
		if _, err := pointOfRow(nil, table, 1); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "row 2") {
			t.Errorf("%s: error %v; want %q", command, err, want)
		}
		if point, err := pointOfRow(nil, table, 0); err != nil || point.Config.Deployment.Workers != 1 {
			t.Errorf("first row: %+v, %v", point.Config.Deployment, err)
		}
	}
}
