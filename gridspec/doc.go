// Package gridspec turns a grid spec (YAML, TOML or JSON) into the points of a sweep: complete, typed, validated
// configurations with the values of their axes and a content ID.
//
//	spec, err := gridspec.Load(gridspec.Source{Path: "grid.yaml", Env: os.Environ(), Set: []string{"execution.seed=7"}})
//	points, err := spec.Expand(gridspec.ExpandOptions{})
//
// It runs nothing. Besides the spec it reads the files of the timing model, once a program, since a configuration is
// resolved before it is a point; [Spec.CheckTraces] looks whether the traces can be read. Every error is a [Problems] that lists all that is wrong, each with its place, key path, value and what is allowed;
// [Spec.Warnings] lists what is allowed but hardly meant.
//
// # Reading order
//
//   - point.go: what comes out, a [Point].
//   - schema.go: the keys of a spec; spec.go: [Load] and the loaded [Spec].
//   - layers.go, parse*.go, origins.go: file, environment and --set become one tree that remembers where each
//     key was written.
//   - keys.go, bind.go: the key paths of a configuration, and how values of the tree become typed fields.
//   - axes.go, domain.go, sample.go, sobol.go: the axes and their values; columns.go: their names in results;
//     label.go: the names of workloads.
//   - expression.go: exclude and derive.
//   - expand.go, check.go, seeds.go: the points; id.go: their content IDs; prices.go: what their GPUs cost; warnings.go,
//     files.go: what else is said about them.
//   - resolved.go, schema.json, starter.yaml: the merged spec as YAML, the JSON Schema, the commented starter.
package gridspec
