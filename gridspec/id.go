package gridspec

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

// ContentID names the outcome of a point: 32 hex digits of a hash over the simulator's semantic version, the
// settings that are not at their default, the digest of the workload and the replicate. Names of axes, derived
// values and the order of keys do not count. Settings at their default are left out, so that a later version
// which adds a setting keeps the IDs of all points that do not use it. Files count by what is in them.
func (p Point) ContentID(workloadDigest string) string {
	b := append(make([]byte, 0, 512), `{"config":`...)
	portable := p.Config
	if portable.Deployment.Mode == simcore.ModeDisaggregated {
		portable.Prefill.Timing = portable.Prefill.Timing.Portable()
		portable.Decode.Timing = portable.Decode.Timing.Portable()
	} else {
		portable.Timing = portable.Timing.Portable()
	}
	if portable.Router.PredictsItself() {
		portable.Router.PrefillTiming = portable.Router.PrefillTiming.Portable()
	}
	if portable.Router.Classes != nil {
		portable.Router.RouterPolicyConfig = portable.Router.Classes.Digest()
	}
	portable.Planner = portable.Planner.Portable()
	b = appendConfig(b, &portable)
	b = strconv.AppendInt(append(b, `,"replicate":`...), int64(p.Replicate), 10)
	b = append(appendString(append(b, `,"version":`...), simcore.SemanticVersion), `,"workload":`...)
	b = append(appendString(b, workloadDigest), '}')
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// defaultConfig is what an empty spec means.
var defaultConfig, _ = DefaultConfig().Resolve()

// pointKey tells points of one expansion apart. The workload's name does not count.
type pointKey [16]byte

// keyOf is the key of a point with a configuration, and a workload as [appendWorkload] writes it.
func keyOf(c *Config, replayed []byte) pointKey {
	b := append(appendConfig(make([]byte, 0, 512), c), replayed...)
	sum := sha256.Sum256(b)
	return pointKey(sum[:16])
}

// The settings that count, in the order of canonical JSON: those of a workload, of an aggregated and of a disaggregated
// deployment, and of these two with a planner.
var (
	workloadKeys      = sortedKeys(func(k *key) bool { return k.workload })
	aggregatedKeys    = configSet{false: sortedKeys(ofAggregated, withoutPlanner), true: sortedKeys(ofAggregated)}
	disaggregatedKeys = configSet{false: sortedKeys(ofDisaggregated, withoutPlanner), true: sortedKeys(ofDisaggregated)}
)

// configSet holds the settings that count with and without a planner.
type configSet map[bool][]*key

func ofAggregated(k *key) bool { return !k.workload && k.mode != simcore.ModeDisaggregated }

func ofDisaggregated(k *key) bool {
	return !k.workload && k.mode != simcore.ModeAggregated && !isCommon(k.path)
}

func withoutPlanner(k *key) bool { return !needsPlanner(k.path) }

func sortedKeys(counts ...func(*key) bool) []*key {
	keys := slices.Clone(configKeys.leaves)
	for _, f := range counts {
		keys = slices.DeleteFunc(keys, func(k *key) bool { return !f(k) })
	}
	slices.SortFunc(keys, func(a, b *key) int { return strings.Compare(a.path, b.path) })
	return keys
}

// appendConfig appends a JSON object of the settings that can change the outcome.
func appendConfig(b []byte, c *Config) []byte {
	keys := aggregatedKeys
	if c.Deployment.Mode == simcore.ModeDisaggregated {
		keys = disaggregatedKeys
	}
	return appendSettings(b, keys[c.Planned()], reflect.ValueOf(c).Elem(), reflect.ValueOf(&defaultConfig).Elem())
}

// appendWorkload appends a JSON object of the settings of a workload, without its name.
func appendWorkload(b []byte, w *workload.Spec) []byte {
	nameless := *w
	nameless.Name = ""
	return appendSettings(b, workloadKeys, reflect.ValueOf(nameless), reflect.ValueOf(workload.Spec{}))
}

// appendSettings appends a JSON object of settings, by key path, that differ from their default.
func appendSettings(b []byte, keys []*key, v, defaults reflect.Value) []byte {
	b = append(b, '{')
	start := len(b)
	for _, k := range keys {
		field, ok := fieldAt(v, k.index)
		if !ok {
			continue
		}
		if standard, ok := fieldAt(defaults, k.index); ok && equal(field, standard) {
			continue
		}
		if len(b) > start {
			b = append(b, ',')
		}
		b = append(appendString(b, k.path), ':')
		b = appendField(b, field)
	}
	return append(b, '}')
}

func equal(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer, reflect.Struct, reflect.Interface:
		return reflect.DeepEqual(a.Interface(), b.Interface())
	}
	return a.Equal(b) // does not allocate, unlike asking whether it may be called
}

func appendField(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10)
	case reflect.Uint, reflect.Uint32, reflect.Uint64:
		return strconv.AppendUint(b, v.Uint(), 10)
	case reflect.Float64:
		return appendFloat(b, v.Float())
	case reflect.String:
		return appendString(b, v.String())
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		return appendString(b, err.Error())
	}
	return append(b, text...)
}

// appendFloat appends the shortest text that reads back as the same float; negative zero is zero.
func appendFloat(b []byte, f float64) []byte {
	if f == 0 {
		f = 0
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return appendString(b, strconv.FormatFloat(f, 'g', -1, 64))
	}
	return strconv.AppendFloat(b, f, 'g', -1, 64)
}

func appendString(b []byte, s string) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		return strconv.AppendQuote(b, s)
	}
	return append(b, text...)
}
