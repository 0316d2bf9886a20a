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
//     id and its opcodes; it allocates no memory.
//   - Predicate names and actions are the wire's; each kind of predicate is
//     one entry in the table of predicate.go, each action one of action.go.
package jobfilter

import (
	"cmp"
	"fmt"
	"strings"

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

	// description is what Describe returns, kept in the rules of a Chain: it is
	// part of the verdict on every job that a rule holds.
	description string
}

// Compare orders rules as they are evaluated.
func Compare(a, b *Rule) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Watermark, b.Watermark), strings.Compare(a.UUID, b.UUID))
}

// Describe names the rule, its action, and who added it why, in one line:
//
//	filter rule 8b53… (REJECT; user: "maintenance of rack 3")
func (r *Rule) Describe() string {
	if r.description != "" {
		return r.description
	}
	name := "the new filter rule"
	if r.UUID != "" {
		name = "filter rule " + r.UUID
	}
	return fmt.Sprintf("%s (%s; %s)", name, r.Action, r.author())
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
