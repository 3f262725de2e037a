package gridspec

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/servegrid/servegrid/simcore/workload"
)

// A value of the tree is nil, a bool, an int64, a uint64 above its range, a float64, a string, a []any or a
// map[string]any. The binder turns it into a typed field without any silent conversion: text is never a number
// and a fraction never a whole number; a float that is a whole number (1e3) is one.

// selfBinder is a type that reads its own value; the result says what is allowed when the value is not.
type selfBinder interface{ fromSpec(v any) (allowed string) }

// chooser is a string type with a fixed set of values.
type chooser interface{ choices() []string }

// bind reads the value at a path into dst and reports every problem it finds.
func (c *collector) bind(path string, v any, dst reflect.Value) {
	if own, ok := dst.Addr().Interface().(selfBinder); ok {
		if allowed := own.fromSpec(v); allowed != "" {
			c.add(path, v, "%s", allowed)
		}
		return
	}
	if dst.Type() == reflect.TypeFor[time.Duration]() {
		c.bindDuration(path, v, dst)
		return
	}
	switch dst.Kind() {
	case reflect.Interface:
		dst.Set(reflect.ValueOf(&v).Elem())
	case reflect.Struct:
		c.bindStruct(path, v, dst)
	case reflect.Pointer:
		if v == nil {
			return
		}
		if dst.IsNil() {
			dst.Set(newDefault(dst.Type().Elem()))
		}
		c.bind(path, v, dst.Elem())
	case reflect.Map:
		c.bindMap(path, v, dst)
	case reflect.Slice:
		c.bindSlice(path, v, dst)
	default:
		c.bindScalar(path, v, dst)
	}
}

// newDefault allocates a struct with the values that it has when nothing is said.
func newDefault(t reflect.Type) reflect.Value {
	p := reflect.New(t)
	switch d := p.Interface().(type) {
	case *workload.TraceSpec:
		*d = workload.DefaultTraceSpec()
	case *workload.SyntheticSpec:
		*d = workload.DefaultSyntheticSpec()
	}
	return p
}

func (c *collector) bindStruct(path string, v any, dst reflect.Value) {
	if v == nil {
		return
	}
	m, ok := v.(map[string]any)
	if !ok {
		c.add(path, v, "give a mapping of keys to values")
		return
	}
	fields := jsonFields(dst.Type())
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	for _, k := range c.origins.sorted(path, m) {
		if i := slices.Index(names, k); i >= 0 {
			c.bind(join(path, k), m[k], dst.FieldByIndex(fields[i].index))
		} else {
			c.addUnknown(join(path, k), k, names)
		}
	}
}

func (c *collector) bindMap(path string, v any, dst reflect.Value) {
	if v == nil {
		return
	}
	m, ok := v.(map[string]any)
	if !ok {
		c.add(path, v, "give a mapping")
		return
	}
	out := reflect.MakeMapWithSize(dst.Type(), len(m))
	for _, k := range c.origins.sorted(path, m) {
		element := reflect.New(dst.Type().Elem()).Elem()
		c.bind(join(path, k), m[k], element)
		out.SetMapIndex(reflect.ValueOf(k), element)
	}
	dst.Set(out)
}

func (c *collector) bindSlice(path string, v any, dst reflect.Value) {
	if v == nil {
		return
	}
	list, ok := v.([]any)
	if !ok {
		c.add(path, v, "give a list")
		return
	}
	out := reflect.MakeSlice(dst.Type(), len(list), len(list))
	for i, element := range list {
		c.bind(indexed(path, i), element, out.Index(i))
	}
	dst.Set(out)
}

func indexed(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func (c *collector) bindScalar(path string, v any, dst reflect.Value) {
	if n, ok := nullableAt(path); ok {
		c.bindNullable(path, n, v, dst)
	} else if allowed := setScalar(v, dst); allowed != "" {
		c.add(path, v, "%s", allowed)
	}
}

// bindNullable stores a number that may be null. What a configuration holds for null is refused where it is written: who
// writes 0 may well mean none at all.
func (c *collector) bindNullable(path string, n nullable, v any, dst reflect.Value) {
	if v == nil {
		if dst.CanFloat() {
			dst.SetFloat(n.stored)
		} else {
			dst.SetInt(int64(n.stored))
		}
		return
	}
	allowed := setScalar(v, dst)
	if allowed == "" && (dst.CanInt() && float64(dst.Int()) == n.stored || dst.CanFloat() && dst.Float() == n.stored) {
		allowed = fmt.Sprintf("give %s, or null %s", n.least(dst.CanInt()), n.means)
	}
	if allowed != "" {
		c.add(path, v, "%s", allowed)
	}
}

// setScalar stores a scalar of the tree in a field. When the value does not fit the result says what would.
func setScalar(v any, dst reflect.Value) (allowed string) {
	switch dst.Kind() {
	case reflect.Bool:
		b, ok := v.(bool)
		if !ok {
			return "give true or false"
		}
		dst.SetBool(b)
	case reflect.String:
		s, ok := v.(string)
		if !ok {
			return "give text; write it in quotes if it looks like something else"
		}
		if ch, ok := dst.Interface().(chooser); ok && !slices.Contains(ch.choices(), s) {
			return "use one of: " + strings.Join(ch.choices(), ", ")
		}
		dst.SetString(s)
	case reflect.Int, reflect.Int32, reflect.Int64:
		n, ok := wholeNumber(v)
		if !ok || dst.OverflowInt(n) {
			return "give a whole number"
		}
		dst.SetInt(n)
	case reflect.Uint, reflect.Uint32, reflect.Uint64:
		n, ok := naturalNumber(v)
		if !ok || dst.OverflowUint(n) {
			return "give a whole number of 0 or more"
		}
		dst.SetUint(n)
	case reflect.Float64:
		f, ok := number(v)
		if !ok {
			return "give a finite number"
		}
		dst.SetFloat(f)
	default:
		return "cannot be set in a spec"
	}
	return ""
}

func wholeNumber(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), n == math.Trunc(n) && math.Abs(n) < 1<<63
	}
	return 0, false
}

func naturalNumber(v any) (uint64, bool) {
	if n, ok := v.(uint64); ok {
		return n, true
	}
	n, ok := wholeNumber(v)
	return uint64(n), ok && n >= 0
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case uint64:
		return float64(n), true
	case float64:
		return n, !math.IsNaN(n) && !math.IsInf(n, 0)
	}
	return 0, false
}

func (c *collector) bindDuration(path string, v any, dst reflect.Value) {
	d := time.Duration(0)
	if v != int64(0) {
		text, _ := v.(string)
		var err error
		if d, err = time.ParseDuration(text); err != nil || d < 0 {
			c.add(path, v, "give a duration with its unit, such as 90s or 5m, or 0 for no limit")
			return
		}
	}
	dst.SetInt(int64(d))
}
