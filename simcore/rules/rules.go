// Package rules holds, in one place, every difference between the behaviours that servegrid can reproduce.
//
// The zero-argument default follows the newest public peer (first token out of the prefill pass, real 64-bit
// prefix identity, errors instead of silent repairs). [Dynamo13] reproduces the DynoSim reference of
// ai-dynamo 1.3.1, defects included. Code elsewhere reads the fields; nothing branches on a name.
package rules

import (
	"fmt"
	"strings"
)

// Compat names a rule set as users write it in a spec (`compat: dynamo-1.3`). The empty string is the default set.
type Compat string

// The rule sets that exist.
const (
	Default  Compat = ""
	Dynamo13 Compat = "dynamo-1.3"
	Dynamo12 Compat = "dynamo-1.2"
)

// Names lists the accepted values of the spec's `compat` key; the empty default is not among them.
func Names() []string { return []string{string(Dynamo13), string(Dynamo12)} }

// Set is one rule set. Every field names the behaviour that is switched on when it is true.
type Set struct {
	// DecodeInPrefillPass charges a decode step to requests whose prompt finished in the same pass, so that the
	// first token costs prefill + decode; with speculative decoding they get accepted drafts too, and drafts cost no
	// token budget. Otherwise the first token comes out of the prefill pass, alone; and passes of SGLang either compute
	// prompts or decode.
	DecodeInPrefillPass bool
	// BlocksAtEmission takes the KV block of the next token when a token is emitted. Otherwise blocks are taken
	// when the token is scheduled.
	BlocksAtEmission bool
	// FullPromptHit lets a fully cached prompt recompute nothing, and limits cached tokens to the prompt.
	// Otherwise the last token is always recomputed, with speculative decoding the last block, and a preempted request
	// may hit its own generated blocks.
	FullPromptHit bool
	// SharesComputedBlocks lets vLLM and TensorRT-LLM share the slot of a resident block with whoever computes the same
	// content. Otherwise requests share only what they hit when they are admitted, and what they compute takes slots of its
	// own.
	SharesComputedBlocks bool
	// AdmitsByPreempting lets vLLM admit a prompt whether there is room for it or not: the youngest running requests give up
	// their blocks for what the pass computes of it. Otherwise it waits until there is room for all of it.
	AdmitsByPreempting bool
	// AdmittedStayQueued lets a vLLM request whose admission preempted another one leave its entry in the waiting queue, so that
	// it counts twice in the metrics of passes when it is preempted itself. Otherwise the entry goes.
	AdmittedStayQueued bool
	// BlocksOneByOne lets a vLLM request that runs short of blocks take those that there are before another one is preempted,
	// and leave them in the cache when that is itself. Otherwise it takes all or none.
	BlocksOneByOne bool
	// OutputZeroNeverEnds leaves a request that asks for no output running for ever, which ends in a dead end.
	// Otherwise it completes at the end of its prefill pass without a token.
	OutputZeroNeverEnds bool
	// ChunkBeforeMatch makes SGLang size and make room for the first chunk of a prompt before it looks for a cached prefix.
	// Otherwise the chunk begins after the prefix, and a fully cached prompt computes its last page again.
	ChunkBeforeMatch bool
	// ReuseCountsOutput counts what a preempted request finds of its own output in the prefix cache as reused. Otherwise only
	// tokens of the prompt count.
	ReuseCountsOutput bool
	// ChunksCountAsReuse counts the earlier chunks of a prompt that SGLang computes over several passes as reused.
	ChunksCountAsReuse bool
	// TokenPool makes the KV pool of SGLang count tokens; what a request has computed of pages that were cached meanwhile
	// stays with it until it ends. Otherwise the pool counts pages, and such copies are given back at once.
	TokenPool bool
	// WholeNodesGo makes the prefix cache of SGLang let whole nodes of its tree go, and look at all of a prompt's nodes as
	// used when more of it comes. Otherwise only as many pages go as must; see kvcache.Radix.PageWise.
	WholeNodesGo bool
	// OutputCachedAtOnce puts pages of output into the prefix cache of SGLang as they fill. Otherwise when the request ends,
	// so that a retracted one computes its output again.
	OutputCachedAtOnce bool
	// SourceCachedAtRelease keeps a finished prompt of an SGLang prefill worker out of its prefix cache until the transfer
	// to the decode worker is over. Otherwise it is cached as soon as it is computed.
	SourceCachedAtRelease bool
	// ArrivalCachedAtOnce puts a prompt that is handed over to an SGLang decode worker into its prefix cache when it arrives.
	// Otherwise when its decoding begins, and a reservation that found no room is tried again after that.
	ArrivalCachedAtOnce bool
	// RetractedGoFirst makes SGLang retract the first of the requests with the least output, put retracted ones at the
	// front of the waiting queue, and start the reserve for output anew. Otherwise it retracts the one with the longest
	// prompt among those, makes room for some passes more, puts retracted ones at the end of the queue, and lets the
	// reserve follow from how far the others are.
	RetractedGoFirst bool
	// RetractionLosesDuplicates makes SGLang lose, for the rest of the run, the room of what a retracted request had
	// computed although it was cached. Otherwise that is given back.
	RetractionLosesDuplicates bool
	// UnknownPolicyIsFIFO takes any unknown schedule policy of SGLang for fifo. Otherwise it is refused.
	UnknownPolicyIsFIFO bool
	// RadixCacheAlwaysOn makes SGLang share prefixes even with prefix caching switched off.
	RadixCacheAlwaysOn bool
	// HandoffPaysBudget makes the vLLM decode worker of a disaggregated deployment schedule a handed-over prompt like any
	// other, within its token budget, at no time, but for what it had cached: no room is reserved for it beforehand, and the
	// prefill worker gives it up as soon as it is computed. Otherwise there is room for all of it, it counts as computed, and
	// the prefill worker holds it until it has arrived.
	HandoffPaysBudget bool
	// ReservationsTouch makes what a decode worker of vLLM has cached of a prompt count as used, also when there is no room for
	// the rest of it. Otherwise a reservation that fails leaves no trace.
	ReservationsTouch bool
	// StalledWorkersWait makes a decode worker whose requests cannot go on look for room for one reservation only, until
	// something else happens there. Otherwise it looks for more as long as there is some.
	StalledWorkersWait bool
	// DecodesInOrderOfArrival makes vLLM and TensorRT-LLM decode workers admit requests in the order in which their prompts
	// arrived. Otherwise those whose prompts have arrived go in the order of their reservations.
	DecodesInOrderOfArrival bool
	// ArrivalsBeforePasses lets requests that arrive in a disaggregated deployment at the end of a pass join the next one.
	// Otherwise the next pass starts before them if there is something for it to do.
	ArrivalsBeforePasses bool
	// RolesMayBeUnknown lets the engines of prefill and decode pools take themselves for aggregated ones when told so.
	// Otherwise the pool tells what they are for.
	RolesMayBeUnknown bool
	// NoTensorRTLLMPools refuses TensorRT-LLM in disaggregated deployments.
	NoTensorRTLLMPools bool
	// TransfersFullPrompt transfers the KV cache of whole prompts when kv_transfer_timing_mode is not given. Otherwise what the
	// decode worker misses.
	TransfersFullPrompt bool
	// NoTransferEstimate takes the transfer of a prompt's KV cache for instant when kv_bytes_per_token is not given.
	// Otherwise the size of the cache is that of the model, where it is known.
	NoTransferEstimate bool
	// PowerOfTwoBlocks refuses KV block sizes that are not a power of two from 2 to 1024, except for SGLang.
	PowerOfTwoBlocks bool
	// HashIDs32 cuts trace hash ids to 32 bits, so that different ids can become the same block.
	HashIDs32 bool
	// ClampInput shortens an input longer than its hash ids cover in silence. Otherwise it is an error.
	ClampInput bool
	// OnePrefixGroup makes all synthetic prefix groups share one prefix (a consequence of 32-bit ids).
	OnePrefixGroup bool
	// SingleWorkerLoop gives a lone worker the reference's loop of its own: in closed loop, a turn that becomes
	// ready during a pass arrives at its end; the simulated-time cap is looked at before a pass, after releasing
	// what has arrived; worker time is the time of the last token. Otherwise one worker is like many.
	SingleWorkerLoop bool
	// CompletedNeedsToken counts a request as completed as soon as it was admitted and has one token, so that
	// requests cut off by the simulated-time cap, or cut to what the KV pool has room for, count with their whole
	// requested output.
	CompletedNeedsToken bool
	// UncorrectedTables prices passes with the timing tables as aiconfigurator gives them. Otherwise what is known to
	// be wrong with them is corrected.
	UncorrectedTables bool
	// NoMemoryEstimate gives every worker 16384 KV blocks when their number is not given. Otherwise it follows from
	// the memory of the GPU, where GPU and model are known.
	NoMemoryEstimate bool
	// SharedRankLimits lets the data-parallel ranks of a worker share max_num_seqs and max_num_batched_tokens. Otherwise
	// each rank has its own, as ranks with schedulers of their own do.
	SharedRankLimits bool
	// UnlimitedContext leaves the context length of a known model out of account. Otherwise requests that exceed it are
	// rejected or cut, as the serving engines do.
	UnlimitedContext bool
	// NoMemoryTiers has no memory tiers below that of GPUs: the reference's release ignores them.
	NoMemoryTiers bool
	// SharedDependencyDelay makes a request of a captured agent count its recorded gap from the completion of the last request that it
	// waits for. Otherwise each dependency has a delay of its own.
	SharedDependencyDelay bool
	// SilentTraceSettings passes over settings that have no effect on the format of a trace. Otherwise there is a warning.
	SilentTraceSettings bool
	// NoGraphLanes refuses closed loops over requests that wait for others in a graph, as captured agents do. Otherwise a
	// play starts when another one has ended.
	NoGraphLanes bool
	// NoGraphPools refuses such requests, and traces of format mooncake-delta, in disaggregated deployments.
	NoGraphPools bool
	// TicksKeepClock tells an autoscaler the time of the last event before its tick, and lets its decisions take effect then.
	// Otherwise that is the time of the tick.
	TicksKeepClock bool
	// PassesToldAtStart tells an autoscaler of passes when they begin. Otherwise when they have ended.
	PassesToldAtStart bool
	// TiesInFileOrder lets requests of an agent that are released at the same time go in the order of the trace's rows, or of
	// their recorded times in a capture. Otherwise they go in the order of their ids.
	TiesInFileOrder bool
	// ReplayStartsAtTimestamp makes the least timestamp of any row of an agentic Mooncake trace of version 1 the start of its
	// replay. Otherwise it is the least time before which a request must not start, which is 0 for one that waits for others.
	ReplayStartsAtTimestamp bool
	// SpawnAfterCompletion starts a captured subagent after its parent's request has completed. Otherwise its recorded gap
	// counts from the start of that request.
	SpawnAfterCompletion bool
	// EarlyConsumers lets a captured request wait for a subagent that ended after the request had begun, when its harness
	// says so. Otherwise it does not wait.
	EarlyConsumers bool
	// EmptySessionNames accepts captured requests whose session has an empty name.
	EmptySessionNames bool
	// SkipBrokenEnvelopes passes over lines of a capture whose event is no object. Otherwise they are errors.
	SkipBrokenEnvelopes bool
	// RefusePayloadRecords makes errors of a capture's request_payload records. Otherwise they are passed over.
	RefusePayloadRecords bool
	// OneKindOfRequests refuses captures some of whose requests belong to sessions and some do not. Otherwise each file has one
	// kind, and requests without a session are replayed at their recorded times beside the sessions.
	OneKindOfRequests bool
	// Versions are the engine releases whose timing tables are used when none is named; empty means the newest.
	Versions Versions
}

