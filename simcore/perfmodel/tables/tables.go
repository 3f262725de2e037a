// Package tables prices passes from measurements: embedded tables for nine GPUs, and folders of tables that users make.
//
// A deployment (system, backend and its version, model, dtype, parallelism) is one row. The row names curves over the
// tokens, requests or decodes of a pass and grids of attention over batch and length; curves and grids are shared
// between rows. Nothing is read before it is asked for: a system's rows on the first question about it, a curve or
// grid when the first row that needs it is loaded.
//
// Read tables.go for the set of tables, config.go for a row, find.go for how a row is chosen, lookup.go for how a
// pass is priced, encoding.go for the packed form, check.go and import.go for users' folders. The format and the
// reading rule are those of spec perfmodel.md §2.
package tables

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
)

// The files of a folder of tables; the first three lie in a subfolder for each system.
const (
	configsFile     = "configs.csv.gz"
	curvesFile      = "curves.csv.gz"
	gridsFile       = "grids.csv.gz"
	unavailableFile = "unavailable.csv"
	checksFile      = "checks.csv.gz"
)

//go:embed data/unavailable.csv data/*/configs.csv.gz data/*/curves.csv.gz data/*/grids.csv.gz
var embeddedFiles embed.FS

// Set is the tables of several systems. It is safe for concurrent use.
type Set struct {
	files   fs.FS
	systems map[string]*system
	names   []string

	unavailableOnce sync.Once
	unavailable     []Unavailable
	unavailableErr  error
}

// Unavailable is a deployment that the source refuses to price.
type Unavailable struct {
	// Slot is "current" or "legacy"; System, Backend, Model and DType are as in [Config].
	Slot, System, Backend, Model, DType string
	// BackendVersion is the release that was asked; empty is any of the slot.
	BackendVersion string
	// TP, DP, MoETP and MoEEP are the parallelism; 0 is any.
	TP, DP, MoETP, MoEEP int
	// Reason is the message of the source.
	Reason string
}

var embedded = sync.OnceValue(func() *Set {
	files, err := fs.Sub(embeddedFiles, "data")
	if err != nil {
		return &Set{files: embeddedFiles} // fs.Sub fails on an invalid name only
	}
	return newSet(files, false)
})

// Embedded is the set of tables that the program contains.
func Embedded() *Set { return embedded() }

// Open returns the tables of a folder. It looks only for which systems there are; damage is found by [Check], or by
// whatever reads the damaged part.
func Open(dir string) (*Set, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("tables: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("tables: %s is a file; give the folder with a subfolder for each system", dir)
	}
	s := newSet(os.DirFS(dir), true)
	if len(s.names) == 0 {
		return nil, fmt.Errorf("tables: %s holds no system; a system is a subfolder with %s, %s and %s", dir, configsFile, curvesFile, gridsFile)
	}
	return s, nil
}

// newSet lists the systems; verify makes it compare curves and grids with their ids when it reads them.
func newSet(files fs.FS, verify bool) *Set {
	s := &Set{files: files, systems: map[string]*system{}}
	found, err := fs.Glob(files, "*/"+configsFile)
	if err != nil {
		return s // only a malformed pattern fails
	}
	for _, path := range found {
		name := strings.TrimSuffix(path, "/"+configsFile)
		s.systems[name] = &system{name: name, files: files, verify: verify}
		s.names = append(s.names, name)
	}
	slices.Sort(s.names)
	return s
}

// Systems lists the ids of the systems that have tables, in alphabetical order.
func (s *Set) Systems() []string { return slices.Clone(s.names) }

// Configs returns the rows of a system in the order of its file, without reading curves.
func (s *Set) Configs(system string) ([]*Config, error) {
	sys, ok := s.systems[system]
	if !ok {
		return nil, fmt.Errorf("tables: no system %q; there are %s", system, strings.Join(s.names, ", "))
	}
	rows, err := sys.rows()
	if err != nil {
		return nil, err
	}
	return slices.Clone(rows.all), nil
}

// Unavailable returns the deployments that the source refused.
func (s *Set) Unavailable() ([]Unavailable, error) {
	s.unavailableOnce.Do(func() {
		s.unavailable, s.unavailableErr = readUnavailable(s.files)
	})
	return s.unavailable, s.unavailableErr
}

// Load decodes the curves and grids of a row. With corrections it adds the time that the source is known to leave out
// of decode passes. The table is cached and shared.
func (s *Set) Load(c *Config, corrections bool) (*Table, error) {
	sys, ok := s.systems[c.System]
	if !ok {
		return nil, fmt.Errorf("tables: no system %q; there are %s", c.System, strings.Join(s.names, ", "))
	}
	return sys.load(c, corrections)
}

// system is the tables of one system.
type system struct {
	name   string
	files  fs.FS
	verify bool

	rowsOnce sync.Once
	indexed  *rowIndex
	rowsErr  error

	mu sync.Mutex // guards what follows
	// packed is the text of the curves and grids; nil until a row is loaded.
	packed *packedText
	curves map[string]*curve
	grids  map[string]*grid
	tables map[tableKey]*Table
}

// tableKey identifies a loaded row.
type tableKey struct {
	config      *Config
	corrections bool
}

