package jobfilter

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/reason"
)

// Verb says what an edit does.
type Verb string

// The verbs.
const (
	// Put adds a rule, or replaces all parts of the one that is meant.
	Put Verb = "put"
	// Change replaces the parts of a rule that are given; see Modify.
	Change Verb = "modify"
	// Delete removes a rule.
	Delete Verb = "delete"
)

// Edit is one change of the rules. Several make up a set that takes effect, or
// is previewed, as a whole.
type Edit struct {
	Verb Verb `json:"do"`
	// Rule says which rule is meant: a UUID, a name, or the beginning of either.
	// Put with a UUID that no rule has adds a rule under it.
	Rule string `json:"rule"`
	// Parts are what Put and Change set, in the form of ParseRule.
	Parts Rule `json:"-"`
	// Body is the same as text for Change, which has to know what is not given.
	Body json.RawMessage `json:"parts,omitempty"`
	// Renew sets the watermark anew where Change would keep it. Put always does.
	Renew bool `json:"renew_watermark,omitempty"`
}

// ParseEdit reads an edit as clients write it: an object with the keys do, rule,
// parts (in the form of ParseRule) and renew_watermark.
func ParseEdit(body []byte) (Edit, error) {
	var e Edit
	if err := intake.Read(body, &e); err != nil {
		return e, fault.New(fault.Invalid, "a change of a filter rule cannot be read: %w", err).
			WithHint("it is an object with the keys do (put, modify, delete), rule, parts and renew_watermark")
	}
	if e.Body == nil {
		e.Body = json.RawMessage("{}")
	}
	var err error
	e.Parts, err = ParseRule(e.Body)
	return e, err
}

// Signed returns the edit with a hop at the end of the reasons that it gives.
func (e Edit) Signed(hop reason.Entry) Edit {
	e.Parts.Reason = e.Parts.Reason.Then(hop)
	var parts map[string]json.RawMessage
	if e.Verb != Change || json.Unmarshal(e.Body, &parts) != nil {
		return e
	}
	parts["reason"] = mustEncode(e.Parts.Reason)
	e.Body = mustEncode(parts)
	return e
}

// mustEncode writes values of our own that cannot fail to encode.
func mustEncode(v any) json.RawMessage {
	out, err := json.Marshal(v)
	if err != nil {
		panic(fault.New(fault.Internal, "a filter rule that cannot be written: %w", err))
	}
	return out
}

// Moment is what an edit takes from the time at which it happens.
type Moment struct {
	Now time.Time
	// Watermark is the highest job id in use.
	Watermark int64
	// Hop ends the trail of each rule that is put or changed.
	Hop reason.Entry
	// Preview says that nothing is made of it: rules that were not there before are
	// called new, because nobody can look their UUIDs up.
	Preview bool
}

// Edited is what a set of edits made of the rules.
type Edited struct {
	// Rules are all rules as they are afterwards, in no order.
	Rules []*Rule
	// Changed tells what became of the rule of each edit, in their order.
	Changed  []Changed
	Warnings []Warning
}

// Changed is one rule before and after an edit; nil where it did not exist.
type Changed struct{ Before, After *Rule }

// UUID returns the identity of the rule.
func (c Changed) UUID() string {
	if c.After != nil {
		return c.After.UUID
	}
	return c.Before.UUID
}

// Apply makes edits, each on top of those before it. It changes none of the
// rules it is given. Errors: fault.NotFound and fault.Ambiguous for a rule that
// cannot be told, fault.Exists for a name that another rule has or
// whose UUID begins with it, fault.Invalid.
func Apply(rules []*Rule, edits []Edit, at Moment) (*Edited, error) {
	out := &Edited{Rules: slices.Clone(rules)}
	for i := range edits {
		c, err := edits[i].apply(out.Rules, at)
		if err != nil {
			return nil, err
		}
		out.Rules = slices.DeleteFunc(out.Rules, func(r *Rule) bool { return r.UUID == c.UUID() })
		if c.After != nil {
			out.Rules = append(out.Rules, c.After)
		}
		out.Changed = append(out.Changed, c)
	}
	others := slices.Clone(out.Rules)
	for _, c := range out.Changed {
		if c.After != nil && slices.Contains(out.Rules, c.After) {
			out.Warnings = append(out.Warnings, CheckAmong(c.After, others)...)
			others = slices.DeleteFunc(others, func(r *Rule) bool { return r == c.After }) // two that tie are told once
		}
	}
	return out, nil
}

func (e *Edit) apply(rules []*Rule, at Moment) (Changed, error) {
	before, err := Find(rules, e.Rule)
	if err != nil && (e.Verb != Put || CheckUUID(e.Rule) != nil) {
		return Changed{}, err
	}
	c := Changed{Before: before}
	switch e.Verb {
	case Delete:
		return c, nil
	case Put:
		after := e.Parts
		after.UUID, after.Watermark = e.Rule, at.Watermark
		if before != nil {
			after.UUID = before.UUID
		}
		c.After = &after
	case Change:
		after, err := Modify(*before, e.Body)
		if err != nil {
			return c, err
		}
		if e.Renew {
			after.Watermark = at.Watermark
		}
		c.After = &after
	default:
		return c, fault.New(fault.Invalid, "there is no way %q to change a filter rule", clip(string(e.Verb))).At("do").
			WithHint("the ways are put, modify, delete")
	}
	c.After.description, c.After.paused, c.After.fresh = "", "", at.Preview && before == nil
	c.After.Reason = c.After.Reason.Append(at.Hop)
	if before == nil || before.Name != c.After.Name {
		if err := c.After.hides(rules); err != nil {
			return c, err
		}
	}
	return c, c.After.fits(rules, at.Now)
}

// fits refuses a rule that cannot be beside the others, or at this time.
func (r *Rule) fits(others []*Rule, now time.Time) error {
	for _, o := range others {
		if r.Name != "" && o.Name == r.Name && o.UUID != r.UUID {
			return fault.New(fault.Exists, "filter rule %s has the name %q already", o.UUID, r.Name).At("name")
		}
	}
	if r.Expired(now) {
		return fault.New(fault.Invalid, "until %s is over already", r.Until.Format(time.RFC3339)).At("until")
	}
	return nil
}

// hides refuses a name by which another rule is meant already: the beginning of
// its UUID. A name wins over the beginning of a UUID, see Find, so whoever wrote
// that for the other rule would get this one.
func (r *Rule) hides(others []*Rule) error {
	for _, o := range others {
		if len(r.Name) >= minPrefix && o.UUID != r.UUID && strings.HasPrefix(o.UUID, r.Name) {
			return fault.New(fault.Exists, "the name %q is the beginning of the UUID of filter rule %s", r.Name, o.UUID).At("name")
		}
	}
	return nil
}

// CheckDigest refuses edits of rules that are not those that somebody saw; an
// empty digest asks for nothing. The error is a fault.Conflict.
func CheckDigest(rules []*Rule, digest string) error {
	if digest == "" {
		return nil
	}
	if now := Digest(rules); now != digest {
		return fault.New(fault.Conflict, "the filter rules have changed since they were looked at (%s then, %s now)", clip(digest), now).
			WithHint("look at them and at the preview again")
	}
	return nil
}
