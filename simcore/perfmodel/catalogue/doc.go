// Package catalogue holds what is public about GPUs and language models: speeds, memory and prices of the GPUs, layer
// shapes of the models. It knows nothing about how long anything takes; packages roofline and memory compute that.
//
// Read gpu.go for the GPUs, model.go for the models, config.go for models that users describe by a config.json.
package catalogue

import (
	"fmt"
	"strings"

	"github.com/servegrid/servegrid/simcore/problem"
)

// UnknownError is the error of a name that the catalogue doesn't have.
type UnknownError struct {
	// Kind is "GPU" or "model".
	Kind string
	// Name is what was asked for.
	Name string
	// Nearest are the ids whose names are closest, the closest first.
	Nearest []string
	// Hint says what to do for one that is really missing.
	Hint string
}

// Error names the nearest ids and what else can be done.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("unknown %s %q; %s", e.Kind, e.Name, e.Instead())
}

// Instead names the nearest ids and what else can be done, for messages that say by themselves what was asked for.
func (e *UnknownError) Instead() string {
	return fmt.Sprintf("the nearest are %s; %s", strings.Join(e.Nearest, ", "), e.Hint)
}

// nearestCount is how many ids an error offers.
const nearestCount = 3

// unknown finds the ids nearest to a name; names and ids run in parallel, several names may have one id.
func unknown(kind, name, hint string, names, ids []string) *UnknownError {
	idOf := make(map[string]string, len(names))
	for i, n := range names {
		idOf[n] = ids[i]
	}
	e := &UnknownError{Kind: kind, Name: name, Hint: hint}
	seen := map[string]bool{}
	for _, n := range problem.Closest(plain(name), names, len(names)) {
		if id := idOf[n]; !seen[id] && len(e.Nearest) < nearestCount {
			seen[id] = true
			e.Nearest = append(e.Nearest, id)
		}
	}
	return e
}

// plain is a name as it is compared: lower case, letters and digits only, because "H200 SXM", "h200_sxm" and
// "h200-sxm" mean the same.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return -1
	}, name)
}
