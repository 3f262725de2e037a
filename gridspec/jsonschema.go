package gridspec

import (
	"bytes"
	_ "embed"
)

// A test generates schema.json from the types and their comments, and fails when the file is not up to date; run
// go test ./gridspec -run TestJSONSchema -update after a change.
//
//go:embed schema.json
var jsonSchema []byte

//go:embed starter.yaml
var starter []byte

// JSONSchema returns the JSON Schema (draft 2020-12) of a spec, for editors. It checks names, types and fixed
// choices; what depends on several keys only [Load] and [Spec.Expand] can tell.
func JSONSchema() []byte { return bytes.Clone(jsonSchema) }

// Starter returns a commented spec to start from, in YAML.
func Starter() []byte { return bytes.Clone(starter) }
