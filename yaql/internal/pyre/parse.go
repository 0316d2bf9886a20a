package pyre

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// parser turns a pattern into nodes, with Python's rules and refusals.
type parser struct {
	source
	flags      Flags // of the whole pattern
	groups     []*group
	open       []int // numbers of the groups that are not closed yet
	names      map[string]int
	behind     int // the first group number that the look-behinds around may not refer to, 0 outside
	conditions map[int]int
	depth      int
}

// The limits of nesting and of repetition. Beyond maxRepeat Python reports an overflow.
const (
	maxNesting = 200
	maxRepeat  = 4294967295
)

// parse reads the pattern. It returns the parser for what it learned about groups.
func parse(pattern string, flags Flags) (n node, p *parser, err error) {
	defer catch(&err)
	for {
		p = &parser{source: source{runes: []rune(pattern)}, flags: flags, names: map[string]int{}, conditions: map[int]int{}}
		n = p.alternatives(flags, true)
		if p.flags&Verbose == 0 || flags&Verbose != 0 {
			break
		}
		flags |= Verbose // it was switched on inside: read again, skipping white space from the start
	}
	if !p.atEnd() {
		p.fail(p.pos, "unbalanced parenthesis")
	}
	for number, at := range p.conditions {
		if number > len(p.groups) {
			p.fail(at, fmt.Sprintf("invalid group reference %d", number))
		}
	}
	if p.flags&ASCII != 0 && p.flags&Unicode != 0 {
		panic(failure{&Error{ValueError, "ASCII and UNICODE flags are incompatible", 0}})
	}
	return n, p, nil
}

// nest goes a level deeper, which the function that it returns leaves: what nests without a bound would end the process with the stack.
func (p *parser) nest() (leave func()) {
	p.depth++
	if p.depth > maxNesting {
		p.fail(p.pos, "too deeply nested")
	}
	return func() { p.depth-- }
}

// alternatives reads up to a closing parenthesis or the end.
func (p *parser) alternatives(flags Flags, top bool) node {
	defer p.nest()()
	branches := alternation{}
	for {
		branches = append(branches, p.branch(&flags, top && len(branches) == 0))
		if !p.accept('|') {
			break
		}
	}
	if len(branches) == 1 {
		return branches[0]
	}
	return branches
}

// branch reads one alternative. Only the very first of a pattern may begin with flags for the whole,
// which change flags.
func (p *parser) branch(flags *Flags, first bool) node {
	parts := sequence{}
	for !p.atEnd() && p.peek() != '|' && p.peek() != ')' {
		start := p.pos
		c, _ := p.take()
		if *flags&Verbose != 0 && p.skipsVerbose(c) {
			continue
		}
		switch c {
		case '*', '+', '?', '{':
			parts = p.repetition(parts, c, start, *flags)
		case '(':
			if n := p.parenthesis(start, flags, first && len(parts) == 0); n != nil {
				parts = append(parts, n)
			}
		default:
			parts = append(parts, p.atom(c, start, *flags))
		}
	}
	return parts
}

// skipsVerbose steps over white space and comments.
func (p *parser) skipsVerbose(c rune) bool {
	if strings.ContainsRune(" \t\n\r\v\f", c) {
		return true
	}
	if c != '#' {
		return false
	}
	for {
		next, ok := p.take()
		if !ok || next == '\n' {
			return true
		}
		if next == '\\' && !p.atEnd() {
			p.pos++
		}
	}
}

// atom reads what stands for a character or a position.
func (p *parser) atom(c rune, start int, flags Flags) node {
	switch c {
	case '\\':
		return p.escape(start, flags)
	case '[':
		return p.class(start, flags)
	case '.':
		return anyChar{all: flags&DotAll != 0}
	case '^', '$':
		return position{kind: byte(c), flags: flags}
	}
	return literal{char: c, flags: flags}
}

