package workload

import (
	"context"
	"fmt"
	"math"

	"github.com/servegrid/servegrid/simcore/problem"
)

// appliedCompute reads traces of agents that call a tool after each answer: one session a line, as the lengths of its
// parts (spec/workloads.md §1.4). They state no times, so that they are replayed in closed loop.
type appliedCompute struct {
	spec     TraceSpec
	src      Source
	rows     *findings
	builder  *Builder
	nextID   uint64
	ids      []uint64
	sessions int32
}

func loadAppliedCompute(ctx context.Context, s TraceSpec, src Source, found *findings) (*Workload, error) {
	a := appliedCompute{rows: found, spec: s, src: src, builder: NewBuilder(s.name(), s.BlockSize), nextID: 1}
	if err := a.rows.eachLine(ctx, src, s.Paths[0], func(_ int, line []byte) error { return a.readLine(line) }); err != nil {
		return nil, err
	}
	return s.finish(a.builder, a.rows)
}

// validateSharing checks the settings that say what the prompts of this format have in common.
func (s TraceSpec) validateSharing(l *problem.List) {
	if !(s.SharedPrefixRatio >= 0 && s.SharedPrefixRatio <= 1) {
		l.Add("shared_prefix_ratio", s.SharedPrefixRatio, "give 0 to 1")
	}
	if s.PrefixGroups < 0 || s.PrefixGroups > math.MaxInt32 {
		l.Add("prefix_groups", s.PrefixGroups, "give 0 to %d", math.MaxInt32)
	}
}

// appliedComputeRow is one session. All fields are required.
type appliedComputeRow struct {
	turns, input, final uint64
	answers, results    []uint64
	waits               []float64
	seen                uint8
}

var appliedComputeFields = []string{"num_turns", "input_prompt_length", "final_assistant_response_length",
	"assistant_response_length", "tool_call_output_length", "tool_call_latency"}

func (a *appliedCompute) readLine(data []byte) error {
	var row appliedComputeRow
	line := jsonLine{data: data}
	err := line.object(func(key []byte) (err error) {
		for i, name := range appliedComputeFields {
			if string(key) != name {
				continue
			}
			if ok, err := wanted(&line, &row.seen, 1<<i, key, givenTwice); !ok {
				return err
			}
			return row.read(&line, name)
		}
		return line.skip()
	})
	if err != nil {
		return err
	}
	if err := row.check(); err != nil {
		return err
	}
	return a.add(row)
}

func (r *appliedComputeRow) read(line *jsonLine, name string) (err error) {
	switch name {
	case "num_turns":
		r.turns, err = line.uint(name)
	case "input_prompt_length":
		r.input, err = line.uint(name)
	case "final_assistant_response_length":
		r.final, err = line.uint(name)
	case "assistant_response_length":
		r.answers, err = line.uints(name, nil)
	case "tool_call_output_length":
		r.results, err = line.uints(name, nil)
	case "tool_call_latency":
		err = line.list(name, "a list of seconds", func() error {
			seconds, err := line.number(name)
			r.waits = append(r.waits, seconds)
			return err
		})
	}
	return err
}

func (r *appliedComputeRow) check() error {
	for i, name := range appliedComputeFields {
		if r.seen&(1<<i) == 0 {
			return &fieldError{field: name, message: "is missing"}
		}
	}
	for _, list := range []struct {
		name string
		has  int
	}{{"assistant_response_length", len(r.answers)}, {"tool_call_output_length", len(r.results)}, {"tool_call_latency", len(r.waits)}} {
		if uint64(list.has) != r.turns {
			return &fieldError{list.name, fmt.Sprintf("of %d elements", list.has), fmt.Sprintf("does not match num_turns, %d", r.turns)}
		}
	}
	if r.input == 0 {
		return &fieldError{"input_prompt_length", "0", "must be positive"}
	}
	for i, seconds := range r.waits {
		if seconds < 0 || seconds > maxTimeMs/1000 {
			return &fieldError{fmt.Sprintf("tool_call_latency[%d]", i), fmt.Sprint(seconds), fmt.Sprintf("must be from 0 to %g seconds", maxTimeMs/1000)}
		}
	}
	total := r.input
	for i := range r.answers {
		if r.answers[i] > MaxTokens || r.results[i] > MaxTokens || total > MaxTokens {
			return fmt.Errorf("turn %d: the prompt or an answer is longer than %d tokens", i+1, MaxTokens)
		}
		total += r.answers[i] + r.results[i]
	}
	if total > MaxTokens || r.final > MaxTokens {
		return fmt.Errorf("the last prompt of %d tokens, or its answer of %d, is longer than %d", total, r.final, MaxTokens)
	}
	return nil
}

// sharedPrefix marks the ids of blocks that the sessions of a group have in common.
const sharedPrefix = 0xA63E << 48

// add makes the turns of a session: each prompt goes on where the one before it ended.
func (a *appliedCompute) add(row appliedComputeRow) error {
	size := uint64(a.spec.BlockSize)
	group := uint64(0)
	shared := 0
	if a.spec.PrefixGroups > 0 {
		shared = int(math.Round(float64((row.input+size-1)/size) * a.spec.SharedPrefixRatio))
		if !a.src.Rules.OnePrefixGroup {
			group = uint64(int(a.sessions) % a.spec.PrefixGroups)
		}
	}
	a.ids = a.ids[:0]
	input := row.input
	for turn := range len(row.answers) + 1 {
		r := Request{Output: int(row.final), ArrivalMs: math.NaN()}
		if turn < len(row.answers) {
			r.Output = int(row.answers[turn])
		}
		if turn > 0 {
			r.DelayMs = row.waits[turn-1] * 1000
			input += row.answers[turn-1] + row.results[turn-1]
		}
		for uint64(len(a.ids))*size < input {
			if i := len(a.ids); i < shared {
				a.ids = append(a.ids, sharedPrefix|group<<32|uint64(i))
			} else {
				a.ids = append(a.ids, a.nextID)
				a.nextID++
			}
		}
		r.Input, r.Hashes = int(input), a.ids
		a.builder.addTurn(r, a.sessions, turn > 0)
	}
	a.sessions++
	return nil
}
