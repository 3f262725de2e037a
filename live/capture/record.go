package capture

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/servegrid/servegrid/live/openai"
	"github.com/servegrid/servegrid/live/tokens"
)

// schema is the only version there is of the format (spec/workloads.md §1.5).
const schema = "dynamo.request.trace.v1"

// traceLine is one line of the trace: a record in its envelope.
type traceLine struct {
	Timestamp int64 `json:"timestamp"` // unix ms
	Event     event `json:"event"`
}

type event struct {
	Schema  string        `json:"schema"`
	Type    string        `json:"event_type"`
	TimeMs  int64         `json:"event_time_unix_ms"`
	Source  string        `json:"event_source"`
	Context *agentContext `json:"agent_context,omitempty"`
	Request *request      `json:"request,omitempty"`
	Tool    *Tool         `json:"tool,omitempty"`
}

type agentContext struct {
	Session string `json:"session_id"`
	Parent  string `json:"parent_session_id,omitempty"`
}

// request is what a request_end record says. InputTokens and CachedTokens are what the server counted, the input length of the
// replay is what the tokenizer did.
type request struct {
	ID           string   `json:"request_id"`
	ClientID     string   `json:"x_request_id,omitempty"`
	Model        string   `json:"model,omitempty"`
	InputTokens  int      `json:"input_tokens"`
	OutputTokens int      `json:"output_tokens"`
	CachedTokens *int     `json:"cached_tokens,omitempty"`
	ReceivedMs   int64    `json:"request_received_ms"`
	TTFTMs       *float64 `json:"ttft_ms,omitempty"`
	MeanITLMs    *float64 `json:"avg_itl_ms,omitempty"`
	TotalMs      float64  `json:"total_time_ms"`
	HitRate      *float64 `json:"kv_hit_rate,omitempty"`
	Replay       replay   `json:"replay"`
}

type replay struct {
	BlockSize   int      `json:"trace_block_size"`
	InputLength int      `json:"input_length"`
	Input       []uint64 `json:"input_sequence_hashes"`
	Completion  []uint64 `json:"completion_sequence_hashes,omitempty"`
}

// describer makes records of exchanges.
type describer struct {
	tokenizer tokens.Tokenizer
	blockSize int
	salt      []byte
}

// maxCompletion bounds the answers whose blocks are hashed, in tokens: a server may say anything.
const maxCompletion = 1 << 20

// errNoPrompt says that a prompt has no tokens, which no replay can do with.
var errNoPrompt = errors.New("the prompt is empty")

// describe makes the records of an exchange, one for each prompt whose answers have output. prompts is how many there are.
func (d *describer) describe(x *exchange) (events []*event, prompts int, _ error) {
	body, err := decoded(x.request, x.encoding)
	if err != nil {
		return nil, 0, fmt.Errorf("request: %w", err)
	}
	var asked openai.Request
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, 0, fmt.Errorf("request: %w", err)
	}
	if err := x.answer.finish(); err != nil && x.whole {
		return nil, 0, fmt.Errorf("answer: %w", err)
	}
	all, ends, err := tokens.AppendPrompts(d.tokenizer, nil, &asked)
	if err != nil {
		return nil, 0, fmt.Errorf("request: %w", err)
	}
	parts := make([]part, len(ends))
	from := 0
	for i, end := range ends {
		parts[i] = d.part(x, &asked, i, len(ends), all[from:end:end])
		if from == end {
			return nil, 0, fmt.Errorf("request: %w", parts[i].named(errNoPrompt))
		}
		from = end
	}
	countTokens(parts, x.answer.usage, &asked)
	for i := range parts {
		if parts[i].request.OutputTokens > 0 {
			events = append(events, d.event(x, &parts[i]))
		}
	}
	return events, len(ends), nil
}

// part is one prompt of a request, and what is recorded of it.
type part struct {
	request   *request
	number    int
	alone     bool     // there is no other
	tokens    []uint32 // of the prompt and of the first answer
	oneAnswer bool
	choices   []*choiceText
}

