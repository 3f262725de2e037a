package main

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// print shows a deployment to people.
func (f *perfShowFlags) print(st *state, d *deployment, pass *shownPass) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s\n%s", d.name(), d.engineText(), d.provenanceText())
	if pass != nil {
		fmt.Fprintf(&b, "\n%s\n", pass.text(d))
	} else {
		fmt.Fprintf(&b, "\n%s", d.pricesText())
	}
	fmt.Fprintf(&b, "\nMemory of one GPU:\n%s", d.plan)
	if d.full != nil {
		fmt.Fprintf(&b, "The model %v\n", d.full)
	} else {
		fmt.Fprintf(&b, "KV cache of a worker: %s tokens, %s blocks of %d\n", count(d.kvTokens()), count(d.blocks()), d.blockSize)
	}
	if f.svg != "" {
		fmt.Fprintf(&b, "Plot: %s\n", f.svg)
	}
	return printText(st.stdout, "%s", b.String())
}

// provenanceText says where the prices come from and how far they may be off.
func (d *deployment) provenanceText() string {
	var b strings.Builder
	p, row := d.provenance, d.row
	if row == nil {
		fmt.Fprintf(&b, "Source: analytic, %s; ±%s %% in prefill, ±%s %% in decode\n", p.Data, errorPct(p.PrefillErrorPct), errorPct(p.DecodeErrorPct))
		if gpu, ok := gpuData(d.timing.GPU); ok && gpu.SpecSource != "" {
			fmt.Fprintf(&b, "Figures of the GPU: %s\n", gpu.SpecSource)
		}
		return b.String()
	}
	fmt.Fprintf(&b, "Source: table, %s, generated %s\n", p.Data, row.Measured)
	fmt.Fprintf(&b, "Dtypes: GEMM %s, experts %s, attention %s, KV cache %s\n", row.GEMM, row.MoE, row.FMHA, row.KV)
	fmt.Fprintf(&b, "Errors against the source, not a GPU: prefill %s; decode %s\n", errorsText(row.Prefill), errorsText(row.Decode))
	if row.SiliconPrefillPct >= 0 && row.SiliconDecodePct >= 0 {
		fmt.Fprintf(&b, "Measured on hardware at the source: %.0f %% of prefill and %.0f %% of decode time; the rest is modelled\n", row.SiliconPrefillPct, row.SiliconDecodePct)
	}
	return b.String()
}

// text shows the parts of a pass.
func (s *shownPass) text(d *deployment) string {
	out := newTableWriter()
	out.AppendHeader(table.Row{"part", "of", "ms", "share", "note"})
	out.SetColumnConfigs(rightAligned(3, 4))
	out.SuppressEmptyColumns()
	decode := false
	for i, part := range s.parts {
		if i > 0 && part.Decode && !decode {
			out.AppendSeparator()
		}
		decode = part.Decode
		out.AppendRow(table.Row{partName(part.Kind), partOf(part, d.timing.Mode), figure(part.Ms), share(part.Ms, s.ms()), extrapolatedNote(part.Extrapolated)})
	}
	if s.price.PrefillMs > 0 && s.price.DecodeMs > 0 {
		out.AppendFooter(table.Row{"prefill", "", figure(s.price.PrefillMs), share(s.price.PrefillMs, s.ms())})
		out.AppendFooter(table.Row{"decode", "", figure(s.price.DecodeMs), share(s.price.DecodeMs, s.ms())})
	}
	out.AppendFooter(table.Row{"pass", "", figure(s.ms()), share(s.ms(), s.ms()), extrapolatedNote(s.price.Extrapolated)})
	perRank := ""
	if d.timing.DP > 1 {
		perRank = fmt.Sprintf("; %d ranks share it, parts are of the busiest one", d.timing.DP)
	}
	note := ""
	if !s.fits {
		note = "\nThis is more KV cache than there is memory for."
	}
	return fmt.Sprintf("Pass of %s, mode %s%s:\n%s%s", s.workText(), d.timing.Mode, perRank, out.Render(), note)
}

func share(part, whole float64) string {
	if whole == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %%", 100*part/whole)
}

func extrapolatedNote(extrapolated bool) string {
	if extrapolated {
		return "extrapolated"
	}
	return ""
}

// workText names the work of a pass, by its means as the mode mocker sees it.
func (s *shownPass) workText() string {
	var work []string
	if f := s.pass.Prefill; f.Requests > 0 {
		text := fmt.Sprintf("%s of %s new tokens", counted(f.Requests, "prompt"), count(f.Tokens))
		if f.Prefix > 0 {
			text += fmt.Sprintf(" after %s each on average", count(f.Prefix))
		}
		work = append(work, text)
	}
	if d := s.pass.Decode; d.Requests > 0 {
		work = append(work, fmt.Sprintf("%s at a context of %s", counted(d.Requests, "decode"), count(d.Context)))
	}
	return strings.Join(work, " and ")
}

// count is a whole number with commas between thousands; counted one of things whose name takes an s.
func count(n int) string { return results.WithSeparators(fmt.Sprint(n)) }

func counted(n int, thing string) string {
	_, thing, _ = strings.Cut(plural(n, thing), " ")
	return count(n) + " " + thing
}

func partName(kind string) string { return strings.ReplaceAll(kind, "_", " ") }

// partOf says what a part is computed for.
func partOf(p perfmodel.Part, mode string) string {
	switch p.Kind {
	case perfmodel.PartTokens:
		return counted(p.Tokens, "token") + ": matrix products, experts, norms, communication"
	case perfmodel.PartLogits:
		return counted(p.Requests, "request")
	case perfmodel.PartPrefillAttention:
		if mode == perfmodel.ModeSerialExact {
			return counted(p.Requests, "prompt") + ", each by itself"
		}
		return fmt.Sprintf("%s to %s tokens, %s before", counted(p.Requests, "prompt"), count(p.Length), count(p.Prefix))
	case perfmodel.PartGeneration:
		return counted(p.Requests, "token") + ": all but attention"
	case perfmodel.PartGenerationAttention:
		return fmt.Sprintf("%s of %s tokens", counted(p.Requests, "sequence"), count(p.Length))
	case perfmodel.PartCorrection:
		return "query-key norm that the source leaves out"
	case perfmodel.PartLeast:
		return "what is missing to 1 ms"
	}
	return ""
}
