package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/simcore/problem"
	"github.com/servegrid/servegrid/simcore/rules"
)

// Spec names a workload as users write it: exactly one of Trace, Preset and Synthetic is set. The `json` names
// are the key paths below `workload` in a grid spec.
type Spec struct {
	// Name labels the workload in results; empty means the file's, preset's or generator's name.
	Name string `json:"name,omitempty"`
	// Trace reads a trace file.
	Trace *TraceSpec `json:"trace,omitempty"`
	// Preset generates a realistic workload by name.
	Preset *PresetSpec `json:"preset,omitempty"`
	// Synthetic generates requests of one size.
	Synthetic *SyntheticSpec `json:"synthetic,omitempty"`
	// Share replays the beginning of the workload only: whole sessions, in the order in which they start, that have this share of
	// the requests. 0 and 1 mean all.
	Share float64 `json:"share,omitempty"`
}

// TraceSpec names a trace file.
type TraceSpec struct {
	// Path is the file or its URL, such as s3://bucket/trace.jsonl, plain or compressed with gzip or zstd, or the folder of a
	// capture or of WEKA conversations; "-" is the standard input.
	Path string `json:"path,omitempty"`
	// Paths are several files, read one after another as if they were one; give either Path or Paths.
	Paths []string `json:"paths,omitempty"`
	// Format says how to read the files; "auto" tells it by their content.
	Format string `json:"format"`
	// BlockSize is the number of tokens one hash id stands for; 0 means what the format or the file itself says.
	BlockSize int `json:"block_size"`
	// Pacing says when requests that wait for others may start: "causal" once those are done, "causal_with_floor" not before
	// their recorded time either; "" is what the format usually has.
	Pacing string `json:"pacing,omitempty"`
	// SpawnTrigger says what a subagent's first request waits for: its parent's "dispatch" or "completion", or "recorded":
	// whichever came last before it in the trace; "" is what the format usually has.
	SpawnTrigger string `json:"spawn_trigger,omitempty"`
	// JoinDelay says how long a request waits after the subagent that it joins has ended: as "recorded", or "none"; "" is
	// what the format usually has.
	JoinDelay string `json:"join_delay,omitempty"`
	// SharedPrefixRatio is the share of each first prompt's blocks that its prefix group has in common, and PrefixGroups the
	// number of groups, for applied_compute_agentic traces; 0 groups share nothing.
	SharedPrefixRatio float64 `json:"shared_prefix_ratio,omitempty"`
	PrefixGroups      int     `json:"prefix_groups,omitempty"`
	// NestedTimestampBasis says what the times of subagents' requests in WEKA traces count from: "absolute" from the
	// trace's start, "relative" from the subagent's marker, "auto" or "" what the corpus shows.
	NestedTimestampBasis string `json:"nested_timestamp_basis,omitempty"`
	// Strict makes errors of what looks incomplete in a trace, which are warnings otherwise.
	Strict bool `json:"strict,omitempty"`
	// Salvage replays what is whole of a damaged trace and counts what it leaves out.
	Salvage bool `json:"salvage,omitempty"`
	// CharactersPerToken turns the texts of AIPerf traces into lengths; 0 means 4.
	CharactersPerToken float64 `json:"characters_per_token"`
	// DefaultOutputLength is the output in tokens of rows of AIPerf traces that do not state it; with 0 they must.
	DefaultOutputLength int `json:"default_output_length"`
}

// PresetSpec generates a workload whose statistics are fitted to a real trace.
type PresetSpec struct {
	// Name says which preset.
	Name string `json:"name"`
	// Requests is the number of requests; 0 means as many as DurationSeconds holds.
	Requests int `json:"requests"`
	// Rate is the mean number of requests per second; 0 means the preset's own.
	Rate float64 `json:"rate"`
	// DurationSeconds ends the workload; 0 means when Requests are made.
	DurationSeconds float64 `json:"duration_s"`
	// Scale multiplies input and output lengths; 0 means 1.
	Scale float64 `json:"scale"`
	// Seed makes another workload of the same kind.
	Seed uint64 `json:"seed"`
}

