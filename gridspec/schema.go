package gridspec

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// document is the whole schema of a spec: the `json` names are its keys, in their canonical order. Keys of type
// any have more than one form and are read by the file that their comment names.
type document struct {
	// Name labels the sweep.
	Name string `json:"name"`
	// Workload is what is replayed: one workload, or a list of them, which is an axis named workload.
	Workload any `json:"workload"`

	Config

	// Prices overrides what a GPU costs, in USD per GPU-hour, by GPU type.
	Prices priceMap `json:"prices"`
	// Grid holds the axes that are combined each with each, the last one fastest.
	Grid axisMap `json:"grid"`
	// Zip holds axes of equal length that advance together.
	Zip axisMap `json:"zip"`
	// Cases holds named bundles of settings; the column case says which.
	Cases caseMap `json:"cases"`
	// Random draws independent samples of a space.
	Random *sampling `json:"random"`
	// LHS draws a Latin hypercube: every axis is covered evenly.
	LHS *sampling `json:"lhs"`
	// Sobol draws a Sobol sequence with a seeded shift: the whole space is covered evenly.
	Sobol *sampling `json:"sobol"`
	// Include adds points: the base configuration with these settings. Without axes the spec has just these points.
	Include []bundle `json:"include"`
	// Exclude drops the points for which one of these expressions is true. Included points stay.
	Exclude []string `json:"exclude"`
	// Derive adds columns that expressions compute from the configuration.
	Derive derivedMap `json:"derive"`
	// Objectives says what the frontier maximizes and minimizes.
	Objectives Objectives `json:"objectives"`
	// Search says how a search chooses the points to simulate. Without a method all points are.
	Search Search `json:"search"`
	// Execution says how the points are run.
	Execution Execution `json:"execution"`
	// Output says where the results go.
	Output Output `json:"output"`
}

type (
	// axisMap holds the values of axes by key path.
	axisMap map[string]any
	// caseMap holds bundles by name.
	caseMap map[string]bundle
	// bundle holds settings by key path.
	bundle map[string]any
	// derivedMap holds expressions by column name.
	derivedMap map[string]string
	// priceMap holds prices by GPU type.
	priceMap map[string]float64
)

// sampling is a number of samples of a space.
type sampling struct {
	// Samples is the number of samples.
	Samples int `json:"samples"`
	// Space holds the axes that are sampled, by key path.
	Space axisMap `json:"space"`
}

// Objectives says which columns the Pareto frontier maximizes and minimizes.
type Objectives struct {
	// Maximize lists metrics or derived columns that should be high.
	Maximize []string `json:"maximize"`
	// Minimize lists metrics or derived columns that should be low.
	Minimize []string `json:"minimize"`
}

// Execution says how the points of a spec are run.
type Execution struct {
	// Jobs is the number of points that run at once; auto uses every core.
	Jobs Jobs `json:"jobs"`
	// Timeout is the longest time one point may take, such as 90s or 5m; 0 means no limit.
	Timeout time.Duration `json:"timeout"`
	// OnInvalid says what happens to impossible combinations: error refuses the spec, skip keeps them as rows.
	OnInvalid OnInvalid `json:"on_invalid"`
	// Replicates is how often each point is repeated.
	Replicates int `json:"replicates"`
	// Seed decides all samples of random, lhs and sobol.
	Seed uint64 `json:"seed"`
	// Seeds says whether replicates draw workloads of their own (derived) or repeat the same one (shared).
	Seeds SeedMode `json:"seeds"`
	// StopWhenSLALost ends the simulation of a point as soon as it can no longer keep the SLA; the row then says so and has
	// no figures.
	StopWhenSLALost bool `json:"stop_when_sla_lost"`
	// MaxMemory bounds the memory of all points that run at once, such as 8GiB; 0 means three quarters of what is free.
	MaxMemory Bytes `json:"max_memory"`
}

// Output says where the results go.
type Output struct {
	// Dir is the folder of the results, or its URL, such as s3://bucket/runs/first. A relative one starts at the spec's folder.
	Dir string `json:"dir"`
	// PerRequest also writes a record of every request.
	PerRequest bool `json:"per_request"`
	// Timelines also writes what happened over time at every point: workers, queue and latencies in windows.
	Timelines bool `json:"timelines"`
	// PartitionBy names the axes and derived values by which the files of requests and timelines are sorted into folders, as Hive does:
	// requests/COLUMN=VALUE/ID.parquet.
	PartitionBy []string `json:"partition_by"`
}

// OnInvalid says what happens to impossible combinations.
type OnInvalid string

// The ways to treat impossible combinations.
const (
	// InvalidIsError refuses the whole spec.
	InvalidIsError OnInvalid = "error"
	// InvalidIsSkipped keeps them as points with a SkipReason.
	InvalidIsSkipped OnInvalid = "skip"
)

// SeedMode says which seeds replicates use.
type SeedMode string

// The seed modes.
const (
	// SeedsDerived gives every replicate but the first a seed of its own, derived from the workload's.
	SeedsDerived SeedMode = "derived"
	// SeedsShared gives all replicates the workload's seed.
	SeedsShared SeedMode = "shared"
)

// choices returns the accepted values, for errors and the JSON Schema.
func (OnInvalid) choices() []string {
	return []string{string(InvalidIsError), string(InvalidIsSkipped)}
}
func (SeedMode) choices() []string { return []string{string(SeedsDerived), string(SeedsShared)} }

// Jobs is a number of points that run at once; 0, written auto, means one a core.
type Jobs int

func (j *Jobs) fromSpec(v any) string {
	const allowed = "give auto or a number of 1 or more"
	if v == "auto" {
		*j = 0
		return ""
	}
	n, ok := v.(int64)
	if !ok || n < 1 || n > math.MaxInt32 {
		return allowed
	}
	*j = Jobs(n)
	return ""
}

// Bytes is an amount of memory. What 0 means is said where it is used.
type Bytes int64

// ParseBytes reads a size such as 512MiB, 8GiB or 8GB.
func ParseBytes(text string) (Bytes, error) {
	var (
		b Bytes
		v any = text
	)
	if text == "0" {
		v = int64(0)
	}
	if allowed := b.fromSpec(v); allowed != "" {
		return 0, fmt.Errorf("%q is not allowed; %s", text, allowed)
	}
	return b, nil
}

func (b *Bytes) fromSpec(v any) string {
	const allowed = "give a size such as 512MiB, 8GiB or 8GB, or 0"
	if v == int64(0) {
		*b = 0
		return ""
	}
	text, _ := v.(string)
	number := strings.TrimRight(text, "BKMGTi")
	unit, ok := map[string]float64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
		"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}[text[len(number):]]
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(n > 0) || n*unit > math.MaxInt64/2 {
		return allowed
	}
	*b = Bytes(n * unit)
	return ""
}

func defaultDocument() document {
	return document{
		Config:    DefaultConfig(),
		Execution: Execution{OnInvalid: InvalidIsError, Replicates: 1, Seeds: SeedsDerived},
	}
}
