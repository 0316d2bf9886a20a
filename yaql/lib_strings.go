package yaql

import (
	"fmt"
	"math/big"
	"strings"
	"unicode/utf8"

	"github.com/drover-project/drover/yaql/internal/pytext"
)

func stringOrder(op string) impl {
	return func(c *Context, a []any) (any, error) {
		o, _ := c.run.compareOrdered(a[0], a[1])
		return o.holds(op), nil
	}
}

// optional returns a string argument that may be null.
func optional(v any) *string {
	if s, ok := v.(string); ok {
		return &s
	}
	return nil
}

func onText(f func(s string) any) impl {
	return func(c *Context, a []any) (any, error) {
		c.run.reads(len(a[0].(string)))
		return f(a[0].(string)), nil
	}
}

func stringsModule() module {
	const two = "left: string, right: string"
	return module{"strings", []definition{
		{"#operator_*", FunctionKind, "left: int, right: string", func(c *Context, a []any) (any, error) { return repeatText(c, a[1].(string), a[0]) },
			"Repeats a string.", "3 * ab ⇒ \"ababab\"", 0},
		{"#operator_*", FunctionKind, "left: string, right: int", func(c *Context, a []any) (any, error) { return repeatText(c, a[0].(string), a[1]) },
			"Repeats a string.", "ab * 2 ⇒ \"abab\"", 0},
		{"#operator_+", FunctionKind, "*args: string", concatText, "Joins strings.", "\"a\" + b ⇒ \"ab\"", 0},
		{"#operator_<", FunctionKind, two, stringOrder("<"), "Compares strings by code points.", "Z < a ⇒ true", 0},
		{"#operator_<=", FunctionKind, two, stringOrder("<="), "Compares strings by code points.", "a <= a ⇒ true", 0},
		{"#operator_>", FunctionKind, two, stringOrder(">"), "Compares strings by code points.", "a > b ⇒ false", 0},
		{"#operator_>=", FunctionKind, two, stringOrder(">="), "Compares strings by code points.", "b >= a ⇒ true", 0},
		{"#operator_in", FunctionKind, two, func(c *Context, a []any) (any, error) { return c.isIn(nil, a[0], a[1]) },
			"Tells whether the left string is part of the right one.", "ell in hello ⇒ true", 0},
		{"characters", FunctionKind, "digits: bool? = false, hexdigits: bool? = false, asciiLowercase: bool? = false, asciiUppercase: bool? = false, asciiLetters: bool? = false, letters: bool? = false, octdigits: bool? = false, punctuation: bool? = false, printable: bool? = false, lowercase: bool? = false, uppercase: bool? = false, whitespace: bool? = false",
			characters, "Gives the characters of the classes that are true, each once.", "characters(octdigits => true).len() ⇒ 8", 0},
		{"concat", FunctionKind, "*args: string", concatText, "Joins strings.", "concat(a, b, c) ⇒ \"abc\"", 0},
		{"endsWith", MethodKind, "string: string, *suffixes: string", anyAffix(strings.HasSuffix), "Tells whether the string ends with one of the arguments.", "hello.endsWith(lo, x) ⇒ true", 0},
		{"hex", FunctionKind, "num: number?", hex, "Writes an integer in hexadecimal.", "hex(255) ⇒ \"0xff\"", 0},
		{"indexOf", MethodKind, "string: string, sub: string, start: int = 0", find(false), "Gives the place of the first occurrence at or after start, or -1.", "banana.indexOf(an, 2) ⇒ 3", 0},
		{"indexOf", MethodKind, "string: string, sub: string, start: int, length: int", find(false), "Gives the place of the first occurrence within length characters from start, or -1.", "banana.indexOf(na, 0, 4) ⇒ 2", 0},
		{"isEmpty", ExtensionKind, "string: string?, trim: bool = true, chars: string = null", func(c *Context, a []any) (any, error) {
			s, ok := a[0].(string)
			if ok && a[1].(bool) {
				c.run.trims(s, a[2])
				s = pytext.Trim(s, optional(a[2]))
			}
			return s == "", nil
		}, "Tells whether a string is null or empty, by default after trimming.", "\" \".isEmpty() ⇒ true", 0},
		{"isString", FunctionKind, "arg: any?", isOf(func(v any) bool { _, ok := v.(string); return ok }), "Tells whether the value is a string.", "isString(a) ⇒ true", 0},
		{"join", MethodKind, "separator: string, sequence: iterable", func(c *Context, a []any) (any, error) { return joinText(c, a[0].(string), a[1]) },
			"Joins the texts of the items with the receiver between them.", "\"-\".join([1, null]) ⇒ \"1-null\"", 0},
		{"join", MethodKind, "sequence: iterable, separator: string", func(c *Context, a []any) (any, error) { return joinText(c, a[1].(string), a[0]) },
			"Joins the texts of the items with the separator between them.", "[a, b].join(\"|\") ⇒ \"a|b\"", 0},
		{"lastIndexOf", MethodKind, "string: string, sub: string, start: int = 0", find(true), "Gives the place of the last occurrence at or after start, or -1.", "banana.lastIndexOf(an) ⇒ 3", 0},
		{"lastIndexOf", MethodKind, "string: string, sub: string, start: int, length: int", find(true), "Gives the place of the last occurrence within length characters from start, or -1.", "banana.lastIndexOf(a, 0, 4) ⇒ 3", 0},
		{"len", ExtensionKind, "string: string", onText(func(s string) any { return int64(utf8.RuneCountInString(s)) }), "Gives the number of characters.", "hello.len() ⇒ 5", 0},
		{"norm", ExtensionKind, "string: string?, chars: string = null", func(c *Context, a []any) (any, error) {
			s, ok := a[0].(string)
			c.run.trims(s, a[1])
			if s = pytext.Trim(s, optional(a[1])); !ok || s == "" {
				return nil, nil
			}
			return s, nil
		}, "Trims a string and gives null if nothing is left.", "\" a \".norm() ⇒ \"a\"", 0},
		{"replace", MethodKind, "string: string, old: string, new: string, count: int = -1", func(c *Context, a []any) (any, error) {
			count, err := machineInt(a[3])
			if err != nil {
				return nil, err
			}
			return replaceText(c, a[0].(string), a[1].(string), a[2].(string), count)
		}, "Replaces occurrences of a string, all or the first count of them.", "banana.replace(an, AN, 1) ⇒ \"bANana\"", 0},
		{"replace", MethodKind, "string: string, replacements: mapping, count: int = -1", replaceByMap, "Replaces the texts of the keys by those of the values, one key after the other.", "abc.replace({a => 1, b => 2}) ⇒ \"12c\"", 0},
		{"rightSplit", MethodKind, "string: string, separator: string = null, maxSplits: int = -1", splitText(pytext.FieldsRight, pytext.SplitRight), "Splits like split, but counts the splits from the end.", "\"a b c\".rightSplit(\" \", 1) ⇒ [\"a b\",\"c\"]", 0},
		{"split", MethodKind, "string: string, separator: string = null, maxSplits: int = -1", splitText(pytext.Fields, pytext.Split), "Splits at each separator, or at runs of white space if there is none.", "\"a,b\".split(\",\") ⇒ [\"a\",\"b\"]", 0},
		{"startsWith", MethodKind, "string: string, *prefixes: string", anyAffix(strings.HasPrefix), "Tells whether the string starts with one of the arguments.", "hello.startsWith(x, he) ⇒ true", 0},
		{"str", FunctionKind, "value: any?", func(c *Context, a []any) (any, error) { return c.run.text(a[0]) }, "Gives the text of any value.", "str([1, true]) ⇒ \"(1, True)\"", 0},
		{"substring", MethodKind, "string: string, start: int, length: int = -1", substring, "Gives length characters from start, counted from the end if negative; a negative length means all.", "hello.substring(-4, 2) ⇒ \"el\"", 0},
		{"toCharArray", MethodKind, "string: string", func(c *Context, a []any) (any, error) {
			s := a[0].(string)
			n := utf8.RuneCountInString(s)
			if err := c.run.spend(n); err != nil {
				return nil, err
			}
			out := make([]any, 0, n)
			for _, r := range s {
				out = append(out, string(r))
			}
			return out, nil
		}, "Gives the list of the characters.", "abc.toCharArray() ⇒ [\"a\",\"b\",\"c\"]", 0},
		{"toLower", MethodKind, "string: string", onText(func(s string) any { return pytext.Lower(s) }), "Turns the string to lower case.", "HeLLo.toLower() ⇒ \"hello\"", 0},
		{"toUpper", MethodKind, "string: string", onText(func(s string) any { return pytext.Upper(s) }), "Turns the string to upper case.", "hello.toUpper() ⇒ \"HELLO\"", 0},
		{"trim", MethodKind, "string: string, chars: string = null", trimmed(pytext.Trim), "Removes white space, or the given characters, from both ends.", "\" a \".trim() ⇒ \"a\"", 0},
		{"trimLeft", MethodKind, "string: string, chars: string = null", trimmed(pytext.TrimLeft), "Removes white space, or the given characters, from the start.", "xxax.trimLeft(x) ⇒ \"ax\"", 0},
		{"trimRight", MethodKind, "string: string, chars: string = null", trimmed(pytext.TrimRight), "Removes white space, or the given characters, from the end.", "xaxx.trimRight(x) ⇒ \"xa\"", 0},
	}}
}

