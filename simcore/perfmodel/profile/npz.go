package profile

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// readNPZ reads the reference's profile: prefill time over the new tokens of a pass, and decode time over the tokens
// of the held KV blocks and the context.
func readNPZ(path string) (*Profile, error) {
	arrays, err := openArchive(path)
	if err != nil {
		return nil, err
	}
	return profileOf(arrays)
}

// profileOf makes the profile of the reference's five arrays.
func profileOf(a *archive) (*Profile, error) {
	var p Profile
	isl, err1 := a.vector("prefill_isl")
	ttft, err2 := a.vector("prefill_ttft_ms")
	held, err3 := a.vector("decode_active_kv_tokens")
	context, err4 := a.vector("decode_context_length")
	itl, err5 := a.read("decode_itl")
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return nil, err
	}
	if len(ttft) != len(isl) {
		return nil, fmt.Errorf("array prefill_ttft_ms has %d values, prefill_isl %d; they must pair up", len(ttft), len(isl))
	}
	if !slices.Equal(itl.shape, []int{len(held), len(context)}) {
		return nil, fmt.Errorf("array decode_itl has the shape %s; it needs (%d, %d), the lengths of decode_active_kv_tokens and decode_context_length",
			shapeText(itl.shape), len(held), len(context))
	}
	p.prefill = grid{axes: [maxAxes]axis{nil, isl}, values: ttft}
	p.decode = grid{axes: [maxAxes]axis{held, context}, values: itl.values}
	p.decodeByHeldTokens = true
	return &p, errors.Join(
		inArray("prefill_isl", checkAxis(isl)), inArray("prefill_ttft_ms", checkMs(ttft)),
		inArray("decode_active_kv_tokens", checkAxis(held)), inArray("decode_context_length", checkAxis(context)),
		inArray("decode_itl", checkMs(itl.values)))
}

func inArray(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("array %s: %w", name, err)
}

// archive is an .npz file: a zip of one .npy file an array.
type archive struct{ files []*zip.File }

// maxArrayBytes bounds one array as it is stored, so that a small file can't take all memory.
const maxArrayBytes = 64 << 20

func openArchive(path string) (*archive, error) {
	data, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	return parseArchive(data)
}

func parseArchive(data []byte) (*archive, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("is not an .npz file (a zip of NumPy arrays) or is cut off: %w", err)
	}
	return &archive{z.File}, nil
}

// vector reads an array of one dimension, or a single number.
func (a *archive) vector(name string) ([]float64, error) {
	array, err := a.read(name)
	if err != nil {
		return nil, err
	}
	if len(array.shape) > 1 {
		return nil, fmt.Errorf("array %s has the shape %s; it must have one dimension", name, shapeText(array.shape))
	}
	return array.values, nil
}

// read reads an array by its name.
func (a *archive) read(name string) (array, error) {
	var found []*zip.File
	var names []string
	for _, f := range a.files {
		names = append(names, strings.TrimSuffix(f.Name, ".npy"))
		if f.Name == name+".npy" {
			found = append(found, f)
		}
	}
	switch {
	case len(found) == 0:
		slices.Sort(names)
		return array{}, fmt.Errorf("array %s is missing; the file holds: %s", name, listed(names, ", "))
	case len(found) > 1:
		return array{}, fmt.Errorf("array %s is in the file %d times", name, len(found))
	}
	out, err := readEntry(found[0])
	return out, inArray(name, err)
}

func readEntry(f *zip.File) (array, error) {
	if f.UncompressedSize64 > maxArrayBytes {
		return array{}, fmt.Errorf("takes %d bytes; a profile's array takes at most %d", f.UncompressedSize64, maxArrayBytes)
	}
	r, err := f.Open()
	if err != nil {
		return array{}, fmt.Errorf("cannot be read: %w", err)
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxArrayBytes+1)) // to the end, where the checksum is compared
	if err != nil {
		return array{}, fmt.Errorf("is damaged: %w", err)
	}
	return parseNPY(data)
}

// listed joins the first few names.
func listed(names []string, separator string) string {
	const most = 8
	switch {
	case len(names) == 0:
		return "nothing"
	case len(names) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], separator), len(names)-most)
	}
	return strings.Join(names, separator)
}
