package pytime

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// today is what the recorded cases of ParseFree were made with.
var today = must(New(Fields{Year: 2026, Month: 11, Day: 21}, nil))

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func class(err error) string {
	if refused, ok := errors.AsType[*Error](err); ok {
		return refused.Class
	}
	return ""
}

// TestRecordedTexts compares the three text functions with what CPython 3.11, dateutil 2.8 and the C
// library answered, in UTC and the C locale.
func TestRecordedTexts(t *testing.T) {
	file, err := os.ReadFile("testdata/python.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for lines := bufio.NewScanner(bytes.NewReader(file)); lines.Scan(); count++ {
		var c struct {
			Kind string
			Args []string
			Want string
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if got := recorded(c.Kind, c.Args); got != c.Want {
			t.Errorf("%s %q gives %s, want %s", c.Kind, c.Args, got, c.Want)
		}
	}
	if count < 500 {
		t.Errorf("only %d cases", count)
	}
}

func recorded(kind string, args []string) string {
	var d DateTime
	var err error
	switch kind {
	case "free":
		d, err = ParseFree(args[0], today)
	case "strp":
		d, err = Strptime(args[0], args[1])
	case "strf":
		if d, err = ParseISO(args[0]); err == nil {
			return must(d.Strftime(args[1]))
		}
	}
	if err != nil {
		return "ERR " + class(err)
	}
	return d.ISOFormat() + " " + d.Repr()
}

func date(t *testing.T, text string) DateTime {
	t.Helper()
	d, err := ParseISO(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestNewRefuses(t *testing.T) {
	for want, fields := range map[string][]Fields{
		ValueError: {
			{0, 1, 1, 0, 0, 0, 0}, {10000, 1, 1, 0, 0, 0, 0}, {2015, 13, 1, 0, 0, 0, 0}, {2015, 0, 1, 0, 0, 0, 0}, {2015, 2, 29, 0, 0, 0, 0},
			{2015, 1, 0, 0, 0, 0, 0}, {2015, 1, 1, 24, 0, 0, 0}, {2015, 1, 1, 0, 60, 0, 0}, {2015, 1, 1, 0, 0, -1, 0}, {2015, 1, 1, 0, 0, 0, 1000000},
		},
		OverflowError: {{1 << 40, 1, 1, 0, 0, 0, 0}},
	} {
		for _, f := range fields {
			if _, err := New(f, nil); class(err) != want {
				t.Errorf("New(%v) gave %v, want %s", f, err, want)
			}
		}
	}
}

func TestTimestamps(t *testing.T) {
	three := FixedZone(Microseconds(3 * Hour))
	for _, c := range []struct {
		seconds float64
		zone    *Zone
		want    string
	}{
		{1256953732.5, UTC(), "2009-10-31T01:48:52.500000+00:00"}, {1256953732, three, "2009-10-31T04:48:52+03:00"}, {-1.5, UTC(), "1969-12-31T23:59:58.500000+00:00"},
		{1.5e-6, UTC(), "1970-01-01T00:00:00.000002+00:00"}, {5e-7, UTC(), "1970-01-01T00:00:00+00:00"}, {math.NaN(), UTC(), ValueError},
		{math.Inf(1), UTC(), OverflowError}, {1e18, UTC(), OSError}, {1e12, UTC(), ValueError}, {253402300799, three, OverflowError},
	} {
		d, err := FromFloatTimestamp(c.seconds, c.zone)
		if got := d.ISOFormat(); class(err) != c.want && (err != nil || got != c.want) {
			t.Errorf("timestamp %v is %s, %v, want %s", c.seconds, got, err, c.want)
		}
	}
	if d := must(FromTimestamp(big.NewInt(-1), UTC())); d.ISOFormat() != "1969-12-31T23:59:59+00:00" {
		t.Errorf("timestamp -1 is %s", d)
	}
	if _, err := FromTimestamp(new(big.Int).Lsh(big.NewInt(1), 70), UTC()); class(err) != OverflowError {
		t.Errorf("a huge timestamp gave %v", err)
	}
	for text, want := range map[string]float64{"2006-11-21T16:30:02.000123+00:00": 1164126602.000123, "2006-11-21T16:30:00+03:00": 1164105000, "0001-01-01T00:00:00+00:00": -62135596800} {
		if got, err := date(t, text).Timestamp(); got != want || err != nil {
			t.Errorf("%s has the timestamp %v, %v, want %v", text, got, err, want)
		}
	}
	if _, err := date(t, "2015-01-01T00:00:00").Timestamp(); class(err) != TypeError {
		t.Errorf("a naive date's timestamp gave %v", err)
	}
	if got := must(FromTime(time.Unix(0, 0), three)); got.String() != "1970-01-01 03:00:00+03:00" {
		t.Errorf("the epoch is %s", got)
	}
}

func TestDateArithmetic(t *testing.T) {
	day := Microseconds(Day)
	last, first := date(t, "9999-12-31T00:00:00+00:00"), date(t, "0001-01-01T00:00:00+00:00")
	if _, err := last.Add(day); class(err) != OverflowError {
		t.Errorf("a day after the last gave %v", err)
	}
	if _, err := first.Sub(day); class(err) != OverflowError {
		t.Errorf("a day before the first gave %v", err)
	}
	if _, err := first.Add(must(SpanOf(big.NewInt(0).Mul(big.NewInt(Day), big.NewInt(maxDays))))); class(err) != OverflowError {
		t.Errorf("a long span gave %v", err)
	}
	if got := must(date(t, "2016-02-28T00:00:00").Add(day)); got.String() != "2016-02-29 00:00:00" {
		t.Errorf("the day after is %s", got)
	}
	east, utc, naive := date(t, "2011-11-11T03:00:00+03:00"), date(t, "2011-11-11T00:00:00Z"), date(t, "2011-11-11T00:00:00")
	if !east.Equal(utc) || utc.Equal(naive) || !naive.Aware().Equal(utc) || must(east.Since(utc)) != (Span{}) {
		t.Error("equality is not by instant")
	}
	if _, err := utc.Since(naive); class(err) != TypeError {
		t.Errorf("a difference to a naive date gave %v", err)
	}
	if _, err := utc.Compare(naive); class(err) != TypeError {
		t.Errorf("a comparison to a naive date gave %v", err)
	}
	if must(last.Compare(first)) <= 0 || must(first.Compare(last)) >= 0 {
		t.Error("the order of dates is wrong")
	}
	if got := must(east.ShiftedToUTC()); got.String() != "2011-11-11 00:00:00+03:00" {
		t.Errorf("shifted to UTC it is %s", got)
	}
	early := date(t, "0001-01-01T00:00:00+03:00")
	if _, err := early.ShiftedToUTC(); class(err) != OverflowError {
		t.Errorf("shifting the first hours gave %v", err)
	}
	old := date(t, "1960-05-06T07:08:09.000001-02:00")
	if got := old.Midnight(); got.String() != "1960-05-06 00:00:00-02:00" || old.TimeOfDay() != Microseconds(7*Hour+8*Minute+9*Second+1) {
		t.Errorf("midnight is %s, the time of day %s", got, old.TimeOfDay())
	}
	if must(old.Offset()) != Microseconds(-2*Hour) || must(naive.Offset()) != (Span{}) || naive.Zone() != nil || old.Weekday() != 4 {
		t.Error("offset, zone or weekday is wrong")
	}
}

func TestAddAndSinceAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := must(FromTimestamp(big.NewInt(rapid.Int64Range(-1e10, 1e10).Draw(t, "a")), UTC()))
		b := must(FromTimestamp(big.NewInt(rapid.Int64Range(-1e10, 1e10).Draw(t, "b")), FixedZone(Microseconds(Hour))))
		span := must(b.Since(a))
		if !must(a.Add(span)).Equal(b) || !must(b.Sub(span)).Equal(a) {
			t.Fatalf("%s and %s are %s apart", a, b, span)
		}
	})
}

