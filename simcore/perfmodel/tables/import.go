package tables

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// Import checks the folder of tables src as [Check] does and adds it to the folder dst, which it makes if need be. Rows
// of the same deployment are replaced, with their checks; everything else in dst stays.
//
// Each file is written beside its place and renamed, curves and grids before the rows that need them, so that dst is
// whole at any time, for readers as well as after a crash.
func Import(src, dst string) (CheckReport, error) {
	from, report, err := Check(src)
	if err != nil {
		return CheckReport{}, err
	}
	if err := os.MkdirAll(dst, 0o755); err != nil {
		return CheckReport{}, fmt.Errorf("tables: %w", err)
	}
	to := newSet(os.DirFS(dst), true)
	if _, faults := to.check(); len(faults) > 0 {
		return CheckReport{}, fmt.Errorf("%s is damaged; repair or remove it: %w", dst, faults)
	}
	for _, system := range from.names {
		if err := importSystem(from.files, to.files, dst, system); err != nil {
			return CheckReport{}, fmt.Errorf("tables: %w", err)
		}
	}
	if err := importLists(from.files, to.files, dst); err != nil {
		return CheckReport{}, fmt.Errorf("tables: %w", err)
	}
	return report, nil
}

// importSystem merges the rows, curves and grids of one system.
func importSystem(src, dst fs.FS, dir, system string) error {
	added, err := readRawSystem(src, system)
	if err != nil {
		return err
	}
	merged := rawSystem{packed: &packedText{}}
	if _, err := fs.Stat(dst, system+"/"+configsFile); err == nil {
		if merged, err = readRawSystem(dst, system); err != nil {
			return err
		}
	}
	// What rows that are replaced now need stays until the next import, for programs that have read them already.
	needed := map[string]bool{}
	for _, rows := range [][]rawRow{merged.rows, added.rows} {
		for _, r := range rows {
			for _, id := range r.ids {
				needed[id] = true
			}
		}
	}
	curves, err := mergeRecords(merged.packed.curves, added.packed.curves, needed)
	if err != nil {
		return err
	}
	grids, err := mergeRecords(merged.packed.grids, added.packed.grids, needed)
	if err != nil {
		return err
	}
	folder := filepath.Join(dir, system)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return errors.Join(
		writePacked(filepath.Join(folder, curvesFile), curveColumns, curves),
		writePacked(filepath.Join(folder, gridsFile), gridColumns, grids),
		writePacked(filepath.Join(folder, configsFile), configColumns, mergeRows(merged.rows, added.rows)),
	)
}

// rawSystem is the text of a system's files.
type rawSystem struct {
	rows   []rawRow
	packed *packedText
}

// rawRow is a line: what it is about, what it refers to, and its fields in the order of the columns.
type rawRow struct {
	key    any
	ids    []string
	fields []string
}

func readRawSystem(files fs.FS, system string) (rawSystem, error) {
	path := system + "/" + configsFile
	text, err := readPackedFile(files, path)
	if err != nil {
		return rawSystem{}, err
	}
	rows, faults := readRawRows(path, text, configColumns, func(get func(string) string) (any, []string, error) {
		c, err := parseConfig(get)
		return c.key(), c.ids(), err
	})
	packed, bad := readPacked(files, system)
	return rawSystem{rows, packed}, append(faults, bad...).err()
}

// ids lists the curves and grids of a row.
func (c *Config) ids() []string {
	ids := []string{c.tokensCurve, c.requestsCurve, c.generationCurve}
	for part := range strings.SplitSeq(c.prefillAttention+";"+c.generationAttention, ";") {
		id, _, _ := strings.Cut(part, "*")
		ids = append(ids, id)
	}
	return ids
}

// readRawRows keeps the fields of each line under the key that parse finds for it.
func readRawRows(path, text string, columns []string, parse func(get func(string) string) (any, []string, error)) ([]rawRow, Faults) {
	var rows []rawRow
	faults := readTable(path, text, columns, func(_ int, get func(string) string) error {
		key, ids, err := parse(get)
		if err != nil {
			return err
		}
		fields := make([]string, len(columns))
		for i, column := range columns {
			fields[i] = get(column)
		}
		rows = append(rows, rawRow{key, ids, fields})
		return nil
	})
	return rows, faults
}