// named says which prompt an error is about.
func (p *part) named(err error) error {
	if p.alone {
		return err
	}
	return fmt.Errorf("prompt %d: %w", p.number, err)
}

// part describes a prompt of several with the answers to it: as many as there are to each, in the order of the prompts.
func (d *describer) part(x *exchange, asked *openai.Request, number, prompts int, prompt []uint32) part {
	p := part{number: number, alone: prompts == 1, tokens: prompt, choices: x.answer.text.choices}
	answers := 1
	if asked.N != nil {
		answers = max(1, min(*asked.N, maxChoices))
	}
	if !p.alone {
		p.choices = x.answer.text.of(number*answers, (number+1)*answers)
	}
	p.request = &request{
		ID: x.id, ClientID: x.requestID, Model: asked.Model, InputTokens: len(prompt), ReceivedMs: x.receivedAt.UnixMilli(),
		Replay: replay{BlockSize: d.blockSize, InputLength: len(prompt), Input: d.hashes(prompt)},
	}
	if !p.alone {
		p.request.ID = numbered(x.id, number)
		if x.requestID != "" {
			p.request.ClientID = numbered(x.requestID, number)
		}
	}
	for i, c := range p.choices {
		switch {
		case c == nil:
		case i == 0:
			p.tokens = c.appendTokens(d.tokenizer, prompt)
			p.request.OutputTokens = len(p.tokens) - len(prompt)
		default:
			p.request.OutputTokens += len(c.appendTokens(d.tokenizer, nil))
		}
	}
	p.oneAnswer = answers == 1
	return p
}

// numbered names one of several prompts of a request.
func numbered(request string, number int) string { return request + "-" + strconv.Itoa(number) }

// event makes the record of a prompt.
func (d *describer) event(x *exchange, p *part) *event {
	r := p.request
	if p.oneAnswer && r.OutputTokens <= maxCompletion {
		r.Replay.Completion = d.hashes(fit(p.tokens, r.Replay.InputLength+r.OutputTokens, r.ID))
	}
	r.time(x, p.choices)
	e := &event{Schema: schema, Type: "request_end", TimeMs: x.ended.UnixMilli(), Source: "servegrid", Request: r}
	switch {
	case x.session == "":
	case p.number == 0:
		e.Context = &agentContext{Session: x.session, Parent: x.parent}
	default: // or it would wait for the end of the first
		e.Context = &agentContext{Session: x.session + "/" + r.ID, Parent: x.session}
	}
	return e
}

// countTokens takes the server's word for how many tokens there were. Of several prompts it says the sums, which are shared out by
// what the tokenizer counts, and no answer gets more than was asked for. What was cached of each is then not known.
func countTokens(parts []part, usage *openai.Usage, asked *openai.Request) {
	if usage == nil {
		return
	}
	input, output := make([]int, len(parts)), make([]int, len(parts))
	for i := range parts {
		input[i], output[i] = parts[i].request.InputTokens, parts[i].request.OutputTokens
	}
	if usage.PromptTokens > 0 {
		share(usage.PromptTokens, input, math.MaxInt)
	}
	if usage.CompletionTokens > 0 {
		most := math.MaxInt
		for _, limit := range []*int{asked.MaxTokens, asked.MaxCompletionTokens} {
			if limit != nil && *limit > 0 && *limit <= maxCompletion {
				most = *limit
			}
		}
		if asked.N != nil && *asked.N > 1 && most < math.MaxInt {
			most *= min(*asked.N, maxChoices)
		}
		share(usage.CompletionTokens, output, most)
	}
	for i := range parts {
		r := parts[i].request
		r.InputTokens, r.OutputTokens = input[i], output[i]
	}
	if r := parts[0].request; len(parts) == 1 && usage.PromptTokensDetails != nil && usage.PromptTokensDetails.CachedTokens >= 0 {
		cached := usage.PromptTokensDetails.CachedTokens
		r.CachedTokens = &cached
		rate := float64(cached) / float64(r.InputTokens)
		r.HitRate = &rate
	}
}

