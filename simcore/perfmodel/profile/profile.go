// Package profile prices passes from measurements: the reference's profile file and profiler folders, and a profile
// that a user measured and wrote down as CSV or Parquet.
//
// Read profile.go for what a profile answers and grid.go for how it interpolates. Then, one file a format: npz.go
// (with npy.go for one array), folder.go (with regression.go), measured.go (with csv.go and parquet.go).
package profile

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Profile holds the measured durations of prefill and decode passes and interpolates between them, linearly along
// each axis; outside what was measured the outermost segment continues. It is immutable and safe for concurrent use.
type Profile struct {
	// prefill is over requests, new tokens (of one request, or of all when requests is free) and cached prefix.
	prefill grid
	// decode is over requests or held tokens, and context.
	decode grid
	// decodeByHeldTokens says what the first axis of decode is.
	decodeByHeldTokens bool
	contextFree        bool
}

// Read reads the profile at a path: a folder of the reference's profiler, or a file that ends in .npz, .csv or
// .parquet. The error of a damaged profile names the file, the array, line or row, and what is wrong with it.
func Read(path string) (*Profile, error) {
	p, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("profile %s: %w", path, err)
	}
	p.contextFree = p.decode.constantAlong(1)
	return p, nil
}

func read(path string) (*Profile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fileCause(err)
	}
	if info.IsDir() {
		return readFolder(path)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is no regular file")
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".npz":
		return readNPZ(path)
	case ".csv":
		return readCSV(path)
	case ".parquet":
		return readParquet(path)
	}
	return nil, errors.New("is no profile by its name; give a folder of the profiler or a file that ends in .npz, .csv or .parquet")
}

// PrefillMs is the duration in ms, 0 or more, of a pass that computes newTokens prompt tokens for each of a number
// of requests behind prefix tokens (the mean, 0 or more) that are already there. A profile without an axis for the
// prefix gives it no cost.
func (p *Profile) PrefillMs(requests, newTokens, prefix int) float64 {
	if requests <= 0 || newTokens <= 0 {
		return 0
	}
	return max(0, p.prefill.at(p.prefillPoint(requests, newTokens, prefix)))
}

// DecodeMs is the duration in ms, 0 or more, of one decode step of a batch of requests at a mean sequence length of
// context tokens while requests hold KV blocks for heldTokens. The reference's profiles know no batch, measured ones
// no held tokens.
func (p *Profile) DecodeMs(batch, heldTokens, context int) float64 {
	if batch <= 0 {
		return 0
	}
	return max(0, p.decode.at(p.decodePoint(batch, heldTokens, context)))
}

// MeasuredPrefill reports whether PrefillMs lies within what was measured, rather than being extrapolated. An axis
// that the profile doesn't have is never left.
func (p *Profile) MeasuredPrefill(requests, newTokens, prefix int) bool {
	return p.prefill.covers(p.prefillPoint(requests, newTokens, prefix))
}

// MeasuredDecode reports whether DecodeMs lies within what was measured; see [Profile.MeasuredPrefill].
func (p *Profile) MeasuredDecode(batch, heldTokens, context int) bool {
	return p.decode.covers(p.decodePoint(batch, heldTokens, context))
}

// ContextFree reports that DecodeMs does not depend on the context.
func (p *Profile) ContextFree() bool { return p.contextFree }

// Digest is the SHA-256, in hexadecimal, of everything that the durations depend on. It is the same for the same
// measurements in another file or format.
func (p *Profile) Digest() string {
	h := sha256.New()
	write := func(values []float64) {
		// A hash never fails to write.
		binary.Write(h, binary.LittleEndian, int64(len(values)))
		binary.Write(h, binary.LittleEndian, values)
	}
	binary.Write(h, binary.LittleEndian, p.decodeByHeldTokens)
	for _, g := range []*grid{&p.prefill, &p.decode} {
		for _, a := range g.axes {
			write(a)
		}
		write(g.values)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (p *Profile) prefillPoint(requests, newTokens, prefix int) point {
	if p.prefill.axes[0] == nil {
		return point{0, float64(requests) * float64(newTokens), float64(prefix)}
	}
	return point{float64(requests), float64(newTokens), float64(prefix)}
}

func (p *Profile) decodePoint(batch, heldTokens, context int) point {
	if p.decodeByHeldTokens {
		return point{float64(heldTokens), float64(context)}
	}
	return point{float64(batch), float64(context)}
}

// maxFileBytes bounds the files of a profile, which are read as a whole.
const maxFileBytes = 256 << 20

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fileCause(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fileCause(err)
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("is larger than %d MiB; is this a profile?", maxFileBytes>>20)
	}
	return data, nil
}

// fileCause returns what went wrong with a file without the path, which the message names already.
func fileCause(err error) error {
	if p := new(fs.PathError); errors.As(err, &p) {
		return p.Err
	}
	return err
}
