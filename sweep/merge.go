package sweep

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

// Merged is what [Merge] leaves.
type Merged struct {
	// Outcome is that of a sweep of the points which simulated none: Rows are those that the folders have, Journal is that of
	// the merged folder.
	Outcome
	// Folders says what each of the folders had.
	Folders []MergedFolder
	// Missing counts the points that a sweep of the merged folder would simulate.
	Missing int
	// Unloaded says which workloads cannot be loaded here. Their points have the results that the folders have for the
	// workload, as far as they have any.
	Unloaded []error
}

// MergedFolder is one folder of a merge.
type MergedFolder struct {
	// Dir is its path.
	Dir string
	// Points is the number of its results, and New how many of them the merged folder has from it.
	Points, New int
	// OtherVersions counts further results, of the semantic versions Versions of the simulator or without some metric of
	// this one. They are not used.
	OtherVersions int
	Versions      []string
	// Damaged counts lines that were unreadable and are left out.
	Damaged int
}

// Merge puts the results of folders into opt.Dir, which becomes the folder of an ordinary sweep of the points: as if one
// machine had simulated all that the folders have. It may exist, and be one of them. Results of other points stay in its
// journal. Where folders have different results of one point, that of a whole simulation counts, then that of one which was
// stopped early; failures such as a timeout count when there is nothing else. The error is a [ConflictError], and nothing is
// written, when two simulations of a point ended differently. Simulate, Jobs and Retry are not used.
//
// Of the journals only a few bytes a result are in memory, besides the rows that are returned.
func Merge(ctx context.Context, folders []string, points []gridspec.Point, opt Options) (Merged, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return Merged{}, err
	}
	m := merge{opt: &opt, index: map[resultKey]place{}, conflicts: map[resultKey][2]place{}}
	for _, dir := range folders {
		if sameFolder(dir, opt.Dir) {
			continue // its journal comes last
		}
		if err := m.add(ctx, dir); err != nil {
			return Merged{}, err
		}
	}
	if err := m.conflictError(points); err != nil {
		return Merged{}, err
	}
	f, err := lockFolder(&opt)
	if err != nil {
		return Merged{}, err
	}
	out, err := m.into(ctx, f, points)
	return out, errors.Join(err, f.close())
}

// merge is a merge under way.
type merge struct {
	opt     *Options
	folders []MergedFolder
	// index holds the place of the result of each ID that counts.
	index     map[resultKey]place
	conflicts map[resultKey][2]place
}

// resultKey stands for a content ID.
type resultKey [16]byte

func keyOfID(id string) resultKey {
	sum := sha256.Sum256([]byte(id))
	return resultKey(sum[:16])
}

// place is where a result is, and what decides between it and another of its ID.
type place struct {
	at          int64 // in the journal of the folder
	fingerprint uint64
	folder      int32
	finality    finality
}

// add reads the journal of a folder.
func (m *merge) add(ctx context.Context, dir string) error {
	n := int32(len(m.folders))
	folder := MergedFolder{Dir: dir}
	other := map[string]int{} // results by the version that cannot be used
	found := map[resultKey]place{}
	j, err := m.scan(ctx, dir, func(at int64, s stored) {
		key := keyOfID(s.ID)
		if !s.usable(m.opt.semanticVersion) {
			other[s.simulator]++
			delete(found, key)
			return
		}
		if before, ok := found[key]; !ok || s.finality() >= before.finality { // as stored.givesWayTo: all are of this version
			found[key] = place{at, s.fingerprint(), n, s.finality()}
		}
	})
	if err != nil {
		return err
	}
	folder.Points, folder.Damaged = len(found), j.damaged
	for version, count := range other {
		folder.OtherVersions += count
		folder.Versions = append(folder.Versions, version)
	}
	slices.Sort(folder.Versions)
	m.folders = append(m.folders, folder)
	for key, p := range found {
		m.choose(key, p)
	}
	return nil
}

