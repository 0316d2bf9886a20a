package pytime

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"
)

// Years outside of these have no dates.
const (
	minYear = 1
	maxYear = 9999

	calendarDays = maxYear * 366 // more than there are
)

// The first microsecond of the calendar and the first after it, as clocks count them.
var (
	minClock = time.Date(minYear, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	endClock = time.Date(maxYear+1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
)

// A DateTime is a date and a time of day, to the microsecond, with or without a zone. Use Equal or Key
// to compare: equal instants in different zones are equal.
type DateTime struct {
	clock int64 // what the clock on the wall shows, as microseconds since its 1970
	zone  *Zone // nil when naive
}

// Fields are the parts of a DateTime.
type Fields struct {
	Year, Month, Day, Hour, Minute, Second, Microsecond int64
}

// New returns the date of fields in zone, which may be nil. A field outside of its range is a
// ValueError, one that no machine integer holds an OverflowError.
func New(fields Fields, zone *Zone) (DateTime, error) {
	f := fields
	for _, field := range []int64{f.Year, f.Month, f.Day, f.Hour, f.Minute, f.Second, f.Microsecond} {
		if field != int64(int32(field)) {
			return DateTime{}, fail(OverflowError, "number %d is too large for a part of a date", field)
		}
	}
	if f.Year < minYear || f.Year > maxYear {
		return DateTime{}, fail(ValueError, "year %d is out of range", f.Year)
	}
	if f.Month < 1 || f.Month > 12 {
		return DateTime{}, fail(ValueError, "month must be in 1..12")
	}
	if f.Day < 1 || f.Day > daysIn(f.Year, f.Month) {
		return DateTime{}, fail(ValueError, "day is out of range for month")
	}
	for _, part := range []struct {
		name         string
		value, limit int64
	}{{"hour", f.Hour, 23}, {"minute", f.Minute, 59}, {"second", f.Second, 59}, {"microsecond", f.Microsecond, 999999}} {
		if part.value < 0 || part.value > part.limit {
			return DateTime{}, fail(ValueError, "%s must be in 0..%d", part.name, part.limit)
		}
	}
	wall := time.Date(int(f.Year), time.Month(f.Month), int(f.Day), int(f.Hour), int(f.Minute), int(f.Second), int(f.Microsecond)*1000, time.UTC)
	return DateTime{clock: wall.UnixMicro(), zone: zone}, nil
}

func daysIn(year, month int64) int64 {
	return int64(time.Date(int(year), time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day())
}

// FromTime returns the instant t as a clock in zone shows it.
func FromTime(t time.Time, zone *Zone) (DateTime, error) {
	return at(t.UnixMicro(), zone)
}

// at returns the date in zone of an instant, in microseconds since 1970.
func at(instant int64, zone *Zone) (DateTime, error) {
	d := DateTime{clock: instant, zone: zone}
	if zone != nil {
		d.clock += zone.offset
	}
	if d.clock < minClock || d.clock >= endClock {
		return DateTime{}, outOfRange()
	}
	return d, nil
}

// The seconds for which the platform of the reference can name a year at all.
const (
	firstNamedSecond = -67768040609740800
	lastNamedSecond  = 67768036191676799
)

// FromTimestamp returns the date of a Unix time in zone.
func FromTimestamp(seconds *big.Int, zone *Zone) (DateTime, error) {
	if !seconds.IsInt64() {
		return DateTime{}, fail(OverflowError, "timestamp %s is out of range", seconds)
	}
	return fromUnix(seconds.Int64(), 0, zone)
}

// FromFloatTimestamp is FromTimestamp for fractions of a second, rounded half to even to microseconds.
func FromFloatTimestamp(seconds float64, zone *Zone) (DateTime, error) {
	if math.IsNaN(seconds) {
		return DateTime{}, fail(ValueError, "timestamp is not a number")
	}
	whole, fraction := math.Modf(seconds)
	fraction = math.RoundToEven(fraction * 1e6)
	if fraction < 0 {
		whole, fraction = whole-1, fraction+1e6
	}
	if whole < -(1<<63) || whole >= 1<<63 {
		return DateTime{}, fail(OverflowError, "timestamp %g is out of range", seconds)
	}
	return fromUnix(int64(whole), int64(fraction), zone)
}

func fromUnix(seconds, microseconds int64, zone *Zone) (DateTime, error) {
	if seconds < firstNamedSecond || seconds > lastNamedSecond {
		return DateTime{}, fail(OSError, "timestamp %d is too large for a date", seconds)
	}
	if year := time.Unix(seconds+microseconds/Second, 0).UTC().Year(); year < minYear || year > maxYear {
		return DateTime{}, fail(ValueError, "year %d is out of range", year)
	}
	return at(seconds*Second+microseconds, zone)
}

// Fields returns the parts of the date.
func (d DateTime) Fields() Fields {
	w := d.wall()
	return Fields{
		Year: int64(w.Year()), Month: int64(w.Month()), Day: int64(w.Day()),
		Hour: int64(w.Hour()), Minute: int64(w.Minute()), Second: int64(w.Second()), Microsecond: int64(w.Nanosecond() / 1000),
	}
}

// wall returns the clock's time as if it stood in UTC, for calendar arithmetic.
func (d DateTime) wall() time.Time { return time.UnixMicro(d.clock).UTC() }

// Weekday returns the day of the week, Monday being 0.
func (d DateTime) Weekday() int { return (int(d.wall().Weekday()) + 6) % 7 }

// Zone returns the zone, nil when naive.
func (d DateTime) Zone() *Zone { return d.zone }

// In returns the same clock time in another zone; that is another instant.
func (d DateTime) In(zone *Zone) DateTime { return DateTime{clock: d.clock, zone: zone} }

// Aware returns d, or when d is naive the same clock time in UTC.
func (d DateTime) Aware() DateTime {
	if d.zone == nil {
		return d.In(utcZone)
	}
	return d
}

// Fault tells what is wrong with the offset, which then may neither be shown nor used to find the instant.
func (d DateTime) Fault() error {
	if d.zone == nil {
		return nil
	}
	return d.zone.fault
}

// together returns the error of relating dates. Dates of one zone need no offset for that.
func (d DateTime) together(other DateTime) error {
	if d.Fault() != nil && other.Fault() != nil && d.zone.repr == other.zone.repr {
		return nil
	}
	return cmp.Or(d.Fault(), other.Fault())
}

// Offset returns the distance of the zone from UTC, zero when naive.
func (d DateTime) Offset() (Span, error) {
	if d.zone == nil {
		return Span{}, nil
	}
	return d.zone.Offset(), d.Fault()
}

// Midnight returns the start of the day.
func (d DateTime) Midnight() DateTime {
	return DateTime{clock: d.clock - d.TimeOfDay().clock, zone: d.zone}
}

// TimeOfDay returns the time that passed since midnight.
func (d DateTime) TimeOfDay() Span { return Span{clock: Microseconds(d.clock).clock} }

// ShiftedToUTC moves the clock to UTC and keeps the zone, which names another instant. That is a defect of
// the reference's property "utc", kept because expressions see it.
func (d DateTime) ShiftedToUTC() (DateTime, error) {
	if err := d.Fault(); err != nil {
		return DateTime{}, err
	}
	return d.shift(-d.zoneOffset())
}

// Timestamp returns the seconds since 1970 as the reference's property does: off by the offset once
// more when there is one, and a TypeError for a naive date.
func (d DateTime) Timestamp() (float64, error) {
	if d.zone == nil {
		return 0, fail(TypeError, "a date without a zone has no timestamp")
	}
	shifted, err := d.ShiftedToUTC()
	if err != nil {
		return 0, err
	}
	seconds, _ := big.NewRat(shifted.instant(), Second).Float64()
	return seconds, nil
}

func (d DateTime) zoneOffset() int64 {
	if d.zone == nil {
		return 0
	}
	return d.zone.offset
}

func (d DateTime) instant() int64 { return d.clock - d.zoneOffset() }

func (d DateTime) shift(microseconds int64) (DateTime, error) {
	return at(d.instant()+microseconds, d.zone)
}

// Add returns the date a span later, or OverflowError outside of the calendar.
func (d DateTime) Add(span Span) (DateTime, error) {
	if span.days > calendarDays || span.days < -calendarDays {
		return DateTime{}, outOfRange()
	}
	return d.shift(span.days*Day + span.clock)
}

// Sub returns the date a span earlier, or OverflowError outside of the calendar.
func (d DateTime) Sub(span Span) (DateTime, error) {
	back, err := span.Neg()
	if err != nil {
		return DateTime{}, outOfRange()
	}
	return d.Add(back)
}

// Since returns the time from other to d. Mixing a naive date with another is a TypeError.
func (d DateTime) Since(other DateTime) (Span, error) {
	if (d.zone == nil) != (other.zone == nil) {
		return Span{}, fail(TypeError, "can't subtract offset-naive and offset-aware datetimes")
	}
	return Microseconds(d.instant() - other.instant()), d.together(other)
}

// Compare orders dates by instant. Mixing a naive date with another is a TypeError.
func (d DateTime) Compare(other DateTime) (int, error) {
	if (d.zone == nil) != (other.zone == nil) {
		return 0, fail(TypeError, "can't compare offset-naive and offset-aware datetimes")
	}
	return cmp.Compare(d.instant(), other.instant()), d.together(other)
}

// A Key stands for an instant: dates are equal exactly when their keys are.
type Key struct {
	instant int64
	aware   bool
}

// Key returns what makes the date equal to others. It may be used as a map key.
func (d DateTime) Key() Key { return Key{instant: d.instant(), aware: d.zone != nil} }

// Equal reports whether both dates are the same instant. A naive date never equals one with a zone.
func (d DateTime) Equal(other DateTime) bool { return d.Key() == other.Key() }

// String returns the text of the date as Python's str writes it: ISO 8601 with a space.
func (d DateTime) String() string { return d.iso(' ') }

// ISOFormat returns the date in ISO 8601.
func (d DateTime) ISOFormat() string { return d.iso('T') }

func (d DateTime) iso(separator byte) string {
	f := d.Fields()
	var out strings.Builder
	fmt.Fprintf(&out, "%04d-%02d-%02d%c%02d:%02d:%02d", f.Year, f.Month, f.Day, separator, f.Hour, f.Minute, f.Second)
	if f.Microsecond != 0 {
		fmt.Fprintf(&out, ".%06d", f.Microsecond)
	}
	if d.zone != nil {
		out.WriteString(offsetText(d.zone.offset, ":"))
	}
	return out.String()
}

// Repr returns the text of the date inside a container, as Python's repr writes it.
func (d DateTime) Repr() string {
	f := d.Fields()
	var out strings.Builder
	fmt.Fprintf(&out, "datetime.datetime(%d, %d, %d, %d, %d", f.Year, f.Month, f.Day, f.Hour, f.Minute)
	if f.Second != 0 || f.Microsecond != 0 {
		fmt.Fprintf(&out, ", %d", f.Second)
	}
	if f.Microsecond != 0 {
		fmt.Fprintf(&out, ", %d", f.Microsecond)
	}
	if d.zone != nil {
		out.WriteString(", tzinfo=" + d.zone.repr)
	}
	return out.String() + ")"
}

// MarshalText returns the date in ISO 8601; so encoding/json writes it, too.
func (d DateTime) MarshalText() ([]byte, error) { return []byte(d.ISOFormat()), nil }
