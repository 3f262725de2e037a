package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/simcore/perfmodel/tables"
	"github.com/servegrid/servegrid/sweep/filelock"
)

func newPerfCheck(st *state) *cobra.Command {
	return &cobra.Command{
		Use:   "check [DIR]",
		Short: "Check a folder of tables and show how exact it is",
		Long: `check reads all of a folder of tables and lists everything that is wrong with it, or how far its prices are off
their source. Without DIR it checks the tables that servegrid contains.`,
		Args: atMostOne("DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				set := tables.Embedded()
				report, err := set.Check()
				if err != nil {
					return allFaults(err)
				}
				return printChecked(st, set, report)
			}
			set, report, err := tables.Check(args[0])
			if err != nil {
				return allFaults(err)
			}
			return printChecked(st, set, report)
		},
	}
}

func newPerfImport(st *state) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "import SRC --output DIR",
		Short: "Check a folder of tables and add it to another one",
		Long: `import checks the folder of tables SRC, such as one that tools/perf/generate.py made, and adds it to the folder DIR.
Deployments that DIR has already are replaced, everything else in it stays. A damaged SRC changes nothing.`,
		Args: exactlyOne("SRC"),
		RunE: func(_ *cobra.Command, args []string) error {
			if output == "" {
				return errors.New("--output is missing; name the folder to add the tables to, which is made if need be")
			}
			report, err := importTables(args[0], output)
			if err != nil {
				return allFaults(err)
			}
			set, err := tables.Open(args[0])
			if err != nil {
				return err
			}
			if err := printChecked(st, set, report); err != nil {
				return err
			}
			return printText(st.stdout, "Imported into %s. In a spec: timing: {tables: %s, gpu: %s, model: …}\n", output, output, report.Systems[0])
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "folder to add the tables to")
	return cmd
}

// importTables adds tables to a folder that no other import writes to meanwhile.
func importTables(from, to string) (tables.CheckReport, error) {
	if _, _, err := tables.Check(from); err != nil {
		return tables.CheckReport{}, err // before a folder is made
	}
	if err := os.MkdirAll(to, 0o777); err != nil {
		return tables.CheckReport{}, fmt.Errorf("--output: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(to, importLock), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return tables.CheckReport{}, fmt.Errorf("--output: %w", err)
	}
	defer lock.Close()
	switch free, err := filelock.Try(lock); {
	case err != nil:
		return tables.CheckReport{}, fmt.Errorf("--output: %s cannot be locked: %w", to, err)
	case !free:
		return tables.CheckReport{}, fmt.Errorf("--output: another import is writing to %s; run this one again when it has ended", to)
	}
	return tables.Import(from, to)
}

// importLock is the file that an import locks. It stays: removing it would let a third import lock a new file while a
// second one waits for the old.
const importLock = ".import.lock"

// allFaults is an error that shows every fault of a folder; the usual message stops after some.
func allFaults(err error) error {
	var faults tables.Faults
	if !errors.As(err, &faults) {
		return err
	}
	where := strings.TrimSuffix(err.Error(), faults.Error())
	lines := make([]string, len(faults))
	for i, f := range faults {
		lines[i] = f.Error()
	}
	return fmt.Errorf("%s%s\n%s", where, plural(len(faults), "fault"), strings.Join(lines, "\n"))
}

// printChecked sums up sound tables.
func printChecked(st *state, set *tables.Set, report tables.CheckReport) error {
	rows, err := tableRows(set)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", renderErrors(rows))
	fmt.Fprintf(&b, "Sound: %s of %s, %s, %s", plural(report.Configs, "deployment"), plural(len(report.Systems), "GPU"),
		plural(report.Curves, "curve"), plural(report.Grids, "grid"))
	if n := len(rows) - len(usedRows(rows)); n > 0 {
		fmt.Fprintf(&b, "; %d of the deployments replace others when corrections are on, so perf list has %d", n, len(rows)-n)
	}
	if report.Anomalies > 0 {
		fmt.Fprintf(&b, "; %d suspect at the source", report.Anomalies)
	}
	b.WriteString("\n")
	for _, side := range []struct {
		name   string
		points tables.CheckedPoints
	}{{"prefill", report.Prefill}, {"decode", report.Decode}} {
		if p := side.points; p.Count > 0 {
			fmt.Fprintf(&b, "Against %d whole %s passes of the source: %s\n  greatest at %s\n", p.Count, side.name, errorsText(p.Errors), p.Worst)
		}
	}
	return printText(st.stdout, "%s", b.String())
}

// renderErrors shows the error figures of deployments by GPU and release.
func renderErrors(rows []*tables.Config) string {
	type release struct{ gpu, backend, version string }
	groups := map[release][]*tables.Config{}
	var order []release
	for _, c := range rows {
		r := release{c.System, c.Backend, c.BackendVersion}
		if groups[r] == nil {
			order = append(order, r)
		}
		groups[r] = append(groups[r], c)
	}
	slices.SortStableFunc(order, func(a, b release) int { return cmp.Or(cmp.Compare(a.gpu, b.gpu), cmp.Compare(a.backend, b.backend)) })
	out := newTableWriter()
	out.AppendHeader(table.Row{"gpu", "backend", "version", "deployments", "prefill\nmedian %", "\np99 %", "\nworst p99 %", "decode\nmedian %", "\np99 %", "\nworst p99 %", "suspect"})
	out.SetColumnConfigs(rightAligned(4, 11))
	for _, r := range order {
		cells := table.Row{cellText(r.gpu), r.backend, cellText(r.version), len(groups[r])}
		cells = append(cells, errorCells(groups[r], func(c *tables.Config) tables.ErrorFigures { return c.Prefill })...)
		cells = append(cells, errorCells(groups[r], func(c *tables.Config) tables.ErrorFigures { return c.Decode })...)
		suspect := 0
		for _, c := range groups[r] {
			if c.Anomaly {
				suspect++
			}
		}
		out.AppendRow(append(cells, orNothing(float64(suspect), settingFigure)))
	}
	return out.Render()
}

// errorCells are the median and the 99th percentile of the median deployment, and the greatest 99th percentile.
func errorCells(rows []*tables.Config, of func(*tables.Config) tables.ErrorFigures) table.Row {
	medians, p99s := make([]float64, len(rows)), make([]float64, len(rows))
	for i, c := range rows {
		medians[i], p99s[i] = of(c).Median, of(c).P99
	}
	slices.Sort(medians)
	slices.Sort(p99s)
	middle := (len(rows) - 1) / 2
	var cells table.Row
	for _, v := range []float64{medians[middle], p99s[middle], p99s[len(rows)-1]} {
		cells = append(cells, fmt.Sprintf("%.2f", v))
	}
	return cells
}
