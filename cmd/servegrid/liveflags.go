package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/net/http/httpguts"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/live/openai"
	"github.com/servegrid/servegrid/live/tokens"
	"github.com/servegrid/servegrid/simcore"
)

// How the prompt of a later turn is sent.
const (
	messagesOne   = "one"
	messagesTurns = "turns"
)

// liveFlags are those of the live command.
type liveFlags struct {
	workloadFlags
	spec        string
	specPoint   int
	set         []string
	urls        []string
	balance     string
	model       string
	tokenizer   string
	messages    string
	output      string
	quiet       bool
	startOffset time.Duration
	endOffset   time.Duration
	duration    time.Duration
	grace       time.Duration

	endpointType, limitField        string
	ignoreEOS, minTokens            bool
	extraInputs, headers            []string
	apiKeyEnv                       string
	tls                             tlsFlags
	connectTimeout                  time.Duration
	firstTokenTimeout, tokenTimeout time.Duration

	warmupRequests  int
	chunks          string
	metricsURLs     []string
	metricsInterval time.Duration
	recover         bool

	tokens       tokens.Tokenizer
	metricsPages []*url.URL
	// statesDeployment says that people say what they measure.
	statesDeployment bool
}

func (f *liveFlags) add(fs *pflag.FlagSet) {
	connect, first, idle := openai.DefaultTimeouts()
	fs.StringArrayVar(&f.urls, "url", nil, "URL of a server, such as http://localhost:8000 (repeatable; requests take turns, see --balance)")
	fs.StringVarP(&f.output, "output", "o", "", "folder for what is measured")
	fs.StringVar(&f.model, "model", "", "model to ask for; the default is the first that the server lists")
	fs.StringVar(&f.tokenizer, "tokenizer", tokens.Default, "what makes tokens of text: bytes, chars:N for N bytes a token, or the path of the model's tokenizer.json")
	fs.StringVar(&f.spec, "spec", "", "grid spec of one point, whose workload, load and sla count, instead of the flags for these")
	fs.IntVar(&f.specPoint, "point", 0, "spec of several points: which one, by its number in servegrid spec expand, from 0")
	fs.StringArrayVar(&f.set, "set", nil, "set one key of the spec: key.path=value (repeatable), as agentx.preset=rfc, or deployment.workers=4 and timing.gpu=h200_sxm to say what is measured")
	f.workloadFlags.add(fs)
	fs.DurationVar(&f.startOffset, "start-offset", 0, "begin so long after the first time of the trace; what starts before is left out")
	fs.DurationVar(&f.endOffset, "end-offset", 0, "leave out what starts more than so long after the first time of the trace; 0 leaves out nothing")
	fs.DurationVar(&f.duration, "duration", 0, "send nothing more after so long; 0 is never")
	fs.DurationVar(&f.grace, "grace", 10*time.Second, "how long requests under way may go on after --duration and after Ctrl-C, until they are cancelled")
	fs.StringVar(&f.messages, "messages", messagesOne, "how the prompt of a later turn is sent: one message, or turns, a message of what each side said")
	fs.StringVar(&f.endpointType, "endpoint-type", string(openai.Chat), "chat for /v1/chat/completions, completions for /v1/completions")
	fs.StringVar(&f.limitField, "output-limit-field", "", "field with the length of the answer: max_completion_tokens, the default of chats, or max_tokens")
	fs.BoolVar(&f.ignoreEOS, "ignore-eos", true, "ask for answers that do not end before their length")
	fs.BoolVar(&f.minTokens, "min-tokens", true, "state the length of the answer as the least one too")
	fs.StringArrayVar(&f.extraInputs, "extra-inputs", nil, "further fields of each request: NAME:VALUE, the value being JSON or else text, or a JSON object (repeatable)")
	fs.StringArrayVar(&f.headers, "header", nil, "further header of each request: NAME: VALUE (repeatable)")
	fs.StringVar(&f.apiKeyEnv, "api-key-env", "", "variable of the environment with the bearer key that the server wants")
	fs.StringVar(&f.balance, "balance", openai.BalanceRoundRobin, "how several URLs share the requests: round_robin, or session, which keeps a session at its server")
	f.tls.add(fs)
	fs.DurationVar(&f.connectTimeout, "connect-timeout", connect, "how long connecting may take")
	fs.DurationVar(&f.firstTokenTimeout, "first-token-timeout", first, "how long nothing of an answer may come")
	fs.DurationVar(&f.tokenTimeout, "token-timeout", idle, "how long nothing more of an answer may come")
	fs.IntVar(&f.warmupRequests, "warmup-requests", 0, "requests to send before, which are not measured and share nothing with those that are")
	fs.StringArrayVar(&f.metricsURLs, "metrics-url", nil, "page with a server's Prometheus metrics (repeatable; the default is /metrics of each --url)")
	fs.DurationVar(&f.metricsInterval, "metrics-interval", time.Second, "how often these are read; 0 is never")
	fs.StringVar(&f.chunks, "chunks", "", "file for everything that comes back, as JSON Lines compressed with gzip")
	fs.BoolVar(&f.recover, "recover", false, "send nothing; write what the same command measured into --output until it was killed")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
}

