package wire

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
)

func TestDecodePresence(t *testing.T) {
	for _, text := range []string{"", "x", `{"pid":"no number"}`, string(make([]byte, maxPresence+1))} {
		if p, ok := DecodePresence([]byte(text)); ok {
			t.Errorf("%.20q is %+v", text, p)
		}
	}
}

// FuzzDecodePresence checks that whatever is said of a worker is bounded, and can be written again.
func FuzzDecodePresence(f *testing.F) {
	f.Add([]byte(`{"host":"h","pid":7,"jobs":2,"simulator":"6","started":"2026-01-02T03:04:05Z","points":5,"seconds":0.25}`))
	f.Add([]byte(`{"started":"0000-01-01T00:00:00+23:59","seconds":1e308}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, ok := DecodePresence(text)
		if !ok {
			return
		}
		if math.IsNaN(p.Seconds) || math.IsInf(p.Seconds, 0) || len(p.Host) > 3*maxPresence {
			t.Fatalf("%+v", p)
		}
	})
}

// FuzzDecodeTries checks that what is read reads back, and that its number is bounded by its length.
func FuzzDecodeTries(f *testing.F) {
	f.Add([]byte(`[{"host":"h","worker":"w","problem":"no room"},{"host":"h"}]`))
	f.Add([]byte(`[{},null,{}]`))
	f.Add([]byte(`{"host":"h"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		tries := DecodeTries(text)
		if len(tries) > len(text) {
			t.Fatalf("%d tries of %d bytes", len(tries), len(text))
		}
		again, err := json.Marshal(tries)
		if err != nil {
			t.Fatal(err)
		}
		if back := DecodeTries(again); len(again) <= maxTries && !reflect.DeepEqual(tries, back) {
			t.Fatalf("%+v became %+v", tries, back)
		}
	})
}
