// Package jobfilter decides by the filter rules of the cluster whether a job
// may enter the queue, go on, must wait or must go, and says why.
//
// A rule has predicates that are expressions of the filter language (qlang)
// over a job's id, opcodes and reason trails, and an action. The first rule in
// order whose predicates all hold, and whose action is not CONTINUE, decides.
//
// Invariants:
//   - The order of rules is total: priority, then watermark, then UUID.
//   - Decide and Explain agree on every job, whatever the rules.
//   - Deciding changes nothing and depends on nothing but the rules, the job's
//     id and its opcodes; it allocates no memory. The exception are patterns that need
//     backtracking, which are limited by time (strikes.go).
//   - Predicate names and actions are the wire's; each kind of predicate is
//     one entry in the table of predicate.go, each action one of action.go.
package jobfilter

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/reason"
)

// Rule is a filter rule. Its JSON is what the store keeps and what clients
// read: in predicates "=" reads "==" and "!=" reads as the negation of "==".
type Rule struct {
	UUID string `json:"uuid"`
	// Watermark is the highest job id in use when the rule was added or
	// replaced.
	Watermark int64 `json:"watermark"`
	// Priority orders the rules, the smallest first; it is not negative.
	Priority int `json:"priority"`
	// Predicates must all hold; without any, the rule concerns every job.
	Predicates []Predicate `json:"predicates"`
	Action     Action      `json:"action"`
	// Reason tells who added the rule and why.
	Reason reason.Trail `json:"reason_trail"`
	// Name is what people call the rule by, unique among the rules; empty if it
	// has none. Comment is for people alone.
	Name    string `json:"name,omitempty"`
	Comment string `json:"comment,omitempty"`
	// Until is when the rule ends by itself; zero if it stays.
	Until time.Time `json:"until,omitzero"`
	// Shadow rules are asked and counted, and decide nothing.
	Shadow bool `json:"shadow,omitempty"`

	// description and paused are what Describe and Paused return, kept in the rules of a
	// Chain: they are part of the verdict on every job that a rule holds.
	description, paused string
	// fresh: the rule is that of a preview and was not there before it.
	fresh bool
}

// Compare orders rules as they are evaluated.
func Compare(a, b *Rule) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Watermark, b.Watermark), strings.Compare(a.UUID, b.UUID))
}

// Describe names the rule, its action, and who added it why, in one line:
//
//	filter rule 8b53… (REJECT; user: "maintenance of rack 3")
//	filter rule rack3 (8b53…; PAUSE; user: "maintenance of rack 3")
func (r *Rule) Describe() string {
	if r.description != "" {
		return r.description
	}
	switch {
	case r.fresh && r.Name != "":
		return fmt.Sprintf("the new filter rule %s (%s; %s)", r.Name, r.Action, r.author())
	case r.fresh || r.UUID == "":
		return fmt.Sprintf("the new filter rule (%s; %s)", r.Action, r.author())
	case r.Name != "":
		return fmt.Sprintf("filter rule %s (%s; %s; %s)", r.Name, r.UUID, r.Action, r.author())
	}
	return fmt.Sprintf("filter rule %s (%s; %s)", r.UUID, r.Action, r.author())
}

// Paused says that the rule holds a job.
func (r *Rule) Paused() string {
	if r.paused != "" {
		return r.paused
	}
	return "paused by " + r.Describe()
}

// becomes is what becomes of a job by the action of the rule that decides.
var becomes = map[Kind]string{
	Pause: "the job would be held by %s", Reject: "the job would be refused by %s", RateLimit: "the job would begin as %s lets it",
}

// Would says what would become of a job about which the rule decides, empty where that is nothing but that it is let through.
func (r *Rule) Would() string {
	text, ok := becomes[r.Action.Kind]
	if !ok {
		return ""
	}
	return fmt.Sprintf(text, r.Describe())
}

// Deciding reports whether the rule can decide about a job: it is neither
// switched off by CONTINUE nor a shadow.
func (r *Rule) Deciding() bool { return r.Action.Kind != Continue && !r.Shadow }

// Expired reports whether the rule's time is over.
func (r *Rule) Expired(now time.Time) bool { return !r.Until.IsZero() && !now.Before(r.Until) }

// Short is what people call the rule: its name, or the first part of its UUID.
func (r *Rule) Short() string {
	if r.Name != "" {
		return r.Name
	}
	short, _, _ := strings.Cut(r.UUID, "-")
	return short
}

// author picks the entry of the trail that tells most: the first with words.
func (r *Rule) author() string {
	for _, e := range r.Reason {
		if e.Reason != "" {
			return fmt.Sprintf("%s: %q", e.Source, e.Reason)
		}
	}
	if len(r.Reason) > 0 {
		return "added by " + r.Reason[0].Source + " without a reason"
	}
	return "no reason given"
}

// CheckUUID refuses a text that is not a UUID in its usual form: 8-4-4-4-12
// lower-case hexadecimal digits.
func CheckUUID(s string) error {
	ok := len(s) == 36
	for i := 0; ok && i < len(s); i++ {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			ok = s[i] == '-'
		} else {
			ok = strings.IndexByte("0123456789abcdef", s[i]) >= 0
		}
	}
	if !ok {
		return fault.New(fault.Invalid, "Unable to parse UUID").At("uuid").
			WithHint("a UUID has the form 01234567-89ab-cdef-0123-456789abcdef in lower case, got %q", clip(s))
	}
	return nil
}

func clip(s string) string {
	const limit = 200
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}