// mergeRows puts rows with a new key in the place of the old ones with the same key, or at the end.
func mergeRows(old, added []rawRow) [][]string {
	replaced := map[any][][]string{}
	for _, r := range added {
		replaced[r.key] = append(replaced[r.key], r.fields)
	}
	var out [][]string
	seen := map[any]bool{}
	for _, r := range slices.Concat(old, added) {
		fresh, ok := replaced[r.key]
		switch {
		case !ok:
			out = append(out, r.fields)
		case !seen[r.key]:
			seen[r.key] = true
			out = append(out, fresh...)
		}
	}
	return out
}

// mergeRecords joins the curves or grids that are needed, ordered by id.
func mergeRecords(old, added map[string]record, needed map[string]bool) ([][]string, error) {
	var ids []string
	for id := range needed {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var out [][]string
	for _, id := range ids {
		a, inOld := old[id]
		b, inAdded := added[id]
		if inOld && inAdded && !slices.Equal(a.fields, b.fields) {
			return nil, fmt.Errorf("%s means two different curves or grids, whose hashes collide; import into an empty folder", id)
		}
		if inAdded {
			out = append(out, append([]string{id}, b.fields...))
		} else if inOld {
			out = append(out, append([]string{id}, a.fields...))
		}
	}
	return out, nil
}

// importLists merges the refused deployments and the checks.
func importLists(src, dst fs.FS, dir string) error {
	refused, err := mergeLists(src, dst, readRawUnavailable)
	if err != nil {
		return err
	}
	if refused != nil {
		var text bytes.Buffer
		if err := writeCSV(&text, unavailableColumns, refused); err != nil {
			return err
		}
		if err := writeBeside(filepath.Join(dir, unavailableFile), text.Bytes()); err != nil {
			return err
		}
	}
	checks, err := mergeLists(src, dst, readRawChecks)
	if err != nil || checks == nil {
		return err
	}
	return writePacked(filepath.Join(dir, checksFile), checkColumns, checks)
}

func mergeLists(src, dst fs.FS, read func(fs.FS) ([]rawRow, error)) ([][]string, error) {
	old, err := read(dst)
	if err != nil {
		return nil, err
	}
	added, err := read(src)
	if err != nil || added == nil {
		return nil, err
	}
	return mergeRows(old, added), nil
}

func readRawUnavailable(files fs.FS) ([]rawRow, error) {
	text, err := fs.ReadFile(files, unavailableFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rows, faults := readRawRows(unavailableFile, string(text), unavailableColumns, func(get func(string) string) (any, []string, error) {
		return [6]string{get("slot"), get("system"), get("backend"), get("model"), get("dtype"), get("par")}, nil, nil
	})
	return rows, faults.err()
}

func readRawChecks(files fs.FS) ([]rawRow, error) {
	if _, err := fs.Stat(files, checksFile); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	text, err := readPackedFile(files, checksFile)
	if err != nil {
		return nil, err
	}
	rows, faults := readRawRows(checksFile, text, checkColumns, func(get func(string) string) (any, []string, error) {
		key, _, err := parseCheck(get)
		return key, nil, err
	})
	return rows, faults.err()
}

// writePacked writes a CSV file, packed; equal contents give equal bytes.
func writePacked(path string, columns []string, rows [][]string) error {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := errors.Join(writeCSV(z, columns, rows), z.Close()); err != nil {
		return err
	}
	return writeBeside(path, packed.Bytes())
}

func writeCSV(w io.Writer, columns []string, rows [][]string) error {
	out := csv.NewWriter(w)
	if err := out.Write(columns); err != nil {
		return err
	}
	return out.WriteAll(rows)
}

// writeBeside writes a file under another name and renames it, so that the name never stands for half a file.
func writeBeside(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