// repetition applies * + ? or {m,n} to the last part. Braces of another form are literal.
func (p *parser) repetition(parts sequence, c rune, start int, flags Flags) sequence {
	low, high := 0, unlimited
	switch c {
	case '?':
		high = 1
	case '+':
		low = 1
	case '{':
		var ok bool
		if low, high, ok = p.bounds(start); !ok {
			return append(parts, literal{char: c, flags: flags})
		}
	}
	if len(parts) == 0 {
		p.fail(start, "nothing to repeat")
	}
	switch parts[len(parts)-1].(type) {
	case position:
		p.fail(start, "nothing to repeat")
	case repeat:
		p.fail(start, "multiple repeat")
	}
	mode := byte(0)
	switch {
	case p.accept('?'):
		mode = '?'
	case p.accept('+'):
		mode = '+'
	}
	parts[len(parts)-1] = repeat{part: parts[len(parts)-1], min: low, max: high, mode: mode}
	return parts
}

// bounds reads the rest of {m,n}, {m}, {m,} or {,n}.
func (p *parser) bounds(start int) (low, high int, ok bool) {
	back := p.pos
	if p.peek() == '}' {
		return 0, 0, false
	}
	lowText := p.takeWhile(len(p.runes), decimalDigits)
	highText := lowText
	if p.accept(',') {
		highText = p.takeWhile(len(p.runes), decimalDigits)
	}
	if !p.accept('}') {
		p.pos = back
		return 0, 0, false
	}
	low, high = 0, unlimited
	if lowText != "" {
		low = p.count(lowText, start)
	}
	if highText != "" {
		if high = p.count(highText, start); high < low {
			p.fail(start+1, "min repeat greater than max repeat")
		}
	}
	return low, high, true
}

func (p *parser) count(digits string, start int) int {
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || n >= maxRepeat {
		panic(failure{&Error{OverflowError, "the repetition number is too large", start}})
	}
	return capped(int(n))
}

// class reads a character class after its opening bracket.
func (p *parser) class(start int, flags Flags) node {
	result := set{flags: flags, negated: p.accept('^')}
	for first := true; ; first = false {
		at := p.pos
		if p.peek() == ']' && !first {
			p.pos++
			return result
		}
		low, category := p.classItem(start)
		if !p.accept('-') {
			result.add(low, low, category)
			continue
		}
		if p.accept(']') {
			result.add(low, low, category)
			result.add('-', '-', 0)
			return result
		}
		high, category2 := p.classItem(start)
		if category != 0 || category2 != 0 || low > high {
			p.fail(at, "bad character range "+string(p.runes[at:p.pos]))
		}
		result.add(low, high, 0)
	}
}

func (n *set) add(low, high rune, category byte) {
	if category != 0 {
		n.categories = append(n.categories, category)
		return
	}
	n.ranges = append(n.ranges, low, high)
}

// classItem reads a character or a category inside a class.
func (p *parser) classItem(start int) (char rune, category byte) {
	at := p.pos
	c, ok := p.take()
	if !ok {
		p.fail(start, "unterminated character set")
	}
	if c != '\\' {
		return c, 0
	}
	c = p.takeEscape()
	if strings.ContainsRune("dswDSW", c) {
		return 0, byte(c)
	}
	if c == 'b' {
		return '\b', 0
	}
	if char, ok := p.charEscape(c, at); ok {
		return char, 0
	}
	if strings.ContainsRune(octalDigits, c) {
		return p.octal(string(c)+p.takeWhile(2, octalDigits), at), 0
	}
	if isASCIILetter(c) || c >= '0' && c <= '9' {
		p.fail(at, `bad escape \`+string(c))
	}
	return c, 0
}

// openGroup registers a group of that name, which may be empty.
func (p *parser) openGroup(name string, at int) *group {
	g := &group{number: len(p.groups) + 1}
	if name != "" {
		if before, ok := p.names[name]; ok {
			p.fail(at, fmt.Sprintf("redefinition of group name '%s' as group %d; was group %d", name, g.number, before))
		}
		p.names[name] = g.number
	}
	p.groups = append(p.groups, g)
	p.open = append(p.open, g.number)
	return g
}

// refer checks that a group may be referred to at this place.
func (p *parser) refer(number, at int) {
	if slices.Contains(p.open, number) {
		p.fail(at, "cannot refer to an open group")
	}
	if p.behind > 0 && number >= p.behind {
		p.fail(at, "cannot refer to group defined in the same lookbehind subpattern")
	}
}
