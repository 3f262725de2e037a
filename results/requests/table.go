// Package requests lays out the life of each request, simulated or live, for files: one row a request.
//
// Read columns.go for the figures; table.go and json.go write them, and describe.go says what served them.
package requests

import (
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Table lays records out with one row a request. The ID of the point joins it with the results; without one it stands alone.
// versions names what made the records.
func Table(id string, records []simcore.RequestRecord, w *workload.Workload, versions map[string]string) *results.Table {
	t := &results.Table{Metadata: results.Metadata{Versions: versions}}
	columns := Columns(w)
	if id != "" {
		columns = append([]Column{IDColumn(id)}, columns...)
	}
	for _, c := range columns {
		column := results.NewColumn(c.Name, c.Kind, len(records))
		column.Unit, column.Doc, column.Role = c.Unit, c.Doc, results.RolePoint
		for i := range records {
			if v, ok := c.Value(&records[i]); ok {
				column.Set(i, v)
			}
		}
		t.Add(column)
	}
	return t
}
