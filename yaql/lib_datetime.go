package yaql

import (
	"math/big"
	"time"

	"github.com/drover-project/drover/yaql/internal/pytime"
)

// checked gives the errors of date arithmetic a class.
func checked[T any](v T, err error) (any, error) {
	if err != nil {
		return nil, asError(err)
	}
	return v, nil
}

func formatTime(c *Context, a []any) (any, error) {
	return checked(asTime(a[0]).StrftimeWithin(a[1].(string), c.growing))
}

// dateFault is the error of looking at the offset of a date, which may be too large for that.
func dateFault(d DateTime) error {
	if err := d.Fault(); err != nil {
		return asError(err)
	}
	return nil
}

func asTime(v any) DateTime { return v.(DateTime) }
func asSpan(v any) Timespan { return v.(Timespan) }

func timeOrder(op string) impl {
	return func(_ *Context, a []any) (any, error) {
		n, err := asTime(a[0]).Compare(asTime(a[1]))
		if err != nil {
			return nil, asError(err)
		}
		return order(n).holds(op), nil
	}
}

func spanOrder(op string) impl {
	return func(_ *Context, a []any) (any, error) {
		return order(asSpan(a[0]).Compare(asSpan(a[1]))).holds(op), nil
	}
}

func timeProperty(f func(d DateTime) any) impl {
	return func(_ *Context, a []any) (any, error) { return f(asTime(a[0])), nil }
}

func fieldProperty(f func(x pytime.Fields) int64) impl {
	return timeProperty(func(d DateTime) any { return f(d.Fields()) })
}

// The units of timespans in microseconds.
const (
	millisecond = 1000
	second      = 1000 * millisecond
	minute      = 60 * second
	hour        = 60 * minute
	day         = 24 * hour
)

func spanIn(unit int64) impl {
	return func(_ *Context, a []any) (any, error) { return asSpan(a[0]).In(unit), nil }
}

func datetimeModule() module {
	defs := append(timeOperators(), timeProperties()...)
	return module{"date_time", append(defs, timeFunctions()...)}
}

