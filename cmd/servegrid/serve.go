package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/live/endpoint"
	"github.com/servegrid/servegrid/live/endpoint/fault"
	"github.com/servegrid/servegrid/live/realtime"
	"github.com/servegrid/servegrid/live/tokens"
	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/simcore"
)

// serveFlags are those of the serve command.
type serveFlags struct {
	deploymentFlags
	plannerFlags
	point                   int
	listen                  string
	models                  []string
	strictModel             bool
	apiKeyEnv               string
	tokenizer, outputTokens string
	seed                    uint64
	speedup                 float64
	maxRequests             int
	maxConnections          int
	maxBody                 string
	readTimeout             time.Duration
	writeTimeout, grace     time.Duration
	duration                time.Duration
	reasoningShare          float64
	faults, faultFiles      []string
	requestsParquet         string
}

func newServe(st *state) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve [SPEC]",
		Short: "Serve a simulated deployment over HTTP, in real time, as OpenAI-compatible servers do",
		Long: `serve simulates a deployment in real time and answers real clients: /v1/chat/completions, /v1/completions and /v1/models as
OpenAI-compatible servers have them, /metrics with the names of the simulated engine, /health and /version.

The deployment is a SPEC of one point, or described by the flags of replay. A workload is not needed. Prompts become tokens and
KV blocks, so prefixes are cached as they would be; the text of answers is made up. With a planner workers come and go.

On Ctrl-C and SIGTERM no request is taken any more, and those that are under way may go on for --grace. A second Ctrl-C ends it at once.

Exit codes: 0 it was told to end by SIGTERM or --duration, 1 requests were cut off then, 2 the input was refused, 75 the address is in
use, 130 interrupted by Ctrl-C.`,
		Args: atMostOne("SPEC"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, st, args) },
	}
	f.add(cmd.Flags())
	return cmd
}

func (f *serveFlags) add(fs *pflag.FlagSet) {
	f.deploymentFlags.add(fs)
	f.plannerFlags.add(fs)
	fs.IntVar(&f.point, "point", 0, "SPEC of several points: which one to serve, by its number in servegrid spec expand, from 0")
	fs.StringVar(&f.listen, "listen", "127.0.0.1:8000", "address to listen at; port 0 takes a free one")
	fs.StringArrayVar(&f.models, "model", nil, "name of the model that is served (repeatable; the first is that of the metrics; default "+endpoint.DefaultModel+")")
	fs.BoolVar(&f.strictModel, "strict-model", false, "refuse requests for other models with 404")
	fs.StringVar(&f.apiKeyEnv, "api-key-env", "", "variable of the environment with the key that clients must send")
	fs.StringVar(&f.tokenizer, "tokenizer", tokens.Default, "how text becomes tokens: bytes, chars:N for N bytes a token, or the path of a tokenizer.json")
	fs.StringVar(&f.outputTokens, "default-output-tokens", endpoint.DefaultLengths().String(), "length of answers where the request gives no maximum: a number of tokens, or a range such as 64-1024")
	fs.Float64Var(&f.reasoningShare, "reasoning-share", 0, "share of the answers to chats that are the model's thoughts, from 0 to 1")
	fs.Uint64Var(&f.seed, "seed", 0, "another seed makes other answers and other faults")
	fs.Float64Var(&f.speedup, "speedup", 1, "simulated seconds that pass in a real one")
	fs.IntVar(&f.maxRequests, "max-requests", 16384, "requests that the deployment holds at once, waiting ones included; further ones get 503")
	fs.IntVar(&f.maxConnections, "max-connections", 65536, "connections at once; further ones wait")
	fs.StringVar(&f.maxBody, "max-body", "64MiB", "largest body of a request")
	fs.DurationVar(&f.readTimeout, "read-timeout", time.Minute, "how long a client may take to send the head of a request, and then its body")
	fs.DurationVar(&f.writeTimeout, "write-timeout", 30*time.Second, "how long a client may not read until it counts as gone")
	fs.DurationVar(&f.grace, "grace", 30*time.Second, "how long requests may go on once the server is told to end")
	fs.DurationVar(&f.duration, "duration", 0, "end after so long; 0 is never")
	fs.StringArrayVar(&f.faults, "fault", nil, "a rule of what goes wrong, such as status=429,share=0.1 or drop,after_tokens=20,every=100 (repeatable; docs/serve.md lists them)")
	fs.StringArrayVar(&f.faultFiles, "fault-file", nil, "YAML file with a list of such rules (repeatable)")
	fs.StringVar(&f.requestsParquet, "requests-parquet", "", "where to write the simulated life of each request at the end, with the columns of replay --report-parquet")
}

