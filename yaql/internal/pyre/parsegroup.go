package pyre

import (
	"fmt"
	"strconv"
	"strings"
	letters "unicode"
)

// parenthesis reads a group after its opening parenthesis. It returns nil for what matches nothing:
// comments and flags for the whole pattern.
func (p *parser) parenthesis(start int, flags *Flags, first bool) node {
	if !p.accept('?') {
		return p.capture("", start, *flags)
	}
	c, ok := p.take()
	if !ok {
		p.fail(p.pos, "unexpected end of pattern")
	}
	switch c {
	case 'P':
		return p.named(start, *flags)
	case ':':
		return p.finish(&group{}, start, *flags)
	case '>':
		return p.finish(&group{atomic: true}, start, *flags)
	case '#':
		p.comment(start)
		return nil
	case '=', '!':
		return p.lookAround(c, false, start, *flags)
	case '<':
		c, ok = p.take()
		if !ok {
			p.fail(p.pos, "unexpected end of pattern")
		}
		if c != '=' && c != '!' {
			p.fail(start+1, "unknown extension ?<"+string(c))
		}
		return p.lookAround(c, true, start, *flags)
	case '(':
		return p.condition(start, *flags)
	}
	if _, known := flagLetters[c]; !known && c != '-' && c != 'L' && c != 't' {
		p.fail(start+1, "unknown extension ?"+string(c))
	}
	return p.flagGroup(c, start, flags, first)
}

// flagGroup reads (?flags) or (?flags:...).
func (p *parser) flagGroup(c rune, start int, flags *Flags, first bool) node {
	on, off, whole := p.inlineFlags(c)
	if whole {
		if !first {
			p.fail(start, "global flags not at the start of the expression")
		}
		p.flags |= on
		*flags |= on
		return nil
	}
	scoped := *flags
	if on&ASCII != 0 {
		scoped &^= Unicode
	}
	if on&Unicode != 0 {
		scoped &^= ASCII
	}
	return p.finish(&group{}, start, (scoped|on)&^off)
}

// inlineFlags reads flags up to a parenthesis (then they are for the whole pattern) or a colon.
func (p *parser) inlineFlags(c rune) (on, off Flags, whole bool) {
	if c != '-' {
		on, c = p.flagRun(c, ")-:", "missing -, : or )")
		if on&ASCII != 0 && on&Unicode != 0 {
			p.fail(p.pos, "bad inline flags: flags 'a', 'u' and 'L' are incompatible")
		}
		if c == ')' {
			return on, 0, true
		}
	}
	if c == '-' {
		next, ok := p.take()
		if !ok {
			p.fail(p.pos, "missing flag")
		}
		off, _ = p.flagRun(next, ":", "missing :")
		if off&(ASCII|Unicode) != 0 {
			p.fail(p.pos, "bad inline flags: cannot turn off flags 'a', 'u' and 'L'")
		}
	}
	if on&off != 0 {
		p.fail(p.pos, "bad inline flags: flag turned on and off")
	}
	return on, off, false
}

// flagRun reads flag letters until one of the stops, which it returns.
func (p *parser) flagRun(c rune, stops, missing string) (Flags, rune) {
	var flags Flags
	for {
		flag, known := flagLetters[c]
		switch {
		case c == 'L':
			p.fail(p.pos, "bad inline flags: cannot use 'L' flag with a str pattern")
		case !known && letters.IsLetter(c):
			p.fail(p.pos-1, "unknown flag")
		case !known:
			p.fail(p.pos-1, missing)
		}
		flags |= flag
		var ok bool
		if c, ok = p.take(); !ok {
			p.fail(p.pos, missing)
		}
		if strings.ContainsRune(stops, c) {
			return flags, c
		}
	}
}

func (p *parser) comment(start int) {
	for {
		c, ok := p.take()
		if !ok {
			p.fail(start, "missing ), unterminated comment")
		}
		if c == ')' {
			return
		}
		if c == '\\' && !p.atEnd() {
			p.pos++
		}
	}
}

