package workload

import (
	"context"
	"fmt"
)

// transcripts hold the prompts of sessions whose turns go on where the turn before ended: with its answer and what is new.
// A session's content is one list of runs, and each prompt is the beginning of it.
type transcripts struct {
	runs []tokenRun
	// first is the first run of each request's session; its prompt ends before run end, and its answer before run answered.
	first, end, answered []uint32
}

// tokenRun is so many equal tokens.
type tokenRun struct {
	token uint64
	count int32
	// generated sets tokens that a model made up apart from those that traces name. Made-up tokens differ in truth; as no
	// other answer has them, one token stands for all of an answer.
	generated bool
}

// loadDelta reads Mooncake rows that state only the new tokens of each turn (spec/workloads.md §1.2).
func loadDelta(ctx context.Context, s TraceSpec, src Source, found *findings) (*Workload, error) {
	m := newMooncake(s, src, found)
	if err := m.read(ctx); err != nil {
		return nil, err
	}
	if !m.builder.multiTurn {
		return s.finish(m.builder, found)
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	return m.builder.buildTranscripts()
}

// buildTranscripts is Build for requests whose lengths and hash ids are of the new tokens of each turn.
func (b *Builder) buildTranscripts() (*Workload, error) {
	n := len(b.w.Input)
	sessions := make([][]tokenRun, len(b.turns))
	total := make([]int64, len(b.turns))
	end, answered := make([]uint32, n), make([]uint32, n)
	for i, s := range b.sessionOf {
		sessions[s] = b.appendPrompt(sessions[s], i)
		end[i] = uint32(len(sessions[s]))
		sessions[s] = b.appendAnswer(sessions[s], i)
		answered[i] = uint32(len(sessions[s]))
		input := total[s] + int64(b.w.Input[i])
		if total[s] = input + int64(b.w.Output[i]); total[s] > MaxTokens {
			return nil, fmt.Errorf("session %s: its turns have more than %d tokens together", (&Workload{sessionNames: b.w.sessionNames}).SessionName(int(s)), MaxTokens)
		}
		b.w.Input[i] = int32(input)
	}
	b.w.runs, b.w.planned = nil, nil
	clear(b.w.runStart)
	return b.build(func(w *Workload, order []int32) {
		t := &transcripts{first: make([]uint32, n), end: make([]uint32, n), answered: make([]uint32, n)}
		for s, runs := range sessions {
			first := uint32(len(t.runs))
			t.runs = append(t.runs, runs...)
			for i := w.SessionStart[s]; i < w.SessionStart[s+1]; i++ {
				t.first[i], t.end[i], t.answered[i] = first, first+end[order[i]], first+answered[order[i]]
			}
		}
		w.transcripts = t
	})
}

// appendPrompt appends the new tokens of a request's prompt.
func (b *Builder) appendPrompt(runs []tokenRun, i int) []tokenRun {
	left := b.w.Input[i]
	for _, run := range b.w.promptRuns(i) {
		for _, id := range b.names.hashes[run.Start : run.Start+run.Len] {
			count := min(left, int32(b.w.BlockSize))
			runs = append(runs, tokenRun{token: id, count: count})
			left -= count
		}
	}
	return runs
}

// appendAnswer appends a request's output.
func (b *Builder) appendAnswer(runs []tokenRun, i int) []tokenRun {
	if planned, ok := b.w.planned[int32(i)]; ok {
		return append(runs, planned...)
	}
	if b.w.Output[i] == 0 {
		return runs
	}
	return append(runs, tokenRun{token: uint64(i), count: b.w.Output[i], generated: true})
}

// known returns the runs of a request's prompt and answer.
func (t *transcripts) known(request int) []tokenRun {
	return t.runs[t.first[request]:t.answered[request]]
}
