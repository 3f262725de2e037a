package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"
)

// messageFormat is the version of the encoding of messages. A worker refuses those of a later one.
const messageFormat = 1

// Message is one point to simulate, as it travels to a worker. It holds no paths: files have a digest and a name, and are below
// a folder of the worker. Whoever reads it can check it: the point of Spec has the content ID that the message says, with the
// digest of its workload.
type Message struct {
	// Format is the version of the encoding.
	Format int `json:"format"`
	// Simulator is the semantic version of the simulator that the result must come from.
	Simulator string `json:"simulator"`
	// Sweep is the sweep's name in the queue.
	Sweep string `json:"sweep"`
	// ID is the content ID of the point.
	ID string `json:"id"`
	// WorkloadDigest identifies the requests.
	WorkloadDigest string `json:"workload_digest"`
	// Replicate is the number of the replicate; it is not in Spec.
	Replicate int `json:"replicate,omitempty"`
	// Spec is the point as gridspec.Point.Portable writes it.
	Spec string `json:"spec"`
	// Files are those that Spec names.
	Files []File `json:"files,omitempty"`
	// Timeout bounds the wall time of the simulation; 0 means no limit. It is in nanoseconds on the way.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	// StopLost ends the simulation as soon as a bound of the point's SLA can no longer hold.
	StopLost bool `json:"stop_lost,omitempty"`
	// Kept names the kinds of files that the worker shall make of the point, such as "requests".
	Kept []string `json:"kept,omitempty"`
}

// File is a file, or a folder of files, that points name. It is stored once by what is in it.
type File struct {
	// Digest is the SHA-256 of its content in hex; of a folder, that of its list of files.
	Digest string `json:"sha256"`
	// Name is what it is called below the folder of its digest. Formats are told by it.
	Name string `json:"name"`
	// Size is how long it is, in bytes; of a folder, the sum of its files.
	Size int64 `json:"size"`
	// Folder says that it is a folder.
	Folder bool `json:"folder,omitempty"`
}

// Path is what stands for the file in a portable spec, below the folder of a worker.
func (f File) Path() string { return f.Digest + "/" + f.Name }

// IsLocal reports whether the path stays below the folder of a worker.
func (f File) IsLocal() bool { return sha256Text.MatchString(f.Digest) && nameText.MatchString(f.Name) }

// The bounds of messages. A server allows 1 MiB unless told otherwise.
const (
	// MaxPointMessage and MaxPartMessage are how long one may be that has a point, and one that has finished points, in bytes.
	MaxPointMessage = 256 << 10
	MaxPartMessage  = 768 << 10
	// MaxErrorText bounds the error of a failed row, in bytes.
	MaxErrorText = 16 << 10

	maxToken     = 40 // bytes of namespaces and the names of sweeps
	maxFiles     = 4096
	maxFileSize  = 1 << 40
	maxReplicate = 1 << 20
	maxKinds     = 8
)

var (
	idText     = regexp.MustCompile(`^[0-9a-f]{32}$`)
	digestText = regexp.MustCompile(`^[0-9a-f]{1,64}$`)
	sha256Text = regexp.MustCompile(`^[0-9a-f]{64}$`)
	nameText   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	kindText   = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)
	token      = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
)

// IsPointID reports whether a text can be the content ID of a point.
func IsPointID(text string) bool { return idText.MatchString(text) }

// IsSHA256 reports whether a text is a SHA-256 in hex.
func IsSHA256(text string) bool { return sha256Text.MatchString(text) }

// CheckToken refuses what would be more than one part of a subject, or a wildcard. What says what the text is.
func CheckToken(what, text string) error {
	if len(text) > maxToken || !token.MatchString(text) {
		return fmt.Errorf("%s %q is not allowed: use up to %d of a-z, 0-9 and '-', not at either end", what, text, maxToken)
	}
	return nil
}

// Encode writes the message, or says what is wrong with it.
func (m *Message) Encode() ([]byte, error) {
	if m.Format == 0 {
		m.Format = messageFormat
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	data, err := json.Marshal(m)
	if err == nil && len(data) > MaxPointMessage {
		err = fmt.Errorf("the point takes %d bytes as a message, more than the %d that are allowed; put long lists of its settings into a file", len(data), MaxPointMessage)
	}
	return data, err
}

// DecodeMessage reads a message of any origin. The error lists all that is wrong with it.
func DecodeMessage(data []byte) (*Message, error) {
	m := new(Message)
	if err := decode(data, MaxPointMessage, "a message", m); err != nil {
		return nil, err
	}
	return m, m.check()
}

// decode reads one JSON value with no field that is not known and nothing behind it.
func decode(data []byte, most int, what string, into any) error {
	if len(data) > most {
		return fmt.Errorf("%s of %d bytes is longer than the %d that are allowed", what, len(data), most)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%s that cannot be read: %w", what, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New(what + " with something behind its end")
	}
	return nil
}

// check returns all that is wrong.
func (m *Message) check() error {
	var errs []error
	bad := func(ok bool, field string, value any, allowed string) {
		if !ok {
			errs = append(errs, fmt.Errorf("message: %s: %.200q is not allowed; %s", field, fmt.Sprint(value), allowed))
		}
	}
	bad(m.Format == messageFormat, "format", m.Format, fmt.Sprintf("this program knows %d", messageFormat))
	bad(m.Simulator != "" && len(m.Simulator) <= 64 && utf8.ValidString(m.Simulator), "simulator", m.Simulator, "it is a version of up to 64 bytes")
	bad(CheckToken("sweep", m.Sweep) == nil, "sweep", m.Sweep, "it is a name of small letters, digits and dashes")
	bad(idText.MatchString(m.ID), "id", m.ID, "it is 32 hex digits")
	bad(digestText.MatchString(m.WorkloadDigest), "workload_digest", m.WorkloadDigest, "it is up to 64 hex digits")
	bad(m.Replicate >= 0 && m.Replicate <= maxReplicate, "replicate", m.Replicate, "it counts from 0")
	bad(m.Spec != "" && utf8.ValidString(m.Spec), "spec", m.Spec, "it is a spec as JSON or YAML")
	bad(m.Timeout >= 0, "timeout_ns", m.Timeout, "it is 0 or more")
	bad(len(m.Files) <= maxFiles, "files", len(m.Files), fmt.Sprintf("at most %d", maxFiles))
	bad(len(m.Kept) <= maxKinds, "kept", len(m.Kept), fmt.Sprintf("at most %d", maxKinds))
	for i, kind := range m.Kept {
		bad(i >= maxKinds || kindText.MatchString(kind) && !slices.Contains(m.Kept[:i], kind), fmt.Sprintf("kept[%d]", i), kind, "it is a word of small letters, once")
	}
	seen := map[string]bool{}
	for i, f := range m.Files[:min(len(m.Files), maxFiles)] {
		at := fmt.Sprintf("files[%d]", i)
		bad(sha256Text.MatchString(f.Digest), at+".sha256", f.Digest, "it is 64 hex digits")
		bad(nameText.MatchString(f.Name), at+".name", f.Name, "it is a name of letters, digits, dots, dashes and underscores, without folders")
		bad(f.Size >= 0 && f.Size <= maxFileSize, at+".size", f.Size, fmt.Sprintf("it is up to %d bytes", int64(maxFileSize)))
		bad(!seen[f.Path()], at, f.Path(), "it is there already")
		seen[f.Path()] = true
	}
	return errors.Join(errs...)
}
