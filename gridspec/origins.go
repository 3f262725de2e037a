package gridspec

import (
	"maps"
	"slices"
	"strings"
)

// origins remembers for every key path where it was written last and in which order keys first appeared, which
// the maps of a koanf tree cannot.
type origins struct {
	places map[string]place
	next   int
}

type place struct {
	where string
	order int
}

func newOrigins() *origins { return &origins{places: map[string]place{}} }

// set records where a key is written. A key that is written again keeps its order.
func (o *origins) set(path, where string) {
	p, known := o.places[path]
	if !known {
		p.order = o.next
		o.next++
	}
	p.where = where
	o.places[path] = p
}

// replace records that a later layer wrote the whole value at a path.
func (o *origins) replace(path, where string) {
	maps.DeleteFunc(o.places, func(p string, _ place) bool {
		return strings.HasPrefix(p, path) && len(p) > len(path) && (p[len(path)] == '.' || p[len(path)] == '[')
	})
	o.set(path, where)
}

// rename moves the record of a key, and of all below it, to another name.
func (o *origins) rename(from, to string) {
	for _, path := range slices.Collect(maps.Keys(o.places)) {
		if path == from || strings.HasPrefix(path, from+".") || strings.HasPrefix(path, from+"[") {
			o.places[to+path[len(from):]] = o.places[path]
			delete(o.places, path)
		}
	}
}

// where returns the place of a key path, or of the nearest key above it that was written; "" when there is none.
func (o *origins) where(path string) string {
	for path != "" {
		if p, ok := o.places[path]; ok {
			return p.where
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return ""
}

// sorted returns the keys of a mapping in the order in which they were written.
func (o *origins) sorted(path string, m map[string]any) []string {
	order := func(key string) int {
		if p, ok := o.places[join(path, key)]; ok {
			return p.order
		}
		return o.next
	}
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		if d := order(a) - order(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
}

// join appends a key to a key path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
