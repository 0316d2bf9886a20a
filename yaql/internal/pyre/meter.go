package pyre

import (
	"io"
	"time"
	"unicode/utf8"
)

// A Meter is told how much work searches are, and may end them. Searches take nil for one that lets everything
// go on.
type Meter interface {
	// Searched is told of work of so many steps, which is about to be done: a step is one instruction of a
	// pattern for one byte of a text, some nanoseconds at worst. A long search asks many times. What remains of
	// it is not done after an error, which the search returns.
	Searched(steps int) error
}

// portion is after how many steps a long search asks again, some tens of milliseconds.
const portion = 1 << 22

// pay tells the meter of a search of the whole text.
func pay(m Meter, steps int) error {
	if m == nil {
		return nil
	}
	return m.Searched(steps)
}

// stepTime is about what a step takes, and shortSearch what a search takes that is as cheap as it looks.
const (
	stepTime    = 5 * time.Nanosecond
	shortSearch = 10 * time.Microsecond
)

// payFor tells the meter of a search that nobody could foresee, by the time that it took.
func payFor(m Meter, took time.Duration) error {
	if took < shortSearch {
		return nil
	}
	return pay(m, int(took/stepTime))
}

// partSteps is what a piece of a result costs, in steps.
const partSteps = 64

// metered is a text that is paid for while it is read, and ends early when the meter says so.
type metered struct {
	text  string
	meter Meter
	size  int // steps for each byte
	paid  int // bytes
	read  int // bytes
	err   error
}

// ReadRune returns the next character.
func (t *metered) ReadRune() (rune, int, error) {
	if t.err == nil && t.read >= t.paid {
		n := max(portion/t.size, 1)
		t.paid += n
		t.err = t.meter.Searched(n * t.size)
	}
	if t.err != nil || t.read == len(t.text) {
		return 0, 0, io.EOF
	}
	c, size := utf8.DecodeRuneInString(t.text[t.read:])
	t.read += size
	return c, size, nil
}

// matches is regexp.MatchString for somebody with a meter.
func (l *linearForm) matches(text string, m Meter) (bool, error) {
	if m == nil || l.size*len(text) < portion {
		return l.re.MatchString(text), pay(m, l.size*len(text))
	}
	r := &metered{text: text, meter: m, size: l.size}
	found := l.re.MatchReader(r)
	return found && r.err == nil, r.err
}

// search is regexp.FindStringSubmatchIndex for somebody with a meter.
func (l *linearForm) search(text string, m Meter) ([]int, error) {
	if m == nil || l.size*len(text) < portion {
		return l.re.FindStringSubmatchIndex(text), pay(m, l.size*len(text))
	}
	r := &metered{text: text, meter: m, size: l.size}
	spans := l.re.FindReaderSubmatchIndex(r)
	if r.err != nil {
		return nil, r.err
	}
	return spans, nil
}
