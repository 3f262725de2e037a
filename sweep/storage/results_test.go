package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const head = `{"journal":"servegrid","format":1}` + "\n"

func open(t *testing.T, url, scratch string, opt ResultsOptions) *Results {
	t.Helper()
	opt.Scratch = scratch
	r, err := OpenResults(t.Context(), url, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// journalOf is the journal of a scratch folder.
func journalOf(t *testing.T, r *Results) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.Dir(), journalFile))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAnotherMachineGoesOn(t *testing.T) {
	url := testStores(t)["mem"]
	first := open(t, url, t.TempDir(), ResultsOptions{})
	for i := range 3 {
		if err := first.PushJournal(t.Context(), []byte(head+fmt.Sprintf("{\"id\":%d}\n", i))); err != nil {
			t.Fatal(err)
		}
	}
	first.Close()
	second := open(t, url, t.TempDir(), ResultsOptions{})
	defer second.Close()
	if got, want := journalOf(t, second), head+"{\"id\":0}\n"+head+"{\"id\":1}\n"+head+"{\"id\":2}\n"; got != want {
		t.Errorf("journal %q, want %q", got, want)
	}
}

func TestPointsThatWereNotUploadedAreUploadedNext(t *testing.T) {
	url := testStores(t)["mem"]
	scratch := t.TempDir()
	r := open(t, url, scratch, ResultsOptions{})
	if err := r.PushJournal(t.Context(), []byte(head+"{\"id\":1}\n")); err != nil {
		t.Fatal(err)
	}
	r.Close()
	// Killed after the disk had two more, and a torn line.
	local := head + "{\"id\":1}\n" + "{\"id\":2}\n" + "{\"id\":3}\n" + "{\"id\""
	if err := os.WriteFile(filepath.Join(scratch, journalFile), []byte(local), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, url, scratch, ResultsOptions{}).Close()
	other := open(t, url, t.TempDir(), ResultsOptions{})
	defer other.Close()
	if got, want := journalOf(t, other), head+"{\"id\":1}\n"+head+"{\"id\":2}\n{\"id\":3}\n"; got != want {
		t.Errorf("journal %q, want %q", got, want)
	}
}

