package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Replays that end in one second do not overwrite each other's reports.
func TestNewReportsHaveNewNames(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	var got []string
	for _, text := range []string{"a", "b", "c"} {
		path, err := writeNewReport(dir, now, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, filepath.Base(path)+" "+string(data))
	}
	want := []string{
		"servegrid_replay_report_20300102_030405.json a",
		"servegrid_replay_report_20300102_030405_2.json b",
		"servegrid_replay_report_20300102_030405_3.json c",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := writeNewReport(filepath.Join(dir, "none"), now, nil); err == nil {
		t.Error("a missing folder is no error")
	}
}
