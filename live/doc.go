// Package live is about real endpoints: what is asked of one, what it answers, and when.
//
// Read record.go for what is known of a request afterwards and target.go for what is asked. The rooms below it are, from the
// wire inwards: openai, the wire format; tokens, how text becomes tokens and the other way round; realtime, a simulated
// deployment that answers as time passes; endpoint, that deployment behind HTTP; replay, which sends a workload to an endpoint
// as it was recorded; capture, which records the workload of one; fidelity, which says how far two runs of a workload agree.
package live