// Versions names a release of each serving engine.
type Versions struct{ VLLM, SGLang, TensorRTLLM string }

// Of returns the release of the backend "vllm", "sglang" or "trtllm"; empty when it is not pinned.
func (v Versions) Of(backend string) string {
	switch backend {
	case "vllm":
		return v.VLLM
	case "sglang":
		return v.SGLang
	case "trtllm":
		return v.TensorRTLLM
	}
	return ""
}

// For returns the rule set of a compat name. An unknown name is an error that lists the known ones.
func For(c Compat) (Set, error) {
	switch c {
	case Default:
		return Set{}, nil
	case Dynamo13:
		return dynamo(), nil
	case Dynamo12:
		s := dynamo()
		s.NoMemoryEstimate = true
		s.HandoffPaysBudget = true
		s.RolesMayBeUnknown = true
		s.AdmitsByPreempting = true
		s.AdmittedStayQueued = true
		s.BlocksOneByOne = true
		s.TicksKeepClock = true
		s.PassesToldAtStart = true
		s.Versions = Versions{VLLM: "0.14.0", SGLang: "0.5.6.post2"}
		return s, nil
	}
	return Set{}, fmt.Errorf("compat: %q is not a rule set; leave it out, or use one of: %s", c, strings.Join(Names(), ", "))
}

