package tables

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/simcore/problem"
)

// maxReason bounds what is quoted of the source's own messages, in bytes.
const maxReason = 240

// explainNames says which of backend, version and model has no rows.
func (s *search) explainNames() problem.List {
	var l problem.List
	q := &s.query
	rows := s.index.all
	backends := distinct(rows, func(c *Config) string { return c.Backend })
	if !slices.Contains(backends, q.Backend) {
		l = append(l, problem.Problem{Path: "backend", Value: q.Backend,
			Allowed: fmt.Sprintf("%s was measured with %s", q.System, strings.Join(backends, ", "))})
	} else if !slices.ContainsFunc(rows, s.sameRelease) {
		versions := distinct(narrow(rows, func(c *Config) bool { return c.Backend == q.Backend }), func(c *Config) string { return c.BackendVersion })
		slices.SortFunc(versions, compareVersions)
		l = append(l, problem.Problem{Path: "backend_version", Value: q.BackendVersion,
			Allowed: fmt.Sprintf("%s was measured on %s in the versions %s", q.Backend, q.System, strings.Join(versions, ", "))})
	}
	if p, ok := s.explainModel(len(l) > 0); !ok {
		l = append(l, p)
	}
	return l
}

// sameRelease reports whether a row is of the backend and version that are asked for.
func (s *search) sameRelease(c *Config) bool {
	return c.Backend == s.query.Backend && c.BackendVersion == s.version
}

// explainModel says why a model has no rows; it is content with any rows at all when the backend is wrong already.
func (s *search) explainModel(anyBackend bool) (problem.Problem, bool) {
	q := &s.query
	p := problem.Problem{Path: "model", Value: q.Model}
	if s.name.model == "" {
		rows := narrow(s.index.all, func(c *Config) bool { return anyBackend || s.sameRelease(c) })
		p.Allowed = fmt.Sprintf("not measured on %s; %s", q.System, nearestModel(checkpoint(q.Model)[1:], rows))
		if reason := s.reason(Unavailable{Model: strings.ToLower(q.Model)}); reason != "" {
			p.Allowed = fmt.Sprintf("not measured on %s: %s", q.System, reason)
		}
		return p, false
	}
	if anyBackend {
		return p, true
	}
	releases := distinct(narrow(s.index.all, func(c *Config) bool { return c.Model == s.name.model }),
		func(c *Config) string { return c.Backend + " " + c.BackendVersion })
	p.Allowed = fmt.Sprintf("not measured on %s with %s %s; it was with %s", q.System, q.Backend, s.version, strings.Join(releases, ", "))
	if reason := s.reason(Unavailable{Model: s.name.model}); reason != "" {
		p.Allowed += "; the source refused: " + reason
	}
	return p, false
}

// refuse is the problem of a value for which a model has no row: what there is, and why this is not.
func (s *search) refuse(path, value string, have []string, refused Unavailable) problem.List {
	q := &s.query
	what := s.name.model
	if path != "dtype" && refused.DType != "" {
		what += " " + refused.DType
	}
	given := ""
	if path == "dp" || path == "ep" {
		given = fmt.Sprintf(" and tp %d", q.TP)
	}
	if path == "ep" {
		given += fmt.Sprintf(" and dp %d", q.DP)
	}
	allowed := fmt.Sprintf("%s was measured on %s with %s %s%s for %s %s", what, q.System, q.Backend, s.version, given, path, strings.Join(have, ", "))
	if value == "" {
		allowed = "give one: " + allowed
	}
	refused.Model = s.name.model
	if reason := s.reason(refused); value != "" && reason != "" {
		allowed += "; the source refused this one: " + reason
	}
	return problem.List{{Path: path, Value: value, Allowed: allowed}}
}

// reason is what the source said to a deployment that matches all fields that are set, empty when it said nothing.
func (s *search) reason(want Unavailable) string {
	list, err := s.set.Unavailable()
	if err != nil {
		return ""
	}
	matches := func(want, have int) bool { return want == 0 || have == 0 && want == 1 || want == have }
	for _, u := range list {
		if u.System == s.query.System && u.Backend == s.query.Backend && u.Model == want.Model && s.release(u) &&
			(want.DType == "" || want.DType == u.DType) && matches(want.TP, u.TP) && matches(want.DP, u.DP) && matches(want.MoEEP, u.MoEEP) {
			return shorten(u.Reason)
		}
	}
	return ""
}

// release reports whether a refusal is about the version that is asked for, as far as it says.
func (s *search) release(u Unavailable) bool {
	if u.BackendVersion != "" {
		return u.BackendVersion == s.version
	}
	current := s.index.versions[versionKey{s.query.Backend, SlotCurrent}] == s.version
	return current == (u.Slot == SlotCurrent)
}

// ambiguous lists in what several rows of one deployment differ.
func (s *search) ambiguous(rows []*Config) problem.List {
	var l problem.List
	for _, quant := range []struct {
		path string
		of   func(*Config) string
	}{
		{"gemm_dtype", func(c *Config) string { return c.GEMM }},
		{"moe_dtype", func(c *Config) string { return c.MoE }},
		{"fmha_dtype", func(c *Config) string { return c.FMHA }},
		{"kv_cache_dtype", func(c *Config) string { return c.KV }},
	} {
		if values := distinct(rows, quant.of); len(values) > 1 {
			l = append(l, s.refuse(quant.path, "", values, Unavailable{})...)
		}
	}
	if len(l) == 0 {
		l.Add("ep", s.query.EP, "%d rows fit %s; the folder of tables holds it more than once", len(rows), rows[0])
	}
	return l
}

// nearestModel suggests the model of which a name is another variant, else the one that was meant.
func nearestModel(name string, rows []*Config) string {
	variants := narrow(rows, func(c *Config) bool { return strings.HasPrefix(name, c.Model+"-") })
	if len(variants) > 0 {
		return fmt.Sprintf("%s was, with dtype %s", variants[0].Model, strings.Join(distinct(variants, func(c *Config) string { return c.DType }), ", "))
	}
	return nearestOf(name, distinct(rows, func(c *Config) string { return c.Model }))
}

// nearestOf suggests the word that was meant, else lists the known ones.
func nearestOf(word string, known []string) string {
	list := "there are tables for " + strings.Join(known, ", ")
	if near := problem.Nearest(word, known); near != "" {
		return fmt.Sprintf("did you mean %s? %s", near, list)
	}
	return list
}

// distinct lists the different values of rows in alphabetical order.
func distinct(rows []*Config, of func(*Config) string) []string {
	var values []string
	for _, c := range rows {
		values = append(values, of(c))
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// numbersOf lists the different numbers of rows in increasing order.
func numbersOf(rows []*Config, of func(*Config) int) []string {
	var values []int
	for _, c := range rows {
		values = append(values, of(c))
	}
	slices.Sort(values)
	var words []string
	for _, v := range slices.Compact(values) {
		words = append(words, strconv.Itoa(v))
	}
	return words
}

// shorten makes one short line of a message.
func shorten(message string) string {
	line := strings.Join(strings.Fields(message), " ")
	if len(line) <= maxReason {
		return line
	}
	return strings.ToValidUTF8(line[:maxReason], "") + "…"
}
