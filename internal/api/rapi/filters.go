package rapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
)

func singleFilter(r *request) (any, error) {
	rule, err := jobfilter.Find(r.Querier.Picture.Load().Rules, r.variables["uuid"])
	if err != nil {
		return nil, err
	}
	result, err := r.Querier.Query(r.Context(), query.Request{What: "filter", Fields: filterItem.bulk,
		Filter: &qlang.Compare{Op: qlang.Eq, Field: "uuid", Value: qlang.TextValue(rule.UUID)}})
	if err != nil {
		return nil, err
	}
	if result.Len() == 0 {
		return nil, fault.New(fault.NotFound, "Filter rule with UUID %s does not exist", rule.UUID)
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
	uuid := r.variables["uuid"]
	if uuid != "" {
		if err := jobfilter.CheckUUID(uuid); err != nil {
			return nil, err
		}
	}
	return r.changeFilter(jobfilter.Edit{Verb: jobfilter.Put, Rule: uuid, Parts: rule})
}

// modifyFilter changes the parts of a rule that the body gives; the others stay,
// and the watermark too unless renew_watermark=1 is given.
func modifyFilter(r *request) (any, error) {
	if err := r.checkParameters("renew_watermark", "dry-run", "days", "reason"); err != nil {
		return nil, err
	}
	rule, err := r.rule()
	if err != nil {
		return nil, err
	}
	renew, err := r.flag("renew_watermark")
	if err != nil {
		return nil, err
	}
	given := rule.Reason
	edit := jobfilter.Edit{Verb: jobfilter.Change, Rule: r.variables["uuid"], Parts: rule, Body: r.rawBody, Renew: renew}
	edit.Parts.Reason = given[:len(given)-1]
	return r.changeFilter(edit.Signed(given[len(given)-1]))
}

func deleteFilter(r *request) (any, error) {
	return r.changeFilter(jobfilter.Edit{Verb: jobfilter.Delete, Rule: r.variables["uuid"]})
}

// changeFilter makes a change of a rule, or tells with dry-run=1 what it would
// do. The header If-Match demands that the rules are those of a preview's digest.
func (r *request) changeFilter(edit jobfilter.Edit) (any, error) {
	c := queue.FilterChange{
		Edits: []jobfilter.Edit{edit}, By: r.who(),
		Digest: strings.Trim(r.Header.Get("If-Match"), `"`),
	}
	preview, err := r.flag("dry-run")
	if err != nil {
		return nil, err
	}
	if preview {
		return r.preview(c)
	}
	made, err := r.Queue.ChangeFilters(r.Context(), c)
	if c.Digest != "" && fault.Is(err, fault.Conflict) {
		return nil, failure(http.StatusPreconditionFailed, "%s", err)
	}
	if err != nil {
		return nil, err
	}
	for _, w := range made.Warnings {
		r.warn(w.String())
	}
	if edit.Verb == jobfilter.Delete {
		return nil, nil
	}
	return made.Changed[0].UUID(), nil
}

// warn adds a warning to the answer, in a header: clients expect bare answers.
func (r *request) warn(text string) {
	r.answerHeader.Add("Warning", "299 drover "+strconv.QuoteToASCII(text))
}

// who is who sends the request, and why.
func (r *request) who() queue.By {
	by := queue.By{Account: r.by}
	if text := r.text("reason"); text != "" {
		by.Trail = reason.Trail{{Source: reason.SourceUser, Reason: text, Time: r.Now().UnixNano()}}
	}
	return by
}

// How many days of archived jobs a preview looks at: as many as days= says, by
// default those of the last week.
const (
	defaultPreviewDays = 7
	maxPreviewDays     = 3650
)

func (r *request) preview(c queue.FilterChange) (any, error) {
	days := defaultPreviewDays
	if text := r.text("days"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > maxPreviewDays {
			return nil, badRequest("Invalid value for the 'days' parameter: it must be a number from 0 to %d", maxPreviewDays)
		}
		days = n
	}
	return r.Queue.PreviewFilters(r.Context(), c, days)
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
	if err := reason.CheckOutside(withoutClientMarks(jobfilter.Claims(r.Querier.Picture.Load().Rules, rule.Reason)), sayingUser); err != nil {
		return rule, err
	}
	if text := r.text("reason"); text != "" {
		rule.Reason = rule.Reason.Then(reason.Entry{Source: reason.SourceUser, Reason: text, Time: r.Now().UnixNano()})
	}
	rule.Reason = rule.Reason.Then(r.by.Entry(r.Now()))
	return rule, nil
}

// sayingUser lets the entry pass in which clients say what their user said: the
// reference takes it, and its own tests send it.
func sayingUser(source string) bool { return source == reason.SourceUser }

// withoutClientMarks leaves out the entries that the stock client library adds
// to every rule's trail: reserved, but harmless, and no user can keep the
// library from it. There may be several, of a rule that was read and is sent
// back.
func withoutClientMarks(t reason.Trail) reason.Trail {
	return slices.DeleteFunc(slices.Clone(t), func(e reason.Entry) bool {
		return e.Source == reason.SourceClient && e.Reason == ""
	})
}
