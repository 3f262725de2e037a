package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/simcore/perfmodel/catalogue"
	"github.com/servegrid/servegrid/simcore/perfmodel/tables"
	"github.com/servegrid/servegrid/simcore/problem"
)

func newPerf(st *state) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "perf",
		Short: "See, check and extend what is known about the speed of GPUs",
		Long: `perf shows what servegrid knows about how long a pass takes: which GPUs, models and parallelism were measured, what a
pass costs and why, and whether a folder of your own tables is sound.`,
		Args: onlySubcommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPerfList(st), newPerfShow(st), newPerfCheck(st), newPerfImport(st))
	return cmd
}

// openTables returns the tables of a folder, or those that the program contains.
func openTables(dir string) (*tables.Set, error) {
	if dir == "" {
		return tables.Embedded(), nil
	}
	return tables.Open(dir)
}

// tableRows returns all rows of a set, system by system.
func tableRows(set *tables.Set) ([]*tables.Config, error) {
	var rows []*tables.Config
	for _, system := range set.Systems() {
		some, err := set.Configs(system)
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

// gpuData returns the catalogue's figures of a GPU by its id; a user's tables may have GPUs that it does not know.
func gpuData(id string) (catalogue.GPU, bool) {
	for _, g := range catalogue.GPUs() {
		if g.ID == id {
			return g, true
		}
	}
	return catalogue.GPU{ID: id}, false
}

// asFlags turns problems with keys into problems with the flags of the same names.
func asFlags(l problem.List) error {
	flags := make(problem.List, len(l))
	for i, p := range l {
		p.Path = "--" + strings.ReplaceAll(p.Path, "_", "-")
		flags[i] = p
	}
	return flags.Err()
}

// printJSON prints one value for programs.
func printJSON(st *state, v any) error {
	return writeJSON(st.stdout, v)
}

// writeJSON writes a document with an indented line for each member.
func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// errorFigures are those of tables as JSON shows them, in %.
type errorFigures struct {
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

func figuresOf(e tables.ErrorFigures) errorFigures { return errorFigures(e) }

// errorsText is "median 0.04 %, p99 0.5 %, greatest 1.2 %".
func errorsText(e tables.ErrorFigures) string {
	return fmt.Sprintf("median %s %%, p99 %s %%, greatest %s %%", errorPct(e.Median), errorPct(e.P99), errorPct(e.Max))
}
