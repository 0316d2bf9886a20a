package pytime

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A directive of strftime yields either a number with its usual padding and width or a text.
type directive struct {
	number func(d DateTime, w time.Time) int
	pad    byte // '0', '_' for spaces
	width  int
	text   func(d DateTime, w time.Time) string
	format string // another format that it stands for
}

func layout(l string) func(DateTime, time.Time) string {
	return func(_ DateTime, w time.Time) string { return w.Format(l) }
}

func hour12(w time.Time) int { return (w.Hour()+11)%12 + 1 }

// weekOfYear counts the weeks that begin on the given weekday; days before the first are in week 0.
func weekOfYear(w time.Time, first time.Weekday) int {
	return (w.YearDay() + 6 - (int(w.Weekday())-int(first)+7)%7) / 7
}

func isoYear(w time.Time) int { year, _ := w.ISOWeek(); return year }

func isoWeek(w time.Time) int { _, week := w.ISOWeek(); return week }

// directives are those of the C library in the C locale, and Python's %f. The zone ones print nothing
// for a naive date.
var directives = map[byte]directive{
	'Y': {number: func(_ DateTime, w time.Time) int { return w.Year() }, pad: '0', width: 1},
	'C': {number: func(_ DateTime, w time.Time) int { return w.Year() / 100 }, pad: '0', width: 1},
	'G': {number: func(_ DateTime, w time.Time) int { return isoYear(w) }, pad: '0', width: 1},
	'y': {number: func(_ DateTime, w time.Time) int { return w.Year() % 100 }, pad: '0', width: 2},
	'g': {number: func(_ DateTime, w time.Time) int { return isoYear(w) % 100 }, pad: '0', width: 2},
	'm': {number: func(_ DateTime, w time.Time) int { return int(w.Month()) }, pad: '0', width: 2},
	'd': {number: func(_ DateTime, w time.Time) int { return w.Day() }, pad: '0', width: 2},
	'e': {number: func(_ DateTime, w time.Time) int { return w.Day() }, pad: '_', width: 2},
	'H': {number: func(_ DateTime, w time.Time) int { return w.Hour() }, pad: '0', width: 2},
	'k': {number: func(_ DateTime, w time.Time) int { return w.Hour() }, pad: '_', width: 2},
	'I': {number: func(_ DateTime, w time.Time) int { return hour12(w) }, pad: '0', width: 2},
	'l': {number: func(_ DateTime, w time.Time) int { return hour12(w) }, pad: '_', width: 2},
	'M': {number: func(_ DateTime, w time.Time) int { return w.Minute() }, pad: '0', width: 2},
	'S': {number: func(_ DateTime, w time.Time) int { return w.Second() }, pad: '0', width: 2},
	'j': {number: func(_ DateTime, w time.Time) int { return w.YearDay() }, pad: '0', width: 3},
	'u': {number: func(d DateTime, _ time.Time) int { return d.Weekday() + 1 }, pad: '0', width: 1},
	'w': {number: func(_ DateTime, w time.Time) int { return int(w.Weekday()) }, pad: '0', width: 1},
	'U': {number: func(_ DateTime, w time.Time) int { return weekOfYear(w, time.Sunday) }, pad: '0', width: 2},
	'W': {number: func(_ DateTime, w time.Time) int { return weekOfYear(w, time.Monday) }, pad: '0', width: 2},
	'V': {number: func(_ DateTime, w time.Time) int { return isoWeek(w) }, pad: '0', width: 2},
	's': {number: func(_ DateTime, w time.Time) int { return int(w.Unix()) }, pad: '0', width: 1},
	'a': {text: layout("Mon")}, 'A': {text: layout("Monday")},
	'b': {text: layout("Jan")}, 'h': {text: layout("Jan")}, 'B': {text: layout("January")},
	'p': {text: layout("PM")}, 'P': {text: layout("pm")},
	'z': {text: layout("")}, 'Z': {text: layout("")}, // with flags only the C library sees them, without a zone
	'n': {text: layout("\n")}, 't': {text: layout("\t")}, '%': {text: layout("%")},
	'c': {format: "%a %b %e %H:%M:%S %Y"}, 'x': {format: "%m/%d/%y"}, 'X': {format: "%H:%M:%S"},
	'D': {format: "%m/%d/%y"}, 'F': {format: "%Y-%m-%d"}, 'R': {format: "%H:%M"}, 'T': {format: "%H:%M:%S"},
	'r': {format: "%I:%M:%S %p"},
}

// Strftime formats the date by a format of the C library: its directives in the C locale with the flags
// "_", "-", "0", "^" and "#", a width, and the modifiers E and O. Years below 1000 are not padded.
// What is no directive stays as written. A NUL ends the format.
func (d DateTime) Strftime(format string) (string, error) { return d.StrftimeWithin(format, nil) }

// StrftimeWithin is Strftime for who bounds the result: when it grows, grown is asked with its new size, and its error ends the work. A width of
// 1,024 is written in six characters.
func (d DateTime) StrftimeWithin(format string, grown func(bytes int) error) (string, error) {
	format, _, _ = strings.Cut(format, "\x00")
	if err := d.Fault(); err != nil && strings.Contains(strings.ReplaceAll(format, "%%", ""), "%z") {
		return "", err
	}
	return d.strftime(format, grown)
}

