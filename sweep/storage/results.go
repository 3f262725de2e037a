package storage

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/sweep/filelock"
)

// The files of a sweep's folder that are treated here; see package sweep.
const (
	journalFile = "journal.jsonl"
	resultsFile = "results.parquet"
	lockName    = ".storage.lock"
)

// compactAbove is the number of parts above which the journal is put together again.
const compactAbove = 64

// Results keeps the output folder of a sweep at a URL. The sweep works in a scratch folder of this machine. What is finished
// goes to the URL before it counts as finished, so that any machine can go on.
type Results struct {
	store   *Store
	scratch string
	lock    *os.File
	session string
	ordinal int

	mu sync.Mutex
	// number is that of the last part; known are the parts that the scratch folder's journal holds.
	number int
	known  map[string]bool
	aside  []string
	// failed is set once something could not be uploaded.
	failed bool
}

// ResultsOptions say how the output folder of a sweep is used.
type ResultsOptions struct {
	// Scratch is the folder of this machine; empty means one below the user's cache that is named by the URL.
	Scratch string
	// Companions are the names of files and folders that a sweep puts beside its own. A folder that holds others and no journal
	// is refused.
	Companions []string
	// Kept are the folders among them whose files are needed again.
	Kept []string
	// Fresh sets earlier results aside under numbered names.
	Fresh bool
	// ReadOnly changes nothing at the URL.
	ReadOnly bool
}

// OpenResults prepares a scratch folder that holds what is finished at a URL. It takes the folder for this process.
func OpenResults(ctx context.Context, url string, opt ResultsOptions) (*Results, error) {
	store, err := Open(ctx, url)
	if err != nil {
		return nil, err
	}
	scratch := cmp.Or(opt.Scratch, scratchFor(store.at))
	r := &Results{store: store, scratch: scratch, known: map[string]bool{}}
	if err := r.takeScratch(); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	if err := r.prepare(ctx, opt); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// scratchFor is the scratch folder of a URL.
func scratchFor(l Location) string {
	sum := sha256.Sum256([]byte(l.String()))
	return filepath.Join(CacheFolder(), "sweeps", hex.EncodeToString(sum[:8]), localName(files.Base(l.String())))
}

func (r *Results) takeScratch() error {
	if err := os.MkdirAll(r.scratch, 0o777); err != nil {
		return fmt.Errorf("scratch folder %s cannot be made: %w; choose another one with --scratch", r.scratch, files.Cause(err))
	}
	f, err := os.OpenFile(filepath.Join(r.scratch, lockName), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return fmt.Errorf("scratch folder %s cannot be written: %w; choose another one with --scratch", r.scratch, files.Cause(err))
	}
	taken, err := filelock.Try(f)
	if err == nil && !taken {
		err = fmt.Errorf("%s is in use by another sweep of this machine; wait until it ends", r.store.URL())
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r.lock = f
	return nil
}

// prepare brings scratch folder and URL together: afterwards both hold every finished point.
func (r *Results) prepare(ctx context.Context, opt ResultsOptions) error {
	if err := r.checkForeign(ctx, opt.Companions); err != nil {
		return err
	}
	if err := r.checkScratch(); err != nil {
		return err
	}
	if !opt.ReadOnly {
		if err := r.makeFolder(); err != nil {
			return err
		}
	}
	own, pulled := filepath.Join(r.scratch, journalFile), filepath.Join(r.scratch, ".journal.pulled")
	found, last, err := r.store.pullJournal(ctx, pulled)
	if err != nil {
		return err
	}
	for _, o := range found {
		r.known[o.Key] = true
	}
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails
	r.ordinal = last + 1
	r.session = fmt.Sprintf("%06d-%x", r.ordinal, random)
	if err := r.mergeJournals(ctx, own, pulled, opt.ReadOnly); err != nil {
		return err
	}
	if opt.ReadOnly {
		return nil
	}
	if opt.Fresh {
		return r.setAside(ctx, own)
	}
	if len(r.known) > 0 {
		if err := r.pullFolders(ctx, opt.Kept); err != nil {
			return err
		}
	}
	return r.compact(ctx)
}

// makeFolder makes the folder of the journal where there are folders, so that what is wrong with it shows before anything is simulated.
func (r *Results) makeFolder() error {
	if r.store.at.Scheme != "file" {
		return nil
	}
	err := os.MkdirAll(filepath.FromSlash("/"+r.store.key(journalFolder)), 0o777)
	if err != nil {
		return fmt.Errorf("output folder %s cannot be made: %w; choose another one", r.store.URL(), files.Cause(err))
	}
	return nil
}

// mergeJournals makes one journal of the one that was pulled and what the scratch folder's has besides, which a crash kept from
// its way to the URL.
func (r *Results) mergeJournals(ctx context.Context, own, pulled string, readOnly bool) error {
	missing := filepath.Join(r.scratch, ".journal.missing")
	lines := 0
	err := writeFile(missing, func(w io.Writer) (err error) {
		lines, err = onlyIn(own, pulled, w)
		return err
	})
	if err != nil {
		return err
	}
	defer os.Remove(missing)
	if lines > 0 {
		if !readOnly {
			if err := r.pushPart(ctx, func(key string) error { return r.store.PutFile(ctx, key, missing) }); err != nil {
				return err
			}
		}
		if err := appendFile(pulled, missing); err != nil {
			return err
		}
	}
	if info, err := os.Stat(pulled); err == nil && info.Size() == 0 {
		return os.Remove(pulled) // the scratch folder's journal has no more than a header, if there is one
	}
	return os.Rename(pulled, own)
}

func appendFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// checkScratch refuses a folder that belongs to the results of another URL.
func (r *Results) checkScratch() error {
	mark := filepath.Join(r.scratch, ".storage.url")
	text, err := os.ReadFile(mark)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(r.scratch, journalFile)); err == nil {
			return fmt.Errorf("%s is the output folder of a sweep of its own; choose another one with --scratch", r.scratch)
		}
		return os.WriteFile(mark, []byte(r.store.URL()+"\n"), 0o666)
	}
	if err != nil {
		return err
	}
	if got := strings.TrimSpace(string(text)); got != r.store.URL() {
		return fmt.Errorf("%s is the scratch folder of %s; choose another one with --scratch", r.scratch, got)
	}
	return nil
}

