package yaql

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"

	"github.com/drover-project/drover/yaql/internal/pytext"
	"github.com/drover-project/drover/yaql/internal/syntax"
)

func arithOf(op byte) impl {
	return func(c *Context, a []any) (any, error) { return c.run.arith(op, a[0], a[1]) }
}

// ordered is a comparison of two values of one type.
func ordered(op string) impl {
	return func(c *Context, a []any) (any, error) {
		o, _ := c.run.compareOrdered(a[0], a[1])
		return o.holds(op), nil
	}
}

// bitwise is an operation on integers; of two booleans it makes a boolean.
func bitwise(f func(z, x, y *big.Int) *big.Int) impl {
	return func(c *Context, a []any) (any, error) {
		c.run.passes(a[0], a[1])
		v := intValue(f(new(big.Int), bigOf(a[0]), bigOf(a[1])))
		if isBool(a[0]) && isBool(a[1]) {
			return truth(v), nil
		}
		return v, nil
	}
}

func mathModule() module {
	const two = "left: number, right: number"
	return module{"math", []definition{
		{"#operator_*", FunctionKind, two, arithOf('*'), "Multiplies numbers. Integers have no bounds.", "6 * 7 ⇒ 42", 0},
		{"#operator_+", FunctionKind, two, arithOf('+'), "Adds numbers.", "1 + 2.5 ⇒ 3.5", 0},
		{"#operator_-", FunctionKind, two, arithOf('-'), "Subtracts numbers.", "5 - 7 ⇒ -2", 0},
		{"#operator_/", FunctionKind, two, arithOf('/'), "Divides numbers. The quotient of two integers is rounded down.", "-7 / 2 ⇒ -4", 0},
		{"#operator_<", FunctionKind, two, ordered("<"), "Compares numbers.", "1 < 1.5 ⇒ true", 0},
		{"#operator_<=", FunctionKind, two, ordered("<="), "Compares numbers.", "2 <= 2 ⇒ true", 0},
		{"#operator_>", FunctionKind, two, ordered(">"), "Compares numbers.", "1 > 2 ⇒ false", 0},
		{"#operator_>=", FunctionKind, two, ordered(">="), "Compares numbers.", "2 >= 3 ⇒ false", 0},
		{"#operator_mod", FunctionKind, two, arithOf('m'), "Gives the remainder of a division, with the sign of the divisor.", "-7 mod 3 ⇒ 2", 0},
		{"#unary_operator_+", FunctionKind, "op: number", func(_ *Context, a []any) (any, error) { return a[0], nil }, "Gives the number itself.", "+5 ⇒ 5", 0},
		{"#unary_operator_-", FunctionKind, "op: number", func(c *Context, a []any) (any, error) { return c.run.negate(a[0]), nil }, "Gives the number with the other sign.", "-(5) ⇒ -5", 0},
		{"abs", FunctionKind, "op: number", func(c *Context, a []any) (any, error) {
			if f, ok := a[0].(float64); ok {
				return math.Abs(f), nil
			}
			c.run.passes(a[0])
			return intValue(new(big.Int).Abs(bigOf(a[0]))), nil
		}, "Gives the absolute value.", "abs(-2.5) ⇒ 2.5", 0},
		{"bitwiseAnd", FunctionKind, "left: int, right: int", bitwise((*big.Int).And), "Combines the bits of two integers by and.", "bitwiseAnd(6, 12) ⇒ 4", 0},
		{"bitwiseNot", FunctionKind, "arg: int", func(c *Context, a []any) (any, error) {
			c.run.passes(a[0])
			return intValue(new(big.Int).Not(bigOf(a[0]))), nil
		}, "Turns all bits of an integer around.", "bitwiseNot(6) ⇒ -7", 0},
		{"bitwiseOr", FunctionKind, "left: int, right: int", bitwise((*big.Int).Or), "Combines the bits of two integers by or.", "bitwiseOr(6, 12) ⇒ 14", 0},
		{"bitwiseXor", FunctionKind, "left: int, right: int", bitwise((*big.Int).Xor), "Combines the bits of two integers by exclusive or.", "bitwiseXor(6, 12) ⇒ 10", 0},
		{"float", FunctionKind, "value: any?", floatOf, "Reads a float from a number, a string or a boolean; null gives 0.0.", "float(\"1e3\") ⇒ 1000.0", 0},
		{"int", FunctionKind, "value: any?", intOf, "Reads an integer from a string of decimal digits, or rounds a number towards zero; null gives 0.", "int(\"-12\") ⇒ -12", 0},
		{"isInteger", FunctionKind, "value: any?", isOf(syntax.IsInt), "Tells whether the value is an integer.", "isInteger(1.0) ⇒ false", 0},
		{"isNumber", FunctionKind, "value: any?", isOf(isNumber), "Tells whether the value is an integer or a float.", "isNumber(1.0) ⇒ true", 0},
		{"max", FunctionKind, "a: any?, b: any?", func(c *Context, a []any) (any, error) { return greaterOf(c, a[0], a[1]) },
			"Gives the greater of two values, the first if they are equal.", "max(3, null) ⇒ 3", 0},
		{"min", FunctionKind, "a: any?, b: any?", func(c *Context, a []any) (any, error) { return smallerOf(c, a[0], a[1]) },
			"Gives the smaller of two values, the second if they are equal.", "min(3, 2) ⇒ 2", 0},
		{"pow", FunctionKind, "a: number, b: number, c: number = null", power, "Raises a to the power of b, and with c takes the remainder by c.", "pow(2, 10) ⇒ 1024", 0},
		{"random", FunctionKind, "", func(*Context, []any) (any, error) { return rand.Float64(), nil }, "Gives a random float that is at least 0 and less than 1.", "random() < 1 ⇒ true", 0},
		{"random", FunctionKind, "from: any?, to: any?", randomInt, "Gives a random integer between two others, both included.", "random(3, 3) ⇒ 3", 0},
		{"round", FunctionKind, "number: number, ndigits: int = 0", round, "Rounds to a number of decimal places, and halves to the even neighbour.", "round(2.675, 2) ⇒ 2.67", 0},
		{"shiftBitsLeft", FunctionKind, "value: int, bitsNumber: int", shiftLeft, "Moves the bits of an integer to the left.", "shiftBitsLeft(8, 2) ⇒ 32", 0},
		{"shiftBitsRight", FunctionKind, "value: int, bitsNumber: int", shiftRight, "Moves the bits of an integer to the right.", "shiftBitsRight(8, 2) ⇒ 2", 0},
		{"sign", FunctionKind, "num: number", func(c *Context, a []any) (any, error) {
			o, _ := c.run.compareOrdered(a[0], int64(0))
			if o == unordered {
				o = same
			}
			return int64(o), nil
		}, "Gives 1, 0 or -1 as the number is positive, zero or negative.", "sign(-0.1) ⇒ -1", 0},
	}}
}

