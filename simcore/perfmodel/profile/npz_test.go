package profile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// npyFile is an array in NumPy's format: the header as given, padded, and the elements.
func npyFile(header string, elements any) []byte {
	var b bytes.Buffer
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	b.WriteString("\x93NUMPY\x01\x00")
	binary.Write(&b, binary.LittleEndian, uint16(len(header)))
	b.WriteString(header)
	binary.Write(&b, binary.LittleEndian, elements)
	return b.Bytes()
}

func doubles(shape string, values ...float64) []byte {
	return npyFile("{'descr': '<f8', 'fortran_order': False, 'shape': "+shape+", }", values)
}

// member is one file of a zip.
type member struct {
	name string
	data []byte
}

func zipped(method uint16, members ...member) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, m := range members {
		w, err := z.CreateHeader(&zip.FileHeader{Name: m.name, Method: method})
		if err == nil {
			_, err = w.Write(m.data)
		}
		if err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// worked is the profile of the specification's example, with arrays replaced by name; nil takes one out.
func worked(replaced ...member) []member {
	all := []member{
		{"prefill_isl", doubles("(3,)", 100, 1000, 4000)},
		{"prefill_ttft_ms", doubles("(3,)", 10, 50, 300)},
		{"decode_active_kv_tokens", doubles("(3,)", 0, 10000, 50000)},
		{"decode_context_length", doubles("(2,)", 100, 1000)},
		{"decode_itl", doubles("(3, 2)", 2, 3, 4, 6, 9, 20)},
	}
	var out []member
	for _, m := range all {
		for _, r := range replaced {
			if r.name == m.name {
				m.data = r.data
			}
		}
		if m.data != nil {
			out = append(out, member{m.name + ".npy", m.data})
		}
	}
	return out
}

func written(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWorkedExample holds the figures of the reference that the specification lists, whole nanoseconds.
func TestWorkedExample(t *testing.T) {
	p := mustRead(t, written(t, "p.npz", zipped(zip.Store, worked()...)))
	for input, want := range map[int]float64{640: 34 + 2.7664, 50: 9.734667, 8000: 652.733333} {
		if got := p.PrefillMs(1, input, 0) + referenceDecodeMs(p, input); math.Abs(got-want) > 1e-6 {
			t.Errorf("the first token of %d comes after %v ms, want %v", input, got, want)
		}
	}
	if got := referenceDecodeMs(p, 641); math.Abs(got-2.784229) > 1e-6 {
		t.Errorf("the second token takes %v ms", got)
	}
	if p.PrefillMs(4, 160, 99) != p.PrefillMs(1, 640, 0) {
		t.Error("prefill is not a function of the new tokens of the pass")
	}
	if p.ContextFree() {
		t.Error("its decode time depends on the context")
	}
}

func TestMeasuredRangeOfNPZ(t *testing.T) {
	p := mustRead(t, written(t, "p.npz", zipped(zip.Store, worked()...)))
	for _, test := range []struct {
		requests, tokens int
		want             bool
	}{{1, 100, true}, {1, 99, false}, {4, 1000, true}, {4, 1001, false}, {40, 100, true}} {
		if got := p.MeasuredPrefill(test.requests, test.tokens, 7); got != test.want {
			t.Errorf("prefill of %d × %d tokens is measured: %v", test.requests, test.tokens, got)
		}
	}
	for _, test := range []struct {
		held, context int
		want          bool
	}{{0, 100, true}, {50000, 1000, true}, {50001, 1000, false}, {64, 99, false}, {64, 1001, false}} {
		if got := p.MeasuredDecode(3, test.held, test.context); got != test.want {
			t.Errorf("decode of %d tokens at %d is measured: %v", test.held, test.context, got)
		}
	}
}

// TestNPZForms reads one profile in every form that NumPy writes.
func TestNPZForms(t *testing.T) {
	want := mustRead(t, written(t, "p.npz", zipped(zip.Store, worked()...))).Digest()
	bigEndian := npyFile("{'descr': '>f8', 'fortran_order': False, 'shape': (3,), }", []float64{})
	for _, v := range []float64{100, 1000, 4000} {
		bigEndian = binary.BigEndian.AppendUint64(bigEndian, math.Float64bits(v))
	}
	version2 := append([]byte("\x93NUMPY\x02\x00\x40\x00\x00\x00"), fmt.Sprintf("%-64s", `{"shape":(3L,),"descr":"<f8","fortran_order":False}`)...)
	for _, v := range []float64{100, 1000, 4000} {
		version2 = binary.LittleEndian.AppendUint64(version2, math.Float64bits(v))
	}
	header := "{'descr': '%s', 'fortran_order': False, 'shape': (3,), }"
	for name, data := range map[string][]byte{
		"deflated":   zipped(zip.Deflate, worked()...),
		"more":       zipped(zip.Store, append(worked(), member{"note.npy", []byte("no array")})...),
		"int64":      zipped(zip.Store, worked(member{"prefill_isl", npyFile(fmt.Sprintf(header, "<i8"), []int64{100, 1000, 4000})})...),
		"uint64":     zipped(zip.Store, worked(member{"prefill_isl", npyFile(fmt.Sprintf(header, "<u8"), []uint64{100, 1000, 4000})})...),
		"int32":      zipped(zip.Store, worked(member{"prefill_isl", npyFile(fmt.Sprintf(header, "<i4"), []int32{100, 1000, 4000})})...),
		"uint32":     zipped(zip.Store, worked(member{"prefill_isl", npyFile(fmt.Sprintf(header, "<u4"), []uint32{100, 1000, 4000})})...),
		"float32":    zipped(zip.Store, worked(member{"prefill_isl", npyFile(fmt.Sprintf(header, "<f4"), []float32{100, 1000, 4000})})...),
		"big endian": zipped(zip.Store, worked(member{"prefill_isl", bigEndian})...),
		"version 2":  zipped(zip.Store, worked(member{"prefill_isl", version2})...),
		"column-major": zipped(zip.Store, worked(member{"decode_itl",
			npyFile("{'descr': '<f8', 'fortran_order': True, 'shape': (3, 2), }", []float64{2, 4, 9, 3, 6, 20})})...),
	} {
		if got := mustRead(t, written(t, "p.npz", data)).Digest(); got != want {
			t.Errorf("%s: is not the same profile", name)
		}
	}
}

// TestDamagedNPZ checks that the reference's silent fallbacks are errors that name the array.
func TestDamagedNPZ(t *testing.T) {
	whole := zipped(zip.Store, worked()...)
	flipped := bytes.Clone(whole)
	flipped[bytes.Index(flipped, binary.LittleEndian.AppendUint64(nil, math.Float64bits(4000)))] ^= 1
	isl := func(data []byte) []byte { return zipped(zip.Store, worked(member{"prefill_isl", data})...) }
	header := func(h string) []byte { return isl(npyFile(h, []float64{100, 1000, 4000})) }
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "is not an .npz file"},
		{"text", []byte("phase,ms\n"), "is not an .npz file"},
		{"cut off", whole[:len(whole)-30], "is not an .npz file"},
		{"flipped bit", flipped, "array prefill_isl: is damaged"},
		{"missing", zipped(zip.Store, worked(member{"decode_itl", nil})...), "array decode_itl is missing; the file holds: decode_active_kv_tokens,"},
		{"nothing", zipped(zip.Store), "array prefill_isl is missing; the file holds: nothing"},
		{"twice", zipped(zip.Store, append(worked(), worked()[0])...), "array prefill_isl is in the file 2 times"},
		{"other length", zipped(zip.Store, worked(member{"prefill_ttft_ms", doubles("(2,)", 10, 50)})...), "array prefill_ttft_ms has 2 values, prefill_isl 3"},
		{"other shape", zipped(zip.Store, worked(member{"decode_itl", doubles("(2, 3)", 2, 3, 4, 6, 9, 20)})...), "array decode_itl has the shape (2, 3); it needs (3, 2)"},
		{"flat matrix", zipped(zip.Store, worked(member{"decode_itl", doubles("(6,)", 2, 3, 4, 6, 9, 20)})...), "the shape (6,); it needs (3, 2)"},
		{"matrix axis", isl(doubles("(3, 1)", 1, 2, 3)), "array prefill_isl has the shape (3, 1); it must have one dimension"},
		{"falling axis", isl(doubles("(3,)", 4000, 1000, 100)), "array prefill_isl: value 2, 1000, is not above value 1, 4000"},
		{"repeated axis", isl(doubles("(3,)", 100, 100, 4000)), "array prefill_isl: value 2, 100, is not above value 1, 100"},
		{"negative axis", isl(doubles("(3,)", -1, 100, 4000)), "array prefill_isl: value 1 is -1"},
		{"infinite axis", isl(doubles("(3,)", 1, 100, math.Inf(1))), "array prefill_isl: value 3 is +Inf"},
		{"one point", zipped(zip.Store, worked(member{"prefill_isl", doubles("(1,)", 100)}, member{"prefill_ttft_ms", doubles("(1,)", 10)})...),
			"array prefill_isl: has 1 values; an axis needs 2 or more"},
		{"no number", zipped(zip.Store, worked(member{"prefill_ttft_ms", doubles("(3,)", 10, math.NaN(), 300)})...), "array prefill_ttft_ms: value 2 is NaN"},
		{"negative time", zipped(zip.Store, worked(member{"decode_itl", doubles("(3, 2)", 2, 3, 4, 6, 9, -20)})...), "array decode_itl: value 6 is -20"},
		{"no array", isl([]byte("hello")), "array prefill_isl: does not start like a NumPy array"},
		{"version 9", isl([]byte("\x93NUMPY\x09\x00\x00\x00")), "has version 9"},
		{"short header", isl([]byte("\x93NUMPY\x01\x00\xff\xff{}")), "is cut off inside its header"},
		{"short header 2", isl([]byte("\x93NUMPY\x02\x00\x10\x00")), "is cut off inside its header"},
		{"objects", header("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }"), `elements of the type "|O"`},
		{"records", header("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }"), "has a header that can't be read"},
		{"half", header("{'descr': '<f2', 'fortran_order': False, 'shape': (3,), }"), `elements of the type "<f2"`},
		{"no shape", header("{'descr': '<f8', 'fortran_order': False, }"), "lacks descr, fortran_order or shape"},
		{"no dictionary", header("(3,)"), "has the damaged header"},
		{"too few elements", header("{'descr': '<f8', 'fortran_order': False, 'shape': (4,), }"), "holds 24 bytes of elements; its shape (4,) of 8 bytes each needs 32"},
		{"huge", header("{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000, 4000000000), }"), "too large for a profile"},
		{"cube", header("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 1, 1), }"), "has 3 dimensions"},
		{"huge dimension", header("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }"), "has the damaged shape"},
	} {
		refused(t, test.name, written(t, "p.npz", test.data), test.want)
	}
}

// refused checks that a profile is an error that names the file and says what is wanted.
func refused(t *testing.T, name, path, want string) {
	t.Helper()
	p, err := Read(path)
	if err == nil || p != nil {
		t.Errorf("%s: is read without an error", name)
		return
	}
	if !strings.HasPrefix(err.Error(), "profile "+path+": ") || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: the error is %q; want %q in it", name, err, want)
	}
	if strings.Count(err.Error(), path) > 1 {
		t.Errorf("%s: the error names the file twice: %q", name, err)
	}
}

func TestZipBomb(t *testing.T) {
	bomb := zipped(zip.Deflate, worked(member{"prefill_isl", make([]byte, maxArrayBytes+1)})...)
	refused(t, "bomb", written(t, "p.npz", bomb), "a profile's array takes at most")
}

func TestParseNPYKeepsOrder(t *testing.T) {
	got, err := parseNPY(doubles("(2, 3)", 1, 2, 3, 4, 5, 6))
	if diff := cmp.Diff(array{[]int{2, 3}, []float64{1, 2, 3, 4, 5, 6}}, got, cmp.AllowUnexported(array{})); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
