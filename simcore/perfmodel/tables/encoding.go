package tables

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// maxFileBytes bounds an unpacked file, so that a damaged or hostile one cannot fill the memory.
const maxFileBytes = 256 << 20

// readPackedFile returns the unpacked text of a gzip file.
func readPackedFile(files fs.FS, path string) (string, error) {
	packed, err := readRegular(files, path)
	if err != nil {
		return "", Fault{File: path, What: "cannot be read: " + fileCause(err)}
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", Fault{File: path, What: "is no gzip file: " + err.Error()}
	}
	var text strings.Builder
	text.Grow(unpackedSize(packed))
	n, err := io.Copy(&text, io.LimitReader(z, maxFileBytes+1))
	if err != nil {
		return "", Fault{File: path, What: "is damaged: " + err.Error()}
	}
	if n > maxFileBytes {
		return "", Fault{File: path, What: fmt.Sprintf("is over %d MiB when unpacked", maxFileBytes>>20)}
	}
	return text.String(), nil
}

// readRegular reads a file that is neither a device nor a pipe nor huge.
func readRegular(files fs.FS, path string) ([]byte, error) {
	info, err := fs.Stat(files, path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	case info.Size() > maxFileBytes:
		return nil, fmt.Errorf("it has more than %d MiB", maxFileBytes>>20)
	}
	return fs.ReadFile(files, path)
}

// unpackedSize is what the end of a gzip file says about its unpacked size, as far as that is plausible: deflate
// packs no better than 1032 to 1.
func unpackedSize(packed []byte) int {
	if len(packed) < 4 {
		return 0
	}
	size := int(binary.LittleEndian.Uint32(packed[len(packed)-4:]))
	return min(size, maxFileBytes, 1032*len(packed))
}

