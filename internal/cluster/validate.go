package cluster

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
)

// ParamType is the type of a parameter's value.
type ParamType string

// The types of parameters. MaybeText takes null as well as text.
const (
	TypeText      ParamType = "text"
	TypeMaybeText ParamType = "maybe-text"
	TypeBool      ParamType = "bool"
	TypeInt       ParamType = "int"
	TypeSize      ParamType = "size" // MiB
	TypeFloat     ParamType = "float"
)

// typeWords are the types as messages call them.
var typeWords = map[ParamType]string{
	TypeText: "string", TypeMaybeText: "string", TypeBool: "boolean", TypeInt: "integer", TypeSize: "size. error: Invalid format", TypeFloat: "float",
}

// BETypes returns the type of each backend parameter. "memory" sets minmem
// and maxmem at once.
func BETypes() map[string]ParamType {
	return map[string]ParamType{
		"memory": TypeSize, "minmem": TypeSize, "maxmem": TypeSize, "vcpus": TypeInt,
		"auto_balance": TypeBool, "always_failover": TypeBool, "spindle_use": TypeInt,
	}
}

// NDTypes returns the type of each node parameter.
func NDTypes() map[string]ParamType {
	return map[string]ParamType{
		"oob_program": TypeText, "spindle_count": TypeInt, "exclusive_storage": TypeBool, "ovs": TypeBool,
		"ovs_name": TypeMaybeText, "ovs_link": TypeMaybeText, "ssh_port": TypeInt, "cpu_speed": TypeFloat,
	}
}

// NICTypes returns the type of each NIC parameter.
func NICTypes() map[string]ParamType {
	return map[string]ParamType{"mode": TypeText, "link": TypeText, "vlan": TypeText}
}

// HVTypes returns the type of each parameter of a hypervisor, nil for a
// hypervisor that is not known.
func HVTypes(hypervisor string) map[string]ParamType {
	defaults, known := defaultHVParams()[hypervisor]
	if !known {
		return nil
	}
	out := make(map[string]ParamType, len(defaults))
	for name, v := range defaults {
		out[name] = typeOf(v)
	}
	maps.Copy(out, OwnHVParams()[hypervisor])
	return out
}

// typeOf returns the type of a parameter by its default.
func typeOf(value any) ParamType {
	switch value.(type) {
	case bool:
		return TypeBool
	case int64:
		return TypeInt
	}
	return TypeMaybeText
}

// UseDefault is the value that takes a parameter's own setting away, so that
// the default counts again.
const UseDefault = "default"

// CheckParams returns the parameters with their values in the right types, as
// the reference enforces them: texts of numbers and truth values are read, a
// value "default" (where allowed) stays. An unknown parameter or a value that
// does not fit is Mistyped.
func CheckParams(p Params, types map[string]ParamType, allowDefault bool) (Params, error) {
	out := make(Params, len(p))
	for name, v := range p {
		typ, known := types[name]
		if !known {
			return nil, unknownParam(name, types)
		}
		if allowDefault && v == UseDefault {
			out[name] = v
			continue
		}
		got, ok := force(v, typ)
		if !ok {
			return nil, fault.New(fault.Mistyped, "'%s' (value %v) is not a valid %s", name, v, typeWords[typ]).At(name)
		}
		out[name] = got
	}
	return out, nil
}

func unknownParam(name string, types map[string]ParamType) *fault.Error {
	f := fault.New(fault.Mistyped, "Unknown parameter '%s'", name).At(name)
	if best := qlang.Suggest(name, slices.Values(slices.Sorted(maps.Keys(types)))); best != "" {
		return f.WithHint("did you mean %q?", best)
	}
	return f
}

func force(v any, typ ParamType) (any, bool) {
	switch typ {
	case TypeText, TypeMaybeText:
		return forceText(v, typ == TypeMaybeText)
	case TypeBool:
		return forceBool(v)
	case TypeSize:
		if s, ok := v.(string); ok {
			return ParseSize(s)
		}
		return forceInt(v)
	case TypeInt:
		return forceInt(v)
	case TypeFloat:
		return forceFloat(v)
	}
	return nil, false
}

func forceText(v any, null bool) (any, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case nil:
		return nil, null
	case bool:
		return "", !v // false stands for "none" in old clients
	}
	return nil, false
}

