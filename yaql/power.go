package yaql

import (
	"math"
	"math/big"
)

// Powers are computed with logPrecision bits and rounded once, since math.Pow is wrong in the last digits and
// the C library's pow, which the reference calls, almost never is. What is as short as a power can be without being
// rounded, such as a cube, is exact in exactPrecision bits; rounding to these first undoes the errors of the series.
const (
	logPrecision   = 224
	exactPrecision = 160
)

var ln2 = func() *big.Float {
	third := new(big.Float).Quo(precise(1), precise(3))
	return twice(inverseTanh(third))
}()

func precise(x float64) *big.Float { return new(big.Float).SetPrec(logPrecision).SetFloat64(x) }

func twice(x *big.Float) *big.Float { return new(big.Float).Add(x, x) }

// realPower is x to the power of y as a correctly rounded float. A negative x needs a whole y.
func realPower(x, y float64) float64 {
	switch {
	case x == 0, y == 0, y == 1, x == 1, math.IsInf(x, 0), math.IsInf(y, 0), math.IsNaN(x), math.IsNaN(y):
		return math.Pow(x, y)
	}
	estimate := math.Pow(math.Abs(x), y)
	if estimate != 0 && !math.IsInf(estimate, 0) || math.Abs(y*math.Log(math.Abs(x))) < 800 {
		estimate = exactRound(math.Abs(x), y)
	}
	if x < 0 && math.Mod(y, 2) != 0 {
		return -estimate
	}
	return estimate
}

// exactRound is realPower for a positive x and a result that is in the range of floats or close to it.
func exactRound(x, y float64) float64 {
	exponent := new(big.Float).Mul(logarithm(x), precise(y))
	// x to the power of y is e to the rest times a power of two.
	twos, _ := new(big.Float).Quo(exponent, ln2).Float64()
	twos = math.Round(twos)
	rest := new(big.Float).Sub(exponent, new(big.Float).Mul(ln2, precise(twos)))
	power := exponential(rest).SetPrec(exactPrecision)
	result, _ := power.SetMantExp(power, int(twos)).Float64()
	return result
}

// logarithm is the natural logarithm of a positive x.
func logarithm(x float64) *big.Float {
	mantissa, twos := math.Frexp(x)
	if mantissa < math.Sqrt2/2 {
		mantissa, twos = 2*mantissa, twos-1
	}
	m := precise(mantissa)
	ratio := new(big.Float).Quo(new(big.Float).Sub(m, precise(1)), new(big.Float).Add(m, precise(1)))
	return new(big.Float).Add(twice(inverseTanh(ratio)), new(big.Float).Mul(ln2, precise(float64(twos))))
}

// inverseTanh sums z + z³/3 + z⁵/5 and so on. ln m is twice that of (m-1)/(m+1).
func inverseTanh(z *big.Float) *big.Float {
	square := new(big.Float).Mul(z, z)
	sum, power := precise(0), new(big.Float).Set(z)
	for n := 1.0; !negligible(power, sum); n += 2 {
		sum.Add(sum, new(big.Float).Quo(power, precise(n)))
		power.Mul(power, square)
	}
	return sum
}

// exponential sums 1 + x + x²/2 + x³/6 and so on.
func exponential(x *big.Float) *big.Float {
	sum, term := precise(0), precise(1)
	for n := 1.0; !negligible(term, sum); n++ {
		sum.Add(sum, term)
		term.Mul(term, x)
		term.Quo(term, precise(n))
	}
	return sum
}

// negligible reports whether adding a term leaves a sum as it is.
func negligible(term, sum *big.Float) bool {
	return term.Sign() == 0 || sum.Sign() != 0 && term.MantExp(nil) < sum.MantExp(nil)-logPrecision
}
