package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// printDeployments prints every deployment that the flags leave, and those that the source refused.
func (f *perfListFlags) printDeployments(st *state, k known) error {
	var b strings.Builder
	if f.gpu != "" {
		fmt.Fprintf(&b, "%s\n", renderGPUs(k.GPUs))
	}
	if f.model != "" {
		fmt.Fprintf(&b, "%s\n", renderAliases(k.Models))
	}
	if len(k.Deployments) > 0 {
		fmt.Fprintf(&b, "%s\n%s", renderDeployments(k.Deployments), footnotes(k.Deployments))
	} else {
		fmt.Fprintf(&b, "No deployment of this was measured%s.\n", f.instead())
	}
	if len(k.Refused) > 0 {
		fmt.Fprintf(&b, "The source refuses:\n%s\n", renderRefusals(k.Refused))
	}
	return printText(st.stdout, "%s", b.String())
}

// instead says what happens without tables.
func (f *perfListFlags) instead() string {
	if f.tables != "" {
		return " in " + f.tables
	}
	return "; timing.source: analytic prices it by a roofline"
}

// renderAliases lists all names of models.
func renderAliases(models []knownModel) string {
	out := newTableWriter()
	out.AppendHeader(table.Row{"model", "name on Hugging Face", "dtype"})
	for _, m := range models {
		for _, h := range m.HuggingFace {
			out.AppendRow(table.Row{cellText(m.ID), cellText(h.Path), h.DType})
		}
	}
	return out.Render()
}

// footnotes explains the marks of renderDeployments that occur.
func footnotes(deployments []knownDeployment) string {
	notes := ""
	if slices.ContainsFunc(deployments, func(d knownDeployment) bool { return d.MaxKVTokens == 0 }) {
		notes += doesNotFitMark + " does not fit into the memory of the GPU unless its defaults are changed\n"
	}
	if slices.ContainsFunc(deployments, func(d knownDeployment) bool { return d.Anomaly }) {
		notes += "suspect: at the source a pass takes more than twice as long as on the best backend\n"
	}
	return notes
}

// doesNotFitMark marks parallelism that leaves no room for KV cache.
const doesNotFitMark = "†"

// variant is what the deployments of one line have in common.
type variant struct{ gpu, model, dtype, backend, version, gemm, moe, fmha, kv string }

func renderDeployments(deployments []knownDeployment) string {
	groups := map[variant][]knownDeployment{}
	var order []variant
	for _, d := range deployments {
		v := variant{d.GPU, d.Model, d.DType, d.Backend, d.BackendVersion, d.GEMMDType, d.MoEDType, d.FMHADType, d.KVCacheDType}
		if groups[v] == nil {
			order = append(order, v)
		}
		groups[v] = append(groups[v], d)
	}
	out := newTableWriter()
	out.AppendHeader(table.Row{"gpu", "model", "dtype", "backend", "version", "GEMM/experts/\nattention/KV cache", "parallelism", "p99 error %\nprefill", "\ndecode", "note"})
	out.SetColumnConfigs(rightAligned(8, 9))
	out.SuppressEmptyColumns()
	for _, v := range order {
		out.AppendRow(v.cells(groups[v]))
	}
	return out.Render()
}

// cells shows a variant with the greatest errors of its deployments.
func (v variant) cells(of []knownDeployment) table.Row {
	var parallel []string
	var prefill, decode float64
	suspect := 0
	for _, d := range of {
		name := parallelism(d.TP, d.DP, d.EP)
		if d.MaxKVTokens == 0 {
			name += " " + doesNotFitMark
		}
		parallel = addOnce(parallel, name)
		prefill, decode = max(prefill, d.PrefillError.P99), max(decode, d.DecodeError.P99)
		if d.Anomaly {
			suspect++
		}
	}
	note := ""
	if suspect > 0 {
		note = fmt.Sprintf("%d of %d suspect", suspect, len(of))
	}
	return table.Row{cellText(v.gpu), cellText(v.model), cellText(v.dtype), v.backend, cellText(v.version),
		v.dtypes(), joinedLines(parallel, ", ", 40), fmt.Sprintf("%.2f", prefill), fmt.Sprintf("%.2f", decode), note}
}

// dtypes are those of the matrix products, the experts, attention and the KV cache; one when they are all equal.
func (v variant) dtypes() string {
	if v.gemm == v.moe && v.gemm == v.fmha && v.gemm == v.kv {
		return cellText(v.gemm)
	}
	return cellText(strings.Join([]string{v.gemm, v.moe, v.fmha, v.kv}, "/"))
}

// parallelism is "tp 4 ep 4"; what is 1 goes without saying, except tp.
func parallelism(tp, dp, ep int) string {
	s := fmt.Sprintf("tp %d", tp)
	if dp > 1 {
		s += fmt.Sprintf(" dp %d", dp)
	}
	if ep > 1 {
		s += fmt.Sprintf(" ep %d", ep)
	}
	return s
}

func renderRefusals(refused []knownRefusal) string {
	out := newTableWriter()
	out.AppendHeader(table.Row{"gpu", "model", "dtype", "backend", "version", "parallelism", "why"})
	for _, r := range refused {
		out.AppendRow(table.Row{cellText(r.GPU), cellText(r.Model), cellText(r.DType), cellText(r.Backend), cellText(cmp.Or(r.BackendVersion, r.Slot)),
			parallelism(max(1, r.TP), r.DP, r.EP), cellText(strings.Join(strings.Fields(r.Reason), " "))})
	}
	return out.Render()
}
