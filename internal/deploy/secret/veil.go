package secret

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/drover-project/drover/yaql"
)

// inList is the place of an item in a list, whose path is that of the list.
var inList = regexp.MustCompile(`\[[^\]]*\]`)

// Veil hides what is secret in values, by path and by value. Nil hides nothing. It belongs to one goroutine.
type Veil struct {
	rules *Rules
	*Values
}

// NewVeil returns a veil by rules, over the secrets that were collected by them.
func NewVeil(rules *Rules, collected []string) *Veil { return &Veil{rules, NewValues(collected)} }

// Text returns a text with a mark in place of each secret.
func (v *Veil) Text(s string) string {
	if v == nil {
		return s
	}
	return v.Values.Text(s)
}

// Error is an error whose texts hide secrets. Its code stays.
func (v *Veil) Error(err error) error {
	if v == nil {
		return err
	}
	return v.Values.Error(err)
}

// Value returns a value at a path with a mark in place of each secret. Truth values and nothing at all are shown: they
// hold no secret.
func (v *Veil) Value(path []string, x any) any {
	if v == nil {
		return x
	}
	return v.value(path, x, v.rules.secret(path, false))
}

// Found is Value for what an expression gave at a path below its own value: the last word of the two is taken for the key,
// and all of them for the path.
func (v *Veil) Found(expression, path string, x any) any {
	words := strings.FieldsFunc(inList.ReplaceAllString(expression+path, ""), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
	})
	if len(words) > 0 && (words[0] == "node" || words[0] == "common") && strings.HasPrefix(expression, "$"+words[0]) {
		words = words[1:]
	}
	return v.Value(words, x)
}

func (v *Veil) value(path []string, x any, is bool) any {
	switch m := x.(type) {
	case yaql.Mapping:
		out := yaql.NewDict(m.Len())
		m.Range(func(k, e any) bool {
			inner := below(path, keyText(k))
			if s, ok := k.(string); ok {
				k = v.Text(s)
			}
			_ = out.Set(k, v.value(inner, e, v.rules.secret(inner, is))) // it was a key
			return true
		})
		return out
	case map[string]any:
		out := make(map[string]any, len(m))
		for k, e := range m {
			inner := below(path, k)
			out[v.Text(k)] = v.value(inner, e, v.rules.secret(inner, is))
		}
		return out
	case yaql.Tuple:
		return yaql.Tuple(v.items(path, m, is))
	case *yaql.Set:
		set, _ := yaql.NewSet(v.items(path, m.Items(), is)...) // texts can be in sets
		return set
	}
	if items, ok := itemsOf(x); ok {
		return v.items(path, items, is)
	}
	return v.scalar(x, is)
}

func (v *Veil) items(path []string, items []any, is bool) []any {
	out := make([]any, len(items))
	for i, e := range items {
		out[i] = v.value(path, e, is)
	}
	return out
}

func (v *Veil) scalar(x any, is bool) any {
	text, ok := scalar(x)
	switch {
	case !ok:
		return x
	case is:
		return Mark
	}
	shown := v.Text(text)
	if shown == text {
		return x
	}
	return shown
}

// scalar is the text of a text or a number; other values hold no secret. An empty text is none either.
func scalar(v any) (text string, ok bool) {
	switch x := v.(type) {
	case nil, bool:
		return "", false
	case string:
		return x, x != ""
	case int, int64, float64:
		return fmt.Sprint(x), true
	case fmt.Stringer: // numbers without bounds, times
		return x.String(), true
	}
	return "", false
}

// itemsOf are the items of a list, tuple or set.
func itemsOf(v any) ([]any, bool) {
	switch x := v.(type) {
	case []any:
		return x, true
	case *yaql.List:
		return x.Items, true
	case yaql.Tuple:
		return x, true
	case *yaql.Set:
		return x.Items(), true
	}
	return nil, false
}

func keyText(k any) string {
	if s, ok := k.(string); ok {
		return s
	}
	return fmt.Sprint(k)
}

// Marked tells whether a text in a value has a mark in it, and its path.
func Marked(v any) (path string, found bool) {
	inner := func(key string, e any) bool {
		path, found = Marked(e)
		path = strings.TrimSuffix(key+"."+path, ".")
		return !found
	}
	switch x := v.(type) {
	case string:
		return "", strings.Contains(x, Mark)
	case yaql.Mapping:
		x.Range(func(k, e any) bool { return inner(keyText(k), e) })
	case []any:
		for i, e := range x {
			if !inner(strconv.Itoa(i), e) {
				break
			}
		}
	}
	return path, found
}