// SyntheticSpec generates requests of one size at a fixed interval.
type SyntheticSpec struct {
	// InputTokens and OutputTokens are the lengths of each request.
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
	// Requests is the number of requests, or of sessions when TurnsPerSession is above 1.
	Requests int `json:"requests"`
	// ArrivalIntervalMs is the time between the starts of two sessions.
	ArrivalIntervalMs float64 `json:"arrival_interval_ms"`
	// TurnsPerSession is the number of requests of a session, one after another.
	TurnsPerSession int `json:"turns_per_session"`
	// SharedPrefixRatio is the share of each prompt's blocks that its prefix group has in common.
	SharedPrefixRatio float64 `json:"shared_prefix_ratio"`
	// PrefixGroups is the number of groups with a common prefix; 0 means nothing is shared.
	PrefixGroups int `json:"prefix_groups"`
	// InterTurnDelayMs is the time between the completion of a turn and the next.
	InterTurnDelayMs float64 `json:"inter_turn_delay_ms"`
	// Seed draws each session's prefix group.
	Seed uint64 `json:"seed"`
}

// DefaultTraceSpec is a trace without a path whose format is told by its content.
func DefaultTraceSpec() TraceSpec {
	return TraceSpec{Format: FormatAuto, CharactersPerToken: defaultCharactersPerToken, DefaultOutputLength: 128}
}

// DefaultSyntheticSpec has the reference's defaults: one request a millisecond, nothing shared.
func DefaultSyntheticSpec() SyntheticSpec {
	return SyntheticSpec{ArrivalIntervalMs: 1, TurnsPerSession: 1, Seed: 42}
}

// DependsOnEngine reports whether the requests depend on the engine's block size: synthetic sessions share
// whole KV blocks, so their prefixes are counted in them.
func (s Spec) DependsOnEngine() bool { return s.Synthetic != nil && s.Synthetic.sessions() }

// Source is what loading a workload may need from outside.
type Source struct {
	// Rules decides between the reference's repairs and errors.
	Rules rules.Set
	// EngineBlockSize is the KV block size, for synthetic sessions.
	EngineBlockSize int
	// Stdin is read for the path "-".
	Stdin io.Reader
	// MaxExpansion is how many times as large as it is a compressed trace may become; 0 means [DefaultMaxExpansion].
	MaxExpansion int
	// Files opens traces; nil means those of this machine, without URLs.
	Files files.System

	// peeked holds files that were opened to tell the format of a trace, for the loader to go on with.
	peeked map[string]io.ReadCloser
}

// cutHashes keeps of hash ids the part that the rules know.
func (s Source) cutHashes(ids []uint64) {
	if s.Rules.HashIDs32 {
		for i := range ids {
			ids[i] &= math.MaxUint32
		}
	}
}

// Load reads or generates the workload.
func (s Spec) Load(ctx context.Context, src Source) (*Workload, error) {
	if err := s.Validate().Err(); err != nil {
		return nil, err
	}
	var w *Workload
	var err error
	switch {
	case s.Trace != nil:
		w, err = s.Trace.load(ctx, src)
	case s.Preset != nil:
		w, err = s.Preset.Generate()
	default:
		w, err = s.Synthetic.generate(ctx, src)
	}
	if err != nil {
		return nil, err
	}
	if s.Name != "" {
		w.Name = s.Name
	}
	if s.Share > 0 {
		w = w.First(s.Share)
	}
	return w, nil
}

// ShortenTo takes the beginning of what the spec names: so much of its own share.
func (s *Spec) ShortenTo(share float64) {
	if s.Share > 0 {
		share *= s.Share
	}
	s.Share = share
}

// Label is the name under which results show the workload.
func (s Spec) Label() string {
	switch {
	case s.Name != "":
		return s.Name
	case s.Trace != nil:
		return strings.Join(s.Trace.files(), " ")
	case s.Preset != nil:
		return s.Preset.Name
	case s.Synthetic != nil:
		return fmt.Sprintf("synthetic %d/%d", s.Synthetic.InputTokens, s.Synthetic.OutputTokens)
	}
	return ""
}

// Validate returns all problems of the spec. Whether a trace file exists and is sound shows when it is loaded.
func (s Spec) Validate() problem.List {
	var l problem.List
	given := 0
	if s.Trace != nil {
		given++
		l = append(l, s.Trace.validate().Under("trace")...)
	}
	if s.Preset != nil {
		given++
		l = append(l, s.Preset.validate().Under("preset")...)
	}
	if s.Synthetic != nil {
		given++
		l = append(l, s.Synthetic.validate().Under("synthetic")...)
	}
	if !(s.Share >= 0 && s.Share <= 1) {
		l = append(l, problem.Problem{Path: "share", Value: fmt.Sprint(s.Share), Allowed: "give a share above 0 and up to 1, or 0 for all"})
	}
	if given != 1 {
		l = append(l, problem.Problem{Path: "(workload)", Allowed: "give exactly one of trace, preset and synthetic"})
	}
	return l
}

var errNoStdin = errors.New("the trace path \"-\" needs a standard input")