// checkForeign refuses a folder that holds files of others and no journal.
func (r *Results) checkForeign(ctx context.Context, companions []string) error {
	found, err := r.store.List(ctx, "", true)
	if err != nil {
		return err
	}
	var foreign []string
	for _, o := range found {
		switch {
		case o.Key == journalFolder && o.Folder:
			return nil
		case o.Key == resultsFile, strings.HasPrefix(o.Key, "."), strings.HasPrefix(o.Key, "shard-"), isAside(o.Key), slices.Contains(companions, o.Key):
		default:
			foreign = append(foreign, o.Key)
		}
	}
	if len(foreign) == 0 {
		return nil
	}
	more := ""
	if len(foreign) > 3 {
		foreign, more = foreign[:3], fmt.Sprintf(" and %d more", len(foreign)-3)
	}
	return fmt.Errorf("%s holds other files (%s%s) and no journal, so it is not the folder of a sweep; choose another one, or an empty one",
		r.store.URL(), strings.Join(foreign, ", "), more)
}

// Dir is the scratch folder; URL names the place of the results.
func (r *Results) Dir() string { return r.scratch }

// URL is that of the results. It holds nothing secret.
func (r *Results) URL() string { return r.store.URL() }

// Fleeting reports whether the results are gone when the process ends.
func (r *Results) Fleeting() bool { return r.store.at.fleeting() != "" }

// SetAside lists the names that Fresh has given to earlier results.
func (r *Results) SetAside() []string { return r.aside }

// PushJournal makes lines of the journal, which begin with a header, durable at the URL.
func (r *Results) PushJournal(ctx context.Context, lines []byte) error {
	return r.pushPart(ctx, func(key string) error { return r.store.Put(ctx, key, lines) })
}

func (r *Results) pushPart(_ context.Context, put func(key string) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.number++
	key := partKey(r.session, r.number)
	if err := put(key); err != nil {
		r.failed = true
		return err
	}
	r.known[key] = true
	return nil
}

// PushFile makes a file the object of this name. The file may lie anywhere.
func (r *Results) PushFile(ctx context.Context, name, file string) error {
	return r.store.PutFile(ctx, filepath.ToSlash(name), file)
}

// compact puts the parts of the journal together when there are many.
func (r *Results) compact(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) <= compactAbove {
		return nil
	}
	r.ordinal++
	whole := partKey(fmt.Sprintf("%06d-%s", r.ordinal, r.session[len(r.session)-8:]), 0)
	if err := r.store.PutFile(ctx, whole, filepath.Join(r.scratch, journalFile)); err != nil {
		return err
	}
	if err := r.removeParts(ctx); err != nil {
		return err
	}
	r.known[whole] = true
	r.session, r.number = fmt.Sprintf("%06d-%s", r.ordinal, r.session[len(r.session)-8:]), 0
	return nil
}

