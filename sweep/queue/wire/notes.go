package wire

import (
	"encoding/json"
	"time"
)

// Presence is what a worker says about itself.
type Presence struct {
	// Host is its machine, PID its process there.
	Host string `json:"host"`
	PID  int    `json:"pid"`
	// Jobs is the number of points that it simulates at the same time.
	Jobs int `json:"jobs"`
	// Simulator is the semantic version of its simulator.
	Simulator string    `json:"simulator"`
	Started   time.Time `json:"started"`
	// Points counts the points that it simulated, and Seconds is what one takes, the mean over the last ones.
	Points  int     `json:"points"`
	Seconds float64 `json:"seconds"`
}

// Try is a time that a point was begun and did not come to a row. What it came to is unknown when its worker was lost.
type Try struct {
	// Host is the machine, Worker the worker's name.
	Host   string `json:"host"`
	Worker string `json:"worker,omitempty"`
	// Problem is what the worker could not do; empty when it was lost.
	Problem string `json:"problem,omitempty"`
}

// The bounds of notes, in bytes.
const (
	// MaxTryText is how much is noted of a problem.
	MaxTryText = 500

	maxPresence = 4 << 10
	maxTries    = 256 << 10
)

// DecodePresence reads what a worker says about itself; false means that no worker said so.
func DecodePresence(text []byte) (p Presence, ok bool) {
	if len(text) > maxPresence || json.Unmarshal(text, &p) != nil {
		return Presence{}, false
	}
	return p, true
}

// DecodeTries reads the tries of a point. What cannot be read is none.
func DecodeTries(text []byte) []Try {
	var tries []Try
	if len(text) > maxTries || json.Unmarshal(text, &tries) != nil {
		return nil
	}
	return tries
}
