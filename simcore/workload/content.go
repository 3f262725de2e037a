package workload

// ContentRun is so many tokens of a prompt that follow from one name: equal names have equal tokens, fewer of which are the
// beginning of more.
type ContentRun struct {
	// Name is a hash id or, if Answer is set, the number of a request whose answer the tokens are.
	Name   uint64
	Answer bool
	// Tokens is how many there are.
	Tokens int
}

// AppendContent appends what the prompt of a request consists of, as far as its source says: all of its Input tokens, or
// nothing for a prompt that no other shares. Neighbouring runs have different names.
//
// Two prompts share their KV blocks as far as their runs are equal.
func (w *Workload) AppendContent(runs []ContentRun, request int) []ContentRun {
	tokens, left, first := w.known(request), w.Input[request], len(runs)
	for left > 0 && tokens.next() {
		run := &tokens.run
		n := min(left, run.count)
		left -= n
		run.count -= n
		if last := len(runs) - 1; last >= first && runs[last].Name == run.token && runs[last].Answer == run.generated {
			runs[last].Tokens += int(n)
			continue
		}
		runs = append(runs, ContentRun{Name: run.token, Answer: run.generated, Tokens: int(n)})
	}
	return runs
}