func trimmed(f func(string, *string) string) impl {
	return func(c *Context, a []any) (any, error) {
		c.run.trims(a[0].(string), a[1])
		return f(a[0].(string), optional(a[1])), nil
	}
}

// trims counts what it takes to look for white space, or some characters, at the ends of a text.
func (r *run) trims(s string, chars any) {
	r.reads(len(s))
	if c, ok := chars.(string); ok {
		r.scans(c)
	}
}

func repeatText(c *Context, s string, times any) (any, error) {
	n, err := machineInt(times)
	if err != nil {
		return nil, err
	}
	if n <= 0 || s == "" {
		return "", nil
	}
	if n > maxString || int64(len(s)) > maxString/n {
		return nil, errQuota
	}
	if err := c.checkString(len(s) * int(n)); err != nil {
		return nil, err
	}
	if quota := c.run.cfg.memoryQuota; quota > 0 && 49+n*(stringSize(s)-49) > quota {
		return nil, errQuota // the reference counts the header of a wide string each time
	}
	return strings.Repeat(s, int(n)), nil
}

func concatText(c *Context, a []any) (any, error) {
	parts := make([]string, len(a))
	for i, x := range a {
		parts[i] = x.(string)
	}
	return c.joined(nil, parts...)
}

func joinText(c *Context, separator string, coll any) (any, error) {
	var b strings.Builder
	first := true
	err := each(c, coll, func(x any) error {
		if !first {
			b.WriteString(separator)
		}
		first = false
		s, ok := x.(string)
		if !ok {
			v, err := textOf(c, x)
			if err != nil {
				return err
			}
			s = v
		}
		if err := c.fits(b.Len() + len(s)); err != nil {
			return err
		}
		b.WriteString(s)
		return c.run.spend((len(separator) + len(s)) / bytesOfStep)
	})
	return b.String(), err
}

