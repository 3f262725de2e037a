package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/simcore/problem"
)

// The trace formats that TraceSpec.Format names; spec/workloads.md §1 describes them.
const (
	// FormatAuto tells the format by the content.
	FormatAuto = "auto"
	// FormatMooncake is the Mooncake JSON Lines format.
	FormatMooncake = "mooncake"
	// FormatMooncakeDelta is Mooncake rows that state only what is new of each turn's prompt.
	FormatMooncakeDelta = "mooncake-delta"
	// FormatAgenticMooncake is Mooncake rows with what each waits for, of version 1 or 2.
	FormatAgenticMooncake = "agentic_mooncake"
	// FormatAppliedCompute is sessions of agents as the lengths of their parts.
	FormatAppliedCompute = "applied_compute_agentic"
	// FormatAIPerf is AIPerf's mooncake_trace: Mooncake rows, or texts and messages.
	FormatAIPerf = "aiperf"
	// FormatAzure is the CSV of the Azure LLM inference traces.
	FormatAzure = "azure"
	// FormatBurstGPT is the CSV of the BurstGPT traces.
	FormatBurstGPT = "burstgpt"
	// FormatDynamo is the request trace that a Dynamo frontend records: JSON Lines, in one or more files.
	FormatDynamo = "dynamo"
	// FormatWeka is the conversations of agents that the kv-cache-tester records: JSON objects in files or folders.
	FormatWeka = "weka"
	// FormatQwenBailian is the JSON Lines format of the Qwen-Bailian usage traces.
	FormatQwenBailian = "qwen-bailian"
)

// The values of TraceSpec.Pacing, SpawnTrigger and JoinDelay; each may be left out.
const (
	PacingCausal    = "causal"
	PacingWithFloor = "causal_with_floor"

	SpawnRecorded   = "recorded"
	SpawnDispatch   = "dispatch"
	SpawnCompletion = "completion"

	JoinRecorded = "recorded"
	JoinNone     = "none"
)

// DefaultTraceBlockSize is the number of tokens per hash id of Mooncake traces.
const DefaultTraceBlockSize = 512

// traceFormat is a format that can be read.
type traceFormat struct {
	name string
	// from says what its paths may name.
	from traceSource
	// load reads the files of a spec whose settings are complete.
	// What is wrong with rows is noted in found, and left out of the workload if that salvages.
	load func(ctx context.Context, s TraceSpec, src Source, found *findings) (*Workload, error)
	// blockSize is that of a spec which gives none, in tokens; 0 when files say it themselves or have no blocks.
	blockSize int
	// uses names the settings that the format knows, besides those that all know: files, format, strict and salvage.
	uses []string
}

// traceSource is what the paths of a trace may name.
type traceSource uint8

const (
	fromOneFile traceSource = iota
	fromFiles
	// fromFolders is from files, and from folders with such files.
	fromFolders
)

// graphSettings say when requests that wait for others start.
var graphSettings = []string{"pacing", "spawn_trigger", "join_delay"}

// traceFormats are the formats in the order in which people see them.
func traceFormats() []traceFormat {
	return []traceFormat{
		{FormatMooncake, fromFiles, loadMooncake, DefaultTraceBlockSize, []string{"block_size"}},
		{FormatDynamo, fromFolders, loadDynamo, 0, append([]string{"block_size"}, graphSettings...)},
		{FormatWeka, fromFolders, loadWeka, 0, append([]string{"block_size", "nested_timestamp_basis"}, graphSettings...)},
		{FormatMooncakeDelta, fromOneFile, loadDelta, DefaultTraceBlockSize, []string{"block_size"}},
		{FormatAgenticMooncake, fromOneFile, loadAgentic, 0, append([]string{"block_size"}, graphSettings...)},
		{FormatAppliedCompute, fromOneFile, loadAppliedCompute, DefaultTraceBlockSize, []string{"block_size", "shared_prefix_ratio", "prefix_groups"}},
		{FormatAIPerf, fromFiles, loadAIPerf, DefaultTraceBlockSize, []string{"block_size", "characters_per_token", "default_output_length"}},
		{FormatAzure, fromFiles, loadAzure, 0, nil},
		{FormatBurstGPT, fromFiles, loadBurstGPT, 0, nil},
		{FormatQwenBailian, fromFiles, loadQwen, DefaultQwenBlockSize, []string{"block_size"}},
	}
}

// Formats lists the accepted values of TraceSpec.Format.
func Formats() []string {
	names := []string{FormatAuto}
	for _, f := range traceFormats() {
		names = append(names, f.name)
	}
	return names
}

