// Package capture records the workload of an OpenAI-compatible server as a Dynamo request trace, from between its clients and
// the server.
//
// What clients and the server say to each other passes through unchanged and at once; a copy is looked at when it is over. The
// trace has lengths, times and hashes of blocks of tokens, never text. Recording never holds requests up: what it has no
// memory or time for is passed through without being recorded, and counted.
//
// Read proxy.go first, then, in the order in which a request goes, exchange.go and answer.go for what is kept of it, record.go
// for what is written of that, recorder.go for when, and shards.go for the files.
package capture
