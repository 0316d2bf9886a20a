package qlang

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
)

// TextError says where and why a text filter does not parse. It is the cause
// of the error that ParseText returns.
type TextError struct {
	Text   string
	Reason string
	// Char counts letters from 0, Line and Column from 1.
	Char, Line, Column int
}

// Error is the reference's one-line message.
func (e *TextError) Error() string {
	return fmt.Sprintf("Failed to parse query filter '%s': %s", e.Text, e.where())
}

func (e *TextError) where() string {
	return fmt.Sprintf("%s  (at char %d), (line:%d, col:%d)", e.Reason, e.Char, e.Line, e.Column)
}

// Report returns what a command prints for the error: the message, the line,
// a caret under the place, and the reason again. It has no line break at its
// end.
func (e *TextError) Report() string {
	return "Error while parsing query filter: " + e.Error() + "\n" + e.line() + "\n" +
		strings.Repeat(" ", e.Column-1) + "^\n" + e.where()
}

func (e *TextError) line() string {
	lines := strings.Split(e.Text, "\n")
	return lines[e.Line-1]
}

func newTextError(text, reason string, offset int) *TextError {
	before := text[:offset]
	lineStart := strings.LastIndexByte(before, '\n') + 1
	return &TextError{
		Text:   text,
		Reason: reason,
		Char:   utf8.RuneCountInString(before),
		Line:   1 + strings.Count(before, "\n"),
		Column: 1 + utf8.RuneCountInString(before[lineStart:]),
	}
}

// ParseText reads the text form of a filter:
//
//	expr      = and { "or" and }
//	and       = not { "and" not }
//	not       = "not" not | test | "(" expr ")"
//	test      = FIELD [ OPERATOR VALUE | ( "=~" | "!~" ) REGEX | ( "=*" | "!*" ) STRING ]
//	          | VALUE [ "not" ] "in" FIELD
//
// The keywords are lower case and may also be names of fields. Refused texts
// are refused at the position and with the reason that the reference gives.
// An error has code Invalid and a *TextError as its cause, or TooLarge.
func ParseText(text string) (Node, error) {
	if len(text) > MaxBytes {
		return nil, tooLong(len(text))
	}
	if !utf8.ValidString(text) {
		return nil, fault.New(fault.Invalid, "the filter is not valid UTF-8")
	}
	p := &parser{text: text, patterns: allowance{left: maxProgram}}
	n, end, err := p.expr(0, true)
	if err == nil {
		end = p.skip(end)
		if end == len(text) {
			return n, checkDepth(n)
		}
		err = &failure{at: end, reason: "Expected end of text"}
	}
	return nil, p.report(err)
}

// checkDepth bounds the tree, which can be deeper than the text's parentheses.
func checkDepth(n Node) error {
	deepest := 0
	Walk(n, func(path string, _ Node) bool {
		deepest = max(deepest, 1+strings.Count(path, "["))
		return deepest <= MaxDepth
	})
	if deepest > MaxDepth {
		return tooDeep()
	}
	return nil
}

// failure is why a part of the grammar does not match at a place. Another
// alternative may still match, unless the failure is final.
type failure struct {
	at     int
	reason string
	final  bool
	cause  *fault.Error // set when a limit is exceeded
}

func (p *parser) report(f *failure) error {
	if f.cause != nil {
		return f.cause
	}
	reason := f.reason
	if !f.final {
		if reason == "" {
			reason = "Expected Suppress:('or') term"
		}
		reason += p.found(f.at)
	}
	e := newTextError(p.text, reason, f.at)
	return fault.New(fault.Invalid, "%w", e).WithHint("%s", hintFor(p.text, f.at))
}