func (s TraceSpec) validate() problem.List {
	var l problem.List
	if s.Path == "" && len(s.Paths) == 0 {
		l = append(l, problem.Problem{Path: "path", Allowed: "give the trace file, or - for the standard input"})
	}
	stdin := 0
	for _, path := range s.files() {
		if path == "-" {
			stdin++
		}
	}
	if stdin > 1 {
		l.Add("paths", s.Paths, "name the standard input, -, once")
	}
	if s.Path != "" && len(s.Paths) > 0 {
		l.Add("paths", s.Paths, "give either path or paths")
	}
	if _, known := findFormat(s.Format); !known && s.Format != FormatAuto {
		l.Add("format", s.Format, "use one of: %s", strings.Join(Formats(), ", "))
	}
	if s.BlockSize < 0 || s.BlockSize > MaxTokens {
		l.Add("block_size", s.BlockSize, "give 1 to %d tokens per hash id, or 0 for what the format says", MaxTokens)
	}
	for _, setting := range []struct {
		key, value string
		allowed    []string
	}{
		{"pacing", s.Pacing, []string{PacingCausal, PacingWithFloor}},
		{"spawn_trigger", s.SpawnTrigger, []string{SpawnRecorded, SpawnDispatch, SpawnCompletion}},
		{"nested_timestamp_basis", s.NestedTimestampBasis, []string{NestedAuto, NestedAbsolute, NestedRelative}},
		{"join_delay", s.JoinDelay, []string{JoinRecorded, JoinNone}},
	} {
		if setting.value != "" && !slices.Contains(setting.allowed, setting.value) {
			l.Add(setting.key, setting.value, "use one of: %s; or leave it out", strings.Join(setting.allowed, ", "))
		}
	}
	if s.Strict && s.Salvage {
		l.Add("salvage", s.Salvage, "give either strict or salvage")
	}
	s.validateSharing(&l)
	if s.CharactersPerToken != 0 && !(s.CharactersPerToken >= 0.1 && s.CharactersPerToken <= 1000) {
		l.Add("characters_per_token", s.CharactersPerToken, "give 0.1 to 1000, or 0 for %d", defaultCharactersPerToken)
	}
	if s.DefaultOutputLength < 0 || s.DefaultOutputLength > MaxTokens {
		l.Add("default_output_length", s.DefaultOutputLength, "give 0 to %d tokens", MaxTokens)
	}
	return l
}

func findFormat(name string) (traceFormat, bool) {
	for _, f := range traceFormats() {
		if f.name == name {
			return f, true
		}
	}
	return traceFormat{}, false
}

// MayBeFolder reports whether a path of the trace may be that of a folder with its files.
func (s TraceSpec) MayBeFolder() bool {
	format, known := findFormat(s.Format)
	return !known || format.from == fromFolders
}

// files lists the trace's files in order.
func (s TraceSpec) files() []string {
	if s.Path != "" {
		return []string{s.Path}
	}
	return s.Paths
}

// name is what people call the trace: its first file and how many more there are.
func (s TraceSpec) name() string {
	paths := s.files()
	name := files.Base(paths[0])
	if len(paths) > 1 {
		name = fmt.Sprintf("%s and %d more", name, len(paths)-1)
	}
	return name
}

func (s TraceSpec) load(ctx context.Context, src Source) (*Workload, error) {
	return s.read(ctx, src, &findings{salvage: s.Salvage, strict: s.Strict})
}

// read loads the trace and notes what it finds.
func (s TraceSpec) read(ctx context.Context, src Source, found *findings) (*Workload, error) {
	var shown string
	if s.Format == FormatAuto {
		var err error
		if s.Format, shown, err = src.detect(ctx, s.files()); err != nil {
			return nil, err
		}
	}
	defer src.closePeeked()
	found.format = s.Format
	format, _ := findFormat(s.Format)
	given, name := s.given(), s.name()
	if s.BlockSize == 0 {
		s.BlockSize = format.blockSize
	}
	if err := s.list(ctx, src, format.from); err != nil {
		return nil, err
	}
	if format.from != fromOneFile {
		for _, gap := range src.shardGaps(ctx, s.Paths) {
			found.doubt("%s", gap)
		}
	}
	w, err := format.load(ctx, s, src, found)
	if err != nil {
		if shown != "" && s.Format != FormatMooncake {
			err = fmt.Errorf("%w\n(%s; another format can be named)", err, shown)
		}
		return nil, err
	}
	w.Name, w.Format, w.Detected = name, s.Format, shown
	w.Warnings = found.warnings
	if found.salvage {
		w.LeftOut, w.Warnings = len(found.problems)+found.more, append(w.Warnings, found.leftOut()...)
	}
	for _, setting := range given {
		if src.Rules.SilentTraceSettings {
			break
		}
		if !slices.Contains(format.uses, setting) {
			w.warn("%s has no effect on a trace of format %s", setting, s.Format)
		} else if w.Graph == nil && slices.Contains(graphSettings, setting) {
			w.warn("%s has no effect here: no session of the trace waits for another", setting)
		}
	}
	return w, nil
}

