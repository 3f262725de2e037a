package main

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// What perf show prices when no pass is given, and the lines of its plot.
var (
	shownBatches  = powersOfTwo(0, 9)
	shownContexts = []int{1024, 4096, 16384, 65536}
	shownNew      = powersOfTwo(6, 14)
	shownPrefixes = []int{0, 4096, 16384, 65536}
)

// powersOfTwo lists 2^from to 2^to.
func powersOfTwo(from, to int) []int {
	var out []int
	for k := from; k <= to; k++ {
		out = append(out, 1<<k)
	}
	return out
}

// pricedDecode is the price of a decode pass of Batch sequences of Context tokens.
type pricedDecode struct {
	Batch        int     `json:"batch"`
	Context      int     `json:"context"`
	Ms           float64 `json:"ms"`
	Extrapolated bool    `json:"extrapolated"`
	// Fits says that there is room for the KV cache of the pass.
	Fits bool `json:"fits"`
}

// pricedPrefill is the price of a prefill pass of one prompt: New tokens after Prefix that exist already.
type pricedPrefill struct {
	New          int     `json:"new"`
	Prefix       int     `json:"prefix"`
	Ms           float64 `json:"ms"`
	Extrapolated bool    `json:"extrapolated"`
	Fits         bool    `json:"fits"`
}

func (d *deployment) decode(batch, context int) pricedDecode {
	price := d.model.Price(&perfmodel.Pass{Decode: perfmodel.Decode{Requests: batch, Context: context}})
	return pricedDecode{batch, context, price.DecodeMs, price.Extrapolated, batch*(context+1) <= d.kvTokens()}
}

func (d *deployment) prefill(fresh, prefix int) pricedPrefill {
	price := d.model.Price(&perfmodel.Pass{Prefill: perfmodel.Prefill{
		Requests: 1, Length: fresh + prefix, Prefix: prefix, Tokens: fresh, Finishing: 1,
		Chunks: []perfmodel.Chunk{{Before: prefix, Length: fresh + prefix}},
	}})
	return pricedPrefill{fresh, prefix, price.PrefillMs, price.Extrapolated, fresh+prefix <= d.plan.KVTokens}
}

// pricesText shows decode over batch and context, and prefill over new tokens and prefix.
func (d *deployment) pricesText() string {
	var b strings.Builder
	var marks priceMarks
	b.WriteString("Decode pass, ms:\n")
	b.WriteString(priceTable("batch", "context", shownBatches, shownContexts, func(batch, context int) string {
		p := d.decode(batch, context)
		return marks.cell(p.Ms, p.Extrapolated, p.Fits)
	}))
	b.WriteString("\nPrefill pass of one prompt, ms:\n")
	b.WriteString(priceTable("new tokens", "prefix", shownNew, shownPrefixes, func(fresh, prefix int) string {
		p := d.prefill(fresh, prefix)
		return marks.cell(p.Ms, p.Extrapolated, p.Fits)
	}))
	return b.String() + "\n" + marks.notes()
}

func priceTable(down, across string, rows, columns []int, cell func(row, column int) string) string {
	out := newTableWriter()
	header := table.Row{down}
	for _, c := range columns {
		header = append(header, across+"\n"+count(c))
	}
	out.AppendHeader(header)
	out.SetColumnConfigs(rightAligned(1, len(header)))
	for _, r := range rows {
		cells := table.Row{count(r)}
		for _, c := range columns {
			cells = append(cells, cell(r, c))
		}
		out.AppendRow(cells)
	}
	return out.Render()
}

// priceMarks remembers which marks a table of prices has.
type priceMarks struct{ extrapolated, full bool }

func (m *priceMarks) cell(ms float64, extrapolated, fits bool) string {
	text := figure(ms)
	if extrapolated {
		m.extrapolated = true
		text = "~" + text
	}
	if !fits {
		m.full = true
		text = "(" + text + ")"
	}
	return text
}

func (m *priceMarks) notes() string {
	var b strings.Builder
	if m.extrapolated {
		fmt.Fprintln(&b, "~ outside of what was measured")
	}
	if m.full {
		fmt.Fprintln(&b, "( ) more KV cache than there is memory for")
	}
	return b.String()
}
