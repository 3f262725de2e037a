package catalogue

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// GPU is the public data of one kind of GPU. Speeds are peaks without sparsity.
type GPU struct {
	// ID names the GPU in specs and results, such as "h200_sxm".
	ID string
	// Vendor is "nvidia" or "amd", Name the name people know.
	Vendor, Name string
	// Aliases are further names that FindGPU takes.
	Aliases []string
	// MemoryGiB is the memory a process can use, in GiB.
	MemoryGiB float64
	// MemoryGBps is the bandwidth of the memory, in GB/s (10^9 bytes).
	MemoryGBps float64
	// BF16TFLOPS, FP8TFLOPS and FP4TFLOPS are dense matrix speeds by number format; 0 where there are no units for it.
	BF16TFLOPS, FP8TFLOPS, FP4TFLOPS float64
	// LinkGBps is the bandwidth between GPUs of a node in one direction, PCIeGBps that to the host and NICGBps that to
	// other nodes, each of one GPU in GB/s.
	LinkGBps, PCIeGBps, NICGBps float64
	// GPUsPerNode is the number of GPUs in one server.
	GPUsPerNode int
	// TDPWatts is the power limit of the board, an upper bound of what it draws.
	TDPWatts float64
	// USDPerHour is a public on-demand price of one GPU, 0 when none was found; PriceNote says whose and when,
	// PriceSource where it is written.
	USDPerHour             float64
	PriceNote, PriceSource string
	// SpecSource says where the other figures come from.
	SpecSource string
}

// GPUs lists the catalogue, in the order of its file.
func GPUs() []GPU { return slices.Clone(gpus()) }

// FindGPU returns the GPU with an id or alias. Case, spaces, punctuation and a leading vendor's name don't count:
// "h200_sxm", "H200" and "NVIDIA H200 SXM" are one. The error is an [*UnknownError] with the nearest ids.
func FindGPU(name string) (GPU, error) {
	if g, ok := gpuIndex()[gpuName(name)]; ok {
		return g, nil
	}
	var names, ids []string
	for _, g := range gpus() {
		for _, n := range g.names() {
			names, ids = append(names, gpuName(n)), append(ids, g.ID)
		}
	}
	return GPU{}, unknown("GPU", name, "servegrid perf list shows all", names, ids)
}

// names lists everything that a GPU is called.
func (g GPU) names() []string { return append([]string{g.ID, g.Name}, g.Aliases...) }

// gpuIndex finds GPUs by their names as gpuName has them.
var gpuIndex = sync.OnceValue(func() map[string]GPU {
	index := map[string]GPU{}
	for _, g := range gpus() {
		for _, n := range g.names() {
			index[gpuName(n)] = g
		}
	}
	return index
})

// gpuName is a name as it is compared, without the vendor's.
func gpuName(name string) string {
	n := plain(name)
	for _, vendor := range []string{"nvidia", "amd", "instinct"} {
		if rest := strings.TrimPrefix(n, vendor); rest != "" {
			n = rest
		}
	}
	return n
}

//go:embed gpus.csv
var gpuTable string

// gpus parses the embedded table once. It is part of the program, so damage to it is a bug.
var gpus = sync.OnceValue(func() []GPU {
	all, err := parseGPUs(gpuTable)
	if err != nil {
		panic("catalogue: embedded gpus.csv: " + err.Error())
	}
	return all
})

func parseGPUs(text string) ([]GPU, error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	out := make([]GPU, 0, len(rows))
	for i, row := range rows {
		if i == 0 {
			if !slices.Equal(row, gpuColumns) {
				return nil, fmt.Errorf("the columns are %v; they must be %v", row, gpuColumns)
			}
			continue
		}
		g, err := parseGPU(row)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		}
		out = append(out, g)
	}
	return out, nil
}

var gpuColumns = []string{
	"id", "vendor", "name", "aliases", "memory_gib", "memory_gbps", "bf16_tflops", "fp8_tflops", "fp4_tflops", "link_gbps",
	"pcie_gbps", "nic_gbps", "gpus_per_node", "tdp_watts", "usd_per_hour", "price_note", "price_source", "spec_source",
}

// parseGPU reads a row with those columns.
func parseGPU(row []string) (GPU, error) {
	g := GPU{
		ID: row[0], Vendor: row[1], Name: row[2], Aliases: strings.Split(row[3], ";"),
		PriceNote: row[15], PriceSource: row[16], SpecSource: row[17],
	}
	var perNode float64
	for i, into := range []*float64{
		&g.MemoryGiB, &g.MemoryGBps, &g.BF16TFLOPS, &g.FP8TFLOPS, &g.FP4TFLOPS, &g.LinkGBps,
		&g.PCIeGBps, &g.NICGBps, &perNode, &g.TDPWatts, &g.USDPerHour,
	} {
		text := row[4+i]
		if text == "" { // not known, or no units for the format
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v > 0) || math.IsInf(v, 0) {
			return GPU{}, fmt.Errorf("%s is %q; it must be a number over 0", gpuColumns[4+i], text)
		}
		*into = v
	}
	g.GPUsPerNode = int(perNode)
	return g, nil
}