func (d DateTime) strftime(format string, grown func(bytes int) error) (string, error) {
	var out strings.Builder
	for format != "" {
		at := strings.IndexByte(format, '%')
		if at < 0 {
			break
		}
		out.WriteString(format[:at])
		text, rest := d.directive(format[at:])
		out.WriteString(text)
		format = rest
		if grown == nil {
			continue
		}
		if err := grown(out.Len()); err != nil {
			return "", err
		}
	}
	return out.String() + format, nil
}

// directive formats the directive at the start of format and returns what follows it.
func (d DateTime) directive(format string) (text, rest string) {
	if len(format) > 1 {
		if text, ok := d.pythonDirective(format[1]); ok {
			return text, format[2:]
		}
	}
	spec := scanSpec(format)
	dir, known := directives[spec.letter]
	if !known || spec.refusesModifier() {
		return spec.literal(), format[len(spec.source):]
	}
	return spec.apply(dir, d), format[len(spec.source):]
}

// pythonDirective handles the directives that Python replaces before the C library sees them; they
// take no flags.
func (d DateTime) pythonDirective(letter byte) (string, bool) {
	switch letter {
	case 'f':
		return fmt.Sprintf("%06d", d.Fields().Microsecond), true
	case 'z':
		if d.zone == nil {
			return "", true
		}
		return offsetText(d.zone.offset, ""), true
	case 'Z':
		if d.zone == nil {
			return "", true
		}
		return d.zone.name, true
	}
	return "", false
}

// A spec is one directive as written: flags, width, modifier, letter.
type spec struct {
	source   string
	flags    string
	width    int
	modifier byte // E, O or 0
	letter   byte // 0 when the format ends too early
}

// The directives that do not go with a modifier.
const (
	withoutE = "aAbhBDdeFHIkljMmSUVgGWw"
	withoutO = "aAcDFxXY"
)

func (s spec) refusesModifier() bool {
	return s.modifier == 'E' && strings.IndexByte(withoutE, s.letter) >= 0 ||
		s.modifier == 'O' && strings.IndexByte(withoutO, s.letter) >= 0
}

// literal is what no directive prints: itself.
func (s spec) literal() string {
	text := s.source
	if strings.Contains(s.flags, "^") {
		text = strings.ToUpper(text)
	}
	return s.fill(text, ' ')
}

func scanSpec(format string) spec {
	i := 1
	for i < len(format) && strings.IndexByte("_-0^#", format[i]) >= 0 {
		i++
	}
	s := spec{flags: format[1:i]}
	digits := i
	for i < len(format) && format[i] >= '0' && format[i] <= '9' {
		i++
	}
	if width, err := strconv.Atoi(format[digits:i]); err == nil && width <= maxWidth {
		s.width = width
	}
	if i < len(format) && (format[i] == 'E' || format[i] == 'O') {
		s.modifier = format[i]
		i++
	}
	if i < len(format) {
		s.letter = format[i]
		i++
	}
	s.source = format[:i]
	return s
}

// maxWidth keeps a hostile format from asking for gigabytes of padding.
const maxWidth = 1024

// padFlag returns the last of the flags that exclude one another, 0 when there is none.
func (s spec) padFlag() byte {
	if i := strings.LastIndexAny(s.flags, "_-0"); i >= 0 {
		return s.flags[i]
	}
	return 0
}

func (s spec) apply(dir directive, d DateTime) string {
	w := d.wall()
	var text string
	switch {
	case dir.number != nil:
		return s.number(dir, dir.number(d, w))
	case dir.format != "":
		text, _ = d.strftime(dir.format, nil) // as long as it is, which is not long
	default:
		text = dir.text(d, w)
	}
	switch {
	case strings.Contains(s.flags, "#") && s.letter == 'p':
		text = strings.ToLower(text)
	case s.letter == 'z':
		return "" // not even the width counts
	case s.letter == 'P':
		// always in lower case
	case strings.Contains(s.flags, "^"), strings.Contains(s.flags, "#") && dir.format == "":
		text = strings.ToUpper(text)
	}
	return s.fill(text, ' ')
}

func (s spec) number(dir directive, value int) string {
	pad, width := dir.pad, dir.width
	if flag := s.padFlag(); flag != 0 {
		pad = flag
	}
	if s.width > 0 {
		width = s.width
	}
	text := strconv.Itoa(value)
	if pad == '-' || len(text) >= width {
		return text
	}
	if pad == '_' {
		return strings.Repeat(" ", width-len(text)) + text
	}
	sign := ""
	if value < 0 {
		sign, text = "-", text[1:]
	}
	return sign + strings.Repeat("0", width-len(sign)-len(text)) + text
}

// fill pads a text to the width on the left.
func (s spec) fill(text string, pad byte) string {
	if s.padFlag() == '0' {
		pad = '0'
	}
	if missing := s.width - len(text); missing > 0 {
		return strings.Repeat(string(pad), missing) + text
	}
	return text
}