// dynamo is what the releases of the reference have in common, with the versions that 1.3.1 pins.
func dynamo() Set {
	return Set{
		DecodeInPrefillPass:       true,
		BlocksAtEmission:          true,
		FullPromptHit:             true,
		SharesComputedBlocks:      true,
		OutputZeroNeverEnds:       true,
		ChunkBeforeMatch:          true,
		ReuseCountsOutput:         true,
		ChunksCountAsReuse:        true,
		TokenPool:                 true,
		WholeNodesGo:              true,
		OutputCachedAtOnce:        true,
		SourceCachedAtRelease:     true,
		ArrivalCachedAtOnce:       true,
		RetractedGoFirst:          true,
		RetractionLosesDuplicates: true,
		UnknownPolicyIsFIFO:       true,
		RadixCacheAlwaysOn:        true,
		ReservationsTouch:         true,
		StalledWorkersWait:        true,
		DecodesInOrderOfArrival:   true,
		ArrivalsBeforePasses:      true,
		NoTensorRTLLMPools:        true,
		TransfersFullPrompt:       true,
		NoTransferEstimate:        true,
		PowerOfTwoBlocks:          true,
		HashIDs32:                 true,
		ClampInput:                true,
		OnePrefixGroup:            true,
		SingleWorkerLoop:          true,
		CompletedNeedsToken:       true,
		UncorrectedTables:         true,
		SharedRankLimits:          true,
		UnlimitedContext:          true,
		NoMemoryTiers:             true,
		SharedDependencyDelay:     true,
		SilentTraceSettings:       true,
		NoGraphLanes:              true,
		NoGraphPools:              true,
		TiesInFileOrder:           true,
		ReplayStartsAtTimestamp:   true,
		SpawnAfterCompletion:      true,
		EarlyConsumers:            true,
		EmptySessionNames:         true,
		SkipBrokenEnvelopes:       true,
		RefusePayloadRecords:      true,
		OneKindOfRequests:         true,
		Versions:                  Versions{VLLM: "0.19.0", SGLang: "0.5.10", TensorRTLLM: "1.3.0rc10"},
	}
}
