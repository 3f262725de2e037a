package gridspec_test

import (
	"fmt"

	"github.com/servegrid/servegrid/gridspec"
)

// Load a spec, change one value and list its points.
func Example() {
	spec, err := gridspec.Load(gridspec.Source{
		Data: []byte(`
workload: {preset: {name: chat, requests: 100}}
timing: {tp: 2}
grid:
  deployment.workers: [1, 2]
  engine.block_size: [16, 64]
exclude: ["workers == 1 && block_size == 64"]
derive: {gpus: workers * tp}
`),
		Set: []string{"grid.deployment.workers=[1, 4]"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	points, err := spec.Expand(gridspec.ExpandOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range points {
		for _, a := range p.Axes {
			fmt.Printf("%s=%v ", a.Column, a.Value)
		}
		fmt.Println(p.Config.Engine.BlockSize, p.Workload.Preset.Name)
	}
	// Output:
	// workers=1 block_size=16 gpus=2 16 chat
	// workers=4 block_size=16 gpus=8 16 chat
	// workers=4 block_size=64 gpus=8 64 chat
}

// Every problem of a spec is reported at once, with its place and what is allowed.
func ExampleLoad_problems() {
	_, err := gridspec.Load(gridspec.Source{Path: "grid.yaml", Data: []byte(`engine: {block_sise: 64}
grid:
  timing.tp: [1, two]
exclude: ["wrkers > 1"]
`)})
	fmt.Println(err)
	// Output:
	// grid.yaml:1:10: engine.block_sise: unknown key; the nearest is block_size
	// grid.yaml:3:18: grid.timing.tp[1]: "two" is not allowed; give a whole number
	// grid.yaml:4:11: exclude[0]: "wrkers > 1" is not allowed; column 1: unknown name wrkers; the nearest is workers
}