func greaterOf(c *Context, a, b any) (any, error) {
	gt, err := compareValues(c, ">", b, a)
	if gt {
		return b, err
	}
	return a, err
}

func smallerOf(c *Context, a, b any) (any, error) {
	gt, err := compareValues(c, ">", b, a)
	if gt {
		return a, err
	}
	return b, err
}

func floatOf(c *Context, a []any) (any, error) {
	c.run.passes(a[0])
	switch x := a[0].(type) {
	case nil:
		return 0.0, nil
	case string:
		c.run.scans(x)
		f, err := pytext.ParseFloat(x)
		if err != nil {
			return nil, errorf(ValueError, "%s", err)
		}
		return f, nil
	case bool, int64, float64, *big.Int:
		return toFloat(x)
	}
	return nil, errorf(TypeError, "float() argument must be a string or a real number, not '%s'", typeName(a[0]))
}

func intOf(c *Context, a []any) (any, error) {
	switch x := a[0].(type) {
	case nil:
		return int64(0), nil
	case string:
		c.run.scans(x)
		if n, err := strconv.ParseInt(x, 10, 64); err == nil {
			return n, nil
		}
		n, err := pytext.ParseInt(x)
		if err != nil {
			return nil, errorf(ValueError, "%s", err)
		}
		return intValue(n), nil
	case bool, int64, *big.Int:
		return intValue(bigOf(x)), nil
	case float64:
		if math.IsNaN(x) {
			return nil, errorf(ValueError, "cannot convert float NaN to integer")
		}
		if math.IsInf(x, 0) {
			return nil, errorf(OverflowError, "cannot convert float infinity to integer")
		}
		n, _ := new(big.Float).SetFloat64(x).Int(nil)
		return intValue(n), nil
	}
	return nil, errorf(TypeError, "int() argument must be a string or a real number, not '%s'", typeName(a[0]))
}