func timeOperators() []definition {
	const times, spans = "dt1: datetime, dt2: datetime", "ts1: timespan, ts2: timespan"
	defs := []definition{
		{"#operator_*", FunctionKind, "n: number, ts: timespan", func(c *Context, a []any) (any, error) { return scaled(c, a[1], a[0]) }, "Multiplies a timespan.", "(2 * timespan(hours => 1)).minutes ⇒ 120.0", 0},
		{"#operator_*", FunctionKind, "ts: timespan, n: number", func(c *Context, a []any) (any, error) { return scaled(c, a[0], a[1]) }, "Multiplies a timespan.", "(timespan(hours => 1) * 1.5).minutes ⇒ 90.0", 0},
		{"#operator_+", FunctionKind, "dt: datetime, ts: timespan", func(_ *Context, a []any) (any, error) { return checked(asTime(a[0]).Add(asSpan(a[1]))) }, "Moves a time forward.", "(datetime(2015, 1, 1) + timespan(31)).month ⇒ 2", 0},
		{"#operator_+", FunctionKind, spans, func(_ *Context, a []any) (any, error) { return checked(asSpan(a[0]).Add(asSpan(a[1]))) }, "Adds timespans.", "(timespan(1) + timespan(2)).days ⇒ 3.0", 0},
		{"#operator_+", FunctionKind, "ts: timespan, dt: datetime", func(_ *Context, a []any) (any, error) { return checked(asTime(a[1]).Add(asSpan(a[0]))) }, "Moves a time forward.", "(timespan(31) + datetime(2015, 1, 1)).month ⇒ 2", 0},
		{"#operator_-", FunctionKind, times, func(_ *Context, a []any) (any, error) { return checked(asTime(a[0]).Since(asTime(a[1]))) }, "Gives the timespan between two times.", "(datetime(2015, 1, 3) - datetime(2015, 1, 1)).days ⇒ 2.0", 0},
		{"#operator_-", FunctionKind, "dt: datetime, ts: timespan", func(_ *Context, a []any) (any, error) { return checked(asTime(a[0]).Sub(asSpan(a[1]))) }, "Moves a time back.", "(datetime(2015, 1, 1) - timespan(1)).year ⇒ 2014", 0},
		{"#operator_-", FunctionKind, spans, func(_ *Context, a []any) (any, error) { return checked(asSpan(a[0]).Sub(asSpan(a[1]))) }, "Subtracts timespans.", "(timespan(3) - timespan(1)).days ⇒ 2.0", 0},
		{"#operator_/", FunctionKind, spans, func(_ *Context, a []any) (any, error) { return checked(asSpan(a[0]).Ratio(asSpan(a[1]))) }, "Gives how often one timespan fits into another.", "timespan(1) / timespan(hours => 12) ⇒ 2.0", 0},
		{"#operator_/", FunctionKind, "ts: timespan, n: number", divided, "Divides a timespan.", "(timespan(1) / 2).hours ⇒ 12.0", 0},
		{"#unary_operator_+", FunctionKind, "ts: timespan", func(_ *Context, a []any) (any, error) { return a[0], nil }, "Gives the timespan itself.", "(+timespan(1)).days ⇒ 1.0", 0},
		{"#unary_operator_-", FunctionKind, "ts: timespan", func(_ *Context, a []any) (any, error) { return checked(asSpan(a[0]).Neg()) }, "Gives the timespan with the other sign.", "(-timespan(1)).days ⇒ -1.0", 0},
	}
	for _, op := range []struct{ sign, result string }{{"<", "true"}, {"<=", "true"}, {">", "false"}, {">=", "false"}} {
		defs = append(defs,
			definition{"#operator_" + op.sign, FunctionKind, times, timeOrder(op.sign), "Compares times.", "datetime(2015, 1, 1) " + op.sign + " datetime(2016, 1, 1) ⇒ " + op.result, 0},
			definition{"#operator_" + op.sign, FunctionKind, spans, spanOrder(op.sign), "Compares timespans.", "timespan(1) " + op.sign + " timespan(2) ⇒ " + op.result, 0})
	}
	return defs
}