func TestPartsArePutTogether(t *testing.T) {
	url := testStores(t)["file"]
	r := open(t, url, t.TempDir(), ResultsOptions{})
	var want strings.Builder
	for i := range compactAbove + 10 {
		line := head + fmt.Sprintf("{\"id\":%d}\n", i)
		want.WriteString(line)
		if err := r.PushJournal(t.Context(), []byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	// The sweep has written the same lines to its disk.
	if err := os.WriteFile(filepath.Join(r.Dir(), journalFile), []byte(want.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if others, err := r.Finish(t.Context(), nil); err != nil || others {
		t.Fatal(others, err)
	}
	if err := r.PushJournal(t.Context(), []byte(head+"{\"id\":\"last\"}\n")); err != nil {
		t.Fatal(err)
	}
	r.Close()
	again := open(t, url, t.TempDir(), ResultsOptions{})
	defer again.Close()
	if got := journalOf(t, again); got != want.String()+head+"{\"id\":\"last\"}\n" {
		t.Errorf("journal of %d bytes, want %d", len(got), want.Len())
	}
	if len(again.known) != 2 {
		t.Errorf("%d parts", len(again.known))
	}
}

func TestTwoSweepsAtATime(t *testing.T) {
	url := testStores(t)["mem"]
	a, b := open(t, url, t.TempDir(), ResultsOptions{}), open(t, url, t.TempDir(), ResultsOptions{})
	defer a.Close()
	defer b.Close()
	for i, r := range []*Results{a, b} {
		if err := r.PushJournal(t.Context(), []byte(head+fmt.Sprintf("{\"id\":%d}\n", i))); err != nil {
			t.Fatal(err)
		}
	}
	if others, err := a.Finish(t.Context(), nil); err != nil || !others {
		t.Errorf("Finish = %v, %v", others, err)
	}
	c := open(t, url, t.TempDir(), ResultsOptions{})
	defer c.Close()
	if got := journalOf(t, c); !strings.Contains(got, "{\"id\":0}") || !strings.Contains(got, "{\"id\":1}") {
		t.Errorf("journal %q", got)
	}
}

func TestScratchFolderIsForOne(t *testing.T) {
	urls := testStores(t)
	scratch := t.TempDir()
	r := open(t, urls["mem"], scratch, ResultsOptions{})
	if _, err := OpenResults(t.Context(), urls["mem"], ResultsOptions{Scratch: scratch}); err == nil || !strings.Contains(err.Error(), "in use by another sweep") {
		t.Errorf("err = %v", err)
	}
	r.Close()
	if _, err := OpenResults(t.Context(), urls["file"], ResultsOptions{Scratch: scratch}); err == nil || !strings.Contains(err.Error(), "is the scratch folder of mem://") {
		t.Errorf("err = %v", err)
	}
	own := t.TempDir()
	if err := os.WriteFile(filepath.Join(own, journalFile), []byte(head), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenResults(t.Context(), urls["mem"], ResultsOptions{Scratch: own}); err == nil || !strings.Contains(err.Error(), "output folder of a sweep of its own") {
		t.Errorf("err = %v", err)
	}
}

func TestFilesOfPoints(t *testing.T) {
	url := testStores(t)["mem"]
	opt := ResultsOptions{Companions: []string{"requests", "report.html"}, Kept: []string{"requests"}}
	r := open(t, url, t.TempDir(), opt)
	write := func(r *Results, name, text string) {
		t.Helper()
		file := filepath.Join(r.Dir(), filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write(r, "requests/a=1/x.parquet", "x")
	write(r, "report.html", "page")
	write(r, ".status.json", "hidden")
	for _, err := range []error{r.PushFile(t.Context(), "requests/a=1/x.parquet", filepath.Join(r.Dir(), "requests/a=1/x.parquet")), r.PushJournal(t.Context(), []byte(head+"{}\n"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Finish(t.Context(), opt.Kept); err != nil {
		t.Fatal(err)
	}
	r.Close()
	again := open(t, url, t.TempDir(), opt)
	defer again.Close()
	moved := filepath.Join(again.Dir(), "requests", "x.parquet")
	if err := os.Rename(filepath.Join(again.Dir(), "requests/a=1/x.parquet"), moved); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Finish(t.Context(), opt.Kept); err != nil {
		t.Fatal(err)
	}
	found, err := again.store.List(t.Context(), "", false)
	var keys []string
	for _, o := range found {
		if !strings.HasPrefix(o.Key, "journal/") {
			keys = append(keys, o.Key)
		}
	}
	if got := strings.Join(keys, " "); err != nil || got != "report.html requests/x.parquet" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestFailedUploadsStopUploads(t *testing.T) {
	s, f := newFaulty(t)
	r := &Results{store: s, scratch: t.TempDir(), known: map[string]bool{}, session: "000001-00000000"}
	f.failWrites = -1
	if err := r.PushJournal(t.Context(), []byte(head)); err == nil {
		t.Fatal("no error")
	}
	f.failWrites = 0
	if err := os.WriteFile(filepath.Join(r.scratch, "report.html"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Finish(t.Context(), nil); err != nil || f.puts > 0 {
		t.Errorf("%d uploads, %v", f.puts, err)
	}
}

func TestListedPartsMayBeGone(t *testing.T) {
	s, _ := newFaulty(t)
	if err := s.assemble(t.Context(), []Object{{Key: "journal/000001-00000000-000001.jsonl"}}, &strings.Builder{}); !errors.Is(err, errMoved) {
		t.Errorf("err = %v", err)
	}
}

func TestPullResults(t *testing.T) {
	url := testStores(t)["file"]
	r := open(t, url, t.TempDir(), ResultsOptions{})
	defer r.Close()
	put := func(key, text string) {
		t.Helper()
		if err := r.store.Put(context.Background(), key, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	put("results.parquet", "1")
	put("timelines/a.parquet", "t")
	put("requests/a.parquet", "r")
	if err := r.PushJournal(t.Context(), []byte(head+"{}\n")); err != nil {
		t.Fatal(err)
	}
	s := &System{Cache: t.TempDir()}
	dir, err := s.PullResults(t.Context(), url, PullOptions{Journal: true, Folders: []string{"timelines"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"results.parquet": "1", "timelines/a.parquet": "t", "requests/a.parquet": "", "journal.jsonl": head + "{}\n"} {
		if got, _ := os.ReadFile(filepath.Join(dir, name)); string(got) != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	put("results.parquet", "22")
	if again, err := s.PullResults(t.Context(), url, PullOptions{}); err != nil || again != dir {
		t.Fatal(again, err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "results.parquet")); string(got) != "22" {
		t.Errorf("results.parquet: %q", got)
	}
}

// What is wrong with a folder shows when it is opened, and looking changes nothing.
func TestFoldersThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	url := "file://" + filepath.ToSlash(file) + "/runs/x"
	_, err := OpenResults(t.Context(), url, ResultsOptions{Scratch: t.TempDir()})
	if want := "output folder " + url + " cannot be made: not a directory; choose another one"; err == nil || err.Error() != want {
		t.Errorf("err = %v, want %s", err, want)
	}
	folder := t.TempDir()
	open(t, "file://"+filepath.ToSlash(folder)+"/x", t.TempDir(), ResultsOptions{ReadOnly: true}).Close()
	if made, err := os.ReadDir(folder); err != nil || len(made) > 0 {
		t.Errorf("%v, %v: reading made a folder", made, err)
	}
}
