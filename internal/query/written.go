package query

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
)

// Filters may give times, durations and sizes as people write them. The reference refuses
// a text where a number is wanted, so nothing that it accepts means anything
// else here.

// resolve returns a filter in which the times, durations and sizes that are written as
// texts are the numbers that the fields have. What cannot be read stays, and
// fails when it is compared.
func (t *Table[R]) resolve(n qlang.Node, now time.Time) qlang.Node {
	switch n := n.(type) {
	case *qlang.And:
		return &qlang.And{Span: n.Span, Args: t.resolveAll(n.Args, now)}
	case *qlang.Or:
		return &qlang.Or{Span: n.Span, Args: t.resolveAll(n.Args, now)}
	case *qlang.Not:
		return &qlang.Not{Span: n.Span, Arg: t.resolve(n.Arg, now)}
	case *qlang.Compare:
		if f := t.field(n.Field); !n.Value.IsInt() && f != nil {
			if v, ok := f.written(n.Value.Text, now); ok {
				return &qlang.Compare{Span: n.Span, Op: n.Op, Field: n.Field, Value: qlang.IntValue(v)}
			}
		}
	}
	return n
}

func (t *Table[R]) resolveAll(args []qlang.Node, now time.Time) []qlang.Node {
	out := make([]qlang.Node, len(args))
	for i, a := range args {
		out[i] = t.resolve(a, now)
	}
	return out
}

// written reads a time, a duration or a size, by what the field holds.
func (f *Field[R]) written(text string, now time.Time) (int64, bool) {
	switch {
	case f.times():
		return writtenTime(text, now)
	case f.Mode == ModeDuration:
		return writtenDuration(text)
	case f.Kind == KindUnit:
		return writtenSize(text)
	}
	return 0, false
}

// timeLayouts are the ways to write a moment. Those without a zone are in the
// zone of now.
var timeLayouts = []string{time.DateOnly, "2006-01-02 15:04", time.DateTime, "2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339}

var durationPart = regexp.MustCompile(`^(\d{1,9})([smhdw])`)

// unitSeconds are the seconds in the units of a duration.
var unitSeconds = map[string]int64{"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}

// writtenTime reads a moment as seconds since the epoch: a date with or without
// a time, or a distance from now with its sign, -1h30m.
func writtenTime(text string, now time.Time) (int64, bool) {
	for _, layout := range timeLayouts {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at.Unix(), true
		}
	}
	if text == "" || text[0] != '-' && text[0] != '+' {
		return 0, false
	}
	distance, ok := writtenDuration(text[1:])
	if text[0] == '-' {
		distance = -distance
	}
	return now.Unix() + distance, ok
}

// longestDuration is so many seconds that sums of them and of times fit.
const longestDuration = 1 << 50

// writtenDuration reads a duration without a sign, 1h30m, as seconds.
func writtenDuration(text string) (int64, bool) {
	total, rest := int64(0), text
	for rest != "" {
		m := durationPart.FindStringSubmatch(rest)
		if m == nil {
			return 0, false
		}
		n, err := strconv.ParseInt(m[1], 10, 64)
		if total += n * unitSeconds[m[2]]; err != nil || total > longestDuration {
			return 0, false
		}
		rest = rest[len(m[0]):]
	}
	return total, text != ""
}

var sizeForm = regexp.MustCompile(`(?i)^\d{1,15}(\.\d{1,6})?[mgt](i?b)?$`)

// writtenSize reads a size with a unit as MiB.
func writtenSize(text string) (int64, bool) {
	if !sizeForm.MatchString(text) {
		return 0, false
	}
	return cluster.Mebibytes(text)
}

// Nanos is a moment in nanoseconds since the epoch. As JSON it is a number of
// seconds with all its digits; floats would lose the last ones.
type Nanos int64

func (t Nanos) append(dst []byte) []byte {
	whole, part := int64(t)/1e9, int64(t)%1e9
	if part == 0 {
		return strconv.AppendInt(dst, whole, 10)
	}
	if part < 0 {
		part = -part
		if whole == 0 {
			dst = append(dst, '-')
		}
	}
	dst = append(strconv.AppendInt(dst, whole, 10), '.')
	digits := strconv.FormatInt(1e9+part, 10)[1:]
	return append(dst, strings.TrimRight(digits, "0")...)
}

func (t Nanos) seconds() float64 { return float64(t) / 1e9 }

// bareNanos is so much that a number of seconds cannot be meant: from there on,
// numbers are nanoseconds, as filter rules and trails have them.
const bareNanos = 1_000_000_000_000_000

// compare compares with a number of seconds, or of nanoseconds.
func (t Nanos) compare(want *big.Int) int {
	if new(big.Int).Abs(want).Cmp(big.NewInt(bareNanos)) < 0 {
		want = new(big.Int).Mul(want, big.NewInt(1e9))
	}
	return big.NewInt(int64(t)).Cmp(want)
}