// hintFor says what to write instead of what stands where a text cannot be read
// on, if that is one of the usual slips; else nothing.
func hintFor(text string, at int) string {
	rest := strings.TrimLeft(text[at:], " \t\n\r")
	op := ""
	for _, o := range textOps {
		if strings.HasPrefix(rest, o) {
			op = o
			break
		}
	}
	operand := strings.TrimLeft(rest[len(op):], " \t\n\r=")
	word := operand
	if n := strings.IndexAny(operand, " \t\n\r()"); n >= 0 {
		word = operand[:n]
	}
	switch {
	case op == "":
		return ""
	case word == "":
		return "a value is missing behind " + op
	case op == "=~" || op == "!~":
		return "a pattern stands between slashes: " + op + " m/" + strings.Trim(word, `"'`) + "/"
	case word[0] == '[':
		return `a list is tested for what is in it: "VALUE" in FIELD`
	case strings.EqualFold(word, "true"):
		return "a truth value is tested by the name of the field alone: FIELD"
	case strings.EqualFold(word, "false"):
		return "a truth value is tested by the name of the field alone: not FIELD"
	case strings.HasPrefix(rest, "==="):
		return "equality is =="
	case !isAlpha(word[0]):
		return ""
	}
	return "texts stand in quotes: " + op + ` "` + word + `"`
}

