package perfmodel

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
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
	// Anomaly marks tables whose source is suspect: a pass takes more than twice as long as on the best backend.
	Anomaly bool
}

// Provenance describes a resolved configuration. What cannot be told is left empty.
func (c Config) Provenance() Provenance {
	switch c.Source {
	case SourceTable:
		data, err := tableSet(c.Tables)
		if err != nil {
			return Provenance{}
		}
		row, problems := data.Find(c.query())
		if len(problems) > 0 {
			return Provenance{}
		}
		return Provenance{
			Data:            fmt.Sprintf("%s %s on %s (%s)", row.Backend, row.BackendVersion, row.System, row.Generator),
			Digest:          row.Digest(),
			PrefillErrorPct: row.Prefill.P99, DecodeErrorPct: row.Decode.P99,
			Anomaly: row.Anomaly,
		}
	case SourceAnalytic:
		p := Provenance{Data: "roofline of " + c.GPU}
		if r, _, problems := c.roofline(); len(problems) == 0 {
			p.PrefillErrorPct, p.DecodeErrorPct = r.Band()
		}
		if IsModelFile(c.Model) {
			p.Digest = digestOfModel(c.Model)
		}
		return p
	case SourceProfile:
		if read, err := readProfile(c.Profile); err == nil {
			return Provenance{Data: "profile", Digest: read.Digest()}
		}
	}
	return Provenance{}
}

// Portable is the configuration with what its files hold in place of their paths, so that it means the same on
// every machine.
func (c Config) Portable() Config {
	switch digest := c.Provenance().Digest; {
	case digest == "":
	case c.Source == SourceTable:
		c.Tables = digest
	case c.Source == SourceProfile:
		c.Profile = digest
	case c.Source == SourceAnalytic:
		c.Model = digest
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