func TestZones(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"2015-09-29T00:00:00+00:00", "datetime.datetime(2015, 9, 29, 0, 0, tzinfo=datetime.timezone.utc)"},
		{"2015-09-29T00:00:01-05:30", "datetime.datetime(2015, 9, 29, 0, 0, 1, tzinfo=datetime.timezone(datetime.timedelta(days=-1, seconds=66600)))"},
		{"2015-09-29", "datetime.datetime(2015, 9, 29, 0, 0)"},
		{"2015-09-29 00:00:00.5", "datetime.datetime(2015, 9, 29, 0, 0, 0, 500000)"},
	} {
		if got := date(t, c.text).Repr(); got != c.want {
			t.Errorf("%s shows as %s, want %s", c.text, got, c.want)
		}
	}
	if got := today.In(FixedZone(Microseconds(3 * Hour))).Repr(); got != "datetime.datetime(2026, 11, 21, 0, 0, tzinfo=tzoffset(None, 10800))" {
		t.Errorf("a fixed zone shows as %s", got)
	}
	if got := today.Aware().Repr(); got != "datetime.datetime(2026, 11, 21, 0, 0, tzinfo=tzutc())" {
		t.Errorf("UTC shows as %s", got)
	}
	for _, offset := range []int64{Day, -Day, 2 * Day} {
		d := today.In(FixedZone(Microseconds(offset)))
		if _, err := d.Offset(); class(err) != ValueError || d.Fields() != today.Fields() {
			t.Errorf("an offset of %s gave %v, the date %s", Microseconds(offset), err, d.Repr())
		}
	}
	for _, text := range []string{"", "2015", "2015-1-1", "2015-01-01T1", "2015-01-01T00:00:00+25:00", "2015-13-01", "2015-01-01T00:00:00+1"} {
		if d, err := ParseISO(text); class(err) != ValueError {
			t.Errorf("ParseISO(%q) = %s, %v", text, d, err)
		}
	}
}

