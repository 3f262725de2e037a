package memory

import (
	"fmt"
	"strings"
)

// String shows the arithmetic, one line a part, in GiB.
func (p Plan) String() string {
	var b strings.Builder
	line := func(bytes float64, format string, args ...any) {
		fmt.Fprintf(&b, "%10.2f GiB  %s\n", gib(bytes), fmt.Sprintf(format, args...))
	}
	line(p.GPUBytes, "memory of the GPU")
	if p.Backend != backendTRTLLM {
		line(p.GPUBytes*p.Fraction, "of which %s %v", fractionName(p.Backend), p.Fraction)
	}
	line(-p.WeightsBytes, "weights")
	line(-p.ActivationBytes, "activations of %d tokens", p.MaxBatchedTokens)
	line(-p.CommunicationBytes, "communication buffers")
	line(-p.OtherBytes, "runtime")
	if p.Backend == backendTRTLLM {
		line(p.maxKVBytes, "free, of which %s %v", fractionName(p.Backend), p.Fraction)
	}
	line(p.KVBytes, "for KV cache: %d tokens", p.KVTokens)
	return b.String()
}

// DoesNotFit is the error of a model that leaves no room for KV cache.
type DoesNotFit struct {
	// Plan is the arithmetic that ended at nothing.
	Plan Plan
}

// Error shows the arithmetic in one line and what would help.
func (e *DoesNotFit) Error() string {
	p := e.Plan
	parts := fmt.Sprintf("weights %.2f, activations of %d tokens %.2f, communication %.2f, runtime %.2f",
		gib(p.WeightsBytes), p.MaxBatchedTokens, gib(p.ActivationBytes), gib(p.CommunicationBytes), gib(p.OtherBytes))
	budget := fmt.Sprintf("%.2f GiB × %s %v = %.2f GiB", gib(p.GPUBytes), fractionName(p.Backend), p.Fraction, gib(p.GPUBytes*p.Fraction))
	if p.Backend == backendTRTLLM {
		budget = fmt.Sprintf("%.2f GiB", gib(p.GPUBytes))
	}
	return fmt.Sprintf("does not fit into the GPU: %s less %.2f GiB (%s) leaves %.2f GiB for KV cache; %s",
		budget, gib(p.NonKVBytes()), parts, gib(p.KVBytes), p.advice())
}

// advice names what makes room, the cheapest first.
func (p Plan) advice() string {
	var options []string
	if p.maxKVBytes > 0 && p.Backend != backendTRTLLM {
		options = append(options, fmt.Sprintf("a %s over %.3f", fractionName(p.Backend), p.NonKVBytes()/p.GPUBytes))
	}
	options = append(options, "a larger tp (or ep, for experts)", "a smaller dtype", "a GPU with more memory")
	if p.ActivationBytes > p.WeightsBytes/10 {
		options = append(options, "a smaller max_num_batched_tokens")
	}
	return "what helps: " + strings.Join(options, ", ")
}

func gib(bytes float64) float64 { return bytes / (1 << 30) }
