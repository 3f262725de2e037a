package profile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// array is a NumPy array of numbers, the last dimension varying fastest.
type array struct {
	shape  []int
	values []float64
}

// parseNPY reads the NPY format, versions 1 to 3: a magic string, the length of a header, the header, which is a
// Python dictionary of element type, order and shape, and the elements.
func parseNPY(data []byte) (array, error) {
	header, body, err := splitNPY(data)
	if err != nil {
		return array{}, err
	}
	element, columnMajor, shape, err := parseHeader(header)
	if err != nil {
		return array{}, err
	}
	count := 1
	for _, n := range shape {
		if n > 0 && count > maxArrayBytes/n {
			return array{}, fmt.Errorf("has the shape %s; that is too large for a profile", shapeText(shape))
		}
		count *= n
	}
	if want := count * element.size; len(body) != want {
		return array{}, fmt.Errorf("holds %d bytes of elements; its shape %s of %d bytes each needs %d", len(body), shapeText(shape), element.size, want)
	}
	a := array{shape, make([]float64, count)}
	for i := range a.values {
		a.values[i] = element.decode(body[i*element.size:])
	}
	if columnMajor && len(shape) == 2 {
		a.values = transposed(a.values, shape[1], shape[0])
	}
	return a, nil
}

func splitNPY(data []byte) (header string, body []byte, err error) {
	if len(data) < 10 || string(data[:6]) != "\x93NUMPY" {
		return "", nil, errors.New("does not start like a NumPy array")
	}
	start, length := 10, int(binary.LittleEndian.Uint16(data[8:]))
	switch major := data[6]; {
	case major < 1 || major > 3:
		return "", nil, fmt.Errorf("has version %d of the NumPy array format; 1 to 3 are known", major)
	case major > 1 && len(data) < 12:
		return "", nil, errors.New("is cut off inside its header")
	case major > 1:
		start, length = 12, int(binary.LittleEndian.Uint32(data[8:]))
	}
	if length > len(data)-start {
		return "", nil, errors.New("is cut off inside its header")
	}
	return string(data[start : start+length]), data[start+length:], nil
}

// headerEntry matches one entry of the header's dictionary: a quoted key and a quoted string, a boolean or a tuple.
var headerEntry = regexp.MustCompile(`^\s*['"](\w+)['"]\s*:\s*(?:['"]([^'"]*)['"]|(True|False)|\(([\s\d,L]*)\))\s*(?:,|$)`)

func parseHeader(header string) (element element, columnMajor bool, shape []int, err error) {
	rest := strings.TrimSpace(header)
	if !strings.HasPrefix(rest, "{") || !strings.HasSuffix(rest, "}") {
		return element, false, nil, fmt.Errorf("has the damaged header %.80q", header)
	}
	rest = strings.TrimSpace(rest[1 : len(rest)-1])
	var order string
	var typed, shaped bool
	for rest != "" {
		m := headerEntry.FindStringSubmatch(rest)
		if m == nil {
			return element, false, nil, fmt.Errorf("has a header that can't be read at %.80q", rest)
		}
		rest = strings.TrimSpace(rest[len(m[0]):])
		switch m[1] {
		case "descr":
			element, typed = elementOf(m[2])
			if !typed {
				return element, false, nil, fmt.Errorf("has elements of the type %q; numbers of 4 or 8 bytes are read", m[2])
			}
		case "fortran_order":
			order = m[3]
		case "shape":
			if shape, err = parseShape(m[4]); err != nil {
				return element, false, nil, err
			}
			shaped = true
		}
	}
	if !typed || !shaped || order == "" {
		return element, false, nil, errors.New("has a header that lacks descr, fortran_order or shape")
	}
	return element, order == "True", shape, nil
}

func parseShape(text string) ([]int, error) {
	shape := []int{}
	for field := range strings.SplitSeq(text, ",") {
		if field = strings.TrimSuffix(strings.TrimSpace(field), "L"); field == "" {
			continue
		}
		n, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("has the damaged shape (%s)", text)
		}
		shape = append(shape, n)
	}
	if len(shape) > 2 {
		return nil, fmt.Errorf("has %d dimensions; a profile's arrays have 1 or 2", len(shape))
	}
	return shape, nil
}

// element is how one number is stored.
type element struct {
	size   int
	decode func([]byte) float64
}

// elementOf returns the element type that a NumPy type string names, such as "<f8": byte order, kind, bytes.
func elementOf(descr string) (element, bool) {
	if len(descr) != 3 {
		return element{}, false
	}
	var order binary.ByteOrder = binary.LittleEndian
	switch descr[0] {
	case '<':
	case '>':
		order = binary.BigEndian
	default:
		return element{}, false
	}
	switch descr[1:] {
	case "f4":
		return element{4, func(b []byte) float64 { return float64(math.Float32frombits(order.Uint32(b))) }}, true
	case "f8":
		return element{8, func(b []byte) float64 { return math.Float64frombits(order.Uint64(b)) }}, true
	case "i4":
		return element{4, func(b []byte) float64 { return float64(int32(order.Uint32(b))) }}, true
	case "i8":
		return element{8, func(b []byte) float64 { return float64(int64(order.Uint64(b))) }}, true
	case "u4":
		return element{4, func(b []byte) float64 { return float64(order.Uint32(b)) }}, true
	case "u8":
		return element{8, func(b []byte) float64 { return float64(order.Uint64(b)) }}, true
	}
	return element{}, false
}

// transposed turns a matrix of rows × columns by its diagonal.
func transposed(values []float64, rows, columns int) []float64 {
	out := make([]float64, len(values))
	for i := range rows {
		for j := range columns {
			out[j*rows+i] = values[i*columns+j]
		}
	}
	return out
}

// shapeText writes a shape as Python does.
func shapeText(shape []int) string {
	if len(shape) == 1 {
		return fmt.Sprintf("(%d,)", shape[0])
	}
	fields := make([]string, len(shape))
	for i, n := range shape {
		fields[i] = strconv.Itoa(n)
	}
	return "(" + strings.Join(fields, ", ") + ")"
}
