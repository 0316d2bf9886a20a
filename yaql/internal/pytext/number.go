package pytext

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// MaxIntDigits is the number of decimal digits above which Python refuses to turn text into an
// integer and back, so that a hostile number cannot cost quadratic time.
const MaxIntDigits = 4300

// ErrTooManyDigits reports an integer with more than MaxIntDigits decimal digits.
var ErrTooManyDigits = errors.New("integer text is limited to 4300 digits")

// FormatFloat returns the text of f as Python's str and repr write it: the fewest digits that read
// back as f, always with a point or an exponent, and an exponent for values below 1e-4 or from 1e16.
func FormatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	abs := math.Abs(f)
	if abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// FormatBigInt returns the decimal text of n, or ErrTooManyDigits.
func FormatBigInt(n *big.Int) (string, error) {
	// A decimal digit takes a little more than 3.3 bits: the cheap test comes before the costly one.
	if n.BitLen() > MaxIntDigits*10/3 {
		return "", ErrTooManyDigits
	}
	text := n.String()
	if len(strings.TrimPrefix(text, "-")) > MaxIntDigits {
		return "", ErrTooManyDigits
	}
	return text, nil
}

// ParseInt reads a decimal integer of any size as Python's int(text) does: white space around it, a
// sign, single underscores between digits and the decimal digits of every script are allowed.
func ParseInt(text string) (*big.Int, error) {
	plain, ok := asciiNumber(text)
	digits := strings.TrimLeft(plain, "+-")
	if !ok || len(plain)-len(digits) > 1 || !allDigits(digits) {
		return nil, fmt.Errorf("invalid literal for int() with base 10: %s", Quote(text))
	}
	if len(digits) > MaxIntDigits {
		return nil, ErrTooManyDigits
	}
	value, _ := new(big.Int).SetString(plain, 10)
	return value, nil
}

// ParseFloat reads a float as Python's float(text) does. Beside the forms of ParseInt it takes a
// fraction, an exponent and the words inf, infinity and nan in any case. Text beyond the range of a
// float gives an infinity.
func ParseFloat(text string) (float64, error) {
	plain, ok := asciiNumber(text)
	if !ok || !isFloatText(plain) {
		return 0, fmt.Errorf("could not convert string to float: %s", Quote(text))
	}
	value, err := strconv.ParseFloat(plain, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("could not convert string to float: %s", Quote(text))
	}
	return value, nil
}

// asciiNumber strips white space, turns the digits of all scripts into ASCII digits and takes out the
// underscores. It reports false when an underscore stands elsewhere than between two digits.
func asciiNumber(text string) (string, bool) {
	var out strings.Builder
	previous := rune(0)
	for _, r := range TrimSpace(text) {
		if digit, ok := DigitValue(r); ok {
			r = '0' + rune(digit)
		}
		if previous == '_' && !isDigit(r) {
			return "", false
		}
		if r == '_' {
			if !isDigit(previous) {
				return "", false
			}
		} else {
			out.WriteRune(r)
		}
		previous = r
	}
	return out.String(), previous != '_'
}

// isFloatText checks the grammar of a float; strconv alone would also take hexadecimal.
func isFloatText(text string) bool {
	rest := text
	if rest != "" && (rest[0] == '+' || rest[0] == '-') {
		rest = rest[1:]
	}
	switch strings.ToLower(rest) {
	case "inf", "infinity", "nan":
		return true
	}
	mantissa, exponent, hasExponent := cutExponent(rest)
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if whole+fraction == "" || strings.ContainsFunc(whole+fraction, notDigit) {
		return false
	}
	if !hasExponent {
		return true
	}
	if exponent != "" && (exponent[0] == '+' || exponent[0] == '-') {
		exponent = exponent[1:]
	}
	return allDigits(exponent)
}

func cutExponent(text string) (mantissa, exponent string, found bool) {
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		return text[:i], text[i+1:], true
	}
	return text, "", false
}

func allDigits(text string) bool { return text != "" && !strings.ContainsFunc(text, notDigit) }

func notDigit(r rune) bool { return !isDigit(r) }

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// DigitValue returns the value of a decimal digit of any script.
func DigitValue(r rune) (int, bool) {
	if r < 0x80 {
		return int(r - '0'), isDigit(r)
	}
	// Unicode keeps the ten digits of a script together and in order, so the value follows from the
	// distance to the start of the run.
	for _, run := range unicode.Nd.R16 {
		if uint32(run.Lo) <= uint32(r) && uint32(r) <= uint32(run.Hi) {
			return int(r-rune(run.Lo)) % 10, true
		}
	}
	for _, run := range unicode.Nd.R32 {
		if run.Lo <= uint32(r) && uint32(r) <= run.Hi {
			return int(r-rune(run.Lo)) % 10, true
		}
	}
	return 0, false
}