// found names the word at a place as the reference's parser does.
func (p *parser) found(at int) string {
	rest := p.text[at:]
	switch {
	case p.text == "":
		return ""
	case rest == "":
		return ", found end of text"
	}
	n := 0
	for n < len(rest) && n < 16 && isAlnum(rest[n]) {
		n++
	}
	if n == 0 {
		_, n = utf8.DecodeRuneInString(rest)
	}
	return ", found " + strings.ReplaceAll(pyQuote(rest[:n]), `\\`, `\`)
}

// parser is a recursive descent parser without look-back: every method takes a
// position and returns a node and the position behind it, or a failure.
//
// The reference tries some operands twice, first only to see whether they
// match, then for good, and only then a bad regular expression is final. The
// parameter forGood follows that, since it decides which of two faults of a
// text is reported: a bad pattern met in the first pass waits in pending until
// that pass has succeeded.
type parser struct {
	text     string
	depth    int
	pending  *failure
	patterns allowance
}

// place names a position in errors.
func (p *parser) place(at int) string {
	return fmt.Sprintf("char %d", utf8.RuneCountInString(p.text[:at]))
}

func (p *parser) skip(i int) int {
	for i < len(p.text) && strings.IndexByte(" \t\n\r", p.text[i]) >= 0 {
		i++
	}
	return i
}

func (p *parser) expr(i int, forGood bool) (Node, int, *failure) {
	args, start, end, err := p.chain(i, forGood, "or", func(i int, forGood bool) (Node, int, *failure) {
		args, start, end, err := p.chain(i, forGood, "and", p.not)
		if err != nil || len(args) == 1 {
			return first(args), end, err
		}
		return &And{Span: Span{start, end}, Args: args}, end, nil
	})
	if err != nil || len(args) == 1 {
		return first(args), end, err
	}
	return &Or{Span: Span{start, end}, Args: args}, end, nil
}

func first(nodes []Node) Node {
	if len(nodes) == 0 {
		return nil
	}
	return nodes[0]
}

// chain reads operands joined by a keyword, as many as there are.
func (p *parser) chain(i int, forGood bool, word string, operand func(int, bool) (Node, int, *failure)) (args []Node, start, end int, err *failure) {
	start = p.skip(i)
	n, end, err := operand(i, forGood)
	if err != nil {
		return nil, start, end, err
	}
	for args = []Node{n}; ; args = append(args, n) {
		next, ok := p.keyword(end, word)
		if !ok {
			return args, start, end, nil
		}
		pending := p.pending
		var after int
		n, after, err = operand(next, forGood && len(args) > 1)
		switch {
		case err != nil && (err.final || err.cause != nil):
			return nil, start, end, err
		case err != nil:
			p.pending = pending
			return args, start, end, nil
		case forGood && p.pending != nil:
			return nil, start, end, p.pending
		}
		end = after
	}
}

func (p *parser) not(i int, forGood bool) (Node, int, *failure) {
	if p.depth++; p.depth > MaxDepth {
		return nil, i, &failure{at: i, cause: tooDeep().At(p.place(i))}
	}
	defer func() { p.depth-- }()
	var missed *failure
	if next, ok := p.keyword(i, "not"); ok {
		pending := p.pending
		n, end, err := p.not(next, false)
		switch {
		case err == nil && forGood && p.pending != nil:
			return nil, i, p.pending
		case err == nil:
			return &Not{Span: Span{p.skip(i), end}, Arg: n}, end, nil
		case err.cause != nil:
			return nil, i, err
		}
		p.pending = pending
		missed = err
	}
	n, end, err := p.primary(i, forGood)
	if err != nil && missed != nil && missed.at > err.at && !err.final {
		err = missed
	}
	return n, end, err
}

func (p *parser) primary(i int, forGood bool) (Node, int, *failure) {
	i = p.skip(i)
	if !strings.HasPrefix(p.text[i:], "(") {
		return p.condition(i, forGood)
	}
	n, end, err := p.expr(i+1, forGood)
	if err != nil {
		return nil, i, err
	}
	end = p.skip(end)
	if !strings.HasPrefix(p.text[end:], ")") {
		return nil, i, &failure{at: end}
	}
	return n, end + 1, nil
}

// condition reads the longest condition at i, which is no space.
func (p *parser) condition(i int, forGood bool) (Node, int, *failure) {
	if field, end := p.field(i); field != "" {
		return p.fieldCondition(i, field, end, forGood)
	}
	value, end, ok := p.value(i)
	if !ok {
		return nil, i, &failure{at: i}
	}
	next := p.skip(end)
	negated := strings.HasPrefix(p.text[next:], "not")
	if negated {
		next = p.skip(next + len("not"))
	}
	if !strings.HasPrefix(p.text[next:], "in") {
		return nil, i, &failure{at: next}
	}
	next = p.skip(next + len("in"))
	field, end := p.field(next)
	if field == "" {
		return nil, i, &failure{at: next}
	}
	return negate(negated, &Contains{Span: Span{i, end}, Field: field, Value: value}, end)
}

func negate(negated bool, n Node, end int) (Node, int, *failure) {
	if negated {
		return &Not{Span: n.Source(), Arg: n}, end, nil
	}
	return n, end, nil
}

// textOps are the operators behind a field, longer ones first.
var textOps = []string{"=~", "!~", "=*", "!*", "==", "!=", "<=", ">=", "=", "<", ">"}

// fieldCondition reads what follows a field. If that is no operator with a
// fitting operand, the field alone is the condition.
func (p *parser) fieldCondition(i int, field string, end int, forGood bool) (Node, int, *failure) {
	at := p.skip(end)
	op := ""
	for _, o := range textOps {
		if strings.HasPrefix(p.text[at:], o) {
			op = o
			break
		}
	}
	at = p.skip(at + len(op))
	switch op {
	case "":
	case "=~", "!~":
		if pattern, after, ok := p.regex(at); ok {
			return p.match(Span{i, after}, field, pattern, at, op == "!~", forGood)
		}
	case "=*", "!*":
		if pattern, after, ok := p.quoted(at); ok {
			n, err := glob(&p.patterns, field, pattern)
			if large, ok := errors.AsType[*fault.Error](err); ok {
				return nil, i, &failure{at: at, cause: large.At(p.place(at))}
			}
			if err != nil {
				return nil, i, &failure{at: at, reason: err.Error(), final: true}
			}
			n.(*Match).Span = Span{i, after}
			return negate(op == "!*", n, after)
		}
	default:
		if value, after, ok := p.value(at); ok {
			if op == "=" {
				op = string(Eq)
			}
			return &Compare{Span: Span{i, after}, Op: Op(op), Field: field, Value: value}, after, nil
		}
	}
	return &True{Span: Span{i, end}, Field: field}, end, nil
}

func (p *parser) match(s Span, field string, raw rawRegex, at int, negated, forGood bool) (Node, int, *failure) {
	re, reason, large := raw.compile(&p.patterns)
	if large != nil {
		return nil, s.Start, &failure{at: at, cause: large.At(p.place(at))}
	}
	if reason != "" {
		bad := &failure{at: at, reason: reason, final: true}
		if forGood {
			return nil, s.Start, bad
		}
		if p.pending == nil {
			p.pending = bad
		}
		return &All{}, s.End, nil // stands in until the pass is over
	}
	return negate(negated, &Match{Span: s, Field: field, Regex: re}, s.End)
}

// keyword reads a whole word and returns the position behind it.
func (p *parser) keyword(i int, word string) (int, bool) {
	i = p.skip(i)
	end := i + len(word)
	if !strings.HasPrefix(p.text[i:], word) ||
		i > 0 && isWord(p.text[i-1]) || end < len(p.text) && isWord(p.text[end]) {
		return i, false
	}
	return end, true
}

func (p *parser) field(i int) (string, int) {
	end := i
	for end < len(p.text) && (isAlpha(p.text[end]) || end > i && isFieldByte(p.text[end])) {
		end++
	}
	return p.text[i:end], end
}

func (p *parser) value(i int) (Value, int, bool) {
	if s, end, ok := p.quoted(i); ok {
		return TextValue(s), end, true
	}
	if end := quantityEnd(p.text, i); end > i {
		return TextValue(p.text[i:end]), end, true
	}
	end := i
	if end < len(p.text) && (p.text[end] == '-' || p.text[end] == '+') {
		end++
	}
	digits := end
	for end < len(p.text) && isDigit(p.text[end]) {
		end++
	}
	if end == digits {
		return Value{}, i, false
	}
	n, ok := new(big.Int).SetString(p.text[i:end], 10)
	return Value{Int: n}, end, ok
}

// quantityUnits are the letters of units: of durations and of sizes.
const quantityUnits = "smhdwMGTgtiBb"

// quantityEnd returns where a number with a unit ends that begins at i, such as
// -1h30m or 1.5G; i itself if there is none. It means the same as in quotes, and
// which of them a field understands is its matter.
func quantityEnd(text string, i int) int {
	at := i
	if at < len(text) && (text[at] == '-' || text[at] == '+') {
		at++
	}
	for parts := 0; ; parts++ {
		begin := at
		for at < len(text) && (isDigit(text[at]) || at > begin && text[at] == '.') {
			at++
		}
		if at == begin {
			if parts == 0 || at < len(text) && isWord(text[at]) {
				return i
			}
			return at
		}
		unit := at
		for at < len(text) && strings.IndexByte(quantityUnits, text[at]) >= 0 {
			at++
		}
		if at == unit {
			return i
		}
	}
}

func (p *parser) quoted(i int) (string, int, bool) {
	n := quotedLen(p.text[i:])
	if n == 0 {
		return "", i, false
	}
	return p.text[i+1 : i+n-1], i + n, true
}

// quotedLen returns the length of the quoted string that s begins with, quotes
// included, or 0. A doubled quote and one behind a backslash do not end it,
// and nothing of the inside is changed. If no end is found behind a doubled
// quote, the last such pair was the end after all.
func quotedLen(s string) int {
	if s == "" || s[0] != '"' && s[0] != '\'' {
		return 0
	}
	fallback := 0
	for i := 1; i < len(s); {
		switch c := s[i]; {
		case c == s[0] && i+1 < len(s) && s[i+1] == c:
			fallback = i + 1
			i += 2
		case c == s[0]:
			return i + 1
		case c == '\n' || c == '\r':
			return fallback
		case c == '\\':
			n := escapeLen(s[i:])
			if n == 0 {
				return fallback
			}
			i += n
		default:
			i++
		}
	}
	return fallback
}

// escapeLen returns the length of an escape in a string: a backslash and any
// letter, but behind x there must be a hexadecimal digit.
func escapeLen(s string) int {
	if len(s) < 2 {
		return 0
	}
	if s[1] != 'x' {
		_, n := utf8.DecodeRuneInString(s[1:])
		return 1 + n
	}
	if len(s) > 2 && strings.IndexByte("0123456789abcdefABCDEF", s[2]) >= 0 {
		return 3
	}
	return 0
}

// rawRegex is a pattern as written: the inside of the delimiters, and the
// letters behind them.
type rawRegex struct{ body, flags string }

// regex reads [m] D pattern D [letters].
func (p *parser) regex(i int) (rawRegex, int, bool) {
	if strings.HasPrefix(p.text[i:], "m") {
		i = p.skip(i + 1)
	}
	if i == len(p.text) || strings.IndexByte("/#^|", p.text[i]) < 0 {
		return rawRegex{}, i, false
	}
	delimiter, end := p.text[i], i+1
	for end < len(p.text) && p.text[end] != delimiter {
		switch p.text[end] {
		case '\n', '\r':
			return rawRegex{}, i, false
		case '\\':
			end++
			if end == len(p.text) || p.text[end] == '\n' {
				return rawRegex{}, i, false
			}
		}
		end++
	}
	if end >= len(p.text) {
		return rawRegex{}, i, false
	}
	flags := p.skip(end + 1)
	after := flags
	for after < len(p.text) && isAlpha(p.text[after]) {
		after++
	}
	r := rawRegex{body: p.text[i+1 : end], flags: p.text[flags:after]}
	if (r.flags == "and" || r.flags == "or") && p.skip(after) < len(p.text) {
		r.flags = "" // the reference takes the word for flags, and refuses it
	}
	if r.flags == "" {
		after = end + 1
	}
	return r, after, true
}

// compile takes one level of backslashes away and sets the flags in front. A
// reason tells why it is impossible, large that the filter holds too much.
func (r rawRegex) compile(patterns *allowance) (re *Regex, reason string, large *fault.Error) {
	flags := []rune(r.flags)
	unknown := slices.DeleteFunc(slices.Clone(flags), func(f rune) bool { return f == 's' || f == 'i' })
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return nil, fmt.Sprintf("Unknown regular expression flags: '%s'", string(slices.Compact(unknown))), nil
	}
	pattern := unescape(r.body)
	if len(flags) > 0 {
		slices.Sort(flags)
		pattern = "(?" + string(flags) + ")" + pattern
	}
	re, err := patterns.compile(pattern)
	if err == nil {
		return re, "", nil
	}
	if large, ok := errors.AsType[*fault.Error](err); ok {
		return nil, "", large
	}
	if bad, ok := errors.AsType[*RegexError](err); ok {
		reason = bad.short()
	}
	return nil, fmt.Sprintf("Invalid regular expression (%s)", reason), nil
}

var controlEscapes = map[rune]rune{'t': '\t', 'n': '\n', 'r': '\r', 'f': '\f'}

func unescape(s string) string {
	var b strings.Builder
	escaped := false
	for _, c := range s {
		switch control, ok := controlEscapes[c]; {
		case !escaped && c == '\\':
			escaped = true
			continue
		case escaped && ok:
			b.WriteRune(control)
		default:
			b.WriteRune(c)
		}
		escaped = false
	}
	return b.String()
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlpha(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isAlnum(c byte) bool { return isAlpha(c) || isDigit(c) }

// isWord tells the bytes that a keyword must not touch.
func isWord(c byte) bool { return isAlnum(c) || c == '_' || c == '$' }

// isFieldByte tells what may follow the first letter of a field.
func isFieldByte(c byte) bool { return isAlnum(c) || c == '_' || c == '/' || c == '.' }
