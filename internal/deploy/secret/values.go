package secret

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// Mark is shown in place of what is secret.
const Mark = "<redacted>"

const (
	// shortest is the length from which a secret is hidden by value: shorter ones are in texts by chance.
	shortest = 6
	// longest is where longer ones are divided, so that who shows a stream has to hold back little.
	longest = 1 << 10
)

// Values are texts that are not shown. The zero value, and nil, hide nothing. They are safe for concurrent use.
type Values struct {
	texts    []string // the longest first
	replacer *strings.Replacer
	byFirst  map[byte][]string
}

// NewValues returns what hides texts, in the forms in which they are looked for. Those that are too short are left out.
func NewValues(texts []string) *Values {
	all := map[string]bool{}
	for _, t := range texts {
		for line := range strings.SplitSeq(t, "\n") {
			addForms(all, strings.TrimSpace(line))
		}
	}
	if len(all) == 0 {
		return nil
	}
	v := &Values{byFirst: map[byte][]string{}}
	v.texts = slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	pairs := make([]string, 0, 2*len(v.texts))
	for _, t := range v.texts {
		pairs = append(pairs, t, Mark)
		v.byFirst[t[0]] = append(v.byFirst[t[0]], t)
	}
	v.replacer = strings.NewReplacer(pairs...)
	return v
}

// addForms adds a line as it is, as it is in a word of a command, and as both are in JSON, in pieces if it is long.
func addForms(all map[string]bool, line string) {
	word := strings.ReplaceAll(line, "'", `'\''`)
	for _, form := range []string{line, inJSON(line), word, inJSON(word)} {
		for len(form) >= 2*longest {
			all[form[:longest]] = true
			form = form[longest:]
		}
		if len(form) >= shortest && form != Mark {
			all[form] = true
		}
	}
}

func inJSON(s string) string {
	b := &strings.Builder{}
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) //nolint:errchkjson // texts can be encoded
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), `"`), `"`)
}

// Texts are those that are looked for, for another Values to be made of.
func (v *Values) Texts() []string {
	if v == nil {
		return nil
	}
	return v.texts
}

// Text returns a text with a mark in place of each secret.
func (v *Values) Text(s string) string {
	if v == nil || v.replacer == nil || len(s) < shortest {
		return s
	}
	return v.replacer.Replace(s)
}

// Error is an error whose texts hide secrets. Its code stays.
func (v *Values) Error(err error) error {
	if err == nil || v.Text(err.Error()) == err.Error() {
		return err
	}
	if e, ok := errors.AsType[*fault.Error](err); ok && err.Error() == e.Error() {
		return &fault.Error{Code: e.Code, Message: v.Text(e.Message), Field: v.Text(e.Field), Hint: v.Text(e.Hint)}
	}
	return fault.New(fault.CodeOf(err), "%s", v.Text(err.Error()))
}

// Cut is where the beginning of a long line can be divided from what follows, so that both show what the whole would. What is behind it waits for what
// follows. Of a line that is as long as the longest secret, or longer, something is let go, also where secrets overlap without end.
func (v *Values) Cut(line string) int {
	if v == nil || len(v.texts) == 0 {
		return len(line)
	}
	at := 0
	for decided := len(line) - len(v.texts[0]); at <= decided; { // whether a secret begins here
		at += max(1, len(v.begins(line[at:])))
	}
	return at
}

// begins is the secret that a text begins with, of several the one that is hidden; empty if it begins with none.
func (v *Values) begins(text string) string {
	for _, t := range v.byFirst[text[0]] {
		if strings.HasPrefix(text, t) {
			return t
		}
	}
	return ""
}
