package sweep

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
)

// The journal is a JSON Lines file. Its first line is a header; every other line is the result of one point, or
// another header where a sweep with other metrics or another simulator went on. A later line replaces an earlier
// one of the same ID, unless it says less: a failure that another try may not have never replaces figures. Each line ends
// in its own checksum:
//
//	{"journal":"servegrid","format":1,"sweep":"demo","simulator":"1","metrics":["num_requests",…],"crc":"1f0c8a55"}
//	{"id":"9a0d…","status":"ok","wall_s":0.012,"workload_digest":"77e1…","metrics":[50,…,null],"crc":"a3b0c4d1"}
//
// The metrics of a line are in the order of the header before it. null stands for a metric that the point does not
// have. Numbers are the shortest that read back as the same float64. The checksum is the CRC-32C of the line up to
// the comma before "crc".
const (
	journalMark   = "servegrid"
	journalFormat = 1
)

// header is a header line.
type header struct {
	Journal   string   `json:"journal"`
	Format    int      `json:"format"`
	Sweep     string   `json:"sweep,omitempty"`
	Simulator string   `json:"simulator"`
	Metrics   []string `json:"metrics"`
}

// record is the line of one point.
type record struct {
	ID             string          `json:"id"`
	Status         results.Status  `json:"status"`
	Reason         string          `json:"reason,omitempty"`
	Error          string          `json:"error,omitempty"`
	WallSeconds    float64         `json:"wall_s"`
	WorkloadDigest string          `json:"workload_digest"`
	Lost           *simcore.Bound  `json:"lost,omitempty"`
	Metrics        json.RawMessage `json:"metrics,omitempty"`
}

// result is a row without its point, which would be most of its size in memory.
type result struct {
	ID             string
	Status         results.Status
	Reason, Error  string
	WallSeconds    float64
	Metrics        []float64
	WorkloadDigest string
	Lost           simcore.Bound
}

func resultOf(row *results.Row) result {
	return result{
		ID: row.ID, Status: row.Status, Reason: row.Reason, Error: row.Error, WallSeconds: row.WallSeconds,
		Metrics: row.Metrics, WorkloadDigest: row.WorkloadDigest, Lost: row.Lost,
	}
}

// row is the row of a point with this result.
func (r *result) row(p *gridspec.Point) results.Row {
	return results.Row{
		ID: r.ID, Status: r.Status, Reason: r.Reason, Error: r.Error, WallSeconds: r.WallSeconds,
		Point: p, Metrics: r.Metrics, WorkloadDigest: r.WorkloadDigest, Lost: r.Lost,
	}
}

// stored is a point's result as the journal has it.
type stored struct {
	result
	// simulator is the semantic version that made the result.
	simulator string
	// complete is false when a metric of this program is missing.
	complete bool
}

// usable reports whether the result is what this program would find.
func (s stored) usable(semanticVersion string) bool {
	return s.complete && s.simulator == semanticVersion
}

// journal is what a journal file holds.
type journal struct {
	// last is the last header.
	last header
	// results holds the result of each ID that counts; see [stored.givesWayTo].
	results map[string]stored
	// damaged counts unreadable lines between readable ones.
	damaged int
	// size is the length of the file up to the end of its last readable line, in bytes. What comes after it was
	// cut off by a crash.
	size int64
}

// unused counts the usable results of the journal that are of none of the rows.
func (j *journal) unused(semanticVersion string, groups ...[]results.Row) int {
	used := map[string]bool{}
	for _, rows := range groups {
		for i := range rows {
			used[rows[i].ID] = true
		}
	}
	n := 0
	for id, r := range j.results {
		if !used[id] && r.usable(semanticVersion) {
			n++
		}
	}
	return n
}

const (
	// maxLine bounds a line; a damaged file may have no line ends at all.
	maxLine = 16 << 20
	// scanBuffer is how much of a journal is read at a time.
	scanBuffer = 256 << 10
)

var (
	castagnoli  = crc32.MakeTable(crc32.Castagnoli)
	crcField    = []byte(`,"crc":"`)
	crcEnd      = []byte("\"}\n")
	crcLen      = len(crcField) + 8 + len(crcEnd)
	errNotOurs  = errors.New("it is not the journal of a sweep, or its first line is damaged")
	errTooNewer = errors.New("it was written by a newer servegrid")
)