// choose decides between a result and the one that there is.
func (m *merge) choose(key resultKey, p place) {
	known, twice := m.index[key]
	switch {
	case !twice || p.finality > known.finality:
		m.index[key] = p
	case p.finality == known.finality && p.finality > attempt && p.fingerprint != known.fingerprint:
		if _, noted := m.conflicts[key]; !noted {
			m.conflicts[key] = [2]place{known, p}
		}
	}
}

// scan reads the journal of a folder, result by result.
func (m *merge) scan(ctx context.Context, dir string, visit func(at int64, s stored)) (*journal, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, JournalFile)
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; name folders of sweeps", path, results.FileCause(err))
	}
	defer file.Close()
	j, err := scanJournal(file, metricNames(), visit)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, results.FileCause(err))
	}
	if j.last.Sweep != "" && m.opt.Name != "" && j.last.Sweep != m.opt.Name {
		return nil, fmt.Errorf("%s holds the results of another sweep, %q; this one is %q: leave it out, or give all folders' spec with its name", dir, j.last.Sweep, m.opt.Name)
	}
	return j, nil
}

// into completes the locked folder and lays out its results.
func (m *merge) into(ctx context.Context, f *folder, points []gridspec.Point) (Merged, error) {
	own := int32(len(m.folders))
	switch _, err := os.Stat(filepath.Join(f.dir, JournalFile)); {
	case err == nil:
		if err := m.addOwn(ctx, f.dir, own); err != nil {
			return Merged{}, err
		}
		if err := m.conflictError(points); err != nil {
			return Merged{}, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return Merged{}, fmt.Errorf("output folder %s: %w", f.dir, results.FileCause(err))
	}
	if err := f.openJournal(m.opt); err != nil {
		return Merged{}, err
	}
	if err := m.write(ctx, f, own); err != nil {
		return Merged{}, err
	}
	m.index = nil
	if err := f.reload(m.opt); err != nil {
		return Merged{}, err
	}
	return m.recall(ctx, f, points)
}

// addOwn adds the merged folder's own journal. Where another folder's result is as good, its own stays.
func (m *merge) addOwn(ctx context.Context, dir string, own int32) error {
	if err := m.add(ctx, dir); err != nil {
		return err
	}
	_, err := m.scan(ctx, dir, func(at int64, s stored) {
		key := keyOfID(s.ID)
		if p, ok := m.index[key]; ok && p.folder != own && s.usable(m.opt.semanticVersion) && s.finality() >= p.finality {
			m.index[key] = place{at, p.fingerprint, own, p.finality}
		}
	})
	return err
}

// write appends the results that the journal of the folder does not have.
func (m *merge) write(ctx context.Context, f *folder, own int32) error {
	out := batchWriter{file: f.file, replicate: replica{m.opt.Replicate, f.head}}
	for n := range m.folders {
		if int32(n) == own {
			continue
		}
		folder := &m.folders[n]
		_, err := m.scan(ctx, folder.Dir, func(at int64, s stored) {
			p, ok := m.index[keyOfID(s.ID)]
			if ok && p.folder == int32(n) && p.at == at {
				row := s.row(nil)
				out.add(&row)
				folder.New++
			}
		})
		if err != nil {
			return err
		}
	}
	if out.flush(); out.err != nil {
		return &EnvironmentError{fmt.Errorf("%s cannot be written: %w; make room and merge again", filepath.Join(f.dir, JournalFile), results.FileCause(out.err))}
	}
	return nil
}

// batchWriter appends rows to a journal, many at a time, until that fails.
type batchWriter struct {
	file      *os.File
	replicate replica
	batch     []byte
	err       error
}

// batchSize is how many bytes go to the disk at a time.
const batchSize = 4 << 20

func (w *batchWriter) add(row *results.Row) {
	if w.err == nil {
		w.batch, w.err = appendRecord(w.batch, row)
	}
	if len(w.batch) >= batchSize {
		w.flush()
	}
}

func (w *batchWriter) flush() {
	if w.err != nil || len(w.batch) == 0 {
		return
	}
	if w.err = writeSynced(w.file, w.batch); w.err == nil {
		w.err = w.replicate.send(w.batch)
	}
	w.batch = w.batch[:0]
}

// recall lays out the results of the folder as a sweep does that has nothing to simulate.
func (m *merge) recall(ctx context.Context, f *folder, points []gridspec.Point) (Merged, error) {
	s := startSession(ctx, f, m.opt, len(points))
	defer s.notify.close()
	s.ledger.onChange = func() {} // the results file is written once, at the end
	s.ledger.extend(points, true)
	d := s.dispatcher()
	d.resolved = func() { s.publish.ready.Store(true) }
	d.recall, d.digests = true, map[string]bool{}
	out, err := s.conclude(d.run(s.ctx, 0))
	return Merged{Outcome: out, Folders: m.folders, Missing: s.ledger.unsettled(), Unloaded: d.unloaded}, err
}

// ConflictError says that simulations of the same points ended differently: the machines do not simulate alike, or a result
// was changed.
type ConflictError struct {
	// Conflicts are the first 20, by their ID, and Total is their number.
	Conflicts []Conflict
	Total     int
}

// Conflict is a point with two results.
type Conflict struct {
	// ID is the content ID, and Axes the values of the point's axes, when the spec has it.
	ID   string
	Axes []gridspec.AxisValue
	// Folders have the results.
	Folders [2]string
	// Differences are where these differ, in the order of the columns.
	Differences []Difference
}

// Difference is a column with two values.
type Difference struct {
	Column string
	Values [2]string
}

// maxConflicts bounds the conflicts that one error names, and maxDifferences the columns of each that its text does.
const (
	maxConflicts   = 20
	maxDifferences = 8
)

// conflictError returns the conflicts so far, and nil when there are none.
func (m *merge) conflictError(points []gridspec.Point) error {
	if len(m.conflicts) == 0 {
		return nil
	}
	keys := make([]resultKey, 0, len(m.conflicts))
	for key := range m.conflicts {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b resultKey) int { return slices.Compare(a[:], b[:]) })
	out := &ConflictError{Total: len(keys)}
	both := map[resultKey]*[2]stored{}
	for _, key := range keys[:min(len(keys), maxConflicts)] {
		both[key] = &[2]stored{}
	}
	for n := range m.folders {
		if err := m.collect(int32(n), both); err != nil {
			return err
		}
	}
	for key, s := range both {
		at := m.conflicts[key]
		out.Conflicts = append(out.Conflicts, Conflict{
			ID:          s[0].ID,
			Axes:        axesOf(s[0].ID, s[0].WorkloadDigest, points, m.opt),
			Folders:     [2]string{m.folders[at[0].folder].Dir, m.folders[at[1].folder].Dir},
			Differences: differences(&s[0].result, &s[1].result),
		})
	}
	slices.SortFunc(out.Conflicts, func(a, b Conflict) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// collect reads the results of a folder that are part of a conflict.
func (m *merge) collect(folder int32, both map[resultKey]*[2]stored) error {
	_, err := m.scan(context.Background(), m.folders[folder].Dir, func(at int64, s stored) {
		key := keyOfID(s.ID)
		if found := both[key]; found != nil {
			for i, p := range m.conflicts[key] {
				if p.folder == folder && p.at == at {
					found[i] = s
				}
			}
		}
	})
	return err
}

// axesOf finds the axis values of the point with an ID; nil when none of the points has it.
func axesOf(id, digest string, points []gridspec.Point, opt *Options) []gridspec.AxisValue {
	for _, p := range points {
		if p.SkipReason == "" && opt.ContentID(p, digest) == id {
			return p.Axes
		}
	}
	return nil
}
