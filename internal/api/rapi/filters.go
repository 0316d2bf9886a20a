package rapi

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/reason"
)

func singleFilter(r *request) (any, error) {
	uuid := r.variables["uuid"]
	result, err := r.Querier.Query(r.Context(), query.Request{What: "filter", Fields: filterItem.bulk,
		Filter: &qlang.Compare{Op: qlang.Eq, Field: "uuid", Value: qlang.TextValue(uuid)}})
	if err != nil {
		return nil, err
	}
	if result.Len() == 0 {
		return nil, fault.New(fault.NotFound, "Filter rule with UUID %s does not exist", uuid)
	}
	return json.RawMessage(result.AppendObject(nil, 0)), nil
}

// putFilter adds or replaces a rule. Clients expect the bare UUID as the
// answer, so warnings about the rule travel in a header. With dry-run=1 it only
// tells what the rule would do.
func putFilter(r *request) (any, error) {
	rule, err := r.rule()
	if err != nil {
		return nil, err
	}
	for _, w := range jobfilter.Check(&rule) {
		r.answerHeader.Add("Warning", "299 drover "+strconv.QuoteToASCII(w.String()))
	}
	preview, err := r.flag("dry-run")
	if err != nil {
		return nil, err
	}
	if preview {
		rule.UUID = r.variables["uuid"] // seen as the replacement of that rule
		return r.preview(rule)
	}
	uuid, _, err := r.Queue.PutFilter(r.Context(), r.variables["uuid"], rule)
	return uuid, err
}

// How many days of archived jobs a preview looks at: as many as days= says, by
// default those of the last week.
const (
	defaultPreviewDays = 7
	maxPreviewDays     = 3650
)

func (r *request) preview(rule jobfilter.Rule) (any, error) {
	days := defaultPreviewDays
	if text := r.text("days"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > maxPreviewDays {
			return nil, badRequest("Invalid value for the 'days' parameter: it must be a number from 0 to %d", maxPreviewDays)
		}
		days = n
	}
	return r.Queue.PreviewFilter(r.Context(), rule, days)
}

// deleteFilter removes a rule. With dry-run=1 it only tells which jobs the rule
// holds.
func deleteFilter(r *request) (any, error) {
	dry, err := r.flag("dry-run")
	if err != nil {
		return nil, err
	}
	if !dry {
		return nil, r.Queue.DeleteFilter(r.Context(), r.variables["uuid"])
	}
	if _, err := singleFilter(r); err != nil {
		return nil, err
	}
	held, err := r.Querier.Query(r.Context(), query.Request{What: "job", Fields: []string{"id"},
		Filter: &qlang.Compare{Op: qlang.Eq, Field: "held_by", Value: qlang.TextValue(r.variables["uuid"])}})
	if err != nil {
		return nil, err
	}
	holds := []any{}
	for row := range held.Rows() {
		holds = append(holds, row[0].Value)
	}
	return map[string]any{"would_delete": r.variables["uuid"], "holds": holds}, nil
}

// rule reads a rule from the body. A reason in the query string comes after
// those of the body.
func (r *request) rule() (jobfilter.Rule, error) {
	text := r.rawBody
	if len(text) == 0 {
		text = []byte("null")
	}
	rule, err := jobfilter.ParseRule(text)
	if err != nil {
		return rule, err
	}
	if err := reason.CheckOutside(withoutClientMarks(jobfilter.WithoutAccounts(r.Querier.Picture.Load().Rules, rule.Reason)), nil); err != nil {
		return rule, err
	}
	if text := r.text("reason"); text != "" {
		rule.Reason = rule.Reason.Then(reason.Entry{Source: reason.SourceUser, Reason: text, Time: r.Now().UnixNano()})
	}
	rule.Reason = rule.Reason.Then(r.by.Entry(r.Now()))
	return rule, nil
}

// withoutClientMarks leaves out the entries that the stock client library adds
// to every rule's trail: reserved, but harmless, and no user can keep the
// library from it. There may be several, of a rule that was read and is sent
// back.
func withoutClientMarks(t reason.Trail) reason.Trail {
	return slices.DeleteFunc(slices.Clone(t), func(e reason.Entry) bool {
		return e.Source == reason.SourceClient && e.Reason == ""
	})
}
