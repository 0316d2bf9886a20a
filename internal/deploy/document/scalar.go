package document

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// scalar returns the value of a scalar node.
func scalar(n *yaml.Node) any {
	switch {
	case n.Tag == "!!str" && n.Style&yaml.TaggedStyle != 0:
		return n.Value
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return n.Value
	}
	return plain(n.Value)
}

var (
	integers = regexp.MustCompile(`^(?:[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+)$`)
	sixties  = regexp.MustCompile(`^[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+$`)
	floats   = regexp.MustCompile(`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?)$`)
)

// plain resolves a text without quotes as YAML 1.1 does.
func plain(s string) any {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return nil
	case "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return true
	case "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return false
	case ".nan", ".NaN", ".NAN":
		return math.NaN()
	case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF":
		return math.Inf(1)
	case "-.inf", "-.Inf", "-.INF":
		return math.Inf(-1)
	}
	if !strings.ContainsRune("-+.0123456789", rune(s[0])) {
		return s
	}
	digits := strings.ReplaceAll(s, "_", "")
	switch {
	case integers.MatchString(s):
		if n, ok := integer(digits); ok {
			return n
		}
	case sixties.MatchString(s):
		return sexagesimal(digits)
	case floats.MatchString(s):
		if f, err := strconv.ParseFloat(digits, 64); err == nil {
			return f
		}
	}
	return s
}

func integer(digits string) (any, bool) {
	sign, rest := "", digits
	if rest[0] == '-' || rest[0] == '+' {
		sign, rest = strings.TrimPrefix(rest[:1], "+"), rest[1:]
	}
	base := 10
	switch {
	case strings.HasPrefix(rest, "0b"):
		base, rest = 2, rest[2:]
	case strings.HasPrefix(rest, "0x"):
		base, rest = 16, rest[2:]
	case len(rest) > 1 && rest[0] == '0':
		base, rest = 8, rest[1:]
	}
	n, ok := new(big.Int).SetString(sign+rest, base)
	if !ok {
		return nil, false
	}
	if n.IsInt64() {
		return n.Int64(), true
	}
	return n, true
}

// sexagesimal is the value of numbers such as 1:30, to the base of sixty.
func sexagesimal(s string) any {
	total := int64(0)
	negative := strings.HasPrefix(s, "-")
	for p := range strings.SplitSeq(strings.TrimLeft(s, "-+"), ":") {
		n, err := strconv.ParseInt(p, 10, 64)
		if err != nil || total > math.MaxInt64/60-60 {
			return s
		}
		total = total*60 + n
	}
	if negative {
		total = -total
	}
	return total
}
