package luxi

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
)

// replaceFilter adds a rule (null for the UUID makes one) or replaces one with
// all its parts. The answer is the UUID.
func replaceFilter(ctx context.Context, d *Deps, a *arguments) (any, error) {
	uuid := a.optionalStr(0)
	rule := a.rule(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	if err := reason.CheckOutside(jobfilter.WithoutAccounts(d.Querier.Picture.Load().Rules, rule.Reason), allowedSource); err != nil {
		return nil, err
	}
	if uuid != "" {
		if err := jobfilter.CheckUUID(uuid); err != nil {
			return nil, luxiwire.Generic("Unable to parse UUID")
		}
	}
	rule.Reason = rule.Reason.Then(a.by.Entry(time.Now()))
	made, _, err := d.Queue.PutFilter(ctx, uuid, rule)
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
	uuid := a.str(0)
	if err := a.bad(); err != nil {
		return nil, err
	}
	err := d.Queue.DeleteFilter(ctx, uuid)
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

// testFilter tells what a rule would do, without adding it. The rule is an
// object with the keys priority, predicates, action and reason; those that are
// missing have the values that an empty rule has.
func testFilter(ctx context.Context, d *Deps, a *arguments) (any, error) {
	rule, days := a.ruleObject(0), a.integer(1)
	if days < 0 || days > maxTestDays {
		a.fail(fault.New(fault.Invalid, "the number of days must be 0 to %d", maxTestDays).At("args[1]"))
	}
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Queue.PreviewFilter(ctx, rule, int(days))
}

// maxTestDays is how far back a test may look; ten years is as good as all.
const maxTestDays = 3660

func (a *arguments) ruleObject(i int) jobfilter.Rule {
	var object map[string]raw
	a.decode(i, "JSObject", &object)
	parts := &arguments{text: a.text, items: []raw{raw("0"), raw("[]"), raw(`"CONTINUE"`), raw("[]")}}
	keys := []string{"priority", "predicates", "action", "reason"}
	for key, value := range object {
		n := slices.Index(keys, key)
		if n < 0 {
			a.fail(fault.New(fault.Invalid, "a filter rule has no key %q", key).WithHint("it has %s", strings.Join(keys, ", ")))
			return jobfilter.Rule{}
		}
		parts.items[n] = value
	}
	rule := parts.rule(0)
	if parts.err != nil {
		a.fail(parts.err)
	}
	return rule
}
