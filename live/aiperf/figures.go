package aiperf

// figure is a metric of AIPerf that this package writes.
type figure struct {
	tag, unit string
	// header is its name in the CSV file.
	header string
}

// The metrics of each request, of which the summary has statistics.
const (
	requestLatency    = "request_latency"
	timeToFirstToken  = "time_to_first_token"
	timeToFirstOutput = "time_to_first_output_token"
	timeToSecondToken = "time_to_second_token"
	interTokenLatency = "inter_token_latency"
	interChunkLatency = "inter_chunk_latency"
	decodeDuration    = "decode_duration"
	inputLength       = "input_sequence_length"
	outputLength      = "output_sequence_length"
	outputCount       = "output_token_count"
	usagePrompt       = "usage_prompt_tokens"
	usageCompletion   = "usage_completion_tokens"
	usageTotal        = "usage_total_tokens"
	usageCached       = "usage_prompt_cache_read_tokens"
	outputPerUser     = "output_token_throughput_per_user"
	outputEndToEnd    = "e2e_output_token_throughput"
	prefillPerUser    = "prefill_throughput_per_user"
	lengthMismatchPct = "osl_mismatch_diff_pct"
)

// perRequest are the metrics of records by the headers of the CSV file. Others that a record has, such as those of AIPerf's
// HTTP client, keep their tag.
var perRequest = []figure{
	{decodeDuration, "ms", "Decode Duration"}, {outputEndToEnd, "tokens/sec/user", "E2E Output Token Throughput"}, {inputLength, "tokens", "Input Sequence Length"},
	{interChunkLatency, "ms", "Inter Chunk Latency"}, {interTokenLatency, "ms", "Inter Token Latency"}, {lengthMismatchPct, "%", "OSL Mismatch Diff %"},
	{outputLength, "tokens", "Output Sequence Length"}, {outputCount, "tokens", "Output Token Count"}, {outputPerUser, "tokens/sec/user", "Output Token Throughput Per User"},
	{prefillPerUser, "tokens/sec/user", "Prefill Throughput Per User"}, {requestLatency, "ms", "Request Latency"}, {timeToFirstOutput, "ms", "Time to First Output Token"},
	{timeToFirstToken, "ms", "Time to First Token"}, {timeToSecondToken, "ms", "Time to Second Token"}, {usageCompletion, "tokens", "Usage Completion Tokens"},
	{usageCached, "tokens", "Usage Prompt Cache Read Tokens"}, {usagePrompt, "tokens", "Usage Prompt Tokens"}, {usageTotal, "tokens", "Usage Total Tokens"},
}

// ofMetadata are computed from when requests were due, sent and ended.
var ofMetadata = []figure{{"credit_to_start_latency", "ms", "Credit-to-Start Latency"}, {"effective_latency", "ms", "Effective Latency (CO-aware)"}}

// overTime are computed from all requests together, and their values count by how long they held.
var overTime = []figure{
	{"effective_concurrency", "requests", "Effective Concurrency"}, {"effective_decode_throughput", "tokens/sec", "Effective Decode Throughput"},
	{"effective_prefill_throughput", "tokens/sec", "Effective Prefill Throughput"}, {"effective_decode_concurrency", "requests", "Effective Decode Concurrency"},
	{"effective_prefill_concurrency", "requests", "Effective Prefill Concurrency"}, {"effective_total_throughput", "tokens/sec", "Effective Total Throughput"},
	{"effective_decode_throughput_per_user", "tokens/sec/user", "Effective Decode Throughput Per User"},
	{"effective_prefill_throughput_per_user", "tokens/sec/user", "Effective Prefill Throughput Per User"},
	{"tokens_in_flight", "tokens", "Tokens In Flight"},
}

// single are the metrics with one value for the whole run.
var single = []figure{
	{"benchmark_duration", "sec", "Benchmark Duration"}, {"completed_request_count", "requests", "Completed Requests (Success + Error)"},
	{"input_token_throughput", "tokens/sec", "Input Token Throughput"},
	{"output_token_throughput", "tokens/sec", "Output Token Throughput"}, {"overall_usage_prompt_cache_read_pct", "%", "Overall Usage Prompt Cache Read %"},
	{"request_count", "requests", "Request Count"}, {"request_error_rate", "%", "Request Error Rate"}, {"request_throughput", "requests/sec", "Request Throughput"},
	{"total_isl", "tokens", "Total Input Sequence Length"}, {"total_osl", "tokens", "Total Output Sequence Length"}, {"total_output_tokens", "tokens", "Total Output Tokens"},
	{"total_token_throughput", "tokens/sec", "Total Token Throughput"}, {"total_usage_completion_tokens", "tokens", "Total Usage Completion Tokens"},
	{"total_usage_prompt_cache_read_tokens", "tokens", "Total Usage Prompt Cache Read Tokens"}, {"total_usage_prompt_tokens", "tokens", "Total Usage Prompt Tokens"},
	{"total_usage_total_tokens", "tokens", "Total Usage Total Tokens"},
}