// check reads the flags into the options of a server, and reports everything that is wrong with them.
func (f *serveFlags) check(st *state) (opt endpoint.Options, err error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	opt = endpoint.Options{
		Speedup: f.speedup, Models: f.models, StrictModel: f.strictModel, Seed: f.seed, MaxConnections: f.maxConnections,
		ReasoningShare: f.reasoningShare, ReadTimeout: f.readTimeout, WriteTimeout: f.writeTimeout, Version: buildVersion(),
	}
	if !(f.speedup >= 1e-6 && f.speedup <= 1e6) {
		bad("--speedup: %v is not allowed; give 0.000001 to 1000000", f.speedup)
	}
	for _, n := range []struct {
		flag  string
		value int
	}{{"max-requests", f.maxRequests}, {"max-connections", f.maxConnections}} {
		if n.value < 1 || n.value > 1<<20 {
			bad("--%s: %d is not allowed; give 1 to %d", n.flag, n.value, 1<<20)
		}
	}
	if !(f.reasoningShare >= 0 && f.reasoningShare <= 1) {
		bad("--reasoning-share: %v is not allowed; give 0 to 1", f.reasoningShare)
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
		least time.Duration
	}{{"read-timeout", f.readTimeout, 1}, {"write-timeout", f.writeTimeout, 1}, {"grace", f.grace, 0}, {"duration", f.duration, 0}} {
		if d.value < d.least {
			bad("--%s: %s is not allowed; give a duration such as 30s", d.flag, d.value)
		}
	}
	if _, _, err := net.SplitHostPort(f.listen); err != nil {
		bad("--listen: %q is no address; give HOST:PORT, such as 127.0.0.1:8000", f.listen)
	}
	if slices.Contains(f.models, "") {
		bad("--model: a model needs a name")
	}
	if f.apiKeyEnv != "" {
		if opt.APIKey = st.getenv(f.apiKeyEnv); opt.APIKey == "" {
			bad("--api-key-env: %s is not set, or empty", f.apiKeyEnv)
		}
	}
	if bytes, err := gridspec.ParseBytes(f.maxBody); err != nil || bytes < 1 {
		bad("--max-body: %q is not allowed; give a size such as 64MiB", f.maxBody)
	} else {
		opt.MaxBodyBytes = int64(bytes)
	}
	if opt.OutputTokens, err = endpoint.ParseLengths(f.outputTokens); err != nil {
		bad("--default-output-tokens: %w", err)
	}
	if opt.Tokenizer, err = tokens.Parse(f.tokenizer); err != nil {
		bad("--tokenizer: %w", err)
	}
	rules, err := f.rules()
	if err != nil {
		errs = append(errs, err)
	}
	opt.Faults = fault.NewInjector(rules, f.seed)
	return opt, errors.Join(errs...)
}

// rules reads what shall go wrong, and reports everything that is wrong with it.
func (f *serveFlags) rules() ([]fault.Rule, error) {
	var rules []fault.Rule
	var errs []error
	for _, text := range f.faults {
		rule, err := fault.Parse(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--fault %w", err))
		}
		rules = append(rules, rule)
	}
	for _, path := range f.faultFiles {
		data, err := os.ReadFile(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("--fault-file: %w", err))
			continue
		}
		list, err := fault.ParseFile(data)
		if err != nil {
			errs = append(errs, fmt.Errorf("--fault-file %s: %w", path, err))
		}
		rules = append(rules, list...)
	}
	return rules, errors.Join(errs...)
}

