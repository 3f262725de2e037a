package perfmodel

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/servegrid/servegrid/simcore/perfmodel/catalogue"
	"github.com/servegrid/servegrid/simcore/perfmodel/tables"
)

// Provenance says where the prices of a resolved configuration come from.
type Provenance struct {
	// Data names the data behind the source, such as "vllm 0.24.0 on h200_sxm (aiconfigurator-core 0.12.0)"; empty
	// when there is none.
	Data string
	// Digest is a SHA-256 of that data: equal digests give equal prices. Empty when there is none.
	Digest string
	// PrefillErrorPct and DecodeErrorPct say how far prices are off what they stand for, in percent: for tables the
	// 99th percentile against their source, for the roofline the band that was measured against tables; 0 when
	// that is not known.
	PrefillErrorPct, DecodeErrorPct float64
	// Anomaly marks tables whose source is suspect; see [AnomalyMeaning].
	Anomaly bool
}

// AnomalyMeaning says what is wrong with the source of suspect tables, as warnings do.
const AnomalyMeaning = "a pass takes more than twice as long as on the best backend, or attention less than the peak of the GPU allows"

// Provenance describes a resolved configuration. What cannot be told is left empty.
func (c Config) Provenance() Provenance {
	switch c.Source {
	case SourceTable:
		data, row, err := c.row()
		if err != nil {
			return Provenance{}
		}
		return Provenance{
			Data:            fmt.Sprintf("%s %s on %s (%s)", row.Backend, row.BackendVersion, row.System, row.Generator),
			Digest:          c.digest(),
			PrefillErrorPct: row.Prefill.P99, DecodeErrorPct: row.Decode.P99,
			Anomaly: row.Anomaly || beatsPeak(data, row),
		}
	case SourceAnalytic:
		p := Provenance{Data: "roofline of " + c.GPU, Digest: c.digest()}
		if r, _, problems := c.roofline(); len(problems) == 0 {
			p.PrefillErrorPct, p.DecodeErrorPct = r.Band()
		}
		return p
	case SourceProfile:
		if digest := c.digest(); digest != "" {
			return Provenance{Data: filepath.Base(c.Profile), Digest: digest}
		}
	}
	return Provenance{}
}

// digest is that of Provenance by itself, for content IDs, which need no more.
func (c Config) digest() string {
	switch c.Source {
	case SourceTable:
		if row, err := c.Row(); err == nil {
			return row.Digest()
		}
	case SourceAnalytic:
		if IsModelFile(c.Model) {
			return digestOfModel(c.Model)
		}
	case SourceProfile:
		if read, err := readProfile(c.Profile); err == nil {
			return read.Digest()
		}
	}
	return ""
}

// beatsPeak reports whether a table has prompts whose attention takes fewer ms than its arithmetic at the GPU's peak. Some
// releases of the source extrapolate so.
func beatsPeak(data *tables.Set, row *tables.Config) bool {
	gpu, err := catalogue.FindGPU(row.System)
	if err != nil {
		return false
	}
	m, _, err := catalogue.FindModel(row.Model)
	if err != nil || m.IsMLA() || m.Window > 0 {
		return false // their arithmetic depends on how the kernel does it
	}
	t, err := data.Load(row, false)
	if err != nil {
		return false
	}
	peak := gpu.BF16TFLOPS
	if row.FMHA == "fp8" {
		peak = max(peak, gpu.FP8TFLOPS)
	}
	const slack, flopsPerMs = 1.05, 1e9
	for _, length := range []int{4096, 16384, 32768} {
		// Causal attention multiplies half of a square twice, with two operations a product.
		flops := 2 * float64(m.Layers) * float64(m.Heads) / float64(row.TP) * float64(m.HeadDim) * float64(length) * float64(length)
		if flops/t.PrefillAttention(1, length, 0) > peak*flopsPerMs*slack {
			return true
		}
	}
	return false
}

// Portable is the configuration with what its files hold in place of their paths, so that it means the same on
// every machine.
func (c Config) Portable() Config {
	switch c.Source {
	case SourceTable:
		c.Tables = c.digest()
	case SourceProfile:
		// The tables and the model only size the KV pool, which the configuration states.
		c.Profile, c.Tables = c.digest(), ""
	}
	if IsModelFile(c.Model) {
		c.Model = digestOfModel(c.Model)
	}
	return c
}

// digestOfModel is a SHA-256 of the shape that a config.json describes, whatever the file is called.
func digestOfModel(path string) string {
	m, dtype, err := readModel(path)
	if err != nil {
		return ""
	}
	m.ID, m.Name = "", ""
	m.HuggingFace = slices.Clone(m.HuggingFace)
	for i := range m.HuggingFace {
		m.HuggingFace[i].Path = ""
	}
	shape, err := json.Marshal(m)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(append(shape, dtype...))
	return hex.EncodeToString(sum[:])
}