// check reads the flags about servers and prompts, and reports everything that is wrong with them.
func (f *liveFlags) check(st *state, flags *pflag.FlagSet) (openai.TargetOptions, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	opt := openai.TargetOptions{
		Balance: f.balance, Model: f.model, Type: openai.EndpointType(f.endpointType), LimitField: f.limitField, IgnoreEOS: f.ignoreEOS, MinTokens: f.minTokens,
		ConnectTimeout: f.connectTimeout, FirstTimeout: f.firstTokenTimeout, IdleTimeout: f.tokenTimeout,
	}
	for _, text := range f.urls {
		u, err := parseEndpoint(text)
		if err != nil {
			bad("--url: %w", err)
			continue
		}
		opt.URLs = append(opt.URLs, u)
	}
	if len(f.urls) == 0 {
		bad("--url is missing; name the server, such as http://localhost:8000")
	}
	if f.output == "" {
		bad("--output is missing; name a folder for what is measured")
	}
	var err error
	if f.tokens, err = tokens.Parse(f.tokenizer); err != nil {
		bad("--tokenizer: %w", err)
	}
	if f.messages != messagesOne && f.messages != messagesTurns {
		bad("--messages: %q is not allowed; use %s or %s", f.messages, messagesOne, messagesTurns)
	}
	if f.apiKeyEnv != "" {
		if opt.APIKey = st.getenv(f.apiKeyEnv); opt.APIKey == "" {
			bad("--api-key-env: the environment variable %s is not set or empty", f.apiKeyEnv)
		}
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
		least time.Duration
	}{
		{"start-offset", f.startOffset, 0}, {"end-offset", f.endOffset, 0}, {"duration", f.duration, 0}, {"grace", f.grace, 0},
		{"metrics-interval", f.metricsInterval, 0}, {"connect-timeout", f.connectTimeout, 1}, {"first-token-timeout", f.firstTokenTimeout, 1}, {"token-timeout", f.tokenTimeout, 1},
	} {
		if d.value < d.least {
			bad("--%s: %s is not allowed; give a longer time", d.flag, d.value)
		}
	}
	if flags.Changed("end-offset") && f.endOffset < f.startOffset {
		bad("--end-offset: %s is before --start-offset, %s", f.endOffset, f.startOffset)
	}
	if f.warmupRequests < 0 {
		bad("--warmup-requests: %d is not allowed; give 0 or more", f.warmupRequests)
	}
	f.metricsPages, err = parsePages(f.metricsURLs)
	errs = append(errs, err)
	opt.Extra, err = parseExtraInputs(f.extraInputs)
	errs = append(errs, err)
	opt.Header, err = parseHeaders(f.headers)
	errs = append(errs, err)
	opt.TLS, err = f.tls.config()
	errs = append(errs, err)
	if len(opt.URLs) > 0 {
		errs = append(errs, opt.Check())
	}
	return opt, errors.Join(errs...)
}

