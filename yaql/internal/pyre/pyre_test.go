package pyre

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// recordedCase is a pattern, a text and what CPython 3.11 answered: the error's class, or search,
// finditer, split, sub and escape.
type recordedCase struct {
	P    string
	F    Flags
	T, R string
	N    int
	Want []any
}

func TestRecordedPatterns(t *testing.T) {
	file, err := os.ReadFile("testdata/python.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for lines := bufio.NewScanner(bytes.NewReader(file)); lines.Scan(); count++ {
		var c recordedCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if got := throughJSON(t, c.run()); !reflect.DeepEqual(got, c.Want) {
			t.Errorf("pattern %q, flags %d, text %q, template %q, limit %d:\n got %v\nwant %v", c.P, c.F, c.T, c.R, c.N, got, c.Want)
		}
	}
	if count < 900 {
		t.Errorf("only %d cases", count)
	}
}

func (c recordedCase) run() []any {
	r, err := Compile(c.P, c.F)
	if err != nil {
		return []any{"ERR " + class(err)}
	}
	m, err := r.Search(c.T, nil)
	matches := []any{}
	for m, err := range r.All(c.T, nil) {
		matches = append(matches, result(spans(m), err))
	}
	parts, splitErr := r.Split(c.T, c.N, nil)
	texts := []any{}
	for _, part := range parts {
		if part.Matched {
			texts = append(texts, part.Text)
		} else {
			texts = append(texts, nil)
		}
	}
	replaced, replaceErr := r.Replace(c.T, c.R, c.N, nil, nil)
	return []any{result(spans(m), err), matches, result(texts, splitErr), result(replaced, replaceErr), Escape(c.T)}
}

func result(value any, err error) any {
	if err != nil {
		return "ERR " + class(err)
	}
	return value
}

func spans(m *Match) any {
	if m == nil {
		return nil
	}
	all := []any{}
	for i := range m.Groups() + 1 {
		g := m.Group(i)
		all = append(all, []int{g.Start, g.End})
	}
	return all
}

func throughJSON(t *testing.T, value any) []any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var back []any
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

func class(err error) string {
	if refused, ok := errors.AsType[*Error](err); ok {
		return refused.Class
	}
	return err.Error()
}

func compile(t *testing.T, pattern string) *Regexp {
	t.Helper()
	r, err := Compile(pattern, 0)
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	return r
}

