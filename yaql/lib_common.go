package yaql

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
)

// constantly is an implementation that always gives v.
func constantly(v any) impl {
	return func(*Context, []any) (any, error) { return v, nil }
}

func commonModule() module {
	defs := []definition{
		{"*equal", FunctionKind, "left: any?, right: any?", func(c *Context, a []any) (any, error) { return c.run.equal(a[0], a[1]), nil },
			"Tells whether two values of any types are equal. Booleans count as 0 and 1; lists are equal item by item if they are of one kind.", "1 = 1.0 ⇒ true", 0},
		{"*not_equal", FunctionKind, "left: any?, right: any?", func(c *Context, a []any) (any, error) { return !c.run.equal(a[0], a[1]), nil },
			"Tells whether two values differ.", "a != b ⇒ true", 0},
	}
	// Null is equal to itself and smaller than anything else.
	for _, op := range []struct {
		sign                   string
		anyNull, nullAny, both bool
	}{{"<", false, true, false}, {"<=", false, true, true}, {">", true, false, false}, {">=", true, false, true}} {
		defs = append(defs,
			definition{"#operator_" + op.sign, FunctionKind, "left: any, right: null", constantly(op.anyNull), "Compares a value with null, which is smaller.", "5 " + op.sign + " null ⇒ " + boolText(op.anyNull), 0},
			definition{"#operator_" + op.sign, FunctionKind, "left: null, right: any", constantly(op.nullAny), "Compares null, which is smaller, with a value.", "null " + op.sign + " 5 ⇒ " + boolText(op.nullAny), 0},
			definition{"#operator_" + op.sign, FunctionKind, "left: null, right: null", constantly(op.both), "Compares null with itself.", "null " + op.sign + " null ⇒ " + boolText(op.both), 0})
	}
	return module{"common", defs}
}