// readJournal reads a journal. Metrics come out in the order of names. Torn and damaged lines are no error, a file
// that does not begin with a header is. An empty file is an empty journal: a crash can leave one.
func readJournal(r io.Reader, names []string) (*journal, error) {
	kept := map[string]stored{}
	digests := map[string]string{}
	j, err := scanJournal(r, names, func(_ int64, s stored) {
		if known, ok := digests[s.WorkloadDigest]; ok {
			s.WorkloadDigest = known // one copy for all of its points
		} else {
			digests[s.WorkloadDigest] = s.WorkloadDigest
		}
		if before, ok := kept[s.ID]; !ok || before.givesWayTo(s) {
			kept[s.ID] = s
		}
	})
	if err != nil {
		return nil, err
	}
	j.results = kept
	return j, nil
}

// scanJournal reads a journal without keeping it: visit gets every result, in order, with the place of its line in the file.
func scanJournal(r io.Reader, names []string, visit func(at int64, s stored)) (*journal, error) {
	j := &journal{}
	buffer := scanBuffer
	if text, ok := r.(*bytes.Reader); ok {
		buffer = min(buffer, text.Len()) // the parts that workers send are short, and many
	}
	lines := bufio.NewReaderSize(r, buffer)
	var (
		offset  int64
		bad     int
		rec     record
		columns []int // columns[i] is the place in names of the header's metric i, or -1
		whole   bool
	)
	for {
		line, n, err := readLine(lines)
		offset += n
		if err != nil && err != io.EOF {
			return nil, err
		}
		if n == 0 {
			return j, nil
		}
		body, ok := checkLine(line)
		h, isHeader := header{}, false
		rec = record{Metrics: rec.Metrics[:0]} // its text is decoded by now
		if ok {
			isHeader = bytes.HasPrefix(body, []byte(`{"journal":`))
			if isHeader {
				h, ok = parseHeader(body)
			} else {
				ok = json.Unmarshal(body, &rec) == nil && rec.ID != ""
			}
		}
		var s stored
		if ok && !isHeader && j.size > 0 {
			s, ok = decodeRecord(rec, columns, len(names))
			s.simulator, s.complete = j.last.Simulator, whole
		}
		switch {
		case !ok && j.size == 0, ok && !isHeader && j.size == 0:
			return nil, errNotOurs
		case !ok:
			bad++
			continue
		case isHeader && h.Format > journalFormat:
			return nil, errTooNewer
		case isHeader:
			j.last = h
			columns, whole = matchColumns(h.Metrics, names)
		default:
			visit(offset-n, s)
		}
		j.damaged += bad
		bad = 0
		j.size = offset
	}
}

// partHeader is the header of rows on their way between programs, as a line too. Every part begins with it.
var partHeader = sync.OnceValues(func() (header, []byte) {
	h := header{Journal: journalMark, Format: journalFormat, Simulator: simcore.SemanticVersion, Metrics: metricNames()}
	line, err := appendLine(nil, h)
	if err != nil {
		panic(err) // strings and numbers always have an encoding
	}
	return h, line
})

// parseHeader decodes a header without its checksum.
func parseHeader(body []byte) (h header, ok bool) {
	if known, text := partHeader(); bytes.Equal(body[:len(body)-1], text[:len(text)-crcLen]) {
		return known, true
	}
	ok = json.Unmarshal(body, &h) == nil && h.Journal == journalMark
	return h, ok
}

// readLine returns the next line with its end, and the number of bytes it took. A line that is too long comes
// back empty. The line is valid until the next call.
func readLine(r *bufio.Reader) (line []byte, n int64, err error) {
	for {
		part, err := r.ReadSlice('\n')
		n += int64(len(part))
		if err == nil && int64(len(part)) == n {
			return part, n, nil
		}
		if n <= maxLine {
			line = append(line, part...)
		} else {
			line = line[:0]
		}
		if err != bufio.ErrBufferFull {
			return line, n, err
		}
	}
}

// checkLine verifies the checksum of a line and returns the JSON object without it, which takes the line's place.
func checkLine(line []byte) (body []byte, ok bool) {
	cut := len(line) - crcLen
	if cut < 1 || !bytes.HasPrefix(line[cut:], crcField) || !bytes.HasSuffix(line, crcEnd) {
		return nil, false
	}
	sum, err := strconv.ParseUint(string(line[cut+len(crcField):len(line)-len(crcEnd)]), 16, 32)
	if err != nil || uint32(sum) != crc32.Checksum(line[:cut], castagnoli) {
		return nil, false
	}
	line[cut] = '}'
	return line[:cut+1], true
}