// forceBool takes numbers as the reference does: those that are not zero are true.
func forceBool(v any) (any, bool) {
	switch v := Canonical(v).(type) {
	case bool:
		return v, true
	case nil:
		return false, true
	case int64:
		return v != 0, true
	case float64:
		return v != 0, true
	case string:
		switch strings.ToLower(v) {
		case "true", "yes":
			return true, true
		case "false", "no", "":
			return false, true
		}
	}
	return nil, false
}

func forceInt(v any) (any, bool) {
	switch v := Canonical(v).(type) {
	case int64:
		return v, true
	case string:
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		return n, err == nil
	}
	return nil, false
}

func forceFloat(v any) (any, bool) {
	switch v := Canonical(v).(type) {
	case int64:
		return v, true
	case float64:
		return v, true
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, false
		}
		return Canonical(f), true
	}
	return nil, false
}

// sizeUnits are the mebibytes in the units of sizes.
var sizeUnits = map[string]float64{
	"": 1, "m": 1, "mb": 1, "mib": 1, "g": 1 << 10, "gb": 1 << 10, "gib": 1 << 10, "t": 1 << 20, "tb": 1 << 20, "tib": 1 << 20,
}

// Mebibytes reads a size as people write it: "512", "512M", "1.5g" or "2TiB", as MiB,
// rounded up. The second result is false for anything else, and for more than any
// machine has.
func Mebibytes(text string) (int64, bool) {
	const most = 1 << 50
	t := strings.ToLower(strings.TrimSpace(text))
	end := 0
	for end < len(t) && (isDigit(t[end]) || t[end] == '.') {
		end++
	}
	f, err := strconv.ParseFloat(t[:end], 64)
	scale, known := sizeUnits[strings.TrimSpace(t[end:])]
	if err != nil || !known || f*scale > most {
		return 0, false
	}
	return int64(math.Ceil(f * scale)), true
}

// MostMiB is the greatest size in MiB, as in the reference.
const MostMiB = math.MaxInt32 * 1024

// ParseSize reads a size as Mebibytes does, rounded up to a multiple of 4 and bounded
// as in the reference.
func ParseSize(text string) (int64, bool) {
	mib, ok := Mebibytes(text)
	if !ok || mib > MostMiB {
		return 0, false
	}
	return (mib + 3) / 4 * 4, true
}

// SetParams returns own with the changes over it: a value "default" takes the
// own setting away.
func SetParams(own, changes Params) Params {
	out := own.Clone()
	if out == nil {
		out = Params{}
	}
	for name, v := range changes {
		if v == UseDefault {
			delete(out, name)
			continue
		}
		out[name] = v
	}
	return out
}

// CheckBEParams checks backend parameters as opcodes carry them and turns the
// old "memory" into minmem and maxmem, whatever these are: clients send all three.
// Null stands for the default; of "memory", which no instance has, it and "default" stand for nothing.
func CheckBEParams(p Params) (Params, error) {
	p = p.Clone()
	for name, v := range p {
		if name == "memory" && (v == nil || v == UseDefault) {
			delete(p, name)
		} else if v == nil {
			p[name] = UseDefault
		}
	}
	out, err := CheckParams(p, BETypes(), true)
	if err != nil {
		return nil, err
	}
	if memory, ok := out["memory"]; ok {
		delete(out, "memory")
		out["minmem"], out["maxmem"] = memory, memory
	}
	return out, nil
}

// CheckMemory refuses effective backend parameters whose minimum memory is
// over their maximum.
func CheckMemory(filled Params) error {
	lo, okLo := filled["minmem"].(int64)
	hi, okHi := filled["maxmem"].(int64)
	if okLo && okHi && lo > hi {
		return fault.New(fault.Invalid, "minmem (%d MiB) is more than maxmem (%d MiB)", lo, hi).At("beparams.minmem")
	}
	return nil
}

// CheckDiskParams checks the parameters of one disk template, as a cluster or
// a group has them.
func CheckDiskParams(template string, p Params) (Params, error) {
	types := map[string]ParamType{}
	for name, v := range defaultDiskParams()[template] {
		types[name] = typeOf(v)
	}
	return CheckParams(p, types, false)
}