// parseHeaders reads headers as they stand in a request.
func parseHeaders(texts []string) (http.Header, error) {
	var errs []error
	header := http.Header{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			errs = append(errs, fmt.Errorf("--header: %q is no header; give NAME: VALUE", gridspec.Excerpt(name)))
			continue
		}
		header.Add(name, value)
	}
	return header, errors.Join(errs...)
}

// parseExtraInputs reads fields of requests: JSON objects, or names and values.
func parseExtraInputs(texts []string) (map[string]json.RawMessage, error) {
	var errs []error
	extra := map[string]json.RawMessage{}
	add := func(name string, value json.RawMessage) {
		if extra[name] != nil {
			errs = append(errs, fmt.Errorf("--extra-inputs: %s is given twice", name))
		}
		extra[name] = value
	}
	for _, text := range texts {
		text = strings.TrimSpace(text)
		if strings.HasPrefix(text, "{") {
			var object map[string]json.RawMessage
			if err := json.Unmarshal([]byte(text), &object); err != nil {
				errs = append(errs, fmt.Errorf("--extra-inputs: %s is no JSON object: %w", gridspec.Excerpt(text), err))
			}
			for name, value := range object {
				add(name, value)
			}
			continue
		}
		name, value, ok := strings.Cut(text, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			errs = append(errs, fmt.Errorf("--extra-inputs: %s is neither NAME:VALUE nor a JSON object", gridspec.Excerpt(text)))
			continue
		}
		if value = strings.TrimSpace(value); !json.Valid([]byte(value)) {
			quoted, err := json.Marshal(value)
			errs = append(errs, err)
			value = string(quoted)
		}
		add(name, json.RawMessage(value))
	}
	return extra, errors.Join(errs...)
}

// window is the part of the workload that is sent.
func (f *liveFlags) window() simcore.Window {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	if f.startOffset == 0 && f.endOffset == 0 {
		return simcore.Window{}
	}
	w := simcore.Window{FromMs: ms(f.startOffset), ToMs: ms(f.endOffset)}
	if f.endOffset == 0 {
		w.ToMs = maxOffsetMs
	}
	return w
}

// maxOffsetMs is later than anything in a trace: a thousand years.
const maxOffsetMs = 1000 * 365 * 24 * 3600 * 1e3

// point is what the flags or a spec describe: workload, load, SLA, and the deployment as far as people say what they measure.
func (f *liveFlags) point(cmd *cobra.Command, st *state, traces []string) (*gridspec.Point, []string, error) {
	if f.spec != "" {
		return f.pointOfSpec(cmd.Flags(), st, traces)
	}
	flags := cmd.Flags()
	b := specBuilder{flags: flags, files: st.fileSystem(), spec: map[string]any{}}
	if flags.Changed("point") {
		b.refuse(errors.New("--point is for a --spec of several points"))
	}
	b.refuse(checkFinite(flags))
	b.refuse(f.sections(flags, b.spec))
	f.addLoad(&b)
	f.addWorkload(&b, traces, "")
	point, err := b.point(f.set)
	if err == nil {
		f.statesDeployment = b.loaded.StatesDeployment()
	}
	return point, append(b.notes, b.cautions...), err
}

// pointOfSpec is a point of a spec.
func (f *liveFlags) pointOfSpec(flags *pflag.FlagSet, st *state, traces []string) (*gridspec.Point, []string, error) {
	var errs []error
	if len(traces) > 0 {
		errs = append(errs, fmt.Errorf("%s: --spec says which trace is sent, and in which format, at which load; name another one with --set workload.trace.path=%s, "+
			"or leave --spec out and say with --set what is measured", strings.Join(traces, ", "), traces[0]))
	}
	errs = append(errs, refuseBesideSpec(givenBesideSpec(flags, &workloadFlags{}), "workload, load and sla"))
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	spec, point, warnings, err := pointOfSpec(flags, st, f.spec, f.set, f.specPoint, "needed")
	if err == nil {
		f.statesDeployment = spec.StatesDeployment()
	}
	return point, warnings, err
}
