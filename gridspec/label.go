package gridspec

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/simcore/workload"
)

// workloadLabel is the name of a workload in results. A trace has the names of its files, wherever they are.
func workloadLabel(w workload.Spec) string {
	if w.Name != "" || w.Trace == nil {
		return w.Label()
	}
	paths := traceFiles(w.Trace)
	names := make([]string, len(paths))
	for i, f := range paths {
		names[i] = files.Base(filepath.ToSlash(f))
	}
	return strings.Join(names, " ")
}

func traceFiles(t *workload.TraceSpec) []string {
	if t.Path != "" {
		return []string{t.Path}
	}
	return t.Paths
}

// labelWorkloads gives the workloads of an axis that would have the same label one that says what differs, such
// as "chat rate=4" and "chat rate=8". A name that the spec gives stays.
func labelWorkloads(rows []option) {
	groups := map[string][]*option{}
	for i := range rows {
		if o := &rows[i]; o.workload.Name == "" {
			groups[o.shown[0].Str] = append(groups[o.shown[0].Str], o)
		}
	}
	for _, group := range groups {
		if len(group) > 1 {
			labelGroup(group)
		}
	}
}

func labelGroup(group []*option) {
	labels := make([]string, len(group))
	for i, o := range group {
		labels[i] = o.shown[0].Str
	}
	for _, k := range configKeys.leaves {
		if !k.workload || !differs(group, k) {
			continue
		}
		name := k.path[strings.LastIndexByte(k.path, '.')+1:]
		for i, o := range group {
			if text := workloadSetting(o.workload, k); text != "" {
				labels[i] += " " + name + "=" + text
			}
		}
	}
	for i, o := range group {
		o.workload.Name, o.shown[0].Str = labels[i], labels[i]
	}
}

// differs reports whether some workloads of a group have another value of a setting than the first.
func differs(group []*option, k *key) bool {
	first := workloadSetting(group[0].workload, k)
	return slices.ContainsFunc(group[1:], func(o *option) bool { return workloadSetting(o.workload, k) != first })
}

// workloadSetting returns a setting of a workload as text; it is empty at the default.
func workloadSetting(w *workload.Spec, k *key) string {
	v, ok := fieldAt(reflect.ValueOf(w).Elem(), k.index)
	if !ok {
		return ""
	}
	trace, synthetic := workload.DefaultTraceSpec(), workload.DefaultSyntheticSpec()
	standard := workload.Spec{Trace: &trace, Preset: &workload.PresetSpec{}, Synthetic: &synthetic}
	if equal(v, reflect.ValueOf(standard).FieldByIndex(k.index)) {
		return ""
	}
	return valueOf(v).String()
}

// sameWorkload reports whether two workloads differ in nothing but their names.
func sameWorkload(a, b *workload.Spec) bool {
	x, y := *a, *b
	x.Name, y.Name = "", ""
	return reflect.DeepEqual(x, y)
}
