package pyre

import (
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// searchTime is how long one search may take, and searchStack how many entries it may remember to come
// back to.
const (
	searchTime  = 500 * time.Millisecond
	searchStack = 4 << 20
)

// A Regexp is a compiled pattern. It is immutable and may be used by many goroutines.
type Regexp struct {
	pattern string
	flags   Flags
	groups  int
	names   map[string]int
	linear  *linearForm // nil when only regexp2 will do
	full    *regexp2.Regexp
	// advancing finds only matches that end elsewhere than where the search started.
	advancing func() (*regexp2.Regexp, error)
}

// linearForm is the pattern for the standard library, and the texts for which it is right.
type linearForm struct {
	re                     *regexp.Regexp
	size                   int // about how many instructions a byte of a text goes through at worst
	asciiText, noFinalLine bool
}

// Compile reads a pattern. A pattern that Python refuses gives an *Error.
func Compile(pattern string, flags Flags) (*Regexp, error) {
	tree, p, err := parse(pattern, flags)
	if err != nil {
		return nil, err
	}
	r := &Regexp{pattern: pattern, flags: p.flags, groups: len(p.groups), names: p.names, linear: linear(tree)}
	w := &writer{}
	tree.write(w)
	if r.full, err = compileFull(w.String()); err != nil {
		return nil, err
	}
	r.advancing = sync.OnceValues(func() (*regexp2.Regexp, error) { return compileFull("(?:" + w.String() + `)(?!\G)`) })
	return r, nil
}

func compileFull(text string) (*regexp2.Regexp, error) {
	re, err := regexp2.Compile(text, regexp2.OptionMaxBacktrackingStackSize(searchStack))
	if err != nil {
		return nil, &Error{Class: ReError, Message: fmt.Sprintf("pattern cannot be used: %v", err)}
	}
	re.MatchTimeout = searchTime
	return re, nil
}

// linear returns the form for the standard library, nil when there is none.
func linear(tree node) *linearForm {
	w := &writer{linear: true}
	tree.write(w)
	if w.unsupported {
		return nil
	}
	re, err := regexp.Compile(w.String())
	if err != nil {
		return nil // too large a repetition, for instance: the other engine takes it
	}
	return &linearForm{re: re, size: max(w.size, 1), asciiText: w.asciiText, noFinalLine: w.noFinalLine}
}

func (l *linearForm) suits(text string) bool {
	return l != nil && (!l.noFinalLine || !strings.HasSuffix(text, "\n")) && (!l.asciiText || isASCII(text))
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Pattern returns the text that was compiled.
func (r *Regexp) Pattern() string { return r.pattern }

// Flags returns the flags given to Compile and those that the pattern begins with.
func (r *Regexp) Flags() Flags { return r.flags }

// Groups returns the number of capturing groups.
func (r *Regexp) Groups() int { return r.groups }

// GroupNames returns the number of each named group.
func (r *Regexp) GroupNames() map[string]int { return r.names }

// A Match is one place where a pattern matches.
type Match struct {
	text  *subject
	spans []int // start and end of each group in code points, -1 when it did not take part
}

// A Group is what one group of a match covers.
type Group struct {
	Text       string
	Start, End int  // in code points, -1 when the group did not take part
	Matched    bool // false when the group did not take part
}

// Group returns a group by its number; 0 is the whole match.
func (m *Match) Group(number int) Group {
	start, end := m.spans[2*number], m.spans[2*number+1]
	if start < 0 {
		return Group{Start: -1, End: -1}
	}
	return Group{Text: m.text.slice(start, end), Start: start, End: end, Matched: true}
}

// Groups returns the number of capturing groups.
func (m *Match) Groups() int { return len(m.spans)/2 - 1 }

// Matches reports whether the pattern matches anywhere in text. The error is ErrTimeout or of the meter.
func (r *Regexp) Matches(text string, meter Meter) (bool, error) {
	if r.linear.suits(text) {
		return r.linear.matches(text, meter)
	}
	if err := pay(meter, runeSize*len(text)); err != nil {
		return false, err
	}
	begun := time.Now()
	found, err := r.full.MatchString(text)
	if err = tooLong(err); err == nil {
		err = payFor(meter, time.Since(begun))
	}
	return found && err == nil, err
}

// Search returns the first match, nil when there is none. The error is ErrTimeout or of the meter.
func (r *Regexp) Search(text string, meter Meter) (*Match, error) {
	s := newSubject(text)
	if r.linear.suits(text) {
		spans, err := r.linear.search(text, meter)
		if spans == nil || err != nil {
			return nil, err
		}
		s.toCodePoints(spans)
		return &Match{text: s, spans: spans}, nil
	}
	if err := pay(meter, runeSize*len(text)); err != nil {
		return nil, err
	}
	return r.searchFrom(r.full, s, 0, meter)
}

// runeSize is how many bytes a character takes where it is copied to be searched.
const runeSize = 4

// searchFrom does not know beforehand how much work the search is, which is limited by time instead; the meter
// is asked each time, and told what it was.
func (r *Regexp) searchFrom(re *regexp2.Regexp, s *subject, start int, meter Meter) (*Match, error) {
	if err := pay(meter, 1); err != nil {
		return nil, err
	}
	begun := time.Now()
	found, err := re.FindRunesMatchStartingAt(s.codePoints(), start)
	if err = tooLong(err); err == nil {
		err = payFor(meter, time.Since(begun))
	}
	if err != nil || found == nil {
		return nil, err
	}
	spans := make([]int, 0, 2*(r.groups+1))
	for number := range r.groups + 1 {
		g := found.GroupByNumber(number)
		if g == nil || len(g.Captures) == 0 {
			spans = append(spans, -1, -1)
			continue
		}
		spans = append(spans, g.RuneIndex, g.RuneIndex+g.RuneLength)
	}
	return &Match{text: s, spans: spans}, nil
}

// tooLong hides the ways in which regexp2 says that it gave up.
func tooLong(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(ErrTimeout, err)
}

// All returns the matches one after the other, from left to right, without overlaps. An empty match may
// follow another match at once, but not an empty one. After an error, ErrTimeout or of the meter, the sequence ends.
func (r *Regexp) All(text string, meter Meter) iter.Seq2[*Match, error] {
	return func(yield func(*Match, error) bool) {
		if err := pay(meter, runeSize*len(text)); err != nil {
			yield(nil, err)
			return
		}
		s := newSubject(text)
		re := r.full
		for start := 0; start <= len(s.codePoints()); {
			m, err := r.searchFrom(re, s, start, meter)
			if m == nil && err == nil || !yield(m, err) || err != nil {
				return
			}
			start = m.spans[1]
			if re, err = r.after(m); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// after returns the form of the pattern that finds what follows m.
func (r *Regexp) after(m *Match) (*regexp2.Regexp, error) {
	if m.spans[0] == m.spans[1] {
		return r.advancing()
	}
	return r.full, nil
}

// subject is a text in which matches are sought.
type subject struct {
	text  string
	ascii bool
	runes []rune // nil until needed
}

func newSubject(text string) *subject { return &subject{text: text, ascii: isASCII(text)} }

func (s *subject) codePoints() []rune {
	if s.runes == nil {
		s.runes = []rune(s.text)
	}
	return s.runes
}

func (s *subject) slice(start, end int) string {
	if s.ascii {
		return s.text[start:end]
	}
	return string(s.codePoints()[start:end])
}

// toCodePoints turns byte offsets into code points.
func (s *subject) toCodePoints(spans []int) {
	if s.ascii {
		return
	}
	for i, offset := range spans {
		if offset > 0 {
			spans[i] = utf8.RuneCountInString(s.text[:offset])
		}
	}
}

// MarshalText returns the pattern without its flags; so encoding/json writes it, too.
func (r *Regexp) MarshalText() ([]byte, error) { return []byte(r.pattern), nil }