// removeParts deletes the parts that the scratch folder's journal holds.
func (r *Results) removeParts(ctx context.Context) error {
	keys := make([]string, 0, len(r.known))
	for key := range r.known {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	err := each(ctx, len(keys), func(ctx context.Context, i int) error { return r.store.Remove(ctx, keys[i]) })
	if err == nil {
		clear(r.known)
	}
	return err
}

// isAside reports whether a name is one that Fresh gives.
func isAside(name string) bool {
	var n int
	for _, format := range []string{"journal.%d.jsonl", "results.%d.parquet"} {
		if _, err := fmt.Sscanf(name, format, &n); err == nil && fmt.Sprintf(format, n) == name {
			return true
		}
	}
	return false
}

// setAside keeps journal and results under the next free number and starts from nothing. A crash in between leaves them twice,
// never not at all.
func (r *Results) setAside(ctx context.Context, own string) error {
	local := []string{own, filepath.Join(r.scratch, resultsFile)}
	if len(r.known) > 0 {
		found, err := r.store.List(ctx, "", true)
		if err != nil {
			return err
		}
		taken := map[string]bool{}
		for _, o := range found {
			taken[o.Key] = true
		}
		n := 1
		for taken[fmt.Sprintf("journal.%d.jsonl", n)] || taken[fmt.Sprintf("results.%d.parquet", n)] {
			n++
		}
		if taken[resultsFile] {
			name := fmt.Sprintf("results.%d.parquet", n)
			if err := r.store.GetFile(ctx, resultsFile, local[1], MaxCopied); err != nil {
				return err
			}
			if err := r.store.PutFile(ctx, name, local[1]); err != nil {
				return err
			}
			r.aside = append(r.aside, name)
		}
		name := fmt.Sprintf("journal.%d.jsonl", n)
		if err := r.store.PutFile(ctx, name, own); err != nil {
			return err
		}
		r.aside = append(r.aside, name)
		if err := errors.Join(r.removeParts(ctx), r.store.Remove(ctx, resultsFile)); err != nil {
			return err
		}
	}
	for _, file := range local {
		if err := ignoreMissing(os.Remove(file)); err != nil {
			return err
		}
	}
	return nil
}

// pullFolders copies the files of folders that the scratch folder lacks.
func (r *Results) pullFolders(ctx context.Context, folders []string) error {
	for _, folder := range folders {
		found, err := r.store.List(ctx, folder, false)
		if err != nil {
			return err
		}
		found = slices.DeleteFunc(found, func(o Object) bool { return r.has(o) })
		if err := r.store.Pull(ctx, found, r.scratch); err != nil {
			return err
		}
	}
	return nil
}

// has reports whether the scratch folder has an object that does not change once it is written.
func (r *Results) has(o Object) bool {
	info, err := os.Stat(filepath.Join(r.scratch, filepath.FromSlash(o.Key)))
	return err == nil && info.Size() == o.Size
}

// Finish makes the URL hold what the scratch folder holds: every file, and of the folders Kept nothing else. It reports whether
// another sweep wrote to the URL meanwhile: then both have kept their points, and running either again puts them together. It
// does nothing once the journal could not be uploaded.
func (r *Results) Finish(ctx context.Context, kept []string) (others bool, err error) {
	if r.failed {
		return false, nil
	}
	if err := r.pushFiles(ctx, kept); err != nil {
		return false, err
	}
	if err := r.compact(ctx); err != nil {
		return false, err
	}
	found, _, err := r.store.parts(ctx)
	others = slices.ContainsFunc(found, func(o Object) bool { return !r.known[o.Key] })
	return others, err
}

// pushFiles uploads the files of the scratch folder. Those of the folders kept never change.
func (r *Results) pushFiles(ctx context.Context, kept []string) error {
	there := map[string]Object{}
	for _, folder := range kept {
		found, err := r.store.List(ctx, folder, false)
		if err != nil {
			return err
		}
		for _, o := range found {
			there[o.Key] = o
		}
	}
	var push []string
	err := filepath.WalkDir(r.scratch, func(file string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch rel, _ := filepath.Rel(r.scratch, file); {
		case err != nil:
			return err
		case rel == ".", rel == journalFile, strings.HasSuffix(name, ".tmp"):
		case strings.HasPrefix(name, "."):
			if entry.IsDir() {
				return filepath.SkipDir
			}
		case entry.Type().IsRegular():
			key := filepath.ToSlash(rel)
			if o, ok := there[key]; !ok || !r.has(o) {
				push = append(push, key)
			}
			delete(there, key)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := each(ctx, len(push), func(ctx context.Context, i int) error {
		return r.store.PutFile(ctx, push[i], filepath.Join(r.scratch, filepath.FromSlash(push[i])))
	}); err != nil {
		return err
	}
	for key := range there { // moved to another folder here
		if err := r.store.Remove(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// Close gives the scratch folder back.
func (r *Results) Close() error { return errors.Join(r.lock.Close(), r.store.Close()) }
