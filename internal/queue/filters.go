package queue

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/queue/machine"
	"github.com/drover-project/drover/internal/reason"
)

// MaxRule is the greatest size of a filter rule as JSON, in bytes.
const MaxRule = 256 << 10

// FilterChange is a set of edits of the rules, with who wants them.
type FilterChange struct {
	// Edits are made one on top of the other. One that puts a rule and names none
	// adds it under a new UUID.
	Edits []jobfilter.Edit
	// Digest demands that the rules are those that it is of (jobfilter.Digest);
	// empty for any.
	Digest string
	By     By
	// expiry: the queue itself ends rules whose time is over.
	expiry bool
	// preview: nothing is to come of it.
	preview bool
	// texts are the rules that the edits made as they are stored, nil for one that is gone.
	texts [][]byte
}

// ChangeFilters makes a set of edits, all or none, and returns what they made.
// They take effect on every job before they are acknowledged; each is recorded.
// Errors: those of jobfilter.Apply; fault.Conflict for other rules than those of
// the digest; fault.TooLarge.
func (q *Queue) ChangeFilters(ctx context.Context, c FilterChange) (*jobfilter.Edited, error) {
	var made *jobfilter.Edited
	edit, err := q.editing(&c, &made)
	if err != nil {
		return nil, err
	}
	return made, q.setRules(ctx, edit, func(w *work) {
		w.ruleTexts = map[string][]byte{}
		for i, changed := range made.Changed {
			q.record(w, c.event(i, changed))
			w.ruleTexts[changed.UUID()] = c.texts[i]
		}
	})
}

// event is what a change of a rule is recorded as.
func (c *FilterChange) event(i int, changed jobfilter.Changed) audit.Event {
	e := audit.New(audit.FilterAdd, changed.UUID(), c.By)
	switch {
	case c.expiry:
		e.What = audit.FilterExpire
	case changed.After == nil:
		e.What = audit.FilterDelete
	case c.Edits[i].Verb == jobfilter.Change:
		e.What = audit.FilterModify
	case changed.Before != nil:
		e.What = audit.FilterReplace
	}
	if changed.Before != nil {
		e.Before, e.Name = encode(changed.Before), changed.Before.Name
	}
	if changed.After != nil {
		e.After, e.Name = c.texts[i], changed.After.Name
	}
	return e
}

// editing returns the edits as the machine wants them; made gets what they led
// to, each time they are made.
func (q *Queue) editing(c *FilterChange, made **jobfilter.Edited) (machine.Edit, error) {
	edits := slices.Clone(c.Edits)
	if len(edits) == 0 {
		return nil, fault.New(fault.Invalid, "there is no change of filter rules to make")
	}
	for i := range edits {
		if edits[i].Verb == jobfilter.Put && edits[i].Rule == "" {
			edits[i].Rule = q.cfg.NewUUID()
		}
	}
	at := jobfilter.Moment{Now: q.cfg.Now(), Preview: c.preview}
	at.Hop = reason.Entry{Source: reason.SourceQueue, Time: at.Now.UnixNano()}
	return func(rules []jobfilter.Rule, lastID job.ID) ([]jobfilter.Rule, []string, error) {
		present := pointers(rules)
		if err := jobfilter.CheckDigest(present, c.Digest); err != nil {
			return nil, nil, err
		}
		at.Watermark = int64(lastID)
		edited, err := jobfilter.Apply(present, edits, at)
		if err != nil {
			return nil, nil, err
		}
		*made = edited
		next := make([]jobfilter.Rule, len(edited.Rules))
		for i, r := range edited.Rules {
			next[i] = *r
		}
		changed := make([]string, len(edited.Changed))
		c.texts = make([][]byte, len(edited.Changed))
		for i, x := range edited.Changed {
			changed[i] = x.UUID()
			if x.After == nil {
				continue
			}
			if c.texts[i], err = ruleText(x.After); err != nil {
				return nil, nil, err
			}
		}
		slices.Sort(changed)
		return next, slices.Compact(changed), jobfilter.CheckSize(next)
	}, nil
}

func pointers(rules []jobfilter.Rule) []*jobfilter.Rule {
	out := make([]*jobfilter.Rule, len(rules))
	for i := range rules {
		out[i] = &rules[i]
	}
	return out
}

// ruleText returns a rule as it is stored; fault.TooLarge for too large a one.
func ruleText(r *jobfilter.Rule) ([]byte, error) {
	text := encode(r)
	if len(text) > MaxRule {
		return nil, fault.New(fault.TooLarge, "a filter rule may have at most %d bytes, this one has %d", MaxRule, len(text))
	}
	return text, nil
}

