package sweep

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/results"
)

// The files of a sweep in its output folder.
const (
	// JournalFile keeps every finished point; see the package documentation.
	JournalFile = "journal.jsonl"
	// ResultsFile holds one row for each finished point.
	ResultsFile = "results.parquet"

	lockFile  = ".sweep.lock"
	tmpSuffix = ".tmp"
)

// setAside matches the names that Options.Fresh gives to old files.
var setAside = regexp.MustCompile(`^(journal\.\d+\.jsonl|results\.\d+\.parquet)$`)

// folder is an output folder that this process has to itself.
type folder struct {
	dir  string
	lock *os.File
	// head is the header line of this program.
	head []byte
	// file is the journal, open for appending; journal is what it held.
	file    *os.File
	journal *journal
	aside   []string
}

// openFolder makes the folder when it is missing, locks it and opens its journal.
func openFolder(opt *Options) (*folder, error) {
	f, err := lockFolder(opt)
	if err != nil {
		return nil, err
	}
	if err := f.openJournal(opt); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// lockFolder makes the folder when it is missing and locks it.
func lockFolder(opt *Options) (*folder, error) {
	if err := checkFolder(opt); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(opt.Dir, 0o777); err != nil {
		return nil, fmt.Errorf("output folder %s cannot be made: %w; choose another one", opt.Dir, results.FileCause(err))
	}
	lock, err := acquireLock(opt.Dir)
	if err != nil {
		return nil, err
	}
	f := &folder{dir: opt.Dir, lock: lock}
	f.removeLeftovers(opt)
	return f, nil
}

// leftover is the name of a file that was being written beside its final place when a sweep was killed.
var leftover = regexp.MustCompile(`^\..+\.tmp-\d+$`)

// removeLeftovers cleans up after killed sweeps. A file that stays is of no harm.
func (f *folder) removeLeftovers(opt *Options) {
	for _, dir := range append([]string{"."}, opt.Companions...) {
		entries, err := os.ReadDir(filepath.Join(f.dir, dir))
		if err != nil {
			continue // most companions are files
		}
		for _, e := range entries {
			if leftover.MatchString(e.Name()) {
				_ = os.Remove(filepath.Join(f.dir, dir, e.Name()))
			}
		}
	}
}

// checkJournal reports a journal that somebody else removed, replaced or cut while it was written to.
func (f *folder) checkJournal(size int64) error {
	path := filepath.Join(f.dir, JournalFile)
	mine, err := f.file.Stat()
	if err != nil {
		return fmt.Errorf("%s: %w", path, results.FileCause(err))
	}
	now, err := os.Stat(path)
	if err == nil && os.SameFile(mine, now) && now.Size() == size {
		return nil
	}
	return fmt.Errorf("%s was removed or changed while the sweep ran, so its points are not safe there; start again in another folder, or with a fresh start", path)
}

// close gives the folder back.
func (f *folder) close() error {
	var err error
	if f.file != nil {
		err = f.file.Close()
	}
	return errors.Join(err, f.lock.Close())
}

// checkFolder refuses a folder that is none, or that belongs to something else.
func checkFolder(opt *Options) error {
	if opt.Dir == "" {
		return errors.New("output folder: none is given")
	}
	info, err := os.Stat(opt.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("output folder %s: %w", opt.Dir, results.FileCause(err))
	case !info.IsDir():
		return fmt.Errorf("output folder %s is a file; choose another path", opt.Dir)
	}
	entries, err := os.ReadDir(opt.Dir)
	if err != nil {
		return fmt.Errorf("output folder %s: %w", opt.Dir, results.FileCause(err))
	}
	var foreign []string
	for _, e := range entries {
		name := e.Name()
		if name == JournalFile {
			return nil
		}
		_, shard := ShardOfFolder(name)
		ours := shard || strings.HasPrefix(name, ".") || setAside.MatchString(name) || name == JournalFile+tmpSuffix || name == ResultsFile+tmpSuffix
		if opt.Fresh { // of a sweep whose journal was lost
			ours = ours || name == ResultsFile || slices.Contains(opt.Companions, name)
		}
		if !ours {
			foreign = append(foreign, name)
		}
	}
	if len(foreign) == 0 {
		return nil
	}
	return fmt.Errorf("output folder %s holds other files (%s) and no %s, so it is not the folder of a sweep; choose another one, or an empty one",
		opt.Dir, someOf(foreign, 3), JournalFile)
}

// openJournal reads the journal, cuts off a torn end, and leaves it open with a header that fits this program.
func (f *folder) openJournal(opt *Options) error {
	path := filepath.Join(f.dir, JournalFile)
	if opt.Fresh {
		if err := f.setAside(); err != nil {
			return err
		}
	}
	head := header{Journal: journalMark, Format: journalFormat, Sweep: opt.Name, Simulator: opt.semanticVersion, Metrics: metricNames()}
	line, err := appendLine(nil, head)
	if err != nil {
		return err
	}
	f.head = line
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		// Made beside and renamed, so that a journal always begins with a whole header.
		err := replaceFile(path, func(tmp string) error { return os.WriteFile(tmp, line, 0o666) })
		if err != nil {
			return fmt.Errorf("output folder %s cannot be written: %w; choose another one", f.dir, results.FileCause(err))
		}
	}
	if f.journal, err = loadJournal(opt); err != nil {
		return err
	}
	if f.file, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, results.FileCause(err))
	}
	if err := f.file.Truncate(f.journal.size); err != nil {
		return fmt.Errorf("%s: its torn last line cannot be cut off: %w", path, results.FileCause(err))
	}
	last := f.journal.last
	if last.Sweep == head.Sweep && last.Simulator == head.Simulator && last.sameMetrics(head.Metrics) {
		return nil
	}
	if err = writeSynced(f.file, line); err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, results.FileCause(err))
	}
	f.journal.size += int64(len(line))
	return nil
}

