package aiperf

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Record is one line of profile_export.jsonl: a request.
type Record struct {
	Metadata Metadata `json:"metadata"`
	// Metrics are the figures of the request by AIPerf's names, such as time_to_first_token.
	Metrics map[string]Metric `json:"metrics"`
	// Error is why it failed; nil if it did not.
	Error *ErrorDetails `json:"error,omitempty"`
}

// Metadata says which request it is, and when it happened in ns since 1970.
type Metadata struct {
	SessionNum     int    `json:"session_num"`
	RequestID      string `json:"x_request_id,omitempty"`
	CorrelationID  string `json:"x_correlation_id,omitempty"`
	ConversationID string `json:"conversation_id,omitempty"`
	TurnIndex      int    `json:"turn_index"`
	// CreditIssuedNs is when AIPerf's schedule let the request go, RequestStartNs when it was sent, RequestAckNs when the answer
	// began and RequestEndNs when it ended. 0 is not known.
	CreditIssuedNs int64  `json:"credit_issued_ns,omitempty"`
	RequestStartNs int64  `json:"request_start_ns"`
	RequestAckNs   int64  `json:"request_ack_ns,omitempty"`
	RequestEndNs   int64  `json:"request_end_ns"`
	WorkerID       string `json:"worker_id,omitempty"`
	ProcessorID    string `json:"record_processor_id,omitempty"`
	// BenchmarkPhase is "profiling" for what is measured, "warmup" for what is not.
	BenchmarkPhase    string `json:"benchmark_phase"`
	WasCancelled      bool   `json:"was_cancelled"`
	AgentDepth        int    `json:"agent_depth"`
	ParentCorrelation string `json:"parent_correlation_id,omitempty"`
	RootCorrelation   string `json:"root_correlation_id,omitempty"`
}

// The phases of a benchmark.
const (
	PhaseProfiling = "profiling"
	PhaseWarmUp    = "warmup"
)

// ErrorDetails is why a request failed.
type ErrorDetails struct {
	// Code is the HTTP status; 0 without an answer.
	Code int `json:"code,omitempty"`
	// Type names the kind of failure, Message says it for people.
	Type    string `json:"type,omitempty"`
	Message string `json:"message"`
}

// Metric is one figure of a request.
type Metric struct {
	Value Value  `json:"value"`
	Unit  string `json:"unit"`
}

// Value is a number, or a list of them, such as the gaps between all chunks of an answer. Without numbers it is null.
type Value struct {
	Numbers []float64
	List    bool
}

// Number is the value of a metric that is one number. ok is false where there is none, or a list.
func (r *Record) Number(name string) (v float64, ok bool) {
	m, ok := r.Metrics[name]
	if !ok || m.Value.List || len(m.Value.Numbers) != 1 {
		return 0, false
	}
	return m.Value.Numbers[0], true
}

// Scalar is a value of one number.
func Scalar(v float64) Value { return Value{Numbers: []float64{v}} }

// MarshalJSON writes a number, a list or null.
func (v Value) MarshalJSON() ([]byte, error) {
	switch {
	case v.List && len(v.Numbers) == 0:
		return []byte("[]"), nil
	case v.List:
		return json.Marshal(v.Numbers)
	case len(v.Numbers) == 1:
		return json.Marshal(v.Numbers[0])
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads a number, a boolean as 0 or 1, a list of numbers, or null.
func (v *Value) UnmarshalJSON(data []byte) error {
	*v = Value{}
	switch data[0] {
	case 'n':
		return nil
	case 't':
		*v = Scalar(1)
		return nil
	case 'f':
		*v = Scalar(0)
		return nil
	case '[':
		v.List = true
		if json.Unmarshal(data, &v.Numbers) != nil {
			return errors.New("is a list of other things than numbers")
		}
		return nil
	}
	var number float64
	if json.Unmarshal(data, &number) != nil {
		return fmt.Errorf("%.40s is neither a number nor a list of them", data)
	}
	*v = Scalar(number)
	return nil
}