// list puts the files that the paths name into Paths, those in folders included.
func (s *TraceSpec) list(ctx context.Context, src Source, from traceSource) error {
	paths := s.files()
	if from == fromFolders {
		var err error
		kind := InFolder
		if s.Format == FormatDynamo {
			kind = isJSONLines // what lies beside a capture is none of it
		}
		if paths, err = src.filesIn(ctx, paths, kind); err != nil {
			return err
		}
	}
	if from == fromOneFile && len(paths) != 1 {
		return fmt.Errorf("format %s requires exactly one trace file, and %d are given", s.Format, len(paths))
	}
	s.Path, s.Paths = "", paths
	return nil
}

// given names the settings that not all formats know and that are not the default.
func (s TraceSpec) given() []string {
	standard := DefaultTraceSpec()
	var names []string
	for _, setting := range []struct {
		name  string
		given bool
	}{
		{"block_size", s.BlockSize != 0},
		{"pacing", s.Pacing != ""},
		{"spawn_trigger", s.SpawnTrigger != ""},
		{"join_delay", s.JoinDelay != ""},
		{"nested_timestamp_basis", s.NestedTimestampBasis != ""},
		{"shared_prefix_ratio", s.SharedPrefixRatio != 0},
		{"prefix_groups", s.PrefixGroups != 0},
		{"characters_per_token", s.CharactersPerToken != 0 && s.CharactersPerToken != standard.CharactersPerToken},
		{"default_output_length", s.DefaultOutputLength != 0 && s.DefaultOutputLength != standard.DefaultOutputLength},
	} {
		if setting.given {
			names = append(names, setting.name)
		}
	}
	return names
}

// workloadBuilder is a [Builder] or a [GraphBuilder].
type workloadBuilder interface {
	Requests() int
	Build() (*Workload, error)
}

// finish makes the workload of what a loader has read, unless something was wrong with the rows.
func (s TraceSpec) finish(builder workloadBuilder, found *findings) (*Workload, error) {
	if err := found.err(); err != nil {
		return nil, err
	}
	if builder.Requests() == 0 {
		return nil, s.nothing(found, "did not contain any requests")
	}
	return builder.Build()
}

// nothing says that no request was found, and what was instead.
func (s TraceSpec) nothing(found *findings, what string) error {
	none := fmt.Sprintf("trace file %s %s", listed(s.Paths), what)
	return &TraceError{Problems: append(slices.Clone(found.problems), none), More: found.more}
}

// listed names files, the first of many.
func listed(paths []string) string {
	const most = 5
	if len(paths) <= most {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:most], ", "), len(paths)-most)
}

// setLengths checks lengths in tokens against the hash ids, if there are any, and leaves out ids past the input, which
// say nothing about the prompt.
func (r *Request) setLengths(input, output uint64, blockSize int) error {
	if input == 0 {
		return &fieldError{"input_length", "0", "must be positive"}
	}
	if capacity := uint64(len(r.Hashes)) * uint64(blockSize); input > capacity && len(r.Hashes) > 0 {
		return &fieldError{"input_length", fmt.Sprint(input), fmt.Sprintf("exceeds the %d tokens that %d hash_ids of %d tokens cover", capacity, len(r.Hashes), blockSize)}
	}
	if input > MaxTokens {
		return &fieldError{"input_length", fmt.Sprint(input), fmt.Sprintf("is above the limit of %d tokens", MaxTokens)}
	}
	if output > MaxTokens {
		return &fieldError{"output_length", fmt.Sprint(output), fmt.Sprintf("is above the limit of %d tokens", MaxTokens)}
	}
	if len(r.Hashes) > 0 {
		r.Hashes = r.Hashes[:(input+uint64(blockSize)-1)/uint64(blockSize)]
	}
	r.Input, r.Output = int(input), int(output)
	return nil
}

// warn adds a warning about a workload's source.
func (w *Workload) warn(format string, args ...any) {
	w.Warnings = append(w.Warnings, fmt.Sprintf(format, args...))
}
