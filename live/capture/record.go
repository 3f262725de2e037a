package capture

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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

// describe makes the record of an exchange; false means that the answer has no output.
func (d *describer) describe(x *exchange) (_ *event, output bool, _ error) {
	body, err := decoded(x.request, x.encoding)
	if err != nil {
		return nil, false, fmt.Errorf("request: %w", err)
	}
	var asked openai.Request
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, false, fmt.Errorf("request: %w", err)
	}
	if err := x.answer.finish(); err != nil && x.whole {
		return nil, false, fmt.Errorf("answer: %w", err)
	}
	prompt, err := tokens.AppendRequest(d.tokenizer, nil, &asked)
	if err == nil && len(prompt) == 0 {
		err = errNoPrompt
	}
	if err != nil {
		return nil, false, fmt.Errorf("request: %w", err)
	}
	all := x.answer.text.appendTokens(d.tokenizer, prompt)
	made := len(all) - len(prompt)
	r := &request{
		ID: x.id, ClientID: x.requestID, Model: asked.Model, InputTokens: len(prompt),
		OutputTokens: made + x.answer.text.otherTokens(d.tokenizer), ReceivedMs: x.receivedAt.UnixMilli(),
		Replay: replay{BlockSize: d.blockSize, InputLength: len(prompt), Input: d.hashes(prompt)},
	}
	r.count(x.answer.usage)
	if r.OutputTokens == 0 {
		return nil, false, nil
	}
	if (asked.N == nil || *asked.N <= 1) && r.OutputTokens <= maxCompletion {
		r.Replay.Completion = d.hashes(fit(all, len(prompt)+r.OutputTokens, x.id))
	}
	r.time(x)
	at := x.ended.UnixMilli()
	e := &event{Schema: schema, Type: "request_end", TimeMs: at, Source: "servegrid", Request: r}
	if x.session != "" {
		e.Context = &agentContext{Session: x.session, Parent: x.parent}
	}
	return e, true, nil
}

// count takes the server's word for how many tokens there were.
func (r *request) count(usage *openai.Usage) {
	if usage == nil {
		return
	}
	if usage.PromptTokens > 0 {
		r.InputTokens = usage.PromptTokens
	}
	if usage.CompletionTokens > 0 {
		r.OutputTokens = usage.CompletionTokens
	}
	if usage.PromptTokensDetails != nil && usage.PromptTokensDetails.CachedTokens >= 0 {
		cached := usage.PromptTokensDetails.CachedTokens
		r.CachedTokens = &cached
		rate := float64(cached) / float64(r.InputTokens)
		r.HitRate = &rate
	}
}

// time states how long everything took.
func (r *request) time(x *exchange) {
	r.TotalMs = milliseconds(x.ended.Sub(x.receivedAt))
	if x.answer.firstAt.IsZero() {
		return
	}
	first := milliseconds(x.answer.firstAt.Sub(x.receivedAt))
	r.TTFTMs = &first
	if r.OutputTokens > 1 && x.answer.lastAt.After(x.answer.firstAt) {
		mean := milliseconds(x.answer.lastAt.Sub(x.answer.firstAt)) / float64(r.OutputTokens-1)
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