func power(c *Context, a []any) (any, error) {
	if a[2] != nil {
		return powerMod(c.run, a[0], a[1], a[2])
	}
	if syntax.IsInt(a[0]) && syntax.IsInt(a[1]) {
		x, y := bigOf(a[0]), bigOf(a[1])
		if y.Sign() >= 0 {
			return c.run.intPower(x, y)
		}
	}
	c.run.passes(a[0], a[1])
	x, err := toFloat(a[0])
	if err != nil {
		return nil, err
	}
	y, err := toFloat(a[1])
	if err != nil {
		return nil, err
	}
	return floatPower(x, y)
}

func (r *run) intPower(x, y *big.Int) (any, error) {
	if x.IsInt64() && abs64(x.Int64()) <= 1 && y.Sign() > 0 {
		// Only whether the exponent is even matters, however large it is.
		odd := big.NewInt(2 - int64(y.Bit(0)))
		return intValue(new(big.Int).Exp(x, odd, nil)), nil
	}
	if !y.IsInt64() || y.Int64() > maxBits || checkBits(x.BitLen()*int(y.Int64())) != nil {
		return nil, checkBits(maxBits + 1)
	}
	bits := x.BitLen() * int(y.Int64())
	r.multiplies(bits, bits)
	return intValue(new(big.Int).Exp(x, y, nil)), nil
}

func floatPower(x, y float64) (any, error) {
	if x == 0 && y < 0 {
		return nil, errorf(ZeroDivisionError, "0.0 cannot be raised to a negative power")
	}
	if x < 0 && y != math.Trunc(y) && !math.IsInf(x, 0) {
		r, theta := realPower(-x, y), math.Pi*y
		return complex(r*math.Cos(theta), r*math.Sin(theta)), nil
	}
	r := realPower(x, y)
	if math.IsInf(r, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return nil, errorf(OverflowError, "Numerical result out of range")
	}
	return r, nil
}

func powerMod(run *run, a, b, m any) (any, error) {
	if !syntax.IsInt(a) || !syntax.IsInt(b) || !syntax.IsInt(m) {
		return nil, errorf(TypeError, "pow() 3rd argument not allowed unless all arguments are integers")
	}
	x, y, n := bigOf(a), bigOf(b), bigOf(m)
	if n.Sign() == 0 {
		return nil, errorf(ValueError, "pow() 3rd argument cannot be 0")
	}
	size := new(big.Int).Abs(n)
	run.divides(x.BitLen(), size.BitLen())
	r, err := modularExp(run, new(big.Int).Mod(x, size), y, size) // with a negative exponent Exp is wrong for a negative base
	if err != nil {
		return nil, err
	}
	if y.Sign() < 0 && (r == nil || new(big.Int).GCD(nil, nil, new(big.Int).Mod(x, size), size).Cmp(big.NewInt(1)) != 0) {
		return nil, errorf(ValueError, "base is not invertible for the given modulus")
	}
	if n.Sign() < 0 && r.Sign() != 0 {
		r.Add(r, n)
	}
	return intValue(r), nil
}