// share makes numbers add up to a total, each in proportion to what it is: none becomes more than most, as far as the total allows
// it, and none that is above 0 becomes 0.
func share(total int, numbers []int, most int) {
	if float64(total) > float64(most)*float64(len(numbers)) {
		most = math.MaxInt // it is not what the server goes by
	}
	weights, open := slices.Clone(numbers), make([]int, 0, len(numbers)) // open are those that may become more
	had, some := make([]bool, len(numbers)), 0
	for i, n := range numbers {
		open = append(open, i)
		if had[i] = n > 0; had[i] {
			some++
		}
	}
	rest := total
	clear(numbers)
	for len(open) > 0 {
		sum := 0
		for _, i := range open {
			sum += weights[i]
		}
		if sum == 0 {
			for _, i := range open {
				weights[i] = 1
			}
			sum = len(open)
		}
		part := func(weight int) float64 { return float64(weight) * float64(rest) / float64(sum) }
		full := slices.IndexFunc(open, func(i int) bool { return part(weights[i]) > float64(most) })
		if full >= 0 {
			i := open[full]
			rest -= most
			numbers[i] = most
			open = slices.Delete(open, full, full+1)
			continue
		}
		// Sums are rounded, so that what is left over is spread.
		weight, given := 0, 0
		for _, i := range open {
			weight += weights[i]
			upTo := int(math.Round(part(weight)))
			numbers[i], given = upTo-given, upTo
		}
		break
	}
	for i := range numbers {
		if numbers[i] == 0 && had[i] && some <= total {
			numbers[i]++
			numbers[slices.Index(numbers, slices.Max(numbers))]--
		}
	}
}

// time states how long everything took, and when the answers to a prompt came, in a stream.
func (r *request) time(x *exchange, choices []*choiceText) {
	r.TotalMs = milliseconds(x.ended.Sub(x.receivedAt))
	var firstAt, lastAt time.Time
	for _, c := range choices {
		if c == nil || c.firstAt.IsZero() {
			continue
		}
		if firstAt.IsZero() || c.firstAt.Before(firstAt) {
			firstAt = c.firstAt
		}
		if c.lastAt.After(lastAt) {
			lastAt = c.lastAt
		}
	}
	if firstAt.IsZero() {
		return
	}
	first := milliseconds(firstAt.Sub(x.receivedAt))
	r.TTFTMs = &first
	if r.OutputTokens > 1 && lastAt.After(firstAt) {
		mean := milliseconds(lastAt.Sub(firstAt)) / float64(r.OutputTokens-1)
		r.MeanITLMs = &mean
	}
}

// milliseconds has no more digits than clocks are good for.
func milliseconds(d time.Duration) float64 { return math.Round(float64(d)/1e3) / 1e3 }

// fit makes tokens as many as the server counted: what it counted less ends earlier, what it counted more are tokens that nobody
// else has.
func fit(all []uint32, n int, id string) []uint32 {
	if n <= len(all) {
		return all[:n]
	}
	own := xxh3.HashString(id)
	for i := len(all); i < n; i++ {
		all = append(all, uint32(tokens.Seed(own, uint64(i))))
	}
	return all
}

// hashes are those of the blocks of some tokens. With a salt they say nothing to those who do not have it.
func (d *describer) hashes(of []uint32) []uint64 {
	hashes := tokens.SequenceHashes(of, d.blockSize)
	if len(d.salt) == 0 {
		return hashes
	}
	mac := hmac.New(sha256.New, d.salt)
	var plain [8]byte
	sum := make([]byte, 0, sha256.Size)
	for i, h := range hashes {
		mac.Reset()
		binary.LittleEndian.PutUint64(plain[:], h)
		mac.Write(plain[:])
		sum = mac.Sum(sum[:0])
		hashes[i] = binary.LittleEndian.Uint64(sum)
	}
	return hashes
}
