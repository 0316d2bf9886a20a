package jobfilter

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
)

// Kind is what a rule does to the jobs it applies to, under its wire name.
type Kind string

// The kinds of action.
const (
	Accept    Kind = "ACCEPT"
	Pause     Kind = "PAUSE"
	Reject    Kind = "REJECT"
	Continue  Kind = "CONTINUE"
	RateLimit Kind = "RATE_LIMIT"
)

// ActionDoc describes a kind of action for help texts.
type ActionDoc struct {
	Kind Kind
	// Typed is how commands take it, with N for a number; Form is its JSON form.
	Typed, Form string
	Doc         string
}

// Actions lists all kinds of action.
func Actions() []ActionDoc {
	return []ActionDoc{
		{Accept, "ACCEPT", `"ACCEPT"`, "the job may run; no further rule is asked"},
		{Pause, "PAUSE", `"PAUSE"`, "the job stays queued; of a running job the current opcode finishes and the next does not start"},
		{Reject, "REJECT", `"REJECT"`, "the job is refused, or cancelled if it is queued already"},
		{Continue, "CONTINUE", `"CONTINUE"`, "the rule is switched off: the next one is asked"},
		{RateLimit, "RATE_LIMIT N", `["RATE_LIMIT", n]`, "at most n of the jobs that this rule applies to run at once"},
	}
}

// Action is what a rule does. Limit is set for RateLimit only: how many jobs
// may run at once, at least 1.
type Action struct {
	Kind  Kind
	Limit int
}

// String shows the action as commands accept it: "PAUSE", "RATE_LIMIT 3".
func (a Action) String() string {
	if a.Kind == RateLimit {
		return fmt.Sprintf("%s %d", a.Kind, a.Limit)
	}
	return string(a.Kind)
}

// MarshalJSON writes the wire form: a string, or ["RATE_LIMIT", n].
func (a Action) MarshalJSON() ([]byte, error) {
	if a.Kind == RateLimit {
		return json.Marshal([]any{a.Kind, a.Limit})
	}
	return json.Marshal(a.Kind)
}

// UnmarshalJSON reads the wire form; see ParseAction.
func (a *Action) UnmarshalJSON(data []byte) (err error) {
	*a, err = ParseAction(data)
	return err
}

// ParseAction reads the wire form of an action. An error has code Invalid and
// the place "action".
func ParseAction(data []byte) (Action, error) {
	var name string
	if json.Unmarshal(data, &name) == nil && string(data) != "null" {
		if a := (Action{Kind: Kind(name)}); a.Kind != RateLimit && known(a.Kind) {
			return a, nil
		}
		return Action{}, badAction(data, name)
	}
	var list []json.RawMessage
	if json.Unmarshal(data, &list) != nil || len(list) == 0 || json.Unmarshal(list[0], &name) != nil {
		return Action{}, badAction(data, "")
	}
	if Kind(name) != RateLimit {
		return Action{}, badAction(data, name)
	}
	var n int
	if len(list) != 2 || json.Unmarshal(list[1], &n) != nil || n < 1 {
		return Action{}, fault.New(fault.Invalid, "RATE_LIMIT argument must be a positive integer").At("action").
			WithHint(`write ["RATE_LIMIT", n] with n at least 1, got %s`, clip(string(data)))
	}
	return Action{Kind: RateLimit, Limit: n}, nil
}

func known(k Kind) bool {
	return slices.ContainsFunc(Actions(), func(d ActionDoc) bool { return d.Kind == k })
}

func badAction(data []byte, name string) error {
	err := fault.New(fault.Invalid, "malformed FilterAction JSON: %s", clip(string(data))).At("action")
	var forms, names []string
	for _, d := range Actions() {
		forms = append(forms, d.Form)
		names = append(names, string(d.Kind))
	}
	all := "the actions are " + strings.Join(forms, ", ")
	if near := qlang.Suggest(name, slices.Values(names)); name != "" && near != "" && near != name {
		return err.WithHint("did you mean %s? %s", near, all)
	}
	return err.WithHint("%s", all)
}
