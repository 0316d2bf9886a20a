package pytime

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/yaql/internal/pytext"
)

// patterns are the regular expressions of strptime's directives. Each becomes a group with the
// directive's letter as its name.
var patterns = map[byte]string{
	'd': `3[0-1]|[1-2]\d|0[1-9]|[1-9]| [1-9]`,
	'f': `[0-9]{1,6}`,
	'H': `2[0-3]|[0-1]\d|\d`,
	'I': `1[0-2]|0[1-9]|[1-9]`,
	'G': `\d\d\d\d`,
	'j': `36[0-6]|3[0-5]\d|[1-2]\d\d|0[1-9]\d|00[1-9]|[1-9]\d|0[1-9]|[1-9]`,
	'm': `1[0-2]|0[1-9]|[1-9]`,
	'M': `[0-5]\d|\d`,
	'S': `6[0-1]|[0-5]\d|\d`,
	'U': `5[0-3]|[0-4]\d|\d`,
	'W': `5[0-3]|[0-4]\d|\d`,
	'w': `[0-6]`,
	'u': `[1-7]`,
	'V': `5[0-3]|0[1-9]|[1-4]\d|\d`,
	'y': `\d\d`,
	'Y': `\d\d\d\d`,
	'z': `[+-]\d\d:?[0-5]\d(?::?[0-5]\d(?:\.\d{1,6})?)?|(?-i:Z)`,
	'A': `wednesday|thursday|saturday|tuesday|monday|friday|sunday`,
	'a': `mon|tue|wed|thu|fri|sat|sun`,
	'B': `september|february|november|december|january|october|august|march|april|june|july|may`,
	'b': `jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec`,
	'p': `am|pm`,
	'Z': `utc|gmt`,
}

// composites are directives that stand for others.
var composites = map[byte]string{'c': "%a %b %d %H:%M:%S %Y", 'x': "%m/%d/%y", 'X': "%H:%M:%S", '%': ""}

// Strptime reads text by a format, as Python's datetime.strptime does. Directives left out take the
// values of the first of January 1900. The result is naive unless the format has %z. Everything that
// does not fit is a ValueError.
func Strptime(text, format string) (DateTime, error) {
	p, err := matchFormat(text, format)
	if err != nil {
		return DateTime{}, err
	}
	fields, err := p.date()
	if err != nil {
		return DateTime{}, err
	}
	fields.Hour, fields.Minute, fields.Second, fields.Microsecond = p.hour(), p.number('M', 0), p.number('S', 0), p.fraction()
	zone, err := p.zone()
	if err != nil {
		return DateTime{}, err
	}
	return New(fields, zone)
}

// matchFormat returns the text that each directive of the format stands for in text.
func matchFormat(text, format string) (parsed, error) {
	pattern, err := formatPattern(format, format)
	if err != nil {
		return parsed{}, err
	}
	re, err := regexp.Compile(`(?i)\A` + strings.ReplaceAll(pattern, `\d`, `\p{Nd}`))
	if err != nil {
		return parsed{}, fail(ValueError, "format %s cannot be used", pytext.Quote(format))
	}
	match := re.FindStringSubmatch(text)
	if match == nil {
		return parsed{}, fail(ValueError, "time data %s does not match format %s", pytext.Quote(text), pytext.Quote(format))
	}
	if rest := text[len(match[0]):]; rest != "" {
		return parsed{}, fail(ValueError, "unconverted data remains: %s", rest)
	}
	p := parsed{found: map[byte]string{}}
	for i, name := range re.SubexpNames() {
		if name != "" {
			letter := name[len(name)-1]
			p.found[letter] = match[i]
			p.order += string(letter)
		}
	}
	return p, nil
}

// formatPattern translates a format to a regular expression. A directive may occur once only.
func formatPattern(format, whole string) (string, error) {
	var out strings.Builder
	used := map[byte]bool{}
	rest := format
	for rest != "" {
		at := strings.IndexByte(rest, '%')
		if at < 0 {
			out.WriteString(literalPattern(rest))
			break
		}
		out.WriteString(literalPattern(rest[:at]))
		if at+1 == len(rest) {
			return "", fail(ValueError, "stray %% in format %s", pytext.Quote(whole))
		}
		letter := rest[at+1]
		rest = rest[at+2:]
		if composite, ok := composites[letter]; ok && letter != '%' {
			rest = composite + rest
			continue
		}
		if letter == '%' {
			out.WriteByte('%')
			continue
		}
		pattern, ok := patterns[letter]
		if !ok {
			return "", fail(ValueError, "'%c' is a bad directive in format %s", letter, pytext.Quote(whole))
		}
		if used[letter] {
			return "", fail(reError, "redefinition of directive %%%c in format %s", letter, pytext.Quote(whole))
		}
		used[letter] = true
		out.WriteString("(?P<x" + string(letter) + ">" + pattern + ")")
	}
	return out.String(), nil
}

