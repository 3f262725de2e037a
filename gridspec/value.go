package gridspec

import (
	"math"
	"reflect"
	"strconv"
)

// String formats the value as a spec would write it.
func (v Value) String() string {
	switch v.Kind {
	case KindBool:
		return strconv.FormatBool(v.Bool)
	case KindInt:
		return strconv.FormatInt(v.Int, 10)
	case KindFloat:
		return strconv.FormatFloat(v.Float, 'g', -1, 64)
	}
	return v.Str
}

// Float64 returns the value of a number; NaN for texts and booleans.
func (v Value) Float64() float64 {
	switch v.Kind {
	case KindInt:
		return float64(v.Int)
	case KindFloat:
		return v.Float
	}
	return math.NaN()
}

// Numeric reports whether values of the kind are numbers.
func (k Kind) Numeric() bool { return k == KindInt || k == KindFloat }

// Any returns the value as a bool, int64, float64 or string.
func (v Value) Any() any {
	switch v.Kind {
	case KindBool:
		return v.Bool
	case KindInt:
		return v.Int
	case KindFloat:
		return v.Float
	}
	return v.Str
}

// valueOf is the typed column value of a setting.
func valueOf(v reflect.Value) Value {
	switch kindOf(v.Type()) {
	case KindBool:
		return Value{Kind: KindBool, Bool: v.Bool()}
	case KindInt:
		if v.CanUint() {
			return Value{Kind: KindInt, Int: int64(v.Uint())}
		}
		return Value{Kind: KindInt, Int: v.Int()}
	case KindFloat:
		return Value{Kind: KindFloat, Float: v.Float()}
	}
	if v.Kind() == reflect.String {
		return Value{Kind: KindString, Str: v.String()}
	}
	return Value{Kind: KindString, Str: show(v.Interface())}
}

func kindOf(t reflect.Type) Kind {
	switch t.Kind() {
	case reflect.Bool:
		return KindBool
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint32, reflect.Uint64:
		return KindInt
	case reflect.Float64:
		return KindFloat
	}
	return KindString
}

// plain is a column value as expressions see it.
func plain(v Value) any {
	switch v.Kind {
	case KindBool:
		return v.Bool
	case KindInt:
		return int(v.Int)
	case KindFloat:
		return v.Float
	}
	return v.Str
}