// fileCause is an error of the file system without the path, which the fault names already.
func fileCause(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// The columns of the files of curves and grids.
var (
	curveColumns = []string{"id", "n", "x_delta", "enc", "y"}
	gridColumns  = []string{"id", "kind", "b", "s", "measured", "q"}
)

// packedText is the text of a system's curves and grids by id, to be decoded when needed.
type packedText struct {
	curves, grids map[string]record
	// curveOrder and gridOrder are the ids in the order of the files.
	curveOrder, gridOrder []string
}

// record is one line of a file: the fields after the id.
type record struct {
	line   int
	fields []string
}

// readPacked reads the curves and grids of a system as far as they can be read.
func readPacked(files fs.FS, system string) (*packedText, Faults) {
	p := &packedText{}
	var faults Faults
	read := func(name string, columns []string) (map[string]record, []string) {
		path := system + "/" + name
		text, err := readPackedFile(files, path)
		if err != nil {
			faults = append(faults, faultsOf(err, path)...)
			return nil, nil
		}
		records, order, bad := splitRecords(path, text, columns)
		faults = append(faults, bad...)
		return records, order
	}
	p.curves, p.curveOrder = read(curvesFile, curveColumns)
	p.grids, p.gridOrder = read(gridsFile, gridColumns)
	return p, faults
}

// splitRecords splits the lines of a file whose fields contain no comma and need no quotes.
func splitRecords(path, text string, columns []string) (map[string]record, []string, Faults) {
	var faults Faults
	var order []string
	header, text, _ := strings.Cut(text, "\n")
	if got := strings.TrimSuffix(header, "\r"); got != strings.Join(columns, ",") {
		return nil, nil, Faults{{File: path, Line: 1, What: fmt.Sprintf("the columns are %.200q; they must be %s", got, strings.Join(columns, ","))}}
	}
	records := map[string]record{}
	for line := 2; text != ""; line++ {
		var row string
		row, text, _ = strings.Cut(text, "\n")
		row = strings.TrimSuffix(row, "\r")
		if row == "" {
			continue
		}
		fields := strings.Split(row, ",")
		if len(fields) != len(columns) {
			faults = append(faults, Fault{path, line, fmt.Sprintf("%d fields; %d are needed: %s", len(fields), len(columns), strings.Join(columns, ","))})
			continue
		}
		id := fields[0]
		if known, ok := records[id]; ok {
			if !slices.Equal(known.fields, fields[1:]) {
				faults = append(faults, Fault{path, line, fmt.Sprintf("id %s is there before, on line %d, with other contents", id, known.line)})
			}
			continue
		}
		records[id] = record{line: line, fields: fields[1:]}
		order = append(order, id)
	}
	return records, order, faults
}

// readTable reads a CSV file of which all named columns must be there; others are left alone. It calls row for each
// line; what row returns is reported with the line.
func readTable(path, text string, columns []string, row func(line int, get func(column string) string) error) Faults {
	reader := csv.NewReader(strings.NewReader(text))
	header, err := reader.Read()
	if err != nil {
		return Faults{{File: path, Line: 1, What: "has no header: " + err.Error()}}
	}
	index := make(map[string]int, len(header))
	for i, name := range header {
		index[name] = i
	}
	var missing []string
	for _, name := range columns {
		if _, ok := index[name]; !ok {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return Faults{{File: path, Line: 1, What: "lacks the columns " + strings.Join(missing, ", ")}}
	}
	var faults Faults
	var fields []string
	get := func(column string) string { return fields[index[column]] }
	for {
		fields, err = reader.Read()
		if err == io.EOF {
			return faults
		}
		var syntax *csv.ParseError
		if errors.As(err, &syntax) {
			faults = append(faults, Fault{path, syntax.Line, syntax.Err.Error()})
			if syntax.Err == csv.ErrFieldCount {
				continue
			}
			return faults
		}
		line, _ := reader.FieldPos(0)
		if err := row(line, get); err != nil {
			faults = append(faults, Fault{path, line, err.Error()})
		}
	}
}

// The encodings of curves.
const (
	encodingLog = "log2048" // running sum of q, y = 2^(q/2048) ms
	encodingRaw = "raw"     // y in ms
)

// Steps per octave of the packed values.
const (
	curveSteps = 2048
	gridSteps  = 1024
)

// maxKnot bounds the knots of an axis, so that they are exact whole numbers.
const maxKnot = 1 << 31

// decodeCurve unpacks a curve (spec perfmodel.md §2, reading rule 5).
func decodeCurve(r record) (*curve, error) {
	count, deltas, encoding, values := r.fields[0], r.fields[1], r.fields[2], r.fields[3]
	x, err := wholeNumbers("x_delta", deltas)
	if err != nil {
		return nil, err
	}
	for i := 1; i < len(x); i++ {
		x[i] += x[i-1]
	}
	if err := checkAxis("x_delta", x); err != nil {
		return nil, err
	}
	var y []float64
	switch encoding {
	case encodingLog:
		if y, err = wholeNumbers("y", values); err != nil {
			return nil, err
		}
		sum := 0.0
		for i, q := range y {
			sum += q
			y[i] = powerOfTwo(sum, curveSteps)
		}
	case encodingRaw:
		if y, err = finiteNumbers("y", values); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("enc is %q; use %s or %s", encoding, encodingLog, encodingRaw)
	}
	if count != strconv.Itoa(len(x)) || len(y) != len(x) {
		return nil, fmt.Errorf("n is %.20s with %d knots and %d values; all must be equal", count, len(x), len(y))
	}
	return newCurve(x, y), checkValues("y", y, encoding == encodingRaw)
}

// decodeGrid unpacks a grid (spec perfmodel.md §2, reading rules 3 to 5).
func decodeGrid(r record) (*grid, error) {
	g := &grid{kind: r.fields[0], square: r.fields[0] == kindPrefill}
	if g.kind != kindPrefill && g.kind != kindDecode {
		return nil, fmt.Errorf("kind is %q; use %s or %s", g.kind, kindPrefill, kindDecode)
	}
	var columns [4][]float64
	for i, name := range gridColumns[2:] {
		var err error
		if columns[i], err = wholeNumbers(name, r.fields[1+i]); err != nil {
			return nil, err
		}
	}
	batch, length, measured, values := columns[0], columns[1], columns[2], columns[3]
	if err := errors.Join(checkAxis("b", batch), checkAxis("s", length)); err != nil {
		return nil, err
	}
	if len(values) != len(batch)*len(length) {
		return nil, fmt.Errorf("q has %d values; %d batches of %d lengths need %d", len(values), len(batch), len(length), len(batch)*len(length))
	}
	if len(measured) != len(batch) {
		return nil, fmt.Errorf("measured has %d values; it needs one for each of the %d batches", len(measured), len(batch))
	}
	unpredict(values, len(length))
	for i, q := range values {
		values[i] = powerOfTwo(q, gridSteps)
	}
	if err := checkValues("q", values, false); err != nil {
		return nil, err
	}
	if g.square {
		for i, v := range values {
			values[i] = math.Sqrt(v)
		}
	}
	for i, m := range measured {
		if m < 0 {
			return nil, fmt.Errorf("measured is %v for batch %v; give a length, or 0 when it is not known", m, batch[i])
		}
		if m == 0 {
			measured[i] = length[len(length)-1]
		}
	}
	g.batch, g.length, g.values, g.measuredLength = newAxis(batch), newAxis(length), values, measured
	return g, nil
}

// unpredict turns the residuals of the planar predictor into the values it predicted: left plus up minus upper left.
func unpredict(q []float64, width int) {
	for k := range q {
		row, column := k/width, k%width
		switch {
		case row == 0 && column > 0:
			q[k] += q[k-1]
		case row > 0 && column == 0:
			q[k] += q[k-width]
		case row > 0:
			q[k] += q[k-1] + q[k-width] - q[k-width-1]
		}
	}
}

// fractions holds 2^(k/2048) for k below 2048. It is built from square roots, which all processors round alike, so
// that tables are equal to the last bit everywhere.
var fractions = sync.OnceValue(func() *[curveSteps]float64 {
	var t [curveSteps]float64
	t[0] = 1
	root := 2.0
	for bit := curveSteps / 2; bit > 0; bit /= 2 {
		root = math.Sqrt(root)
		for k := 0; k < curveSteps; k += 2 * bit {
			t[k+bit] = float64(t[k] * root)
		}
	}
	return &t
})

// powerOfTwo is 2^(q/steps) for a whole q; steps is curveSteps or divides it.
func powerOfTwo(q float64, steps int) float64 {
	octave := math.Floor(q / float64(steps))
	rest := int(q-octave*float64(steps)) * (curveSteps / steps)
	return math.Ldexp(fractions()[rest], int(max(-2000, min(2000, octave))))
}

// checkAxis requires two or more knots, whole, increasing and from 1 on.
func checkAxis(name string, knots []float64) error {
	if len(knots) < 2 || len(knots) > math.MaxUint16 {
		return fmt.Errorf("%s has %d knots; 2 to %d are needed", name, len(knots), math.MaxUint16)
	}
	if knots[0] < 1 || knots[len(knots)-1] > maxKnot {
		return fmt.Errorf("%s runs from %.0f to %.0f; it must lie within 1 and %d", name, knots[0], knots[len(knots)-1], maxKnot)
	}
	for i := 1; i < len(knots); i++ {
		if knots[i] <= knots[i-1] {
			return fmt.Errorf("%s does not increase at knot %d: %.0f after %.0f", name, i+1, knots[i], knots[i-1])
		}
	}
	return nil
}

// maxTime bounds a value in ms or us; what is beyond is damage.
const maxTime = 1e15

// checkValues requires times that are finite and, unless signed, over 0.
func checkValues(name string, values []float64, signed bool) error {
	for i, v := range values {
		if !(math.Abs(v) <= maxTime) || v <= 0 && !signed {
			return fmt.Errorf("%s: value %d is %v; a time must be over 0 and at most %v", name, i+1, v, maxTime)
		}
	}
	return nil
}

// wholeNumbers parses numbers separated by single spaces.
func wholeNumbers(name, text string) ([]float64, error) {
	return numbers(name, text, func(field string) (float64, error) {
		v, err := strconv.ParseInt(field, 10, 32)
		return float64(v), err
	})
}

// finiteNumbers parses decimal numbers separated by single spaces.
func finiteNumbers(name, text string) ([]float64, error) {
	return numbers(name, text, func(field string) (float64, error) { return strconv.ParseFloat(field, 64) })
}

func numbers(name, text string, parse func(string) (float64, error)) ([]float64, error) {
	out := make([]float64, 0, strings.Count(text, " ")+1)
	for field := range strings.SplitSeq(text, " ") {
		v, err := parse(field)
		if err != nil {
			return nil, fmt.Errorf("%s: number %d is %.20q", name, len(out)+1, field)
		}
		out = append(out, v)
	}
	return out, nil
}

// verifyCurve and verifyGrid compare the contents with the id, which is their hash.
func verifyCurve(id string, r record) error { return verifyID(id, "c", r.fields[1:]) }

func verifyGrid(id string, r record) error { return verifyID(id, "g", r.fields) }

func verifyID(id, prefix string, fields []string) error {
	if want := contentID(prefix, fields); id != want {
		return fmt.Errorf("the contents hash to %s; the line was changed, write the new id", want)
	}
	return nil
}

// contentID is the id of a curve ("c", without its n) or grid ("g") with these fields.
func contentID(prefix string, fields []string) string {
	sum := sha256.Sum256([]byte(strings.Join(fields, "|")))
	return prefix + hex.EncodeToString(sum[:4])
}