// reError is the class of a format that uses a directive twice: the reference's regular expression
// library refuses it.
const reError = "re.error"

// literalPattern quotes plain text; a run of white space matches any run of it.
func literalPattern(text string) string {
	const space = "[\\s\v\x1c-\x1f\\x{85}\\p{Z}]+"
	var out strings.Builder
	inSpace := false
	for _, r := range text {
		if pytext.IsSpace(r) {
			if !inSpace {
				out.WriteString(space)
			}
			inSpace = true
			continue
		}
		inSpace = false
		out.WriteString(regexp.QuoteMeta(string(r)))
	}
	return out.String()
}

// parsed is what the directives of a format found.
type parsed struct {
	found map[byte]string
	order string // the letters of the directives as they follow each other
}

// last returns which of the letters comes last in the format, 0 when none does: where directives
// contradict one another, the last one counts.
func (p parsed) last(letters string) byte {
	if i := strings.LastIndexAny(p.order, letters); i >= 0 {
		return p.order[i]
	}
	return 0
}

func (p parsed) has(letter byte) bool { _, ok := p.found[letter]; return ok }

// number returns the value of a numeric directive, or the default when the format lacks it.
func (p parsed) number(letter byte, otherwise int64) int64 {
	text, ok := p.found[letter]
	if !ok {
		return otherwise
	}
	n, err := pytext.ParseInt(text)
	if err != nil {
		return otherwise
	}
	return n.Int64()
}

// name returns the position of a directive's word in its list, or -1 when the format lacks it.
func (p parsed) name(letter byte, names []string) int64 {
	text := strings.ToLower(p.found[letter])
	for i, name := range names {
		if text == name {
			return int64(i)
		}
	}
	return -1
}

var (
	shortDays   = strings.Fields("mon tue wed thu fri sat sun")
	longDays    = strings.Fields("monday tuesday wednesday thursday friday saturday sunday")
	shortMonths = strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec")
	longMonths  = strings.Fields("january february march april may june july august september october november december")
)

func (p parsed) hour() int64 {
	if p.last("HI") != 'I' {
		return p.number('H', 0)
	}
	hour := p.number('I', 0) % 12
	if strings.EqualFold(p.found['p'], "pm") {
		hour += 12
	}
	return hour
}