// reload reads the journal again, to which more was written.
func (f *folder) reload(opt *Options) (err error) {
	f.journal, err = loadJournal(opt)
	return err
}

// loadJournal reads the journal of a folder without changing anything. A folder without one has an empty journal.
func loadJournal(opt *Options) (*journal, error) {
	path := filepath.Join(opt.Dir, JournalFile)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &journal{results: map[string]stored{}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, results.FileCause(err))
	}
	defer file.Close()
	j, err := readJournal(file, metricNames())
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w; choose another folder, or set the old files aside with a fresh start", path, results.FileCause(err))
	}
	if j.last.Sweep != "" && opt.Name != "" && j.last.Sweep != opt.Name {
		return nil, fmt.Errorf("output folder %s holds the results of another sweep, %q, with %d points; this one is %q: choose another folder, or set the old files aside with a fresh start",
			opt.Dir, j.last.Sweep, len(j.results), opt.Name)
	}
	return j, nil
}

// setAside renames the journal and the results to the next free number.
func (f *folder) setAside() error {
	exists := func(name string) bool {
		_, err := os.Lstat(filepath.Join(f.dir, name))
		return err == nil
	}
	if !exists(JournalFile) && !exists(ResultsFile) {
		return nil
	}
	n := 1
	for exists(fmt.Sprintf("journal.%d.jsonl", n)) || exists(fmt.Sprintf("results.%d.parquet", n)) {
		n++
	}
	// The journal goes last: until then the folder is known as one of a sweep.
	for _, name := range []struct{ from, to string }{
		{ResultsFile, fmt.Sprintf("results.%d.parquet", n)},
		{JournalFile, fmt.Sprintf("journal.%d.jsonl", n)},
	} {
		if !exists(name.from) {
			continue
		}
		if err := os.Rename(filepath.Join(f.dir, name.from), filepath.Join(f.dir, name.to)); err != nil {
			return fmt.Errorf("output folder %s: %s cannot be set aside: %w", f.dir, name.from, results.FileCause(err))
		}
		f.aside = append(f.aside, name.to)
	}
	return nil
}

// state reports what the journal held.
func (f *folder) state(semanticVersion string) JournalState {
	s := journalState(f.journal, f.dir, semanticVersion)
	s.SetAside = f.aside
	return s
}

func journalState(j *journal, dir, semanticVersion string) JournalState {
	s := JournalState{Path: filepath.Join(dir, JournalFile), Points: len(j.results), Damaged: j.damaged}
	for _, r := range j.results {
		if r.usable(semanticVersion) {
			continue
		}
		s.OtherVersions++
		if !slices.Contains(s.Versions, r.simulator) {
			s.Versions = append(s.Versions, r.simulator)
		}
	}
	slices.Sort(s.Versions)
	return s
}

// replaceFile lets write make a file beside path and puts it in the place of path once it is on the disk. No
// reader ever sees a part of it.
func replaceFile(path string, write func(tmp string) error) error {
	tmp := path + tmpSuffix
	err := write(tmp)
	if err == nil {
		err = syncFile(tmp)
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// someOf lists at most n names.
func someOf(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}
