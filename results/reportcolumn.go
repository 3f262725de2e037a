package results

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// reportColumn is a column as the page reads it: little-endian bytes, which JSON holds in base64. With a palette they
// are places in it from 1 on, and 0 is a null; without one they are reals, and NaN is a null.
type reportColumn struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	Doc  string `json:"doc"`
	Role Role   `json:"role"`
	Kind string `json:"kind"`
	// Better is "higher", "lower" or "".
	Better string `json:"better"`
	// Encoding is the type of the array: u8, u16, u32, f32 or f64.
	Encoding string `json:"encoding"`
	Palette  []any  `json:"palette,omitempty"`
	Data     []byte `json:"data"`
}

// mostPalette bounds the palette of a column of numbers: more distinct ones are smaller as they are.
const mostPalette = 1 << 12

// newReportColumn encodes a column. Reals that neither bounds nor objectives use are rounded to 24 bits, more than any
// figure on the page shows; exact ones stay as they are, so that the page draws the same line as the program.
func newReportColumn(c *Column, exact bool) reportColumn {
	r := reportColumn{Name: c.Name, Unit: c.Unit, Doc: c.Doc, Role: c.Role, Kind: "number", Better: betterOf(c.Name)}
	switch c.Kind {
	case gridspec.KindString:
		r.Kind = "string"
		r.encodeWords(c)
	case gridspec.KindBool:
		r.Kind = "bool"
		r.encodeBools(c)
	default:
		values := make([]float64, c.Len())
		for row := range values {
			values[row] = c.number(row)
			if math.IsInf(values[row], 0) {
				values[row] = math.NaN()
			}
		}
		if !r.encodePalette(values) {
			r.encodeReals(values, exact)
		}
	}
	return r
}

// betterOf says in which direction a metric is better; empty when that is not known.
func betterOf(name string) string {
	for _, f := range metrics.Fields() {
		switch {
		case f.Name != name:
		case f.Better == metrics.HigherIsBetter:
			return "higher"
		case f.Better == metrics.LowerIsBetter:
			return "lower"
		}
	}
	return ""
}

func (r *reportColumn) encodeWords(c *Column) {
	places := map[string]uint32{}
	codes := make([]uint32, c.Len())
	for row, word := range c.Strings {
		if c.Null[row] {
			continue
		}
		if places[word] == 0 {
			r.Palette = append(r.Palette, strings.ToValidUTF8(word, "\uFFFD"))
			places[word] = uint32(len(r.Palette))
		}
		codes[row] = places[word]
	}
	r.Encoding, r.Data = encodeCodes(codes, len(r.Palette))
}

func (r *reportColumn) encodeBools(c *Column) {
	codes := make([]uint32, c.Len())
	for row, is := range c.Bools {
		switch {
		case c.Null[row]:
		case is:
			codes[row] = 2
		default:
			codes[row] = 1
		}
	}
	r.Palette = []any{false, true}
	r.Encoding, r.Data = encodeCodes(codes, len(r.Palette))
}

// encodePalette reports whether the values are few enough for a palette, and encodes them then.
func (r *reportColumn) encodePalette(values []float64) bool {
	places := map[float64]uint32{}
	codes := make([]uint32, len(values))
	for row, v := range values {
		if math.IsNaN(v) {
			continue
		}
		place, known := places[v]
		if !known {
			if len(r.Palette) == mostPalette {
				r.Palette = nil
				return false
			}
			r.Palette = append(r.Palette, v)
			place = uint32(len(r.Palette))
			places[v] = place
		}
		codes[row] = place
	}
	if len(r.Palette) > 255 && 4*len(r.Palette) > len(values) {
		r.Palette = nil
		return false
	}
	r.Encoding, r.Data = encodeCodes(codes, len(r.Palette))
	return true
}

func (r *reportColumn) encodeReals(values []float64, exact bool) {
	if !exact {
		r.Encoding, r.Data = "f32", make([]byte, 0, 4*len(values))
		for _, v := range values {
			if short := float32(v); !math.IsInf(float64(short), 0) {
				r.Data = binary.LittleEndian.AppendUint32(r.Data, math.Float32bits(short))
				continue
			}
			exact = true
			break
		}
	}
	if exact {
		r.Encoding, r.Data = "f64", make([]byte, 0, 8*len(values))
		for _, v := range values {
			r.Data = binary.LittleEndian.AppendUint64(r.Data, math.Float64bits(v))
		}
	}
}

// encodeCodes writes codes from 0 to most in as few bytes as they need.
func encodeCodes(codes []uint32, most int) (encoding string, data []byte) {
	switch {
	case most < 1<<8:
		for _, code := range codes {
			data = append(data, byte(code))
		}
		return "u8", data
	case most < 1<<16:
		for _, code := range codes {
			data = binary.LittleEndian.AppendUint16(data, uint16(code))
		}
		return "u16", data
	}
	for _, code := range codes {
		data = binary.LittleEndian.AppendUint32(data, code)
	}
	return "u32", data
}

// reportCommands are the command lines of the rows as places in the list of their words, from 1 on; 0 ends a row.
type reportCommands struct {
	Words    []string `json:"words"`
	Encoding string   `json:"encoding"`
	Data     []byte   `json:"data"`
}

// newReportCommands is nil when no row has a command.
func newReportCommands(column *Column) *reportCommands {
	if column == nil || column.Kind != gridspec.KindString || column.allNull() {
		return nil
	}
	c := &reportCommands{}
	places := map[string]uint32{}
	var codes []uint32
	for row, command := range column.Strings {
		if column.Null[row] {
			codes = append(codes, 0)
			continue
		}
		for _, word := range strings.Split(strings.ToValidUTF8(command, "\uFFFD"), " ") {
			if places[word] == 0 {
				c.Words = append(c.Words, word)
				places[word] = uint32(len(c.Words))
			}
			codes = append(codes, places[word])
		}
		codes = append(codes, 0)
	}
	c.Encoding, c.Data = encodeCodes(codes, len(c.Words))
	return c
}