// textOf calls str().
func textOf(c *Context, v any) (string, error) {
	if c.untouched {
		return c.run.text(v)
	}
	r, err := c.callValues(nil, "str", v)
	if err != nil {
		return "", err
	}
	s, ok := r.(string)
	if !ok {
		return "", errorf(TypeError, "str() gave no string")
	}
	return s, nil
}

func anyAffix(has func(s, affix string) bool) impl {
	return func(c *Context, a []any) (any, error) {
		for _, x := range a[1:] {
			c.run.owe(1 + min(len(a[0].(string)), len(x.(string)))/bytesOfStep)
			if has(a[0].(string), x.(string)) {
				return true, nil
			}
		}
		return false, nil
	}
}

func hex(c *Context, a []any) (any, error) {
	n := bigOf(a[0])
	if n == nil {
		return nil, errorf(TypeError, "'%s' object cannot be interpreted as an integer", typeName(a[0]))
	}
	c.run.passes(n, n, n, n) // four bits are a byte of the text
	return fmt.Sprintf("%#x", n), nil
}

// runeBounds turns a range in characters into one in bytes, as slices of the reference do: negative positions
// count from the end, and positions outside are moved to the ends.
func runeBounds(s string, from, to int64) (lo, hi int, ok bool) {
	n := int64(utf8.RuneCountInString(s))
	clip := func(i int64) int64 {
		if i < 0 {
			i = max(i+n, 0)
		}
		return min(i, n)
	}
	if from > n {
		return len(s), len(s), false
	}
	from, to = clip(from), clip(to)
	if from > to {
		return byteIndex(s, from, n), byteIndex(s, from, n), false
	}
	return byteIndex(s, from, n), byteIndex(s, to, n), true
}

