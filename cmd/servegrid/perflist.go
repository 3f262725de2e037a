package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/perfmodel/catalogue"
	"github.com/servegrid/servegrid/simcore/perfmodel/tables"
)

// perfListFlags choose what perf list shows.
type perfListFlags struct {
	gpu, model, backend string
	tables              string
	json                bool
}

func newPerfList(st *state) *cobra.Command {
	var f perfListFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List GPUs, models and what was measured",
		Long: `list shows the GPUs and models that a spec may name. GPUs and models with measured tables are priced by them; all
others are analytic: priced by a roofline from the figures of the GPU and the shape of the model.

With --gpu, --model or --backend it lists every deployment that was measured and every one that the source refused.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return f.run(st) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.gpu, "gpu", "", "only this GPU, such as h200_sxm")
	fs.StringVar(&f.model, "model", "", "only this model: its name here or on Hugging Face")
	fs.StringVar(&f.backend, "backend", "", "only this serving engine: "+strings.Join(perfmodel.Backends(), ", "))
	fs.StringVar(&f.tables, "tables", "", "a folder of tables; the default is those that servegrid contains")
	fs.BoolVar(&f.json, "json", false, "print everything as one JSON object")
	return cmd
}

func (f *perfListFlags) run(st *state) error {
	k, err := f.known()
	if err != nil {
		return err
	}
	switch {
	case f.json:
		return printJSON(st, k)
	case f.gpu+f.model+f.backend != "":
		return f.printDeployments(st, k)
	}
	return f.printOverview(st, k)
}

// known is what there is to know, as --json prints it.
type known struct {
	GPUs        []knownGPU        `json:"gpus"`
	Models      []knownModel      `json:"models"`
	Deployments []knownDeployment `json:"deployments"`
	Refused     []knownRefusal    `json:"refused"`
}

type knownGPU struct {
	ID            string   `json:"id"`
	Name          string   `json:"name,omitempty"`
	Vendor        string   `json:"vendor,omitempty"`
	Aliases       []string `json:"aliases,omitempty"`
	Timing        string   `json:"timing"`
	MemoryGiB     float64  `json:"memory_gib,omitempty"`
	MemoryGBps    float64  `json:"memory_gbps,omitempty"`
	BF16TFLOPS    float64  `json:"bf16_tflops,omitempty"`
	FP8TFLOPS     float64  `json:"fp8_tflops,omitempty"`
	FP4TFLOPS     float64  `json:"fp4_tflops,omitempty"`
	LinkGBps      float64  `json:"link_gbps,omitempty"`
	PCIeGBps      float64  `json:"pcie_gbps,omitempty"`
	NICGBps       float64  `json:"nic_gbps,omitempty"`
	GPUsPerNode   int      `json:"gpus_per_node,omitempty"`
	TDPWatts      float64  `json:"tdp_watts,omitempty"`
	USDPerHour    float64  `json:"usd_per_hour,omitempty"`
	PriceNote     string   `json:"price_note,omitempty"`
	PriceSource   string   `json:"price_source,omitempty"`
	FiguresSource string   `json:"figures_source,omitempty"`
}

type knownModel struct {
	ID          string      `json:"id"`
	HuggingFace []knownName `json:"hugging_face"`
	// GPUs are those with tables of the model, DTypes the variants that were measured.
	GPUs   []string `json:"gpus"`
	DTypes []string `json:"dtypes"`
}

type knownName struct {
	Path  string `json:"path"`
	DType string `json:"dtype"`
}

type knownDeployment struct {
	GPU            string       `json:"gpu"`
	Model          string       `json:"model"`
	DType          string       `json:"dtype"`
	Backend        string       `json:"backend"`
	BackendVersion string       `json:"backend_version"`
	Slot           string       `json:"slot"`
	TP             int          `json:"tp"`
	DP             int          `json:"dp"`
	EP             int          `json:"ep"`
	GEMMDType      string       `json:"gemm_dtype"`
	MoEDType       string       `json:"moe_dtype"`
	FMHADType      string       `json:"fmha_dtype"`
	KVCacheDType   string       `json:"kv_cache_dtype"`
	MaxKVTokens    int          `json:"max_kv_tokens"`
	PrefillError   errorFigures `json:"prefill_error_pct"`
	DecodeError    errorFigures `json:"decode_error_pct"`
	Corrected      bool         `json:"corrected"`
	Anomaly        bool         `json:"anomaly"`
	Generator      string       `json:"generator"`
	Generated      string       `json:"generated"`
}

type knownRefusal struct {
	GPU     string `json:"gpu"`
	Model   string `json:"model"`
	DType   string `json:"dtype"`
	Backend string `json:"backend"`
	// BackendVersion is empty when the source refuses the deployment in the version that the slot stands for.
	BackendVersion string `json:"backend_version,omitempty"`
	Slot           string `json:"slot"`
	TP             int    `json:"tp,omitempty"`
	DP             int    `json:"dp,omitempty"`
	EP             int    `json:"ep,omitempty"`
	Reason         string `json:"reason"`
}

// known collects what the flags ask for.
func (f *perfListFlags) known() (known, error) {
	set, err := openTables(f.tables)
	if err != nil {
		return known{}, err
	}
	rows, err := tableRows(set)
	if err != nil {
		return known{}, err
	}
	refused, err := set.Unavailable()
	if err != nil {
		return known{}, err
	}
	if err := f.canonical(set, rows); err != nil {
		return known{}, err
	}
	k := known{GPUs: f.gpus(set), Deployments: []knownDeployment{}, Refused: []knownRefusal{}}
	for _, c := range usedRows(rows) {
		if f.wants(c.System, c.Model, c.Backend) {
			k.Deployments = append(k.Deployments, deploymentOf(c))
		}
	}
	for _, u := range refused {
		if f.wants(u.System, u.Model, u.Backend) {
			k.Refused = append(k.Refused, knownRefusal{u.System, u.Model, u.DType, u.Backend, u.BackendVersion, u.Slot, u.TP, u.DP, u.MoEEP, u.Reason})
		}
	}
	k.Models = f.models(k.Deployments)
	return k, nil
}

// canonical replaces the names that the flags give by those of the tables.
func (f *perfListFlags) canonical(set *tables.Set, rows []*tables.Config) error {
	if f.backend != "" && !slices.Contains(perfmodel.Backends(), f.backend) {
		return fmt.Errorf("--backend: %s is not allowed; use one of: %s", f.backend, strings.Join(perfmodel.Backends(), ", "))
	}
	if f.gpu != "" && !slices.Contains(set.Systems(), f.gpu) {
		gpu, err := catalogue.FindGPU(f.gpu)
		if err != nil {
			return fmt.Errorf("--gpu: %w", err)
		}
		f.gpu = gpu.ID
	}
	if f.model == "" {
		return nil
	}
	for _, c := range rows {
		if strings.EqualFold(c.Model, f.model) {
			f.model = c.Model
			return nil
		}
	}
	m, _, err := catalogue.FindModel(f.model)
	if err != nil {
		return fmt.Errorf("--model: %w", err)
	}
	f.model = m.ID
	return nil
}

func (f *perfListFlags) wants(gpu, model, backend string) bool {
	return (f.gpu == "" || f.gpu == gpu) && (f.model == "" || f.model == model) && (f.backend == "" || f.backend == backend)
}

// usedRows leaves out the rows that corrected ones replace.
func usedRows(rows []*tables.Config) []*tables.Config {
	type deployment struct{ name, gemm, moe, kv, fmha string }
	of := func(c *tables.Config) deployment { return deployment{c.String(), c.GEMM, c.MoE, c.KV, c.FMHA} }
	corrected := map[deployment]bool{}
	for _, c := range rows {
		if c.Corrected {
			corrected[of(c)] = true
		}
	}
	used := slices.DeleteFunc(slices.Clone(rows), func(c *tables.Config) bool { return !c.Corrected && corrected[of(c)] })
	// Variants come as the tables have them, their parallelism in increasing order.
	first := map[[5]string]int{}
	variant := func(c *tables.Config) [5]string {
		return [5]string{c.System, c.Backend, c.BackendVersion, c.Model, c.DType}
	}
	for i, c := range slices.Backward(used) {
		first[variant(c)] = i
	}
	slices.SortStableFunc(used, func(a, b *tables.Config) int {
		return cmp.Or(cmp.Compare(first[variant(a)], first[variant(b)]),
			cmp.Compare(a.TP, b.TP), cmp.Compare(a.DP, b.DP), cmp.Compare(a.MoEEP, b.MoEEP))
	})
	return used
}

func deploymentOf(c *tables.Config) knownDeployment {
	return knownDeployment{
		GPU: c.System, Model: c.Model, DType: c.DType, Backend: c.Backend, BackendVersion: c.BackendVersion, Slot: c.Slot,
		TP: c.TP, DP: c.DP, EP: c.MoEEP, GEMMDType: c.GEMM, MoEDType: c.MoE, FMHADType: c.FMHA, KVCacheDType: c.KV,
		MaxKVTokens: c.MaxKVTokens, PrefillError: figuresOf(c.Prefill), DecodeError: figuresOf(c.Decode),
		Corrected: c.Corrected, Anomaly: c.Anomaly, Generator: c.Generator, Generated: c.Measured,
	}
}

// gpus lists the catalogue and what only the tables know. With a folder of tables nothing is analytic, so only its own
// GPUs count.
func (f *perfListFlags) gpus(set *tables.Set) []knownGPU {
	out := []knownGPU{}
	add := func(g catalogue.GPU) {
		timing := perfmodel.SourceAnalytic
		if slices.Contains(set.Systems(), g.ID) {
			timing = perfmodel.SourceTable
		}
		if f.gpu != "" && f.gpu != g.ID || f.tables != "" && timing == perfmodel.SourceAnalytic {
			return
		}
		out = append(out, knownGPU{
			ID: g.ID, Name: g.Name, Vendor: g.Vendor, Aliases: g.Aliases, Timing: timing,
			MemoryGiB: g.MemoryGiB, MemoryGBps: g.MemoryGBps, BF16TFLOPS: g.BF16TFLOPS, FP8TFLOPS: g.FP8TFLOPS, FP4TFLOPS: g.FP4TFLOPS,
			LinkGBps: g.LinkGBps, PCIeGBps: g.PCIeGBps, NICGBps: g.NICGBps, GPUsPerNode: g.GPUsPerNode, TDPWatts: g.TDPWatts,
			USDPerHour: g.USDPerHour, PriceNote: g.PriceNote, PriceSource: g.PriceSource, FiguresSource: g.SpecSource,
		})
	}
	for _, g := range catalogue.GPUs() {
		add(g)
	}
	for _, id := range set.Systems() {
		if g, ok := gpuData(id); !ok {
			add(g)
		}
	}
	return out
}

// models lists the catalogue and what only the tables know. As with GPUs, a folder of tables stands for itself.
func (f *perfListFlags) models(deployments []knownDeployment) []knownModel {
	out := []knownModel{}
	at := map[string]int{}
	for _, m := range catalogue.Models() {
		if f.model != "" && f.model != m.ID {
			continue
		}
		at[m.ID] = len(out)
		names := []knownName{}
		for _, h := range m.HuggingFace {
			names = append(names, knownName{h.Path, h.DType})
		}
		out = append(out, knownModel{ID: m.ID, HuggingFace: names, GPUs: []string{}, DTypes: []string{}})
	}
	for _, d := range deployments {
		i, ok := at[d.Model]
		if !ok {
			i = len(out)
			at[d.Model] = i
			out = append(out, knownModel{ID: d.Model, HuggingFace: []knownName{}})
		}
		m := &out[i]
		m.GPUs, m.DTypes = addOnce(m.GPUs, d.GPU), addOnce(m.DTypes, d.DType)
	}
	if f.tables != "" {
		out = slices.DeleteFunc(out, func(m knownModel) bool { return len(m.GPUs) == 0 })
	}
	return out
}

func addOnce(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// printOverview prints what there is, without which model was measured where.
func (f *perfListFlags) printOverview(st *state, k known) error {
	return printText(st.stdout, "%s\n%s\n%s\n%s\n", renderGPUs(k.GPUs), renderReleases(k.Deployments), renderModels(k.Models),
		"--gpu, --model and --backend list every deployment; perf show prices it.")
}

func renderGPUs(gpus []knownGPU) string {
	out := newTableWriter()
	out.AppendHeader(table.Row{"gpu", "timing", "memory\nGiB", "memory\nGB/s", "bf16\nTFLOPS", "fp8\nTFLOPS", "fp4\nTFLOPS", "TDP\nW", "price\nUSD/h"})
	out.SetColumnConfigs(rightAligned(3, 9))
	for _, g := range gpus {
		cells := table.Row{cellText(g.ID), g.Timing}
		for _, v := range []float64{g.MemoryGiB, g.MemoryGBps, g.BF16TFLOPS, g.FP8TFLOPS, g.FP4TFLOPS, g.TDPWatts} {
			cells = append(cells, orNothing(v, settingFigure))
		}
		out.AppendRow(append(cells, orNothing(g.USDPerHour, grouped)))
	}
	return out.Render()
}

// orNothing leaves out what is not known.
func orNothing(v float64, format func(float64) string) string {
	if v == 0 {
		return ""
	}
	return format(v)
}

// renderReleases shows which releases of the engines were measured, on which GPUs.
func renderReleases(deployments []knownDeployment) string {
	type release struct{ slot, backend, version string }
	gpus := map[release][]string{}
	var order []release
	for _, d := range deployments {
		r := release{d.Slot, d.Backend, d.BackendVersion}
		if gpus[r] == nil {
			order = append(order, r)
		}
		gpus[r] = addOnce(gpus[r], d.GPU)
	}
	slices.SortStableFunc(order, func(a, b release) int {
		return cmp.Or(cmp.Compare(a.slot, b.slot), cmp.Compare(a.backend, b.backend), cmp.Compare(len(gpus[b]), len(gpus[a])), cmp.Compare(a.version, b.version))
	})
	out := newTableWriter()
	out.AppendHeader(table.Row{"backend", "version", "alias", "measured on"})
	for _, r := range order {
		out.AppendRow(table.Row{r.backend, cellText(r.version), r.slot, joinedLines(gpus[r], ", ", maxCellWidth)})
	}
	return out.Render()
}

// joinedLines joins words and breaks lines that get longer than the width.
func joinedLines(words []string, separator string, width int) string {
	var lines []string
	line := ""
	for _, w := range words {
		w = cellText(w)
		if line != "" && len(line)+len(separator)+len(w) > width {
			lines = append(lines, line+strings.TrimRight(separator, " "))
			line = ""
		}
		if line != "" {
			line += separator
		}
		line += w
	}
	return strings.Join(append(lines, line), "\n")
}

func renderModels(models []knownModel) string {
	out := newTableWriter()
	out.AppendHeader(table.Row{"model", "measured as", "on", "names on Hugging Face"})
	for _, m := range models {
		on := perfmodel.SourceAnalytic
		if len(m.GPUs) > 0 {
			on = plural(len(m.GPUs), "GPU")
		}
		out.AppendRow(table.Row{cellText(m.ID), cellText(strings.Join(m.DTypes, ", ")), on, namesOf(m)})
	}
	return out.Render()
}

// namesOf is the first name of a model and how many more there are.
func namesOf(m knownModel) string {
	switch n := len(m.HuggingFace); n {
	case 0:
		return ""
	case 1:
		return cellText(m.HuggingFace[0].Path)
	default:
		return fmt.Sprintf("%s and %d more", cellText(m.HuggingFace[0].Path), n-1)
	}
}

func rightAligned(from, to int) []table.ColumnConfig {
	var out []table.ColumnConfig
	for n := from; n <= to; n++ {
		out = append(out, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight, AlignFooter: text.AlignRight})
	}
	return out
}
