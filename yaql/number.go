package yaql

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"
)

// bigOf returns v as a big integer if it is an integer or a boolean.
func bigOf(v any) *big.Int {
	switch x := v.(type) {
	case int64:
		return big.NewInt(x)
	case *big.Int:
		return x
	case bool:
		n, _ := smallInt(x)
		return big.NewInt(n)
	}
	return nil
}

// intValue returns b in the smallest representation.
func intValue(b *big.Int) any {
	if b.IsInt64() {
		return b.Int64()
	}
	return b
}

// isNumber reports whether v is an integer or a float; booleans are not.
func isNumber(v any) bool {
	switch v.(type) {
	case int64, float64, *big.Int:
		return true
	}
	return false
}

// toFloat converts a number or boolean; integers beyond the range of floats are an OverflowError.
func toFloat(v any) (float64, error) {
	switch x := v.(type) {
	case float64:
		return x, nil
	case int64:
		return float64(x), nil
	case bool:
		n, _ := smallInt(x)
		return float64(n), nil
	case *big.Int:
		f, _ := new(big.Float).SetInt(x).Float64()
		if math.IsInf(f, 0) {
			return 0, errorf(OverflowError, "int too large to convert to float")
		}
		return f, nil
	}
	return 0, errorf(TypeError, "not a number: %s", typeName(v))
}

func equalNumbers(a, b any) bool {
	if ca, ok := a.(complex128); ok {
		cb, ok := b.(complex128)
		return ok && ca == cb
	}
	if x, ok := smallInt(a); ok {
		if y, ok := smallInt(b); ok {
			return x == y
		}
	}
	switch b.(type) {
	case bool, int64, float64, *big.Int:
		c, ok := compareNumbers(a, b)
		return ok && c == 0
	}
	return false
}

// compareNumbers compares two numbers or booleans exactly. It reports false if one of them is not a number.
func compareNumbers(a, b any) (int, bool) {
	x, xf := a.(float64)
	y, yf := b.(float64)
	switch {
	case xf && yf:
		if math.IsNaN(x) || math.IsNaN(y) {
			return 0, false
		}
		return cmp.Compare(x, y), true
	case xf:
		return compareFloatInt(x, bigOf(b))
	case yf:
		c, ok := compareFloatInt(y, bigOf(a))
		return -c, ok
	}
	return bigOf(a).Cmp(bigOf(b)), true
}

func compareFloatInt(f float64, n *big.Int) (int, bool) {
	switch {
	case math.IsNaN(f):
		return 0, false
	case math.IsInf(f, 0):
		if f > 0 {
			return 1, true
		}
		return -1, true
	}
	return new(big.Float).SetFloat64(f).Cmp(new(big.Float).SetInt(n)), true
}

func addInt(a, b int64) any {
	if s := a + b; (s > a) == (b > 0) {
		return s
	}
	return new(big.Int).Add(big.NewInt(a), big.NewInt(b))
}

func subInt(a, b int64) any {
	if d := a - b; (d < a) == (b > 0) {
		return d
	}
	return new(big.Int).Sub(big.NewInt(a), big.NewInt(b))
}

func mulInt(a, b int64) any {
	hi, lo := bits.Mul64(uint64(abs64(a)), uint64(abs64(b)))
	if hi == 0 && lo <= math.MaxInt64 && a != math.MinInt64 && b != math.MinInt64 {
		if (a < 0) != (b < 0) {
			return -int64(lo)
		}
		return int64(lo)
	}
	return intValue(new(big.Int).Mul(big.NewInt(a), big.NewInt(b)))
}

