package cluster

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// CompareNames is the "nice" order of names: runs of digits compare as numbers
// of any size and come before text, other runs compare by code point with
// respect to case. Names such as "n1" and "n01" are equal in it (0), so it is
// no total order by itself.
func CompareNames(a, b string) int {
	for a != "" && b != "" {
		runA, digitsA := nextRun(a)
		runB, digitsB := nextRun(b)
		switch {
		case digitsA && !digitsB:
			return -1
		case !digitsA && digitsB:
			return 1
		}
		c := strings.Compare(runA, runB)
		if digitsA {
			c = compareDigits(runA, runB)
		}
		if c != 0 {
			return c
		}
		a, b = a[len(runA):], b[len(runB):]
	}
	return cmp.Compare(len(a), len(b))
}

// nextRun returns the longest prefix of s, which is not empty, that is all
// ASCII digits or has none.
func nextRun(s string) (run string, digits bool) {
	digits = isDigit(s[0])
	i := 1
	for i < len(s) && isDigit(s[i]) == digits {
		i++
	}
	return s[:i], digits
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// compareDigits compares runs of digits as numbers.
func compareDigits(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}

// hostName leaves how long it may be to maxHostName: a pattern that counts that far takes 80 kB of memory.
var hostName = regexp.MustCompile(`^[a-z0-9._-]+$`)

const maxHostName = 255

// NormalName returns the name of an instance, node or cluster in the form in
// which it is kept (lower case, no dot at the end), or refuses it.
func NormalName(name string) (string, error) {
	low := strings.TrimSuffix(strings.ToLower(name), ".")
	if len(low) > maxHostName || !hostName.MatchString(low) || strings.HasPrefix(low, ".") || strings.HasPrefix(low, "-") || strings.Contains(low, "..") {
		return "", fault.New(fault.Invalid, "Invalid hostname '%s'", name).
			WithHint("1 to 255 of: letters a-z, digits, dot, dash, underscore; no empty label")
	}
	return low, nil
}