// rows reads the rows of the system once.
func (s *system) rows() (*rowIndex, error) {
	s.rowsOnce.Do(func() {
		configs, err := readConfigs(s.files, s.name)
		if err != nil {
			s.rowsErr = err
			return
		}
		s.indexed = indexRows(configs)
	})
	return s.indexed, s.rowsErr
}

func (s *system) load(c *Config, corrections bool) (*Table, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := tableKey{c, corrections}
	if t, ok := s.tables[key]; ok {
		return t, nil
	}
	if s.packed == nil {
		packed, faults := readPacked(s.files, s.name)
		if err := faults.err(); err != nil {
			return nil, err
		}
		s.packed, s.curves, s.grids, s.tables = packed, map[string]*curve{}, map[string]*grid{}, map[tableKey]*Table{}
	}
	t, err := s.assemble(c, corrections)
	if err != nil {
		return nil, fmt.Errorf("tables: %s: %w", c, err)
	}
	s.tables[key] = t
	return t, nil
}

// assemble builds the table of a row from its curves and grids.
func (s *system) assemble(c *Config, corrections bool) (*Table, error) {
	t := &Table{}
	var err error
	for _, part := range []struct {
		id    string
		curve **curve
	}{{c.tokensCurve, &t.tokens}, {c.requestsCurve, &t.requests}, {c.generationCurve, &t.generation}} {
		if *part.curve, err = s.curve(part.id); err != nil {
			return nil, err
		}
	}
	if t.prefill, err = s.terms(c.prefillAttention, kindPrefill); err != nil {
		return nil, fmt.Errorf("ctx_att: %w", err)
	}
	if t.decode, err = s.terms(c.generationAttention, kindDecode); err != nil {
		return nil, fmt.Errorf("gen_att: %w", err)
	}
	if corrections {
		t.correctionMs = c.QKNormUs * float64(c.Layers) * msPerUs
	}
	return t, nil
}

// terms decodes the grids of an attention column.
func (s *system) terms(column, kind string) ([]term, error) {
	parts, err := parseAttention(column, kind)
	if err != nil {
		return nil, err
	}
	terms := make([]term, len(parts))
	for i, p := range parts {
		g, err := s.grid(p.grid, kind)
		if err != nil {
			return nil, err
		}
		terms[i] = term{grid: g, scale: p.layers * msPerUs, constantMs: p.layers * p.constantUs * msPerUs}
	}
	return terms, nil
}

func (s *system) curve(id string) (*curve, error) {
	if c, ok := s.curves[id]; ok {
		return c, nil
	}
	record, ok := s.packed.curves[id]
	if !ok {
		return nil, fmt.Errorf("curve %s is not in %s/%s", id, s.name, curvesFile)
	}
	c, err := decodeCurve(record)
	if err == nil && s.verify {
		err = verifyCurve(id, record)
	}
	if err != nil {
		return nil, Fault{File: s.name + "/" + curvesFile, Line: record.line, What: fmt.Sprintf("curve %s: %v", id, err)}
	}
	s.curves[id] = c
	return c, nil
}

func (s *system) grid(id, kind string) (*grid, error) {
	if g, ok := s.grids[id]; ok && g.kind == kind {
		return g, nil
	}
	record, ok := s.packed.grids[id]
	if !ok {
		return nil, fmt.Errorf("grid %s is not in %s/%s", id, s.name, gridsFile)
	}
	g, err := decodeGrid(record)
	if err == nil && g.kind != kind {
		err = fmt.Errorf("it is of kind %s where %s is needed", g.kind, kind)
	}
	if err == nil && s.verify {
		err = verifyGrid(id, record)
	}
	if err != nil {
		return nil, Fault{File: s.name + "/" + gridsFile, Line: record.line, What: fmt.Sprintf("grid %s: %v", id, err)}
	}
	s.grids[id] = g
	return g, nil
}

// Fault is one thing that is wrong with a file of a folder of tables.
type Fault struct {
	// File is relative to the folder.
	File string
	// Line counts from 1, the header; 0 is the whole file.
	Line int
	// What says what is wrong and what is expected.
	What string
}

// Error is "file:line: what".
func (f Fault) Error() string {
	if f.Line == 0 {
		return f.File + ": " + f.What
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.What)
}

// Faults is everything that is wrong with a folder of tables.
type Faults []Fault

// maxFaultsShown bounds the length of the message; the list is complete.
const maxFaultsShown = 50

// Error lists the faults, one a line.
func (f Faults) Error() string {
	var lines []string
	for i, fault := range f {
		if i == maxFaultsShown {
			lines = append(lines, fmt.Sprintf("and %d more", len(f)-i))
			break
		}
		lines = append(lines, fault.Error())
	}
	return strings.Join(lines, "\n")
}

// err is nil for an empty list.
func (f Faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// faultsOf is the faults that an error consists of.
func faultsOf(err error, file string) Faults {
	var many Faults
	var one Fault
	switch {
	case err == nil:
		return nil
	case errors.As(err, &many):
		return many
	case errors.As(err, &one):
		return Faults{one}
	}
	return Faults{{File: file, What: err.Error()}}
}
