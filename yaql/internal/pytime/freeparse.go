package pytime

import (
	"errors"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/yaql/internal/pytext"
)

// errMalformed is how the steps below say that the text is no date.
var errMalformed = errors.New("malformed date")

// ParseFree reads a date in any of the forms that the dateutil parser understands: ISO 8601, with or
// without separators, month names, am and pm, "10h 36m", zones as offsets or as UTC, GMT and Z, and so
// on. What the text leaves out comes from today. A month goes before a day where both are possible.
// The result is naive when the text names no zone that is understood.
func ParseFree(text string, today DateTime) (DateTime, error) {
	p := freeParser{tokens: freeTokens(text), date: newDateNumbers(), currentYear: today.Fields().Year}
	if err := p.run(); err != nil {
		return DateTime{}, fail(ParserError, "Unknown string format: %s", text)
	}
	if p.isEmpty() {
		return DateTime{}, fail(ParserError, "String does not contain a date: %s", text)
	}
	naive, err := p.naive(today)
	if err != nil {
		var refused *Error
		if errors.As(err, &refused) && refused.Class == OverflowError {
			return DateTime{}, err
		}
		return DateTime{}, fail(ParserError, "%s: %s", err, text)
	}
	return p.withZone(naive)
}

// freeParser reads tokens from left to right and collects what they tell.
type freeParser struct {
	tokens                            []string
	pos                               int
	date                              dateNumbers
	currentYear                       int64
	year, month, day                  *int64
	weekday                           *int64
	hour, minute, second, microsecond *int64
	zoneName                          string
	zoneOffset                        *int64 // seconds
}

// The words of the parser, in lower case.
var (
	jumpWords = strings.Fields(". , ; - / ' at on and ad m t of st nd rd th")
	weekdays  = wordTable("mon monday", "tue tuesday", "wed wednesday", "thu thursday", "fri friday", "sat saturday", "sun sunday")
	months    = wordTable("jan january", "feb february", "mar march", "apr april", "may", "jun june", "jul july", "aug august",
		"sep sept september", "oct october", "nov november", "dec december")
	clockUnits = wordTable("h hour hours", "m minute minutes", "s second seconds")
	dayHalves  = wordTable("am a", "pm p")
	utcNames   = []string{"UTC", "GMT", "Z", "z"}
)

func wordTable(entries ...string) map[string]int64 {
	table := map[string]int64{}
	for i, words := range entries {
		for word := range strings.FieldsSeq(words) {
			table[word] = int64(i)
		}
	}
	return table
}

func lookUp(table map[string]int64, token string) (int64, bool) {
	i, ok := table[strings.ToLower(token)]
	return i, ok
}

func isJump(token string) bool {
	return token == " " || slices.Contains(jumpWords, strings.ToLower(token))
}

func isUTCName(name string) bool {
	return slices.ContainsFunc(utcNames, func(n string) bool { return strings.EqualFold(n, name) })
}

// token returns the token at a distance from the current one, "" beyond either end.
func (p *freeParser) token(distance int) string {
	if i := p.pos + distance; i >= 0 && i < len(p.tokens) {
		return p.tokens[i]
	}
	return ""
}

// left counts the tokens after the current one.
func (p *freeParser) left() int { return len(p.tokens) - 1 - p.pos }

// run reads all tokens; the steps are tried in order, and one that takes a token leaves pos at the last
// token it used.
func (p *freeParser) run() error {
	steps := []func(string) (bool, error){p.number, p.weekdayName, p.monthName, p.dayHalf, p.zone, p.offset, p.jump}
	for ; p.pos < len(p.tokens); p.pos++ {
		for _, step := range steps {
			taken, err := step(p.tokens[p.pos])
			if err != nil {
				return err
			}
			if taken {
				break
			}
		}
	}
	if err := p.resolveDate(); err != nil {
		return err
	}
	p.settleZone()
	return nil
}

