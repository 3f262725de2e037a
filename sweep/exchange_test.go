package sweep

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
)

// Whatever comes from a queue is refused as a whole or read as a whole, and what is read is sent on unchanged.
func FuzzDecodeRows(f *testing.F) {
	rows := []results.Row{
		okRow("ok", make([]float64, len(metricNames()))...),
		FailedRow("failed", "d1", ReasonPanic, "message with \xff and \n"),
		{ID: "stopped", Status: results.StatusStopped, Reason: "lost", Metrics: noMetrics(), WallSeconds: 0.25},
	}
	whole, err := EncodeRows(rows)
	if err != nil {
		f.Fatal(err)
	}
	one, err := EncodeRows(rows[:1])
	if err != nil {
		f.Fatal(err)
	}
	older, err := appendLine(nil, header{Journal: journalMark, Format: journalFormat, Simulator: "0", Metrics: metricNames()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(one)
	f.Add(append(bytes.Clone(whole), one...))
	f.Add(append(bytes.Clone(whole), older...))
	f.Add(append(older, whole[bytes.IndexByte(whole, '\n')+1:]...))
	f.Add(whole[:len(whole)-1])
	f.Add(append(bytes.Clone(whole), "{}\n"...))
	f.Add(bytes.Replace(whole, []byte("d1"), []byte("d2"), 1))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		checkExchanged(t, data)
		checkExchanged(t, sealLines(data))
	})
}

// sealLines gives every line the checksum of what is in it, so that it is not the checksum that refuses it.
func sealLines(data []byte) []byte {
	var sealed []byte
	for line := range bytes.Lines(data) {
		body := bytes.TrimSuffix(line, []byte("\n"))
		if at := bytes.LastIndex(body, crcField); at >= 0 {
			body = body[:at]
		}
		sealed = append(append(sealed, body...), crcField...)
		sealed = append(fmt.Appendf(sealed, "%08x", crc32.Checksum(body, castagnoli)), crcEnd...)
	}
	return sealed
}

func checkExchanged(t *testing.T, data []byte) {
	got, err := DecodeRows(data)
	if err != nil {
		return
	}
	if got, err := decodeRows(data, simcore.SemanticVersion+"0"); err == nil && len(got) > 0 {
		t.Errorf("rows of another version are read")
	}
	if _, err := DecodeRows(append(bytes.Clone(data), 'x')); err == nil {
		t.Error("something behind the rows is not noticed")
	}
	lines, err := EncodeRows(got)
	if err != nil {
		t.Fatalf("rows that were read cannot be sent on: %v", err)
	}
	again, err := DecodeRows(lines)
	if err != nil {
		t.Fatalf("rows that were sent on cannot be read: %v", err)
	}
	if diff := cmp.Diff(got, again, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("rows change on their way: %.2000s", diff)
	}
	for i := range again {
		if again[i].ID == "" || i > 0 && again[i].ID <= again[i-1].ID {
			t.Errorf("the rows are not in the order of their IDs, each once")
		}
	}
}