// byteIndex is the offset of the i-th of the n characters of s.
func byteIndex(s string, i, n int64) int {
	if n == int64(len(s)) {
		return int(i)
	}
	at := 0
	for ; i > 0; i-- {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return at
}

// find looks for a string in a range of another one. With four arguments the last is the length of the range.
func find(last bool) impl {
	search := strings.Index
	if last {
		search = strings.LastIndex
	}
	return func(c *Context, a []any) (any, error) {
		s, sub := a[0].(string), a[1].(string)
		c.run.owe(3 * len(s) / bytesOfStep) //nolint:mnd // it is counted, sought and counted
		n := int64(utf8.RuneCountInString(s))
		start, end := clampInt(a[2]), n
		if len(a) == 4 {
			length := clampInt(a[3])
			if start < 0 {
				start += n
			}
			if length < 0 {
				length = n - start
			}
			end = saturatingAdd(start, length)
		}
		lo, hi, ok := runeBounds(s, start, end)
		if !ok {
			return int64(-1), nil
		}
		at := search(s[lo:hi], sub)
		if at < 0 {
			return int64(-1), nil
		}
		return int64(utf8.RuneCountInString(s[:lo+at])), nil
	}
}

func saturatingAdd(a, b int64) int64 {
	s, ok := addInt(a, b).(int64)
	if !ok {
		return b
	}
	return s
}

func substring(c *Context, a []any) (any, error) {
	s := a[0].(string)
	c.run.owe(2 * len(s) / bytesOfStep) //nolint:mnd // it is counted, and cut
	n := int64(utf8.RuneCountInString(s))
	start, length := bigOf(a[1]), bigOf(a[2])
	if length.Sign() < 0 {
		length = big.NewInt(n)
	}
	if start.Sign() < 0 {
		start = new(big.Int).Add(start, big.NewInt(n))
	}
	lo, hi, _ := runeBounds(s, clampInt(intValue(start)), clampInt(intValue(new(big.Int).Add(start, length))))
	return s[lo:hi], nil
}

func replaceText(c *Context, s, old, with string, count int64) (any, error) {
	times := int64(strings.Count(s, old))
	if count >= 0 {
		times = min(times, count)
	}
	if growth := int64(len(with) - len(old)); growth > 0 && times > maxString/growth {
		return nil, errQuota
	}
	if err := c.checkString(len(s) + int(times)*max(0, len(with)-len(old))); err != nil {
		return nil, err
	}
	return strings.Replace(s, old, with, int(times)), nil
}

func replaceByMap(c *Context, a []any) (any, error) {
	s := a[0].(string)
	count, err := machineInt(a[2])
	if err != nil {
		return nil, err
	}
	dictRange(a[1], func(k, x any) bool {
		var old, with string
		if old, err = textOf(c, k); err != nil {
			return false
		}
		if with, err = textOf(c, x); err != nil {
			return false
		}
		var v any
		if v, err = replaceText(c, s, old, with, count); err != nil {
			return false
		}
		s = v.(string)
		return true
	})
	return s, err
}

// splitText makes a function of two: one for white space and one for separators.
func splitText(fields func(string, int) []string, split func(string, string, int) ([]string, error)) impl {
	return func(c *Context, a []any) (any, error) {
		limit, err := machineInt(a[2])
		if err != nil {
			return nil, err
		}
		var parts []string
		if err := c.run.spend(partsOf(a[0].(string), a[1])); err != nil {
			return nil, err
		}
		if a[1] == nil {
			parts = fields(a[0].(string), int(limit))
		} else {
			if parts, err = split(a[0].(string), a[1].(string), int(limit)); err != nil {
				return nil, errorf(ValueError, "%s", err)
			}
		}
		out := make([]any, len(parts))
		for i, p := range parts {
			out[i] = p
		}
		return &List{Items: out}, nil
	}
}

// partsOf is what it costs to split a text: as many parts as there are, or may be between white space.
func partsOf(s string, separator any) int {
	const bytesOfWord = 4
	word, ok := separator.(string)
	switch {
	case !ok:
		return len(s) / bytesOfWord
	case word == "":
		return 0 // it is refused
	}
	return len(s)/bytesOfStep + strings.Count(s, word)
}

func characters(c *Context, a []any) (any, error) {
	const (
		digits = "0123456789"
		lower  = "abcdefghijklmnopqrstuvwxyz"
		upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
		marks  = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
		spaces = " \t\n\r\v\f"
	)
	classes := [...]string{digits, digits + "abcdefABCDEF", lower, upper, lower + upper, "", "01234567", marks,
		digits + lower + upper + marks + spaces, "", "", spaces}
	seen := &Set{}
	for i, class := range classes {
		if a[i] != true {
			continue
		}
		if class == "" {
			// The reference looks for constants that its host language no longer has.
			return nil, errorf(AttributeError, "module 'string' has no attribute '%s'", [...]string{5: "letters", 9: "lowercase", 10: "uppercase"}[i])
		}
		for _, r := range class {
			if err := c.run.add(seen, string(r)); err != nil {
				return nil, err
			}
		}
	}
	return seen.Items(), nil
}