func timeProperties() []definition {
	const example = "datetime(2006, 11, 21, 16, 30, 2, 123)"
	return []definition{
		{"#property#date", FunctionKind, "obj: datetime", timeProperty(func(d DateTime) any { return d.Midnight() }), "The start of the day.", example + ".date.hour ⇒ 0", 0},
		{"#property#day", FunctionKind, "obj: time", fieldProperty(func(x pytime.Fields) int64 { return x.Day }), "The day of the month.", example + ".day ⇒ 21", 0},
		{"#property#days", FunctionKind, "obj: timespan", spanIn(day), "The timespan in days.", "timespan(hours => 36).days ⇒ 1.5", 0},
		{"#property#hour", FunctionKind, "obj: time", fieldProperty(func(x pytime.Fields) int64 { return x.Hour }), "The hour.", example + ".hour ⇒ 16", 0},
		{"#property#hours", FunctionKind, "obj: timespan", spanIn(hour), "The timespan in hours.", "timespan(minutes => 90).hours ⇒ 1.5", 0},
		{"#property#microsecond", FunctionKind, "obj: time", fieldProperty(func(x pytime.Fields) int64 { return x.Microsecond }), "The microseconds within the second.", example + ".microsecond ⇒ 123", 0},
		{"#property#microseconds", FunctionKind, "obj: timespan", func(_ *Context, a []any) (any, error) { return intValue(asSpan(a[0]).Total()), nil }, "The timespan in microseconds, an integer.", "timespan(seconds => 1).microseconds ⇒ 1000000", 0},
		{"#property#milliseconds", FunctionKind, "obj: timespan", spanIn(millisecond), "The timespan in milliseconds.", "timespan(seconds => 1).milliseconds ⇒ 1000.0", 0},
		{"#property#minute", FunctionKind, "obj: time", fieldProperty(func(x pytime.Fields) int64 { return x.Minute }), "The minute.", example + ".minute ⇒ 30", 0},
		{"#property#minutes", FunctionKind, "obj: timespan", spanIn(minute), "The timespan in minutes.", "timespan(hours => 1).minutes ⇒ 60.0", 0},
		{"#property#month", FunctionKind, "obj: time", fieldProperty(func(x pytime.Fields) int64 { return x.Month }), "The month.", example + ".month ⇒ 11", 0},
		{"#property#offset", FunctionKind, "obj: time", func(_ *Context, a []any) (any, error) { return checked(asTime(a[0]).Offset()) }, "The offset from UTC as a timespan.", example + ".offset.hours ⇒ 0.0", 0},
		{"#property#second", FunctionKind, "obj: time", fieldProperty(func(x pytime.Fields) int64 { return x.Second }), "The second.", example + ".second ⇒ 2", 0},
		{"#property#seconds", FunctionKind, "obj: timespan", spanIn(second), "The timespan in seconds.", "timespan(minutes => 1).seconds ⇒ 60.0", 0},
		{"#property#time", FunctionKind, "obj: datetime", timeProperty(func(d DateTime) any { return d.TimeOfDay() }), "The timespan since the start of the day.", example + ".time.hours > 16 ⇒ true", 0},
		{"#property#timestamp", FunctionKind, "obj: time", func(_ *Context, a []any) (any, error) { return checked(asTime(a[0]).Timestamp()) }, "The seconds since the start of 1970; see the differences page for times that are not UTC.", "datetime(1970, 1, 2).timestamp ⇒ 86400.0", 0},
		{"#property#utc", FunctionKind, "obj: datetime", func(_ *Context, a []any) (any, error) { return checked(asTime(a[0]).ShiftedToUTC()) }, "The time as a clock in UTC shows it; as in the reference, the offset itself stays.", example + ".utc.hour ⇒ 16", 0},
		{"#property#weekday", FunctionKind, "obj: time", timeProperty(func(d DateTime) any { return int64(d.Weekday()) }), "The day of the week, from 0 for Monday.", example + ".weekday ⇒ 1", 0},
		{"#property#year", FunctionKind, "obj: time", fieldProperty(func(x pytime.Fields) int64 { return x.Year }), "The year.", example + ".year ⇒ 2006", 0},
	}
}

func timeFunctions() []definition {
	return []definition{
		{"datetime", FunctionKind, "string: string, format: string = null", parseTime, "Reads a time from a text, with a strptime format or, without one, in the usual notations.", "datetime(\"2015-09-29T12:30\").minute ⇒ 30", 0},
		{"datetime", FunctionKind, "timestamp: number, offset: timespan = zero", timeOfTimestamp, "Gives the time so many seconds after the start of 1970.", "datetime(86400).day ⇒ 2", 0},
		{"datetime", FunctionKind, "year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0, microsecond: int = 0, offset: timespan = zero", makeTime, "Gives a time by its parts.", "datetime(2015, 9, 29).weekday ⇒ 1", 0},
		{"format", MethodKind, "dt: datetime, format: string", formatTime, "Writes a time in a strftime format.", "datetime(2015, 9, 29).format(\"%d.%m.%Y\") ⇒ \"29.09.2015\"", 0},
		{"isDatetime", FunctionKind, "value: any?", isOf(func(v any) bool { _, ok := v.(DateTime); return ok }), "Tells whether the value is a time.", "isDatetime(now()) ⇒ true", 0},
		{"isTimespan", FunctionKind, "value: any?", isOf(func(v any) bool { _, ok := v.(Timespan); return ok }), "Tells whether the value is a timespan.", "isTimespan(timespan()) ⇒ true", 0},
		{"localtz", FunctionKind, "", func(*Context, []any) (any, error) {
			_, seconds := time.Now().Zone()
			return pytime.Microseconds(int64(seconds) * second), nil
		}, "Gives the offset of local time from UTC.", "isTimespan(localtz()) ⇒ true", 0},
		{"now", FunctionKind, "offset: timespan? = zero", now, "Gives the current time.", "now().offset.hours ⇒ 0.0", 0},
		{"replace", MethodKind, "dt: datetime, year: int = null, month: int = null, day: int = null, hour: int = null, minute: int = null, second: int = null, microsecond: int = null, offset: timespan = null", replaceFields, "Gives the time with other parts.", "datetime(2015, 9, 29).replace(year => 2014).year ⇒ 2014", 0},
		{"timespan", FunctionKind, "days: int = 0, hours: int = 0, minutes: int = 0, seconds: integer = 0, milliseconds: integer = 0, microseconds: integer = 0", makeSpan, "Gives a timespan by its parts.", "timespan(days => 1, hours => 12).hours ⇒ 36.0", 0},
		{"utctz", FunctionKind, "", constantly(Timespan{}), "Gives the offset of UTC, which is zero.", "utctz().hours ⇒ 0.0", 0},
	}
}