func TestRefusals(t *testing.T) {
	for pattern, want := range map[string]string{
		"[": "unterminated character set at position 0", "(": "missing ), unterminated subpattern at position 0", "a)": "unbalanced parenthesis at position 1",
		"*a": "nothing to repeat at position 0", "a**": "multiple repeat at position 2", "^*": "nothing to repeat at position 1", `\p{L}`: `bad escape \p at position 0`,
		"(?<n>a)": "unknown extension ?<n at position 1", "a{3,2}": "min repeat greater than max repeat at position 2", `\`: "bad escape (end of pattern) at position 0",
		"(?P<n>a)(?P<n>b)": "redefinition of group name 'n' as group 2; was group 1 at position 12", "(?P=x)": "unknown group name 'x' at position 4",
		`(a\1)`: "cannot refer to an open group at position 2", `(?<=a+)b`: "look-behind requires fixed-width pattern at position 0",
		"a(?i)b": "global flags not at the start of the expression at position 1", "(?z)": "unknown extension ?z at position 1", `\x4`: `incomplete escape \x4 at position 0`,
		"(?(1)a|b|c)(d)": "conditional backref with more than two branches at position 8", "(?(2)a)": "invalid group reference 2 at position 3", "(?(0)a)": "bad group number at position 3",
		"[z-a]": "bad character range z-a at position 1", "(?#": "missing ), unterminated comment at position 0", "(?": "unexpected end of pattern at position 2",
		"(?P": "unexpected end of pattern at position 3", "(?Px": "unknown extension ?Px at position 1", "(?<": "unexpected end of pattern at position 3",
		"(?P<a": "missing >, unterminated name at position 4", "(?P<>a)": "missing group name at position 4", "(?P<1>a)": "bad character in group name '1' at position 4",
		"(?-i)": "missing : at position 4", "(?i-i:a)": "bad inline flags: flag turned on and off at position 6", "(?L)": "bad inline flags: cannot use 'L' flag with a str pattern at position 3",
		"(?-a:x)": "bad inline flags: cannot turn off flags 'a', 'u' and 'L' at position 5", `\U00110000`: `bad escape \U00110000 at position 0`, `\N{NOPE}`: "undefined character name 'NOPE' at position 0",
		`(?<=(a)\1)b`: "cannot refer to group defined in the same lookbehind subpattern at position 7", "a{4294967295}": "the repetition number is too large at position 1",
		`\400`: `octal escape value \400 outside of range 0-0o377 at position 0`, "(?au)x": "bad inline flags: flags 'a', 'u' and 'L' are incompatible at position 5", `\Nx`: "missing { at position 2",
		"(?(x)a)": "unknown group name 'x' at position 3", "(?(%)a)": "bad character in group name '%' at position 3", "(?i": "missing -, : or ) at position 3", "(?-": "missing flag at position 3",
		strings.Repeat("(", 300): "too deeply nested at position 200",
	} {
		_, err := Compile(pattern, 0)
		var refused *Error
		if !errors.As(err, &refused) || err.Error() != want {
			t.Errorf("%s gave %v, want %s", pattern, err, want)
		}
	}
}

func TestBothEnginesAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.SampledFrom([]string{"a", "a|b", "(a)(b)?", `\bab\b`, "a$", "^a", "[^a]+", `\w+`, `\d`, "(?i)É", "(?m)^b$", "(a|ab)(c|bcd)", `\s`, "x*", "(?s).b", "a.b", "[é-ñ]"}).Draw(t, "pattern")
		text := rapid.StringOfN(rapid.SampledFrom([]rune("abcd é\nÉ1\u2003")), 0, 8, -1).Draw(t, "text")
		r, err := Compile(pattern, 0)
		if err != nil || r.linear == nil {
			t.Fatalf("%s has no linear form: %v", pattern, err)
		}
		fast, err1 := r.Search(text, nil)
		slow, err2 := r.searchFrom(r.full, newSubject(text), 0, nil)
		if err1 != nil || err2 != nil || !reflect.DeepEqual(spans(fast), spans(slow)) {
			t.Fatalf("%s in %q: %v and %v", pattern, text, spans(fast), spans(slow))
		}
	})
}

func TestRunawayPatternsEnd(t *testing.T) {
	r := compile(t, `(?:a|aa)+(?=[bc])`)
	text := strings.Repeat("a", 60)
	if _, err := r.Search(text, nil); !errors.Is(err, ErrTimeout) {
		t.Errorf("a runaway search gave %v", err)
	}
}

// ends lets so many questions pass.
type ends struct{ left, steps int }

var errEnds = errors.New("no more")

func (e *ends) Searched(steps int) error {
	e.steps += steps
	if e.left--; e.left < 0 {
		return errEnds
	}
	return nil
}

func TestLongSearchesAreMetered(t *testing.T) {
	// 4,000 instructions for each of 100,000 characters, paid for in portions.
	linear, text := compile(t, `[ab]*a`+strings.Repeat(`[ab]{1000}`, 4)+`c`), strings.Repeat("ab", 50_000)
	if linear.linear == nil {
		t.Fatal("the pattern has no linear form")
	}
	backtracking, short := compile(t, `(?=a)a`), strings.Repeat("a", 1000)
	for what, search := range map[string]func(m Meter) error{
		"Matches": func(m Meter) error { _, err := linear.Matches(text, m); return err },
		"Search":  func(m Meter) error { _, err := linear.Search(text, m); return err },
		"All": func(m Meter) error {
			for _, err := range backtracking.All(short, m) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"Split":   func(m Meter) error { _, err := backtracking.Split(short, 0, m); return err },
		"Replace": func(m Meter) error { _, err := backtracking.Replace(short, "b", 0, m, nil); return err },
	} {
		m := &ends{left: 3}
		if err := search(m); !errors.Is(err, errEnds) || m.left != -1 {
			t.Errorf("%s: %v, with %d questions left; want an end at the fourth", what, err, m.left)
		}
	}
	m := &ends{left: 1 << 30}
	if found, err := linear.Matches(text[:4000], m); found || err != nil {
		t.Errorf("got %v, %v", found, err)
	}
	if least := 4000 * 4000; m.steps < least || m.steps > 2*least+portion {
		t.Errorf("a search of 4,000 instructions and 4,000 characters counted as %d steps", m.steps)
	}
}

func TestLinearPatternsNeedNoTimeout(t *testing.T) {
	r := compile(t, `(?:a|a|a)+d`)
	if found, err := r.Matches(strings.Repeat("a", 100000), nil); found || err != nil {
		t.Errorf("got %v, %v", found, err)
	}
}

func TestGroups(t *testing.T) {
	r := compile(t, `(?P<year>\d+)-(?P<rest>x)?`)
	m, err := r.Search("é 2015-07", nil)
	if err != nil || m == nil {
		t.Fatal(m, err)
	}
	if g := m.Group(1); g != (Group{"2015", 2, 6, true}) {
		t.Errorf("the year is %+v", g)
	}
	if g := m.Group(2); g != (Group{"", -1, -1, false}) {
		t.Errorf("the rest is %+v", g)
	}
	if names := r.GroupNames(); r.Groups() != 2 || names["year"] != 1 || names["rest"] != 2 || r.Flags() != 0 || r.Pattern() == "" {
		t.Errorf("the groups are %v", names)
	}
}

func TestTemplateRefusals(t *testing.T) {
	r := compile(t, "(?P<n>a)")
	for template, want := range map[string]string{`\2`: ReError, `\g<m>`: IndexError, `\q`: ReError, `\`: ReError, `\g`: ReError, `\g<`: ReError, `\g<é->`: ReError, `\g<99999999999>`: ReError, `\777`: ReError} {
		if _, err := r.Replace("no match", template, 0, nil, nil); class(err) != want {
			t.Errorf("%s gave %v, want %s", template, err, want)
		}
	}
}

// TestPatternsThatWouldTakeForEver are compiled at once, or refused: each is short, and cost time that doubled with every letter or grew with the
// square of its length, or the whole process with its stack.
func TestPatternsThatWouldTakeForEver(t *testing.T) {
	if _, err := Compile(strings.Repeat("(?(1)", 1_000_000), 0); err == nil || !strings.Contains(err.Error(), "too deeply nested") {
		t.Errorf("nested conditions: %.100v", err)
	}
	doubling := "(a)"
	for i := 1; i < 60; i++ {
		doubling += fmt.Sprintf(`(\%d\%d)`, i, i)
	}
	if _, err := Compile(doubling+`(?=\60)`, 0); err != nil {
		t.Errorf("groups that are twice as wide as the one before: %v", err)
	}
	written := func(pattern string) int {
		w := &writer{}
		n, _, err := parse(pattern, IgnoreCase)
		if err != nil {
			t.Fatal(err)
		}
		n.write(w)
		return w.Len()
	}
	for _, member := range []string{`\W`, `A-ၐ`, `\w`, `bc`} {
		if once, often := written("[a"+member+"]"), written("[a"+strings.Repeat(member, 1000)+"]"); often > once {
			t.Errorf("%s costs %d bytes once, and %d if it is said again", member, once, often)
		}
	}
}

func TestReplaceFuncStops(t *testing.T) {
	stop := errors.New("stop")
	if _, err := compile(t, "a").ReplaceFunc("aa", 0, nil, nil, func(*Match) (string, error) { return "", stop }); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
}

func TestLargeClassesFold(t *testing.T) {
	r := compile(t, "(?i)[\u0100-\U0010ffff]")
	for text, want := range map[string]bool{"k": true, "s": true, "a": false, "ā": true, "ß": true} {
		if got, err := r.Matches(text, nil); got != want || err != nil {
			t.Errorf("%q matches: %v, %v", text, got, err)
		}
	}
}

func TestParallelUse(t *testing.T) {
	r := compile(t, `(?<=b)|a*`)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 50 {
				if got, err := r.Replace("baac", "-", 0, nil, nil); err != nil || got != "-b---c-" {
					t.Errorf("got %q, %v", got, err)
				}
			}
		})
	}
	wait.Wait()
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{"(a)|b", `[\w-z]`, "(?P<n>a)(?(n)b|c)", `(?<=ab)\1`, "a{1,2}+", "(?x) a # b"} {
		f.Add(seed, "ab c")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 50 || len(text) > 50 {
			return
		}
		r, err := Compile(pattern, 0)
		if err != nil {
			return
		}
		if _, err := r.Replace(text, "x", 0, nil, nil); err != nil && !errors.Is(err, ErrTimeout) {
			t.Errorf("%q on %q: %v", pattern, text, err)
		}
	})
}
