package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/drover-project/drover/yaql"
)

// format fills the placeholders of a text, as Python's str.format does: {NAME}, {NAME.attribute}, {NAME[key]}, each
// with a conversion and a format; {{ and }} are braces. One placeholder that cannot be filled leaves the whole text
// as it is, which is what ok says.
func format(text string, values map[string]any) (out string, ok bool) {
	b := strings.Builder{}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c != '{' && c != '}':
			b.WriteByte(c)
		case i+1 < len(text) && text[i+1] == c:
			b.WriteByte(c)
			i++
		case c == '}':
			return text, false
		default:
			end := closing(text, i)
			if end < 0 {
				return text, false
			}
			filled, ok := placeholder(text[i+1:end], values)
			if !ok {
				return text, false
			}
			b.WriteString(filled)
			i = end
		}
	}
	return b.String(), true
}

func closing(text string, open int) int {
	depth := 0
	for i := open; i < len(text); i++ {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func placeholder(inner string, values map[string]any) (string, bool) {
	name, spec, _ := strings.Cut(inner, ":")
	if strings.ContainsAny(spec, "{}") {
		return "", false
	}
	name, conversion, converted := strings.Cut(name, "!")
	v, ok := reference(name, values)
	if !ok {
		return "", false
	}
	if converted {
		if conversion != "s" && conversion != "r" || conversion == "r" && !isNumber(v) {
			return "", false
		}
		v = shown(v)
	}
	return formatted(v, spec)
}

// reference follows NAME.attribute[key]. A key of digits is also the place of an item of a list, or of a character of a text.
func reference(path string, values map[string]any) (any, bool) {
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		v, ok := values[path]
		return v, ok
	}
	v, ok := values[path[:end]]
	path = path[end:]
	for ok && path != "" {
		var key string
		bracket := path[0] == '['
		switch {
		case bracket:
			end = strings.IndexByte(path, ']')
			if end < 0 {
				return nil, false
			}
			key, path = path[1:end], path[end+1:]
		case path[0] == '.':
			path = path[1:]
			if end = strings.IndexAny(path, ".["); end < 0 {
				end = len(path)
			}
			key, path = path[:end], path[end:]
		default:
			return nil, false
		}
		if m, isMap := v.(yaql.Mapping); isMap {
			v, ok = m.Get(key)
		} else {
			v, ok = itemAt(v, key)
			ok = ok && bracket
		}
	}
	return v, ok
}

// itemAt returns an item of a list, or a character of a text.
func itemAt(v any, place string) (any, bool) {
	i, err := strconv.Atoi(place)
	if err != nil || !numeric(place) {
		return nil, false
	}
	if text, ok := v.(string); ok {
		letters := []rune(text)
		return string(letters[min(i, len(letters)):min(i+1, len(letters))]), i < len(letters)
	}
	items := itemsOf(v)
	if i >= len(items) {
		return nil, false
	}
	return items[i], true
}

func isNumber(v any) bool {
	switch v.(type) {
	case int64, float64, bool, nil:
		return true
	}
	return false
}

// shown writes a value as Python's str does.
func shown(v any) string {
	switch x := v.(type) {
	case nil:
		return "None"
	case bool:
		if x {
			return "True"
		}
		return "False"
	case string:
		return x
	}
	return fmt.Sprint(v)
}

// formatted applies a format such as 05d, >8 or .2f.
func formatted(v any, spec string) (string, bool) {
	switch v.(type) {
	case nil, bool, string, int64, float64:
	default:
		return "", false
	}
	if spec == "" {
		return shown(v), true
	}
	f, ok := parseSpec(spec)
	if !ok {
		return "", false
	}
	return f.apply(v)
}

type spec struct {
	fill, align byte
	sign        string
	width       int
	precision   int // -1 if none
	verb        byte
}

func parseSpec(s string) (spec, bool) {
	f := spec{fill: ' ', precision: -1}
	if len(s) > 1 && strings.IndexByte("<>^=", s[1]) >= 0 {
		f.fill, f.align, s = s[0], s[1], s[2:]
	} else if s != "" && strings.IndexByte("<>^=", s[0]) >= 0 {
		f.align, s = s[0], s[1:]
	}
	if s != "" && strings.IndexByte("+- ", s[0]) >= 0 {
		f.sign, s = strings.TrimPrefix(s[:1], "-"), s[1:]
	}
	if strings.HasPrefix(s, "0") && f.align == 0 {
		f.fill, f.align, s = '0', '=', s[1:]
	}
	digits := strings.TrimLeft(s, "0123456789")
	if w := s[:len(s)-len(digits)]; w != "" {
		n, err := strconv.Atoi(w)
		if err != nil || n > 10_000 {
			return f, false
		}
		f.width = n
	}
	s = digits
	if strings.HasPrefix(s, ".") {
		digits = strings.TrimLeft(s[1:], "0123456789")
		n, err := strconv.Atoi(s[1 : len(s)-len(digits)])
		if err != nil || n > 10_000 {
			return f, false
		}
		f.precision, s = n, digits
	}
	if len(s) > 1 {
		return f, false
	}
	if s != "" {
		f.verb = s[0]
	}
	return f, true
}

func (f spec) apply(v any) (string, bool) {
	var text string
	number := true
	switch x := v.(type) {
	case string:
		if f.verb != 0 && f.verb != 's' || f.align == '=' || f.sign != "" {
			return "", false
		}
		text, number = x, false
		if r := []rune(x); f.precision >= 0 && f.precision < len(r) {
			text = string(r[:f.precision])
		}
	case int64:
		verbs := map[byte]string{0: "%d", 'd': "%d", 'x': "%x", 'X': "%X", 'o': "%o", 'b': "%b"}
		if verbs[f.verb] == "" || f.precision >= 0 {
			return "", false
		}
		text = fmt.Sprintf(verbs[f.verb], x)
	case float64:
		if f.verb != 'f' {
			return "", false
		}
		precision := f.precision
		if precision < 0 {
			precision = 6
		}
		text = strconv.FormatFloat(x, 'f', precision, 64)
	default:
		return "", false
	}
	return f.pad(text, number), true
}

func (f spec) pad(text string, number bool) string {
	if number && f.sign != "" && text[0] != '-' {
		text = f.sign + text
	}
	missing := f.width - len([]rune(text))
	if missing <= 0 {
		return text
	}
	fill := strings.Repeat(string(f.fill), missing)
	align := f.align
	if align == 0 {
		align = '<'
		if number {
			align = '>'
		}
	}
	switch align {
	case '<':
		return text + fill
	case '^':
		return fill[:missing/2] + text + fill[missing/2:]
	case '=':
		if text != "" && strings.IndexByte("+- ", text[0]) >= 0 {
			return text[:1] + fill + text[1:]
		}
	}
	return fill + text
}