// PutFilter adds a rule under a new UUID, or under the given one; a rule that
// has it already is replaced. It returns the UUID, and warnings about a rule
// that is valid but hardly means what it says. See ChangeFilters.
func (q *Queue) PutFilter(ctx context.Context, uuid string, r jobfilter.Rule, by By) (string, []jobfilter.Warning, error) {
	if uuid != "" {
		if err := jobfilter.CheckUUID(uuid); err != nil {
			return "", nil, err
		}
	}
	made, err := q.ChangeFilters(ctx, FilterChange{Edits: []jobfilter.Edit{{Verb: jobfilter.Put, Rule: uuid, Parts: r}}, By: by})
	if err != nil {
		return "", nil, err
	}
	return made.Changed[0].UUID(), made.Warnings, nil
}

// DeleteFilter removes a rule; fault.NotFound if there is none. See
// ChangeFilters.
func (q *Queue) DeleteFilter(ctx context.Context, uuid string, by By) error {
	_, err := q.ChangeFilters(ctx, FilterChange{Edits: []jobfilter.Edit{{Verb: jobfilter.Delete, Rule: uuid}}, By: by})
	return err
}

// setRules changes the rules. What that means for each job is worked out beside
// the queue, which goes on meanwhile, by one change at a time. made is called
// when the change is made, before it is durable.
func (q *Queue) setRules(ctx context.Context, edit machine.Edit, made func(*work)) error {
	q.planning.Lock()
	durable, err := q.planRules(edit, made)
	q.planning.Unlock()
	if err != nil {
		if lost := q.catchUp(ctx); lost != nil { // it rests upon what never came to be
			return lost
		}
		return err
	}
	select {
	case err := <-durable:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (q *Queue) planRules(edit machine.Edit, made func(*work)) (durable <-chan error, err error) {
	for {
		planner := q.look()
		plan, err := planner.PlanRules(edit, spread)
		if err != nil {
			return nil, err
		}
		q.update(func(w *work) {
			q.m.Discard(planner)
			if err = q.usable(); err != nil {
				return
			}
			if err = q.apply(w, plan).Refused; err == nil {
				made(w)
				durable = w.answer()
				if slices.ContainsFunc(q.m.Rules(), func(r jobfilter.Rule) bool { return !r.Until.IsZero() }) {
					q.expiring.signal()
				}
			}
		})
		if !errors.Is(err, machine.ErrStale) {
			return durable, err
		}
	}
}

// spread calls f with each number below n, on all processors; one share is done by who calls it.
func spread(n int, f func(int)) {
	share := n/runtime.GOMAXPROCS(0) + 1
	do := func(from int) {
		for i := from; i < min(from+share, n); i++ {
			f(i)
		}
	}
	var all sync.WaitGroup
	for from := share; from < n; from += share {
		all.Go(func() { do(from) })
	}
	do(0)
	all.Wait()
}

// PreviewFilters tells what a set of edits would do to each job that is in the
// queue now and to jobs to come, and would have done to the jobs that ended in
// the last days, without making them. Errors: as ChangeFilters.
func (q *Queue) PreviewFilters(ctx context.Context, c FilterChange, days int) (*jobfilter.Forecast, error) {
	m := q.look()
	rules := m.Rules()
	p := jobfilter.Prospect{Rules: pointers(rules), Next: int64(m.LastID()) + 1, Recorded: q.Jobs().Whole()}
	c.preview = true
	edit, err := q.editing(&c, &p.Edited)
	if err != nil {
		return nil, err
	}
	plan, err := m.PlanRules(edit, spread)
	if err != nil {
		return nil, err
	}
	past, err := q.past(ctx, days)
	if err != nil {
		return nil, err
	}
	p.Past = slices.Values(past)
	p.Effects, p.Unaffected = m.Forecast(plan, q.cfg.Now())
	return p.Forecast()
}

// past returns the jobs that ended in the last days, archived or not.
func (q *Queue) past(ctx context.Context, days int) ([]*job.Job, error) {
	if days <= 0 {
		return nil, nil
	}
	since := max(job.At(q.cfg.Now().Add(-time.Duration(days)*24*time.Hour)), 1) // 0 is the end of what has not ended
	var out []*job.Job
	seen := map[job.ID]bool{} // one may go into the archive meanwhile
	for _, part := range []iter.Seq2[*job.Job, error]{q.endedIn(ctx, since, job.Never), q.Archived(ctx, since, job.Never)} {
		for j, err := range part {
			if err != nil {
				return nil, err
			}
			if !seen[j.ID] {
				seen[j.ID] = true
				out = append(out, j)
			}
		}
	}
	return out, nil
}
