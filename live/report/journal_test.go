package report

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/live"
)

// noWarning fails a test whose journal could not be written.
func noWarning(t testing.TB) func(error) {
	return func(err error) { t.Errorf("a warning: %v", err) }
}

// keep journals a run in a new folder.
func keep(t testing.TB, run *live.Run) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	j, err := NewJournal(dir, noWarning(t))
	if err != nil {
		t.Fatal(err)
	}
	j.Begin(run.Started, chats(t), run.Planned)
	for i := range run.Records {
		j.Add(&run.Records[i])
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestJournal checks that what a run measured that was killed comes back, but for a line that was not whole.
func TestJournal(t *testing.T) {
	run, w := madeUpRun(), chats(t)
	dir := keep(t, run)
	if _, err := NewJournal(dir, noWarning(t)); !errors.Is(err, ErrUnfinished) {
		t.Errorf("a second run in the folder: %v", err)
	}
	got, err := ReadJournal(dir, w)
	if err != nil {
		t.Fatal(err)
	}
	sorted := []live.Record{run.Records[0], run.Records[1], run.Records[3], run.Records[2]} // as they were due
	want := &live.Run{Started: run.Started, Records: sorted, Planned: run.Planned, EndMs: run.EndMs, Interrupted: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	data, err := os.ReadFile(filepath.Join(dir, JournalFile))
	if err != nil {
		t.Fatal(err)
	}
	torn, err := parseJournal(bytes.NewReader(data[:len(data)-3]), w)
	if err != nil || len(torn.Records) != len(run.Records)-1 {
		t.Errorf("a torn line: %v, %v", torn, err)
	}
	if _, err := Write(dir, defaultPoint(), w, got, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, JournalFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the journal is still there: %v", err)
	}
}

// TestJournalInUse checks that nobody takes the journal of a run that goes on.
func TestJournalInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	j, err := NewJournal(dir, noWarning(t))
	if err != nil {
		t.Fatal(err)
	}
	j.Begin(madeUpRun().Started, chats(t), 4)
	if _, err := NewJournal(dir, noWarning(t)); !errors.Is(err, ErrInUse) {
		t.Errorf("another run: %v", err)
	}
	if _, err := ReadJournal(dir, chats(t)); !errors.Is(err, ErrInUse) {
		t.Errorf("reading it: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadJournal(dir, chats(t)); err != nil {
		t.Errorf("reading it when the run has ended: %v", err)
	}
}

// TestLongJournalLines checks that a request with a very long name is read again.
func TestLongJournalLines(t *testing.T) {
	run := madeUpRun()
	run.Records[1].Call.Session = strings.Repeat("s", 3<<20)
	got, err := ReadJournal(keep(t, run), chats(t))
	if err != nil || len(got.Records) != len(run.Records) || got.Records[1].Call.Session != run.Records[1].Call.Session {
		t.Errorf("%d records are read, %v", len(got.Records), err)
	}
}

// TestJournalWithoutRoom checks that what could not be written is told of at once, is not lost, and is written later, and that the
// end says what is missing.
func TestJournalWithoutRoom(t *testing.T) {
	run, w := madeUpRun(), chats(t)
	for _, again := range []bool{true, false} {
		dir := filepath.Join(t.TempDir(), "run")
		var warnings []error
		j, err := NewJournal(dir, func(err error) { warnings = append(warnings, err) })
		if err != nil {
			t.Fatal(err)
		}
		j.Begin(run.Started, w, run.Planned)
		j.Add(&run.Records[0])
		written := j.file
		if j.file, err = os.Open(written.Name()); err != nil { // to which nothing can be written
			t.Fatal(err)
		}
		j.Add(&run.Records[1])
		j.Add(&run.Records[2])
		if len(warnings) != 1 || !strings.Contains(warnings[0].Error(), "keeps requests in memory until it can: write ") {
			t.Errorf("warnings: %v", warnings)
		}
		if got, err := j.Records(w); err != nil || !cmp.Equal(got, run.Records[:3]) {
			t.Errorf("the journal has %v, %v", got, err)
		}
		want := 1
		if again {
			want = 4
			err = j.file.Close()
			j.file = written
			j.Add(&run.Records[3])
		} else {
			err = written.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); again && err != nil || !again && (err == nil || !strings.HasPrefix(err.Error(), "2 requests are not in the journal: write ")) {
			t.Errorf("room again %v: %v", again, err)
		}
		if got, err := ReadJournal(dir, w); err != nil || len(got.Records) != want {
			t.Errorf("room again %v: %v, %v, want %d records", again, got, err, want)
		}
	}
}

func TestBadJournals(t *testing.T) {
	w := chats(t)
	dir := keep(t, madeUpRun())
	good, err := os.ReadFile(filepath.Join(dir, JournalFile))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"empty":            {nil, "is empty: the run was killed before it began"},
		"of another file":  {[]byte("{}\n"), "line 1: is not the beginning of a journal of servegrid live"},
		"other workload":   {bytes.Replace(good, []byte(w.Digest()), []byte("00"), 1), "is of another workload; give the command line of the run that was killed"},
		"damaged":          {bytes.Replace(good, []byte(`{"number":1`), []byte(`#`), 1), "line 3: invalid character '#' looking for beginning of value"},
		"unknown requests": {bytes.Replace(good, []byte(`"request":1`), []byte(`"request":9`), 1), "line 3: the workload has no request 9"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseJournal(bytes.NewReader(test.data), w); err == nil || err.Error() != test.want {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

func FuzzJournal(f *testing.F) {
	w := chats(f)
	dir := keep(f, madeUpRun())
	data, err := os.ReadFile(filepath.Join(dir, JournalFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("{}\n{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		run, err := parseJournal(bytes.NewReader(data), w)
		if err != nil {
			return
		}
		if _, err := Summarise(defaultPoint(), w, run, true); err != nil {
			t.Error(err)
		}
	})
}
