package pytime

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"strings"
)

// The units of a Span in microseconds.
const (
	Millisecond int64 = 1000
	Second            = 1000 * Millisecond
	Minute            = 60 * Second
	Hour              = 60 * Minute
	Day               = 24 * Hour
)

// maxDays bounds a span to either side.
const maxDays = 999999999

// A Span is a length of time in microseconds, between -999999999 and 1000000000 days. It has one
// representation for each length, so spans may be compared with == and used as map keys.
type Span struct {
	days  int64
	clock int64 // microseconds, from 0 to less than a day
}

// SpanParts are the parts of which a span is the sum. A nil part is zero.
type SpanParts struct {
	Days, Hours, Minutes, Seconds, Milliseconds, Microseconds *big.Int
}

// NewSpan adds up parts. It fails with OverflowError beyond the range of a span.
func NewSpan(parts SpanParts) (Span, error) {
	total := new(big.Int)
	for _, p := range []struct {
		count *big.Int
		unit  int64
	}{
		{parts.Days, Day}, {parts.Hours, Hour}, {parts.Minutes, Minute},
		{parts.Seconds, Second}, {parts.Milliseconds, Millisecond}, {parts.Microseconds, 1},
	} {
		if p.count != nil {
			total.Add(total, new(big.Int).Mul(p.count, big.NewInt(p.unit)))
		}
	}
	return SpanOf(total)
}

// SpanOf returns the span of that many microseconds. It fails with OverflowError beyond the range.
func SpanOf(microseconds *big.Int) (Span, error) {
	days, clock := new(big.Int).DivMod(microseconds, big.NewInt(Day), new(big.Int))
	if !days.IsInt64() || days.Int64() > maxDays || days.Int64() < -maxDays {
		return Span{}, fail(OverflowError, "days=%s; must have magnitude <= %d", days, maxDays)
	}
	return Span{days: days.Int64(), clock: clock.Int64()}, nil
}

// Microseconds returns the span of that many microseconds.
func Microseconds(n int64) Span {
	days := n / Day
	if n%Day < 0 {
		days--
	}
	return Span{days: days, clock: n - days*Day}
}

// spanOfFloat rounds half to even, as Python does with fractions of a microsecond.
func spanOfFloat(microseconds float64) (Span, error) {
	if math.IsNaN(microseconds) {
		return Span{}, fail(ValueError, "cannot convert float NaN to integer")
	}
	if math.IsInf(microseconds, 0) {
		return Span{}, fail(OverflowError, "cannot convert float infinity to integer")
	}
	n, _ := big.NewFloat(math.RoundToEven(microseconds)).Int(nil)
	return SpanOf(n)
}

// Total returns the length in microseconds.
func (s Span) Total() *big.Int {
	total := new(big.Int).Mul(big.NewInt(s.days), big.NewInt(Day))
	return total.Add(total, big.NewInt(s.clock))
}

// float returns the length in microseconds, rounded to the nearest float.
func (s Span) float() float64 {
	f, _ := new(big.Float).SetInt(s.Total()).Float64()
	return f
}

// In returns the length counted in unit, one of the constants of this package.
func (s Span) In(unit int64) float64 { return s.float() / float64(unit) }

// IsZero reports whether the span has no length.
func (s Span) IsZero() bool { return s == Span{} }

// Compare orders spans by length: negative when s is the shorter.
func (s Span) Compare(other Span) int {
	return cmp.Or(cmp.Compare(s.days, other.days), cmp.Compare(s.clock, other.clock))
}

// Add returns the sum of both spans, or OverflowError.
func (s Span) Add(other Span) (Span, error) {
	return SpanOf(new(big.Int).Add(s.Total(), other.Total()))
}

// Sub returns s less other, or OverflowError.
func (s Span) Sub(other Span) (Span, error) {
	return SpanOf(new(big.Int).Sub(s.Total(), other.Total()))
}

// Neg returns the span turned round, or OverflowError for the longest ones.
func (s Span) Neg() (Span, error) { return SpanOf(new(big.Int).Neg(s.Total())) }

// MulInt returns the span n times as long, or OverflowError.
func (s Span) MulInt(n *big.Int) (Span, error) { return SpanOf(new(big.Int).Mul(s.Total(), n)) }

// MulFloat returns the span f times as long, rounded half to even.
func (s Span) MulFloat(f float64) (Span, error) { return spanOfFloat(s.float() * f) }

// DivInt returns the n-th part of the span, rounded half to even.
func (s Span) DivInt(n *big.Int) (Span, error) {
	if n.Sign() == 0 {
		return Span{}, fail(ZeroDivisionError, "division by zero")
	}
	f, _ := new(big.Rat).SetFrac(s.Total(), n).Float64()
	return spanOfFloat(f)
}

// DivFloat returns the span divided by f, rounded half to even.
func (s Span) DivFloat(f float64) (Span, error) {
	if f == 0 {
		return Span{}, fail(ZeroDivisionError, "float division by zero")
	}
	return spanOfFloat(s.float() / f)
}

// Ratio returns how many times other fits into s.
func (s Span) Ratio(other Span) (float64, error) {
	if other.IsZero() {
		return 0, fail(ZeroDivisionError, "float division by zero")
	}
	return s.float() / other.float(), nil
}

// String returns the text of the span as Python's str writes it: "1 day, 2:00:00", "-1 day, 23:00:00".
func (s Span) String() string {
	var out strings.Builder
	if s.days != 0 {
		plural := "s"
		if s.days == 1 || s.days == -1 {
			plural = ""
		}
		fmt.Fprintf(&out, "%d day%s, ", s.days, plural)
	}
	fmt.Fprintf(&out, "%d:%02d:%02d", s.clock/Hour, s.clock/Minute%60, s.clock/Second%60)
	if fraction := s.clock % Second; fraction != 0 {
		fmt.Fprintf(&out, ".%06d", fraction)
	}
	return out.String()
}

// Repr returns the text of the span inside a container, as Python's repr writes it.
func (s Span) Repr() string {
	parts := []string{}
	for _, part := range []struct {
		name  string
		value int64
	}{{"days", s.days}, {"seconds", s.clock / Second}, {"microseconds", s.clock % Second}} {
		if part.value != 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", part.name, part.value))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "0")
	}
	return "datetime.timedelta(" + strings.Join(parts, ", ") + ")"
}

// MarshalJSON writes the length in microseconds.
func (s Span) MarshalJSON() ([]byte, error) { return []byte(s.Total().String()), nil }