func (p *freeParser) weekdayName(token string) (bool, error) {
	day, ok := lookUp(weekdays, token)
	if ok {
		p.weekday = &day
	}
	return ok, nil
}

// monthName takes a month by name and, joined to it, Jan-01, Jan-01-99 or "Jan of 01".
func (p *freeParser) monthName(token string) (bool, error) {
	month, ok := lookUp(months, token)
	if !ok {
		return false, nil
	}
	if err := p.date.add(strconv.FormatInt(month+1, 10), asMonth); err != nil {
		return true, err
	}
	next := p.token(1)
	if next == "-" || next == "/" {
		return true, p.afterMonth(next)
	}
	if p.left() >= 4 && next == " " && p.token(3) == " " && strings.EqualFold(p.token(2), "of") {
		if isDigits(p.token(4)) {
			year, err := atoi(p.token(4))
			if err != nil {
				return true, err
			}
			if err := p.date.add(strconv.FormatInt(p.fullYear(year, false), 10), asYear); err != nil {
				return true, err
			}
		}
		p.pos += 4
	}
	return true, nil
}

func (p *freeParser) afterMonth(separator string) error {
	if err := p.date.add(p.token(2), asAny); err != nil {
		return err
	}
	if p.left() >= 3 && p.token(3) == separator {
		if err := p.date.add(p.token(4), asAny); err != nil {
			return err
		}
		p.pos += 2
	}
	p.pos += 2
	return nil
}

func (p *freeParser) dayHalf(token string) (bool, error) {
	half, ok := lookUp(dayHalves, token)
	if !ok {
		return false, nil
	}
	if p.hour == nil || *p.hour < 0 || *p.hour > 12 {
		return true, errMalformed
	}
	p.setHour(*p.hour, half)
	return true, nil
}

// setHour sets the hour from a twelve-hour clock; half is 0 before noon and 1 after.
func (p *freeParser) setHour(hour, half int64) {
	switch {
	case hour < 12 && half == 1:
		hour += 12
	case hour == 12 && half == 0:
		hour = 0
	}
	p.hour = &hour
}

// zone takes the name of a zone. A sign after it means the opposite of what it says: in GMT+3 it is the
// clock time plus three that is GMT.
func (p *freeParser) zone(token string) (bool, error) {
	if !p.maybeZone(token) || p.zoneOffset != nil {
		return false, nil
	}
	p.zoneName = token
	if token == "z" {
		p.zoneOffset = new(int64)
	}
	switch p.token(1) {
	case "+":
		p.tokens[p.pos+1] = "-"
	case "-":
		p.tokens[p.pos+1] = "+"
	default:
		return true, nil
	}
	p.zoneOffset = nil
	if isUTCName(token) {
		p.zoneName = ""
	}
	return true, nil
}

func (p *freeParser) maybeZone(token string) bool {
	if p.hour == nil || p.zoneName != "" || pytext.Len(token) > 5 {
		return false
	}
	return token == "z" || !strings.ContainsFunc(token, func(r rune) bool { return r < 'A' || r > 'Z' })
}

// offset takes +HHMM, +HH:MM or +HH, and a name in parentheses after it.
func (p *freeParser) offset(token string) (bool, error) {
	if p.hour == nil || token != "+" && token != "-" {
		return false, nil
	}
	digits := p.token(1)
	hours, minutes := digits, "0"
	switch {
	case len(digits) == 4:
		hours, minutes = digits[:2], digits[2:]
	case p.left() >= 2 && p.token(2) == ":":
		minutes = p.token(3)
		p.pos += 2
	case len(digits) > 2:
		return true, errMalformed
	}
	h, err := atoi(hours)
	if err != nil {
		return true, err
	}
	m, err := atoi(minutes)
	if err != nil {
		return true, err
	}
	seconds := h*3600 + m*60
	if token == "-" {
		seconds = -seconds
	}
	p.zoneOffset = &seconds
	if p.left() >= 5 && isJump(p.token(2)) && p.token(3) == "(" && p.token(5) == ")" && len(p.token(4)) >= 3 && p.maybeZone(p.token(4)) {
		p.zoneName = p.token(4)
		p.pos += 4
	}
	p.pos++
	return true, nil
}