// named reads what follows (?P.
func (p *parser) named(start int, flags Flags) node {
	at := p.pos
	switch {
	case p.accept('<'):
		name := p.takeUntil('>', "group name")
		if !isIdentifier(name) {
			p.fail(at+1, "bad character in group name '"+name+"'")
		}
		return p.capture(name, at+1, flags)
	case p.accept('='):
		name := p.takeUntil(')', "group name")
		if !isIdentifier(name) {
			p.fail(at+1, "bad character in group name '"+name+"'")
		}
		number, ok := p.names[name]
		if !ok {
			p.fail(at+1, "unknown group name '"+name+"'")
		}
		p.refer(number, at+1)
		return reference{number: number, to: p.groups[number-1], flags: flags}
	}
	c, ok := p.take()
	if !ok {
		p.fail(p.pos, "unexpected end of pattern")
	}
	p.fail(start+1, "unknown extension ?P"+string(c))
	return nil
}

func (p *parser) capture(name string, at int, flags Flags) node {
	g := p.openGroup(name, at)
	n := p.finish(g, at, flags)
	p.open = p.open[:len(p.open)-1]
	return n
}

// finish reads the inside of a group and its closing parenthesis.
func (p *parser) finish(g *group, start int, flags Flags) node {
	inside := p.alternatives(flags, false)
	p.close(start)
	g.part = inside
	g.low, g.high = inside.width() // once: what refers to it may be asked again and again
	return g
}

func (p *parser) close(start int) {
	if !p.accept(')') {
		p.fail(start, "missing ), unterminated subpattern")
	}
}

func (p *parser) lookAround(kind rune, behind bool, start int, flags Flags) node {
	before := p.behind
	if behind && before == 0 {
		p.behind = len(p.groups) + 1
	}
	inside := p.alternatives(flags, false)
	p.behind = before
	p.close(start)
	if low, high := inside.width(); behind && (low != high || high >= unlimited) {
		p.fail(start, "look-behind requires fixed-width pattern")
	}
	return look{part: inside, behind: behind, negate: kind == '!'}
}

// condition reads (?(group)yes|no) after its second parenthesis.
func (p *parser) condition(start int, flags Flags) node {
	defer p.nest()()
	at := p.pos
	name := p.takeUntil(')', "group name")
	number, known := p.names[name]
	if isIdentifier(name) && !known {
		p.fail(at, "unknown group name '"+name+"'")
	}
	if !known {
		number = p.groupNumber(name, at)
		if _, seen := p.conditions[number]; !seen {
			p.conditions[number] = at
		}
	}
	if p.behind > 0 && number >= p.behind {
		p.fail(at, "cannot refer to group defined in the same lookbehind subpattern")
	}
	result := conditional{number: number, yes: p.branch(&flags, false)}
	if p.accept('|') {
		result.no = p.branch(&flags, false)
		if p.peek() == '|' {
			p.fail(p.pos, "conditional backref with more than two branches")
		}
	}
	p.close(start)
	return result
}

func (p *parser) groupNumber(text string, at int) int {
	n, err := strconv.ParseUint(text, 10, 32)
	switch {
	case err != nil:
		p.fail(at, "bad character in group name '"+text+"'")
	case n == 0:
		p.fail(at, "bad group number")
	case n >= 1<<30:
		p.fail(at, fmt.Sprintf("invalid group reference %d", n))
	}
	return int(n)
}

// isIdentifier reports whether Python would take name for a variable.
func isIdentifier(name string) bool {
	for i, r := range name {
		if r == '_' || letters.In(r, letters.L, letters.Nl, letters.Other_ID_Start) {
			continue
		}
		if i == 0 || !letters.In(r, letters.Mn, letters.Mc, letters.Nd, letters.Pc, letters.Other_ID_Continue) {
			return false
		}
	}
	return name != ""
}