func abs64(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

var errZeroDivision = errorf(ZeroDivisionError, "division by zero")

// floorDiv divides integers towards minus infinity.
func floorDiv(a, b int64) any {
	if a == math.MinInt64 && b == -1 {
		return new(big.Int).Neg(big.NewInt(a))
	}
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// floorMod is the remainder with the sign of the divisor.
func floorMod(a, b int64) int64 {
	if b == -1 {
		return 0
	}
	m := a % b
	if m != 0 && (m < 0) != (b < 0) {
		m += b
	}
	return m
}

// floatMod is the remainder of floats with the sign of the divisor.
func floatMod(a, b float64) float64 {
	m := math.Mod(a, b)
	if m != 0 {
		if (b < 0) != (m < 0) {
			m += b
		}
		return m
	}
	return math.Copysign(0, b)
}

// maxBits bounds the size of integers that arithmetic may build, so that a short expression cannot take all
// memory or time.
const maxBits = 1 << 22

func checkBits(n int) error {
	if n > maxBits {
		return errorf(OverflowError, "integer is too large")
	}
	return nil
}

// bitsOfStep is how many bits of integers are gone through for one step.
const bitsOfStep = 8 * bytesOfStep

// passes counts one pass through each of some numbers, or through a text.
func (r *run) passes(values ...any) {
	for _, v := range values {
		if n, ok := v.(*big.Int); ok {
			r.owe(n.BitLen() / bitsOfStep)
		}
	}
}

// spells counts what it takes to turn large numbers into decimal digits, as errors do that are about them.
func (r *run) spells(values ...any) {
	for _, v := range values {
		if n, ok := v.(*big.Int); ok {
			r.owe(n.BitLen() / wordBits)
		}
	}
}

// multiplies counts what it takes to multiply numbers of so many bits: less than the square of their lengths.
func (r *run) multiplies(a, b int) {
	small, large := min(a, b)/wordBits+1, max(a, b)/wordBits
	r.owe(large * int(math.Sqrt(float64(small))) / bytesOfStep)
}

// divides counts what it takes to divide numbers of so many bits.
func (r *run) divides(a, b int) {
	if quotient := a - b; quotient > 0 {
		r.multiplies(2*max(b, quotient), min(b, quotient)) //nolint:mnd // a division is some multiplications
	}
	r.owe((a + b) / bitsOfStep)
}

// wordBits is how many bits of a number are multiplied at once.
const wordBits = 64

// compareNumbers is the same for an evaluation, which pays for large ones.
func (r *run) compareNumbers(a, b any) (int, bool) {
	r.passes(a, b)
	return compareNumbers(a, b)
}

// scans counts what it takes to read a text letter by letter, where that means something.
func (r *run) scans(text string) {
	const lettersOfStep = 8
	r.owe(len(text) / lettersOfStep)
}

// arith carries out + - * / and mod on two numbers that are not booleans.
func (r *run) arith(op byte, a, b any) (any, error) {
	x, xi := a.(int64)
	y, yi := b.(int64)
	if xi && yi {
		switch op {
		case '+':
			return addInt(x, y), nil
		case '-':
			return subInt(x, y), nil
		case '*':
			return mulInt(x, y), nil
		}
		if y == 0 {
			return nil, errZeroDivision
		}
		if op == '/' {
			return floorDiv(x, y), nil
		}
		return floorMod(x, y), nil
	}
	_, af := a.(float64)
	_, bf := b.(float64)
	if af || bf {
		r.passes(a, b)
		return floatArith(op, a, b)
	}
	return r.bigArith(op, bigOf(a), bigOf(b))
}

func floatArith(op byte, a, b any) (any, error) {
	x, err := toFloat(a)
	if err != nil {
		return nil, err
	}
	y, err := toFloat(b)
	if err != nil {
		return nil, err
	}
	switch op {
	case '+':
		return x + y, nil
	case '-':
		return x - y, nil
	case '*':
		return x * y, nil
	}
	if y == 0 {
		return nil, errZeroDivision
	}
	if op == '/' {
		return x / y, nil
	}
	return floatMod(x, y), nil
}

func (r *run) bigArith(op byte, a, b *big.Int) (any, error) {
	q := new(big.Int)
	switch op {
	case '+':
		r.passes(a, b)
		return intValue(q.Add(a, b)), nil
	case '-':
		r.passes(a, b)
		return intValue(q.Sub(a, b)), nil
	case '*':
		if err := checkBits(a.BitLen() + b.BitLen()); err != nil {
			return nil, err
		}
		r.multiplies(a.BitLen(), b.BitLen())
		return intValue(q.Mul(a, b)), nil
	}
	if b.Sign() == 0 {
		return nil, errZeroDivision
	}
	r.divides(a.BitLen(), b.BitLen())
	m := new(big.Int)
	q.QuoRem(a, b, m)
	if m.Sign() != 0 && (m.Sign() < 0) != (b.Sign() < 0) {
		q.Sub(q, big.NewInt(1))
		m.Add(m, b)
	}
	if op == '/' {
		return intValue(q), nil
	}
	return intValue(m), nil
}

// negate returns -v for a number.
func (r *run) negate(v any) any {
	r.passes(v)
	switch x := v.(type) {
	case int64:
		return subInt(0, x)
	case float64:
		return -x
	}
	return intValue(new(big.Int).Neg(bigOf(v)))
}
