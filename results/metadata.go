package results

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Metadata describes a whole sweep. Parquet and Arrow files carry it as key-value pairs.
type Metadata struct {
	// Spec is the resolved spec as YAML.
	Spec string
	// Versions holds the version of each component that took part, by name.
	Versions map[string]string
	// Objectives are what the spec optimises; empty means [DefaultObjectives].
	Objectives []Objective
	// Constraints say which points are feasible. [NewTable] fills it from the SLA.
	Constraints []Constraint
	// FrontierBy names the columns of the traffic; see [Analysis]. [NewTable] fills it.
	FrontierBy []string
	// Workloads maps each workload's label to its digest. [NewTable] fills it.
	Workloads map[string]string
	// Constants holds the settings that are equal at all points, by key path. [NewTable] fills it.
	Constants map[string]any
}

// KeyValue is one pair of a file's metadata.
type KeyValue struct{ Key, Value string }

// The keys of the pairs.
const (
	keySpec        = "servegrid.spec"
	keyVersions    = "servegrid.versions"
	keyObjectives  = "servegrid.objectives"
	keyWorkloads   = "servegrid.workloads"
	keyConstants   = "servegrid.constants"
	keyConstraints = "servegrid.constraints"
	keyFrontierBy  = "servegrid.frontier_by"
	keyColumns     = "servegrid.columns"
)

// columnInfo is what a file says about a column beyond its name and type.
type columnInfo struct {
	Unit string `json:"unit,omitempty"`
	Doc  string `json:"doc,omitempty"`
	Role Role   `json:"role,omitempty"`
	Path string `json:"path,omitempty"`
}

// KeyValues returns the table's metadata and its columns' units, meanings and roles as pairs, sorted by key.
// All values but the spec are JSON.
func (t *Table) KeyValues() ([]KeyValue, error) {
	columns := make(map[string]columnInfo, len(t.Columns))
	for _, c := range t.Columns {
		columns[c.Name] = columnInfo{Unit: c.Unit, Doc: c.Doc, Role: c.Role, Path: c.Path}
	}
	m := t.Metadata
	var out []KeyValue
	for _, kv := range []struct {
		key   string
		value any
		given bool
	}{
		{keyColumns, columns, true},
		{keyConstants, m.Constants, len(m.Constants) > 0},
		{keyConstraints, m.Constraints, len(m.Constraints) > 0},
		{keyFrontierBy, m.FrontierBy, len(m.FrontierBy) > 0},
		{keyObjectives, m.Objectives, len(m.Objectives) > 0},
		{keyVersions, m.Versions, len(m.Versions) > 0},
		{keyWorkloads, m.Workloads, len(m.Workloads) > 0},
	} {
		if !kv.given {
			continue
		}
		text, err := json.Marshal(kv.value)
		if err != nil {
			return nil, fmt.Errorf("metadata %s: %w", kv.key, err)
		}
		out = append(out, KeyValue{Key: kv.key, Value: string(text)})
	}
	if m.Spec != "" {
		out = append(out, KeyValue{Key: keySpec, Value: m.Spec})
	}
	slices.SortFunc(out, func(a, b KeyValue) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

// applyKeyValues fills the metadata and the columns' descriptions from a file's pairs. Pairs that are missing or
// damaged are left out with a note, since the data is readable without them.
func (t *Table) applyKeyValues(lookup func(key string) (string, bool)) {
	t.Metadata.Spec, _ = lookup(keySpec)
	columns := map[string]columnInfo{}
	for _, kv := range []struct {
		key  string
		into any
	}{
		{keyColumns, &columns},
		{keyConstants, &t.Metadata.Constants},
		{keyConstraints, &t.Metadata.Constraints},
		{keyFrontierBy, &t.Metadata.FrontierBy},
		{keyObjectives, &t.Metadata.Objectives},
		{keyVersions, &t.Metadata.Versions},
		{keyWorkloads, &t.Metadata.Workloads},
	} {
		text, ok := lookup(kv.key)
		if !ok {
			continue
		}
		if err := json.Unmarshal([]byte(text), kv.into); err != nil {
			t.Notes = append(t.Notes, fmt.Sprintf("metadata %s is unreadable and was left out: %v", kv.key, err))
		}
	}
	for _, c := range t.Columns {
		if info, ok := columns[c.Name]; ok {
			c.Unit, c.Doc, c.Role, c.Path = info.Unit, info.Doc, info.Role, info.Path
		}
	}
}
