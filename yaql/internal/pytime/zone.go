package pytime

import (
	"fmt"
	"math/big"
	"strings"
)

// A Zone is a fixed offset from UTC. A nil *Zone is no zone at all: the date is naive.
type Zone struct {
	offset int64 // microseconds east of UTC
	name   string
	repr   string // how Python's repr shows it
	fault  error  // of an offset of a day or more: there are dates in such a zone, but none tells its offset
}

var (
	utcZone   = &Zone{name: "UTC", repr: "tzutc()"}
	localZone = &Zone{name: "UTC", repr: "tzlocal()"}
)

// UTC returns the zone without offset.
func UTC() *Zone { return utcZone }

// FixedZone returns the zone of an offset as the YAQL functions make it: UTC for no offset, else a
// zone without a name. What needs to know an offset of a day or more fails, see [DateTime.Fault].
func FixedZone(offset Span) *Zone {
	if offset.IsZero() {
		return utcZone
	}
	zone, err := namedZone(offset, "")
	if err == nil {
		return zone
	}
	// No calendar is as long as the bounds, which keep sums with clocks in range.
	days := max(-calendarDays, min(calendarDays, offset.days))
	seconds := new(big.Int).Quo(offset.Total(), big.NewInt(Second))
	return &Zone{offset: days*Day + offset.clock, repr: fmt.Sprintf("tzoffset(None, %d)", seconds), fault: err}
}

// namedZone is a zone that a parsed text named.
func namedZone(offset Span, name string) (*Zone, error) {
	microseconds, err := checkedOffset(offset)
	if err != nil {
		return nil, err
	}
	shown := "None"
	if name != "" {
		shown = "'" + name + "'"
	}
	return &Zone{offset: microseconds, name: name, repr: fmt.Sprintf("tzoffset(%s, %d)", shown, microseconds/Second)}, nil
}

// plainZone is a zone as Python's own library makes it: its name tells the offset.
func plainZone(offset Span, name string) (*Zone, error) {
	microseconds, err := checkedOffset(offset)
	if err != nil {
		return nil, err
	}
	repr := "datetime.timezone(" + offset.Repr()
	switch {
	case name != "":
		repr += ", '" + name + "')"
	case microseconds == 0:
		name, repr = "UTC", "datetime.timezone.utc"
	default:
		name, repr = "UTC"+offsetText(microseconds, ":"), repr+")"
	}
	return &Zone{offset: microseconds, name: name, repr: repr}, nil
}

func checkedOffset(offset Span) (int64, error) {
	if offset.days > 0 || offset.days < -1 || offset.days == -1 && offset.clock == 0 {
		return 0, fail(ValueError, "offset must be strictly between minus one day and one day, not %s", offset)
	}
	return offset.days*Day + offset.clock, nil
}

// Offset returns the distance from UTC, positive to the east.
func (z *Zone) Offset() Span { return Microseconds(z.offset) }

// offsetText writes an offset as +HH:MM[:SS[.ffffff]] with the separator given.
func offsetText(offset int64, separator string) string {
	sign := "+"
	if offset < 0 {
		sign, offset = "-", -offset
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s%02d%s%02d", sign, offset/Hour, separator, offset/Minute%60)
	if offset%Minute != 0 {
		fmt.Fprintf(&out, "%s%02d", separator, offset/Second%60)
	}
	if offset%Second != 0 {
		fmt.Fprintf(&out, ".%06d", offset%Second)
	}
	return out.String()
}