// modularExp is big.Int.Exp, which is asked to give up between two squarings where it takes long.
func modularExp(run *run, x, y, n *big.Int) (*big.Int, error) {
	words := n.BitLen()/64 + 1
	price := words * words / 64 // of one squaring, in steps
	if price*y.BitLen() < 1<<12 || y.Sign() <= 0 {
		if err := run.spend(price*y.BitLen() + y.BitLen()/bitsOfByte); err != nil {
			return nil, err
		}
		return new(big.Int).Exp(x, y, n), nil
	}
	r, product := big.NewInt(1), new(big.Int)
	for i := y.BitLen() - 1; i >= 0; i-- {
		if err := run.spend(price + 1); err != nil {
			return nil, err
		}
		r.Mod(product.Mul(r, r), n)
		if y.Bit(i) == 1 {
			r.Mod(product.Mul(r, x), n)
		}
	}
	return r, nil
}

const bitsOfByte = 8

func round(c *Context, a []any) (any, error) {
	digits := clampInt(a[1])
	if f, ok := a[0].(float64); ok {
		return roundFloat(f, digits)
	}
	if digits >= 0 {
		return a[0], nil
	}
	n := bigOf(a[0])
	if -digits > int64(n.BitLen())/3+1 { // the unit is more than twice as large
		return int64(0), nil
	}
	c.run.divides(n.BitLen(), int(-digits)*4) //nolint:mnd // bits of a digit
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(-digits), nil)
	return intValue(roundTo(n, unit)), nil
}

// roundTo rounds n to a multiple of unit, halves to the even multiple.
func roundTo(n, unit *big.Int) *big.Int {
	m := new(big.Int)
	q, _ := new(big.Int).DivMod(n, unit, m)
	switch c := new(big.Int).Lsh(m, 1).Cmp(unit); {
	case c > 0, c == 0 && q.Bit(0) == 1:
		q.Add(q, big.NewInt(1))
	}
	return q.Mul(q, unit)
}

func roundFloat(f float64, digits int64) (any, error) {
	switch {
	case math.IsNaN(f), math.IsInf(f, 0), digits > 350:
		return f, nil
	case digits < -310:
		return math.Copysign(0, f), nil
	case digits >= 0:
		r, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(digits), 64), 64)
		return r, overflow(r)
	}
	n := new(big.Rat).SetFloat64(f)
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(-digits), nil)
	// Round numerator over denominator as integers: both sides are scaled by the denominator.
	scaled := roundTo(n.Num(), new(big.Int).Mul(unit, n.Denom()))
	r, _ := new(big.Float).SetInt(scaled.Quo(scaled, n.Denom())).Float64()
	if r == 0 {
		return math.Copysign(0, f), nil
	}
	return r, overflow(r)
}

func overflow(f float64) error {
	if math.IsInf(f, 0) {
		return errorf(OverflowError, "rounded value too large to represent")
	}
	return nil
}

func shiftLeft(c *Context, a []any) (any, error) {
	n := clampInt(a[1])
	if n < 0 {
		return nil, errorf(ValueError, "negative shift count")
	}
	x := bigOf(a[0])
	if x.Sign() == 0 {
		return int64(0), nil
	}
	if n > maxBits || checkBits(x.BitLen()+int(n)) != nil {
		return nil, checkBits(maxBits + 1)
	}
	c.run.owe((x.BitLen() + int(n)) / bitsOfStep)
	return intValue(new(big.Int).Lsh(x, uint(n))), nil
}

func shiftRight(c *Context, a []any) (any, error) {
	n := clampInt(a[1])
	if n < 0 {
		return nil, errorf(ValueError, "negative shift count")
	}
	c.run.passes(a[0])
	return intValue(new(big.Int).Rsh(bigOf(a[0]), uint(min(n, maxBits*2)))), nil
}
