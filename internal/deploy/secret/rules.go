// Package secret says which values of a state are secret, and hides them in what is shown.
//
// A value is secret by its path. What is made of it (a command with a password in it, a line that a program wrote) has no
// path, so it is hidden by value, too: each secret text of six characters or more, the longest first. Of a text of several
// lines each line counts by itself, for programs write lines.
//
// What was encoded in some other way than JSON's (base64, a hash) and parts of a secret are not recognized.
package secret

import (
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/yaql"
)

// usual are the keys whose values are secret wherever they are, unless an environment says otherwise.
var usual = []string{"*password*", "*passwd*", "*passphrase*", "*secret*", "*token*", "*credential*", "*_key", "private_key", "cert_data"}

// Rules say which paths of a state are secret. They belong to one goroutine.
type Rules struct {
	rules []rule
	// byName is what the rules for keys at any depth say of a key, and which of them it was.
	byName map[string]found
}

// rule is a path, or a name for a key at any depth.
type rule struct {
	segments []string // in lower case
	back     bool     // it is no secret
}

// found is the place of the last rule that fits, from 1; 0 for none.
type found int

// NewRules returns the usual rules with those of an environment behind them, of which the last that fits counts.
func NewRules(own []string) (*Rules, error) {
	r := &Rules{byName: map[string]found{}}
	for _, text := range slices.Concat(usual, own) {
		path, back := strings.CutPrefix(text, "!")
		segments := strings.Split(strings.ToLower(path), ".")
		if slices.Contains(segments, "") {
			return nil, fault.New(fault.Invalid, "%q is no path of secrets", text).At("secrets").
				WithHint("write the keys with dots between them, as in db.pin; a name alone is a key at any depth; * stands for any text; ! before it takes it back")
		}
		r.rules = append(r.rules, rule{segments, back})
	}
	return r, nil
}

// secret tells whether the value at a path is secret, of which the value around it may be.
func (r *Rules) secret(path []string, around bool) bool {
	if len(path) == 0 {
		return around
	}
	name := path[len(path)-1]
	last, known := r.byName[name]
	if !known {
		last = r.lastFor([]string{name}, func(x rule) bool { return len(x.segments) == 1 })
		r.byName[strings.Clone(name)] = last
	}
	if len(path) > 1 && len(r.rules) > len(usual) {
		last = max(last, r.lastFor(path, func(x rule) bool { return len(x.segments) == len(path) }))
	}
	if last == 0 {
		return around
	}
	return !r.rules[last-1].back
}

// lastFor finds the last of some rules that fits a path.
func (r *Rules) lastFor(path []string, some func(rule) bool) found {
	for i, x := range slices.Backward(r.rules) {
		if some(x) && slices.EqualFunc(x.segments, path, func(pattern, name string) bool { return fits(pattern, strings.ToLower(name)) }) {
			return found(i + 1)
		}
	}
	return 0
}

// fits tells whether a text is as a pattern, in which * stands for any text.
func fits(pattern, text string) bool {
	first, rest, more := strings.Cut(pattern, "*")
	if !more {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, first)
	if !ok {
		return false
	}
	for {
		var middle string
		middle, rest, more = strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(text, middle)
		}
		_, after, there := strings.Cut(text, middle)
		if !there {
			return false
		}
		text = after
	}
}

// Collect hands over the secret texts and numbers of a value at a path.
func (r *Rules) Collect(path []string, v any, take func(text string)) {
	r.collect(path, v, r.secret(path, false), take)
}

// below is the path of what a key of a thing has.
func below(path []string, key string) []string { return append(slices.Clip(path), key) }

func (r *Rules) collect(path []string, v any, is bool, take func(string)) {
	switch x := v.(type) {
	case yaql.Mapping:
		x.Range(func(k, e any) bool {
			inner := below(path, keyText(k))
			r.collect(inner, e, r.secret(inner, is), take)
			return true
		})
		return
	case map[string]any:
		for k, e := range x {
			inner := below(path, k)
			r.collect(inner, e, r.secret(inner, is), take)
		}
		return
	}
	if items, ok := itemsOf(v); ok {
		for _, e := range items {
			r.collect(path, e, is, take)
		}
		return
	}
	if text, ok := scalar(v); ok && is {
		take(text)
	}
}