func (p parsed) fraction() int64 {
	if !p.has('f') {
		return 0
	}
	n, err := strconv.ParseInt((p.found['f'] + "000000")[:6], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// date resolves year, month and day from whichever directives tell them.
func (p parsed) date() (Fields, error) {
	f := Fields{Month: p.month(), Day: p.number('d', 1)}
	year, known := p.year()
	weekday := p.weekday()
	if err := p.checkISO(known, weekday); err != nil {
		return f, err
	}
	f.Year = year
	if !known {
		f.Year = 1900
	}
	leapDay := !known && !p.has('G') && f.Month == 2 && f.Day == 29
	if leapDay {
		f.Year = 1904
	}
	day, ok := p.dayOfYear(&f.Year, known, weekday)
	if ok {
		return dateOfDay(f.Year, day, leapDay)
	}
	if _, err := New(Fields{Year: f.Year, Month: f.Month, Day: f.Day}, nil); err != nil {
		return f, err
	}
	if leapDay {
		f.Year = 1900 // which has no 29th of February: refused when the date is built
	}
	return f, nil
}

func (p parsed) month() int64 {
	switch p.last("mBb") {
	case 'B':
		return p.name('B', longMonths) + 1
	case 'b':
		return p.name('b', shortMonths) + 1
	}
	return p.number('m', 1)
}

func (p parsed) year() (year int64, known bool) {
	switch p.last("Yy") {
	case 'Y':
		return p.number('Y', 0), true
	case 'y':
		year = 2000 + p.number('y', 0)
		if year > 2068 {
			year -= 100
		}
		return year, true
	}
	return 0, false
}

// weekday returns the day of the week, Monday being 0, or -1 when no directive tells it.
func (p parsed) weekday() int64 {
	switch p.last("Aawu") {
	case 'A':
		return p.name('A', longDays)
	case 'a':
		return p.name('a', shortDays)
	case 'w':
		return (p.number('w', 0) + 6) % 7
	case 'u':
		return p.number('u', 1) - 1
	}
	return -1
}

// checkISO refuses week directives of ISO 8601 that lack what they need.
func (p parsed) checkISO(yearKnown bool, weekday int64) error {
	if !yearKnown && p.has('G') {
		if !p.has('V') || weekday < 0 {
			return fail(ValueError, "directive %%G needs %%V and a directive for the day of the week")
		}
		if p.has('j') {
			return fail(ValueError, "directive %%j does not go with %%G; use %%Y")
		}
		return nil
	}
	if p.has('V') && !p.has('U') && !p.has('W') {
		return fail(ValueError, "directive %%V needs %%G, not %%Y, and a directive for the day of the week")
	}
	return nil
}

// dayOfYear returns the number of the day in the year, counted from 1 and perhaps outside of the year,
// when the format told it by itself or by a week and a day of the week.
func (p parsed) dayOfYear(year *int64, yearKnown bool, weekday int64) (int64, bool) {
	if p.has('j') {
		return p.number('j', 1), true
	}
	if weekday < 0 {
		return 0, false
	}
	switch {
	case p.has('U') || p.has('W'):
		return p.dayOfWeek(*year, weekday), true
	case !yearKnown && p.has('G'):
		*year = p.number('G', 1)
		fourth := time.Date(int(*year), 1, 4, 0, 0, 0, 0, time.UTC).Weekday()
		return p.number('V', 1)*7 + weekday + 1 - (int64(fourth+6)%7 + 1 + 3), true
	}
	return 0, false
}

// dayOfWeek finds a day by a week that begins on Sunday (%U) or Monday (%W).
func (p parsed) dayOfWeek(year, weekday int64) int64 {
	first := int64(time.Date(int(year), 1, 1, 0, 0, 0, 0, time.UTC).Weekday()+6) % 7
	week := p.number('W', 0)
	if p.last("UW") == 'U' {
		week, first, weekday = p.number('U', 0), (first+1)%7, (weekday+1)%7
	}
	if week == 0 {
		return 1 + weekday - first
	}
	return 1 + (7-first)%7 + 7*(week-1) + weekday
}

func dateOfDay(year, day int64, leapDay bool) (Fields, error) {
	date := time.Date(int(year), 1, int(day), 0, 0, 0, 0, time.UTC)
	f := Fields{Year: int64(date.Year()), Month: int64(date.Month()), Day: int64(date.Day())}
	if year < minYear || f.Year < minYear || f.Year > maxYear {
		return f, fail(ValueError, "year %d is out of range", f.Year)
	}
	if leapDay {
		f.Year = 1900
	}
	return f, nil
}

// zone returns the zone of %z, nil when the format lacks it. The name of %Z only labels it.
func (p parsed) zone() (*Zone, error) {
	text, ok := p.found['z']
	if !ok {
		return nil, nil //nolint:nilnil // no zone is a result: the date is naive
	}
	offset, err := parseOffset(text)
	if err != nil {
		return nil, err
	}
	return plainZone(offset, p.found['Z'])
}

// parseOffset reads Z, +HHMM[SS[.ffffff]] or the same with colons, which stand everywhere or nowhere.
func parseOffset(text string) (Span, error) {
	if text == "Z" {
		return Span{}, nil
	}
	digits := text[1:]
	clock, fraction, _ := strings.Cut(digits, ".")
	if strings.Contains(clock, ":") {
		plain := strings.ReplaceAll(clock, ":", "")
		if len(clock) != len(plain)+(pytext.Len(plain)-1)/2 || pytext.Len(clock) > 2 && !strings.HasPrefix(string([]rune(clock)[2:]), ":") {
			return Span{}, fail(ValueError, "inconsistent use of : in %s", text)
		}
		clock = plain
	}
	total := int64(0)
	unit := Hour
	for runes := []rune(clock); len(runes) >= 2; runes = runes[2:] {
		tens, _ := pytext.DigitValue(runes[0])
		ones, _ := pytext.DigitValue(runes[1])
		total += int64(tens*10+ones) * unit
		unit /= 60
	}
	if fraction != "" {
		n, err := pytext.ParseInt((fraction + "000000")[:6])
		if err != nil {
			return Span{}, fail(ValueError, "bad fraction in %s", text)
		}
		total += n.Int64()
	}
	if text[0] == '-' {
		total = -total
	}
	return Microseconds(total), nil
}