func boolText(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

func isOf(f func(v any) bool) impl {
	return func(_ *Context, a []any) (any, error) { return f(a[0]), nil }
}

func isBool(v any) bool {
	_, ok := v.(bool)
	return ok
}

func booleanModule() module {
	return module{"boolean", []definition{
		{"#operator_and", FunctionKind, "left: lambda, right: lambda", func(_ *Context, a []any) (any, error) {
			v, err := a[0].(*Lambda).Call()
			if err != nil || !truth(v) {
				return v, err
			}
			return a[1].(*Lambda).Call()
		}, "Gives the left operand if it counts as false, else the right one, which is evaluated only then.", "0 and 5 ⇒ 0", eager},
		{"#operator_or", FunctionKind, "left: lambda, right: lambda", func(_ *Context, a []any) (any, error) {
			v, err := a[0].(*Lambda).Call()
			if err != nil || truth(v) {
				return v, err
			}
			return a[1].(*Lambda).Call()
		}, "Gives the left operand if it counts as true, else the right one, which is evaluated only then.", "null or 5 ⇒ 5", eager},
		{"#unary_operator_not", FunctionKind, "arg: any?", func(_ *Context, a []any) (any, error) { return !truth(a[0]), nil },
			"Tells whether the value counts as false: null, false, zero, and empty strings, lists, maps and sets do.", "not [] ⇒ true", 0},
		{"bool", FunctionKind, "value: any?", func(_ *Context, a []any) (any, error) { return truth(a[0]), nil },
			"Gives the truth value of anything.", "bool(\"false\") ⇒ true", 0},
		{"isBoolean", FunctionKind, "value: any?", isOf(isBool), "Tells whether the value is a boolean.", "isBoolean(0) ⇒ false", 0},
	}}
}

func branchingModule() module {
	return module{"branching", []definition{
		{"coalesce", FunctionKind, "*args: lambda", func(_ *Context, a []any) (any, error) {
			for _, x := range a {
				if v, err := callLazy(x); v != nil || err != nil {
					return v, err
				}
			}
			return nil, nil
		}, "Gives the first argument that is not null; those after it are not evaluated.", "coalesce(null, 0, 1) ⇒ 0", eager},
		{"examine", FunctionKind, "*args: lambda", func(c *Context, a []any) (any, error) {
			return lazily(c, caseSource(a, func(_ int, t bool) (any, bool) { return t, true })), nil
		}, "Gives the truth value of each argument, one by one.", "examine(1 > 2, 2 > 1) ⇒ [false,true]", 0},
		{"selectAllCases", FunctionKind, "*args: lambda", func(c *Context, a []any) (any, error) {
			return lazily(c, caseSource(a, func(i int, t bool) (any, bool) { return int64(i), t })), nil
		}, "Gives the places of the arguments that are true, counted from 0.", "selectAllCases(true, false, true) ⇒ [0,2]", 0},
		{"selectCase", FunctionKind, "*args: lambda", func(_ *Context, a []any) (any, error) {
			for i, x := range a {
				v, err := callLazy(x)
				if err != nil {
					return nil, err
				}
				if truth(v) {
					return int64(i), nil
				}
			}
			return int64(len(a)), nil
		}, "Gives the place of the first argument that is true, or their number if none is.", "selectCase(false, true) ⇒ 1", eager},
		{"switch", FunctionKind, "*args: rule", func(_ *Context, a []any) (any, error) {
			for _, x := range a {
				r := x.(*rule)
				v, err := r.key.Call()
				if err != nil {
					return nil, err
				}
				if truth(v) {
					return r.value.Call()
				}
			}
			return nil, nil
		}, "Gives the value behind the first condition that is true, or null.", "switch(1 > 2 => a, true => b) ⇒ \"b\"", noKwargs | eager},
		{"switchCase", MethodKind, "case: int, *args: lambda", func(_ *Context, a []any) (any, error) {
			if len(a) == 1 {
				return nil, nil
			}
			i := clampInt(a[0])
			if i < 0 || i >= int64(len(a)-1) {
				i = int64(len(a) - 2)
			}
			return callLazy(a[1+i])
		}, "Gives the argument at the place that the receiver says, or the last one if there is no such place.", "1.switchCase(a, b, c) ⇒ \"b\"", eager},
	}}
}

// callLazy evaluates a lazy argument.
func callLazy(x any) (any, error) { return x.(*Lambda).Call() }

// caseSource evaluates conditions one by one and yields what pick makes of each.
func caseSource(conditions []any, pick func(i int, t bool) (any, bool)) nextFunc {
	i := 0
	return func() (any, bool, error) {
		for i < len(conditions) {
			v, err := callLazy(conditions[i])
			if err != nil {
				return nil, false, err
			}
			i++
			if x, ok := pick(i-1, truth(v)); ok {
				return x, true, nil
			}
		}
		return nil, false, nil
	}
}

func randomInt(c *Context, a []any) (any, error) {
	var bounds [2]*big.Int
	for i := range bounds {
		switch x := a[i].(type) {
		case float64:
			if x != math.Trunc(x) || math.IsInf(x, 0) {
				return nil, errorf(ValueError, "non-integer argument for random()")
			}
			bounds[i], _ = big.NewFloat(x).Int(nil)
		default:
			if bounds[i] = bigOf(x); bounds[i] == nil {
				return nil, errorf(TypeError, "'%s' object cannot be interpreted as an integer", typeName(x))
			}
		}
	}
	span := new(big.Int).Sub(bounds[1], bounds[0])
	if span.Sign() < 0 {
		return nil, errorf(ValueError, "empty range for random()")
	}
	span.Add(span, big.NewInt(1))
	c.run.divides(span.BitLen()+64, span.BitLen()) //nolint:mnd // so many more that each number is as likely as another
	random := make([]byte, 0, span.BitLen()/8+16)  //nolint:mnd // bytes of the span, and eight more at least
	for len(random) < cap(random)-8 {              //nolint:mnd // bytes of a word
		random = binary.BigEndian.AppendUint64(random, rand.Uint64())
	}
	n := new(big.Int).SetBytes(random)
	return intValue(n.Add(n.Mod(n, span), bounds[0])), nil
}