func (p *freeParser) jump(token string) (bool, error) {
	if !isJump(token) {
		return false, errMalformed
	}
	return true, nil
}

// fullYear completes a year of two digits to the one closest to the current year.
func (p *freeParser) fullYear(year int64, complete bool) int64 {
	if year >= 100 || complete {
		return year
	}
	year += p.currentYear / 100 * 100
	switch {
	case year >= p.currentYear+50:
		year -= 100
	case year < p.currentYear-50:
		year += 100
	}
	return year
}

func (p *freeParser) resolveDate() error {
	var err error
	p.year, p.month, p.day, err = p.date.resolve()
	if err == nil && p.year != nil {
		*p.year = p.fullYear(*p.year, p.date.century)
	}
	return err
}

// settleZone makes one of the ways to say UTC.
func (p *freeParser) settleZone() {
	zero := p.zoneOffset != nil && *p.zoneOffset == 0
	switch {
	case zero && p.zoneName == "", p.zoneName == "Z", p.zoneName == "z":
		p.zoneName, p.zoneOffset = "UTC", new(int64)
	case !zero && isUTCName(p.zoneName):
		p.zoneOffset = new(int64)
	}
}

func (p *freeParser) isEmpty() bool {
	for _, field := range []*int64{p.year, p.month, p.day, p.weekday, p.hour, p.minute, p.second, p.microsecond, p.zoneOffset} {
		if field != nil {
			return false
		}
	}
	return p.zoneName == ""
}

// naive builds the date without its zone: a day that only today told gives way to a shorter month, and a
// day of the week alone moves to the next such day.
func (p *freeParser) naive(today DateTime) (DateTime, error) {
	f := today.Midnight().Fields()
	for _, part := range []struct{ to, from *int64 }{
		{&f.Year, p.year}, {&f.Month, p.month}, {&f.Day, p.day},
		{&f.Hour, p.hour}, {&f.Minute, p.minute}, {&f.Second, p.second}, {&f.Microsecond, p.microsecond},
	} {
		if part.from != nil {
			*part.to = *part.from
		}
	}
	if p.day == nil {
		if f.Month < 1 || f.Month > 12 {
			return DateTime{}, fail(ValueError, "month must be in 1..12")
		}
		if f.Year >= minYear && f.Year <= maxYear {
			f.Day = min(f.Day, daysIn(f.Year, f.Month))
		}
	}
	date, err := New(f, nil)
	if err != nil || p.weekday == nil || p.day != nil && *p.day != 0 {
		return date, err
	}
	ahead := (*p.weekday - int64(date.Weekday()) + 7) % 7
	return date.Add(Microseconds(ahead * Day))
}

// withZone adds the zone, if it is one that the reference understands in a process that runs in UTC.
func (p *freeParser) withZone(naive DateTime) (DateTime, error) {
	switch {
	case p.zoneName == "UTC":
		return naive.In(localZone), nil
	case p.zoneOffset == nil:
		return naive, nil
	case *p.zoneOffset == 0:
		return naive.In(utcZone), nil
	}
	zone, err := namedZone(Microseconds(*p.zoneOffset*Second), p.zoneName)
	return naive.In(zone), err
}

func isDigits(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
}

// atoi reads digits. A number too large for any part of a date is kept large enough to be refused.
func atoi(text string) (int64, error) {
	if !isDigits(text) || len(text) > maxDigits {
		return 0, errMalformed
	}
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return 0, errMalformed
	}
	if !n.IsInt64() {
		return 1 << 40, nil
	}
	return n.Int64(), nil
}