func (f *serveFlags) run(cmd *cobra.Command, st *state, args []string) error {
	opt, err := f.check(st)
	point, notes, pointErr := f.deployment(cmd, st, args)
	if err := errors.Join(err, pointErr); err != nil {
		return err
	}
	if err := printNotes(st.stderr, notes); err != nil {
		return err
	}
	plan, config, err := planned(cmd.Context(), point)
	if err != nil {
		return err
	}
	timed := realtime.Options{Speedup: f.speedup, MaxRequests: f.maxRequests}
	if plan != nil {
		timed.Scaling = simcore.OnlineOptions{Autoscaler: plan, ScalingEvents: plan.ScalingEvent}
		opt.Planner = plan
	}
	deployment, err := realtime.New(config, timed)
	if err != nil {
		return err
	}
	defer func() { _ = deployment.Close() }()
	opt.Deployment, opt.Config = endpoint.Simulated(deployment), config
	var lives *servedRequests
	if f.requestsParquet != "" {
		lives, err = newServedRequests(f.requestsParquet, func(err error) { _ = printText(st.stderr, "serve: --requests-parquet: %v\n", err) })
		if err != nil {
			return fmt.Errorf("--requests-parquet: %w", err)
		}
		defer lives.close()
		opt.Served = lives.add
	}
	opt.ErrorLog = log.New(st.stderr, "serve: ", 0)
	server, err := endpoint.New(opt)
	if err != nil {
		return err
	}
	defer server.Close()
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w; choose another address, or port 0 for any that is free", err)
	}
	if err := f.announce(st.stderr, listener, point, opt); err != nil {
		return errors.Join(err, listener.Close())
	}
	until, cancel := cmd.Context(), func() {}
	if f.duration > 0 {
		until, cancel = context.WithTimeout(until, f.duration)
	}
	defer cancel()
	cut, err := server.Serve(until, listener, f.grace)
	if err != nil {
		return err
	}
	if lives != nil {
		if err := lives.write(); err != nil {
			return fmt.Errorf("--requests-parquet: %w", err)
		}
	}
	return f.ended(cmd.Context(), st.stdout, deployment.Snapshot(), plan, cut)
}

// announce says where and what is served.
func (f *serveFlags) announce(w io.Writer, listener net.Listener, point *gridspec.Point, opt endpoint.Options) error {
	var pools []string
	for _, pool := range point.Config.Stages() {
		pools = append(pools, fmt.Sprintf("%s %s", plural(pool.Workers, "worker"), pool.Engine.Type))
	}
	speed := ""
	if f.speedup != 1 {
		speed = fmt.Sprintf(", %gx as fast", f.speedup)
	}
	plan := ""
	if opt.Planner != nil {
		plan = fmt.Sprintf(", planner %s", opt.Planner.Policy())
	}
	return printText(w, "serve: http://%s: %s, blocks of %d tokens, tokenizer %s%s%s\n",
		listener.Addr(), strings.Join(pools, " + "), point.Config.BlockSize(), opt.Tokenizer.Name(), plan, speed)
}

// ended says what was served and what a planner did, if there was one, and how it ended.
func (f *serveFlags) ended(ctx context.Context, w io.Writer, s realtime.Snapshot, plan *planner.Online, cut int) error {
	text := fmt.Sprintf("ended: %s, %d completed, %d rejected, %d failed, %d cancelled", plural(int(s.Submitted), "request"), s.Completed, s.Rejected, s.Failed, s.Cancelled)
	if plan != nil {
		state := plan.State()
		text += fmt.Sprintf("\nplanner: %s", plural(int(state.Ticks), "tick"))
		for i, p := range state.Pools {
			text += fmt.Sprintf("; %s: %d added, %d removed, %d ready at the end", p.Name, p.Added, p.Removed, s.Pools[i].Ready)
		}
	}
	if err := printText(w, "%s\n", text); err != nil {
		return err
	}
	var err error
	if cut > 0 {
		err = fmt.Errorf("cut off %s that did not end within --grace %s", plural(cut, "request"), f.grace)
	}
	switch {
	case interrupted(ctx):
		return &exitError{exitInterrupted, errors.Join(errors.New("interrupted"), err)}
	case cut > 0:
		return &exitError{exitSomeFailed, err}
	}
	return nil
}

// interrupted reports whether Ctrl-C ended a context, and not another signal.
func interrupted(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return cause != nil && strings.HasPrefix(cause.Error(), os.Interrupt.String())
}