func scaled(c *Context, span, factor any) (any, error) {
	c.run.spells(factor)
	if f, ok := factor.(float64); ok {
		return checked(asSpan(span).MulFloat(f))
	}
	return checked(asSpan(span).MulInt(bigOf(factor)))
}

func divided(c *Context, a []any) (any, error) {
	c.run.spells(a[1])
	if f, ok := a[1].(float64); ok {
		return checked(asSpan(a[0]).DivFloat(f))
	}
	return checked(asSpan(a[0]).DivInt(bigOf(a[1])))
}

func parseTime(c *Context, a []any) (any, error) {
	format, _ := a[1].(string)
	if err := c.run.spend(len(a[0].(string)) + compilesFor*len(format)); err != nil {
		return nil, err
	}
	var d DateTime
	var err error
	if a[1] == nil || a[1] == "" {
		var today DateTime
		if today, err = pytime.FromTime(time.Now(), pytime.UTC()); err != nil {
			return nil, asError(err)
		}
		d, err = pytime.ParseFree(a[0].(string), today.In(nil))
	} else {
		d, err = pytime.Strptime(a[0].(string), a[1].(string))
	}
	return checked(d.Aware(), err)
}

func timeOfTimestamp(c *Context, a []any) (any, error) {
	c.run.spells(a[0])
	zone := pytime.FixedZone(asSpan(a[1]))
	if f, ok := a[0].(float64); ok {
		return checked(pytime.FromFloatTimestamp(f, zone))
	}
	return checked(pytime.FromTimestamp(bigOf(a[0]), zone))
}

func makeTime(_ *Context, a []any) (any, error) {
	zone := pytime.FixedZone(asSpan(a[7]))
	return checked(pytime.New(pytime.Fields{Year: clampInt(a[0]), Month: clampInt(a[1]), Day: clampInt(a[2]), Hour: clampInt(a[3]),
		Minute: clampInt(a[4]), Second: clampInt(a[5]), Microsecond: clampInt(a[6])}, zone))
}

func replaceFields(_ *Context, a []any) (any, error) {
	d := asTime(a[0])
	f := d.Fields()
	for i, field := range []*int64{&f.Year, &f.Month, &f.Day, &f.Hour, &f.Minute, &f.Second, &f.Microsecond} {
		if a[i+1] != nil {
			*field = clampInt(a[i+1])
		}
	}
	zone := d.Zone()
	if span, ok := a[8].(Timespan); ok {
		zone = pytime.FixedZone(span)
	}
	return checked(pytime.New(f, zone))
}

func now(_ *Context, a []any) (any, error) {
	t := time.Now()
	span, ok := a[0].(Timespan)
	if !ok {
		// Without an offset the reference gives local time that does not know its zone.
		_, seconds := t.Zone()
		d, err := pytime.FromTime(t.Add(time.Duration(seconds)*time.Second), pytime.UTC())
		return checked(d.In(nil), err)
	}
	return checked(pytime.FromTime(t, pytime.FixedZone(span)))
}

func makeSpan(c *Context, a []any) (any, error) {
	c.run.spells(a...)
	total := new(big.Int)
	for i, unit := range []int64{day, hour, minute, second, millisecond, 1} {
		total.Add(total, new(big.Int).Mul(bigOf(a[i]), big.NewInt(unit)))
	}
	return checked(pytime.SpanOf(total))
}
