package luxi

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
)

// replaceFilter adds a rule (null for the UUID makes one) or replaces one with
// all its parts. The answer is the UUID.
func replaceFilter(ctx context.Context, d *Deps, a *arguments) (any, error) {
	uuid := a.optionalStr(0)
	rule, by := a.rule(1), a.as(5)
	if err := a.bad(); err != nil {
		return nil, err
	}
	if err := reason.CheckOutside(jobfilter.Claims(d.Querier.Picture.Load().Rules, rule.Reason), allowedSource); err != nil {
		return nil, err
	}
	if a.has(0) { // null adds a rule; a text, also an empty one, is meant to be a UUID
		if err := jobfilter.CheckUUID(uuid); err != nil {
			return nil, luxiwire.Generic("Unable to parse UUID")
		}
	}
	rule.Reason = rule.Reason.Then(a.by.Entry(time.Now()))
	made, _, err := d.Queue.PutFilter(ctx, uuid, rule, by)
	return made, err
}

// rule reads the parts of a rule from four arguments: priority, predicates,
// action, reason.
func (a *arguments) rule(from int) jobfilter.Rule {
	var rule jobfilter.Rule
	var err error
	if len(a.text) > opcode.MaxBytes {
		a.fail(fault.New(fault.TooLarge, "the rule has %d bytes; the limit is %d", len(a.text), opcode.MaxBytes))
		return rule
	}
	if rule.Priority, err = jobfilter.ParsePriority(a.items[from]); err != nil {
		a.fail(err)
	}
	if rule.Predicates, err = jobfilter.ParsePredicates(a.items[from+1]); err != nil {
		a.fail(withoutPlace(err))
	}
	if rule.Action, err = jobfilter.ParseAction(a.items[from+2]); err != nil {
		a.fail(err)
	}
	rule.Reason = a.trail(from + 3)
	return rule
}

// trail reads reason entries.
func (a *arguments) trail(i int) reason.Trail {
	out := reason.Trail{}
	for _, item := range a.raws(i) {
		var e reason.Entry
		if err := e.UnmarshalJSON(item); err != nil {
			a.fail(fault.New(fault.Invalid, "Unable to read Triple: %w", err))
			break
		}
		out = append(out, e)
	}
	return out
}

// withoutPlace takes the place of a fault out of the message, where clients do
// not expect it; it stays in the error's field.
func withoutPlace(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Field == "" {
		return err
	}
	c := *f
	c.Message = strings.TrimPrefix(f.Message, f.Field+": ")
	return &c
}

func deleteFilter(ctx context.Context, d *Deps, a *arguments) (any, error) {
	uuid, by := a.str(0), a.as(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	err := d.Queue.DeleteFilter(ctx, uuid, by)
	if fault.Is(err, fault.NotFound) {
		return nil, luxiwire.Generic("Filter rule with UUID %s does not exist", uuid)
	}
	return nil, err
}

// queryFilters answers for the rules with the given UUIDs, or for all with
// null or an empty list; rules that do not exist have no row.
func queryFilters(ctx context.Context, d *Deps, a *arguments) (any, error) {
	uuids, fields := a.optionalStrs(0), a.strs(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return old(ctx, d, "filter", uuids, fields)
}

// testFilter tells what changes of rules would do, without making them. What it
// takes is one rule, an object with the keys of jobfilter.ParseRule, or a list of
// edits as changeFilters takes them.
func testFilter(ctx context.Context, d *Deps, a *arguments) (any, error) {
	edits, days := a.edits(0), a.integer(1)
	if days < 0 || days > maxTestDays {
		a.fail(fault.New(fault.Invalid, "the number of days must be 0 to %d", maxTestDays).At("args[1]"))
	}
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Queue.PreviewFilters(ctx, queue.FilterChange{Edits: edits, By: a.as(-1)}, int(days))
}

// changeFilters makes a list of edits, all or none: objects with the keys do
// (put, modify, delete), rule (a UUID, a name, or the beginning of either), parts
// (an object as jobfilter.ParseRule reads it) and renew_watermark. The second
// argument is null or the digest that a preview told, which demands that the
// rules are still the same. The answer is a list of [UUID, warnings].
func changeFilters(ctx context.Context, d *Deps, a *arguments) (any, error) {
	edits, digest := a.edits(0), a.optionalStr(1)
	by := a.as(2)
	if err := a.bad(); err != nil {
		return nil, err
	}
	made, err := d.Queue.ChangeFilters(ctx, queue.FilterChange{Edits: edits, Digest: digest, By: by})
	if err != nil {
		return nil, err
	}
	uuids := []string{}
	for _, c := range made.Changed {
		uuids = append(uuids, c.UUID())
	}
	return map[string]any{"uuids": uuids, "warnings": append([]jobfilter.Warning{}, made.Warnings...)}, nil
}

// maxTestDays is how far back a test may look; ten years is as good as all.
const maxTestDays = 3660

// edits reads a list of edits, or one rule that is to be put.
func (a *arguments) edits(i int) []jobfilter.Edit {
	var bodies []raw
	if text := bytes.TrimSpace(a.items[i]); len(text) > 0 && text[0] == '{' {
		bodies = []raw{raw(`{"do":"put","parts":` + string(text) + `}`)}
	} else {
		bodies = a.raws(i)
	}
	edits := make([]jobfilter.Edit, len(bodies))
	for n, body := range bodies {
		e, err := jobfilter.ParseEdit(body)
		if err == nil {
			err = reason.CheckOutside(jobfilter.Claims(nil, e.Parts.Reason), allowedSource)
		}
		if err != nil {
			a.fail(err)
			return nil
		}
		edits[n] = e.Signed(a.by.Entry(time.Now()))
	}
	return edits
}
