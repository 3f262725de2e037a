package main

import (
	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// shownDocument is what perf show --json prints.
type shownDocument struct {
	Timing     perfmodel.Config `json:"timing"`
	Provenance shownProvenance  `json:"provenance"`
	Memory     shownMemory      `json:"memory"`
	// Pass is the pass that was asked for; without one there are Decode and Prefill.
	Pass    *passDocument   `json:"pass,omitempty"`
	Decode  []pricedDecode  `json:"decode,omitempty"`
	Prefill []pricedPrefill `json:"prefill,omitempty"`
}

// shownProvenance says where the prices come from; the errors are in %.
type shownProvenance struct {
	Source          string        `json:"source"`
	Data            string        `json:"data"`
	Digest          string        `json:"digest,omitempty"`
	Generated       string        `json:"generated,omitempty"`
	PrefillErrorPct float64       `json:"prefill_error_pct"`
	DecodeErrorPct  float64       `json:"decode_error_pct"`
	PrefillErrors   *errorFigures `json:"prefill_errors_pct,omitempty"`
	DecodeErrors    *errorFigures `json:"decode_errors_pct,omitempty"`
	HardwarePrefill *float64      `json:"hardware_prefill_pct,omitempty"`
	HardwareDecode  *float64      `json:"hardware_decode_pct,omitempty"`
	Anomaly         bool          `json:"anomaly"`
	GPUFigures      string        `json:"gpu_figures_source,omitempty"`
}

// shownMemory is the arithmetic of one GPU in bytes, and the KV cache of a worker.
type shownMemory struct {
	GPUBytes           float64 `json:"gpu_bytes"`
	Fraction           float64 `json:"fraction"`
	WeightsBytes       float64 `json:"weights_bytes"`
	ActivationBytes    float64 `json:"activation_bytes"`
	CommunicationBytes float64 `json:"communication_bytes"`
	OtherBytes         float64 `json:"other_bytes"`
	KVBytes            float64 `json:"kv_bytes"`
	MaxBatchedTokens   int     `json:"max_num_batched_tokens"`
	Fits               bool    `json:"fits"`
	KVTokens           int     `json:"kv_tokens"`
	BlockSize          int     `json:"block_size"`
	NumGPUBlocks       int     `json:"num_gpu_blocks"`
}

// passDocument is a priced pass; means are whole tokens, as the engine counts.
type passDocument struct {
	Prompts      int        `json:"prompts"`
	NewTokens    int        `json:"new_tokens"`
	MeanPrefix   int        `json:"mean_prefix"`
	Decodes      int        `json:"decodes"`
	MeanContext  int        `json:"mean_context"`
	Mode         string     `json:"mode"`
	Ms           float64    `json:"ms"`
	PrefillMs    float64    `json:"prefill_ms"`
	DecodeMs     float64    `json:"decode_ms"`
	Extrapolated bool       `json:"extrapolated"`
	Fits         bool       `json:"fits"`
	Parts        []passPart `json:"parts"`
}

type passPart struct {
	perfmodel.Part
	// Share is the part's share of the pass, from 0 to 1.
	Share float64 `json:"share"`
}

func (d *deployment) document(pass *shownPass) shownDocument {
	out := shownDocument{Timing: d.timing, Provenance: d.provenanceDocument(), Memory: d.memoryDocument()}
	if pass != nil {
		out.Pass = pass.document(d.timing.Mode)
		return out
	}
	for _, context := range shownContexts {
		for _, batch := range shownBatches {
			out.Decode = append(out.Decode, d.decode(batch, context))
		}
	}
	for _, prefix := range shownPrefixes {
		for _, fresh := range shownNew {
			out.Prefill = append(out.Prefill, d.prefill(fresh, prefix))
		}
	}
	return out
}

func (d *deployment) provenanceDocument() shownProvenance {
	p := d.provenance
	out := shownProvenance{
		Source: d.timing.Source, Data: p.Data, Digest: p.Digest, PrefillErrorPct: p.PrefillErrorPct, DecodeErrorPct: p.DecodeErrorPct, Anomaly: p.Anomaly,
	}
	if gpu, ok := gpuData(d.timing.GPU); ok {
		out.GPUFigures = gpu.SpecSource
	}
	if row := d.row; row != nil {
		prefill, decode := figuresOf(row.Prefill), figuresOf(row.Decode)
		out.Generated, out.PrefillErrors, out.DecodeErrors = row.Measured, &prefill, &decode
		if row.SiliconPrefillPct >= 0 {
			out.HardwarePrefill = &row.SiliconPrefillPct
		}
		if row.SiliconDecodePct >= 0 {
			out.HardwareDecode = &row.SiliconDecodePct
		}
	}
	return out
}

func (d *deployment) memoryDocument() shownMemory {
	p := d.plan
	return shownMemory{
		GPUBytes: p.GPUBytes, Fraction: p.Fraction, WeightsBytes: p.WeightsBytes, ActivationBytes: p.ActivationBytes,
		CommunicationBytes: p.CommunicationBytes, OtherBytes: p.OtherBytes, KVBytes: p.KVBytes, MaxBatchedTokens: p.MaxBatchedTokens,
		Fits: d.full == nil, KVTokens: d.kvTokens(), BlockSize: d.blockSize, NumGPUBlocks: d.blocks(),
	}
}

func (s *shownPass) document(mode string) *passDocument {
	p := s.pass
	out := &passDocument{
		Prompts: p.Prefill.Requests, NewTokens: p.Prefill.Tokens, MeanPrefix: p.Prefill.Prefix,
		Decodes: p.Decode.Requests, MeanContext: p.Decode.Context, Mode: mode,
		Ms: s.ms(), PrefillMs: s.price.PrefillMs, DecodeMs: s.price.DecodeMs, Extrapolated: s.price.Extrapolated, Fits: s.fits,
	}
	for _, part := range s.parts {
		out.Parts = append(out.Parts, passPart{part, part.Ms / s.ms()})
	}
	return out
}