// appendLine encodes a header or a record as a line with its checksum.
func appendLine(buf []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return buf, err
	}
	body := text[:len(text)-1] // without the closing brace
	buf = append(buf, body...)
	buf = append(buf, crcField...)
	buf = fmt.Appendf(buf, "%08x", crc32.Checksum(body, castagnoli))
	return append(buf, crcEnd...), nil
}

// figureBytes is the room that a figure usually takes in a line.
const figureBytes = 10

// appendRecord encodes a row as a line of the journal.
func appendRecord(buf []byte, row *results.Row) ([]byte, error) {
	rec := record{
		ID: row.ID, Status: row.Status, Reason: row.Reason, Error: row.Error,
		WallSeconds: row.WallSeconds, WorkloadDigest: row.WorkloadDigest,
	}
	if row.Status == results.StatusOK {
		rec.Metrics = appendMetrics(make([]byte, 0, figureBytes*len(row.Metrics)), row.Metrics)
	}
	if row.Status == results.StatusStopped {
		rec.Lost = &row.Lost
	}
	return appendLine(buf, rec)
}

func decodeRecord(rec record, columns []int, n int) (stored, bool) {
	r := result{
		ID: rec.ID, Status: rec.Status, Reason: rec.Reason, Error: rec.Error,
		WallSeconds: rec.WallSeconds, WorkloadDigest: rec.WorkloadDigest, Metrics: make([]float64, n),
	}
	for i := range r.Metrics {
		r.Metrics[i] = math.NaN()
	}
	switch rec.Status {
	case results.StatusFailed:
		return stored{result: r}, true
	case results.StatusStopped:
		if rec.Lost == nil {
			return stored{}, false
		}
		r.Lost = *rec.Lost
		return stored{result: r}, true
	case results.StatusOK:
		return stored{result: r}, parseMetrics(rec.Metrics, columns, r.Metrics)
	}
	return stored{}, false
}

// matchColumns finds the place of each metric of a header in names. Whole reports that no name is missing.
func matchColumns(have, names []string) (columns []int, whole bool) {
	if slices.Equal(have, names) {
		columns = make([]int, len(names))
		for i := range columns {
			columns[i] = i
		}
		return columns, true
	}
	place := make(map[string]int, len(names))
	for i, name := range names {
		place[name] = i
	}
	columns = make([]int, len(have))
	for i, name := range have {
		columns[i] = -1
		if at, ok := place[name]; ok {
			columns[i] = at
			delete(place, name)
		}
	}
	return columns, len(place) == 0
}

// sameMetrics reports whether a header describes lines in the order of names.
func (h header) sameMetrics(names []string) bool { return slices.Equal(h.Metrics, names) }

const (
	jsonNull   = "null"
	jsonPosInf = `"Infinity"`
	jsonNegInf = `"-Infinity"`
)

// appendMetrics encodes metrics as a JSON array. JSON has no numbers beyond the finite ones.
func appendMetrics(buf []byte, m []float64) []byte {
	buf = append(buf, '[')
	for i, v := range m {
		if i > 0 {
			buf = append(buf, ',')
		}
		switch {
		case math.IsNaN(v):
			buf = append(buf, jsonNull...)
		case math.IsInf(v, 1):
			buf = append(buf, jsonPosInf...)
		case math.IsInf(v, -1):
			buf = append(buf, jsonNegInf...)
		default:
			buf = strconv.AppendFloat(buf, v, 'g', -1, 64)
		}
	}
	return append(buf, ']')
}

// parseMetrics reads an array of appendMetrics; value i goes to dst[columns[i]].
func parseMetrics(text []byte, columns []int, dst []float64) bool {
	if len(text) < 2 || text[0] != '[' || text[len(text)-1] != ']' {
		return false
	}
	text = text[1 : len(text)-1]
	for i, column := range columns {
		item, rest, more := bytes.Cut(text, []byte{','})
		if more != (i < len(columns)-1) {
			return false
		}
		v, ok := parseMetric(string(bytes.TrimSpace(item)))
		if !ok {
			return false
		}
		if column >= 0 {
			dst[column] = v
		}
		text = rest
	}
	return len(text) == 0
}

func parseMetric(s string) (float64, bool) {
	switch s {
	case jsonNull:
		return math.NaN(), true
	case jsonPosInf:
		return math.Inf(1), true
	case jsonNegInf:
		return math.Inf(-1), true
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil
}