func TestSpans(t *testing.T) {
	hour := Microseconds(Hour)
	for _, c := range []struct {
		got  Span
		text string
		repr string
	}{
		{Span{}, "0:00:00", "datetime.timedelta(0)"},
		{Microseconds(5), "0:00:00.000005", "datetime.timedelta(microseconds=5)"},
		{Microseconds(-Hour), "-1 day, 23:00:00", "datetime.timedelta(days=-1, seconds=82800)"},
		{Microseconds(26 * Hour), "1 day, 2:00:00", "datetime.timedelta(days=1, seconds=7200)"},
		{Microseconds(-49 * Hour), "-3 days, 23:00:00", "datetime.timedelta(days=-3, seconds=82800)"},
		{must(NewSpan(SpanParts{Days: big.NewInt(1), Hours: big.NewInt(2), Minutes: big.NewInt(3), Seconds: big.NewInt(4), Milliseconds: big.NewInt(5), Microseconds: big.NewInt(6)})), "1 day, 2:03:04.005006", "datetime.timedelta(days=1, seconds=7384, microseconds=5006)"},
		{must(hour.MulFloat(1.5)), "1:30:00", "datetime.timedelta(seconds=5400)"},
		{must(hour.MulInt(big.NewInt(-1))), "-1 day, 23:00:00", "datetime.timedelta(days=-1, seconds=82800)"},
		{must(Microseconds(5).DivInt(big.NewInt(2))), "0:00:00.000002", "datetime.timedelta(microseconds=2)"},
		{must(Microseconds(7).DivInt(big.NewInt(2))), "0:00:00.000004", "datetime.timedelta(microseconds=4)"},
		{must(Microseconds(3).MulFloat(0.5)), "0:00:00.000002", "datetime.timedelta(microseconds=2)"},
		{must(hour.DivFloat(2)), "0:30:00", "datetime.timedelta(seconds=1800)"},
		{must(hour.Sub(Microseconds(Minute))), "0:59:00", "datetime.timedelta(seconds=3540)"},
	} {
		if c.got.String() != c.text || c.got.Repr() != c.repr {
			t.Errorf("got %s and %s, want %s and %s", c.got, c.got.Repr(), c.text, c.repr)
		}
	}
	if got := Microseconds(1).In(Day); got != 1.1574074074074074e-11 {
		t.Errorf("a microsecond is %v days", got)
	}
	if got, err := Microseconds(24 * Hour).Ratio(Microseconds(12 * Hour)); got != 2 || err != nil {
		t.Errorf("the ratio is %v, %v", got, err)
	}
}

func TestSpansRefuse(t *testing.T) {
	longest := must(NewSpan(SpanParts{Days: big.NewInt(maxDays)}))
	if longest.Total().String() != "86399999913600000000" {
		t.Errorf("the longest span has %s microseconds", longest.Total())
	}
	nearly := must(longest.Add(Microseconds(Day - 1)))
	results := map[string]error{}
	_, results["longest+1"] = nearly.Add(Microseconds(1))
	_, results["-longest"] = nearly.Neg()
	_, results["longest*2"] = longest.MulInt(big.NewInt(2))
	_, results["longest*1e300"] = longest.MulFloat(1e300)
	_, results["*inf"] = longest.MulFloat(math.Inf(1))
	for name, err := range results {
		if class(err) != OverflowError {
			t.Errorf("%s gave %v, want OverflowError", name, err)
		}
	}
	if _, err := longest.MulFloat(math.NaN()); class(err) != ValueError {
		t.Errorf("*nan gave %v", err)
	}
	_, byInt := longest.DivInt(new(big.Int))
	_, byFloat := longest.DivFloat(0)
	_, bySpan := longest.Ratio(Span{})
	for _, err := range []error{byInt, byFloat, bySpan} {
		if class(err) != ZeroDivisionError || err.Error() == "" {
			t.Errorf("a division by nothing gave %v", err)
		}
	}
}

func TestSpanOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		x, y := Microseconds(a), Microseconds(b)
		if (a < b) != (x.Compare(y) < 0) || (a == b) != (x == y) || x.Total().Int64() != a {
			t.Fatalf("%d and %d compare as %d", a, b, x.Compare(y))
		}
	})
}

func FuzzParseFree(f *testing.F) {
	for _, seed := range []string{"2015-09-29T12:30:15Z", "29.8?2015", "10h36m28.5s", "Thu Sep 25 2003 10:36:28 GMT-3", "20150929T123015"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := ParseFree(text, today); err == nil {
			if y := d.Fields().Year; y < minYear || y > maxYear {
				t.Errorf("%q is in the year %d", text, y)
			}
		}
	})
}

func FuzzStrftime(f *testing.F) {
	f.Add("%Y-%m-%d %5% %^a")
	f.Fuzz(func(t *testing.T, format string) {
		text := must(today.Strftime(format))
		if back, err := Strptime(text, format); err == nil && back.Fields().Year < minYear {
			t.Errorf("%q is %s", format, back)
		}
	})
}
