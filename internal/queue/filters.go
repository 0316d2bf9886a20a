package queue

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/store"
)

// reasonSource marks the queue's own hop in the trail of a filter rule, under
// the name that clients know.
const reasonSource = "luxid"

// PutFilter adds a rule under a new UUID, or under the given one; a rule that
// has it already is replaced. Watermark and the end of the reason trail are set
// here. It takes effect on every job before it is acknowledged. The warnings
// are about rules that are valid but hardly mean what they say.
func (q *Queue) PutFilter(ctx context.Context, uuid string, r jobfilter.Rule) (string, []jobfilter.Warning, error) {
	if uuid == "" {
		uuid = q.cfg.NewUUID()
	}
	if err := jobfilter.CheckUUID(uuid); err != nil {
		return "", nil, err
	}
	r.UUID = uuid
	err := q.change(ctx, func() error {
		now := q.cfg.Now()
		r.Watermark = int64(q.lastID)
		r.Reason = r.Reason.Append(reason.Entry{Source: reasonSource, Time: now.UnixNano()})
		rules := append(without(q.rules, uuid), r)
		if err := jobfilter.CheckSize(rules); err != nil {
			return err
		}
		return q.setRules(rules, uuid)
	})
	return uuid, jobfilter.Check(&r), err
}

// DeleteFilter removes a rule; fault.NotFound if there is none.
func (q *Queue) DeleteFilter(ctx context.Context, uuid string) error {
	return q.change(ctx, func() error {
		rest := without(q.rules, uuid)
		if len(rest) == len(q.rules) {
			return fault.New(fault.NotFound, "Filter rule with UUID %s does not exist", uuid)
		}
		return q.setRules(rest, uuid)
	})
}

func without(rules []jobfilter.Rule, uuid string) []jobfilter.Rule {
	return slices.DeleteFunc(slices.Clone(rules), func(r jobfilter.Rule) bool { return r.UUID == uuid })
}

// setRules puts new rules in force, of which one changed.
func (q *Queue) setRules(rules []jobfilter.Rule, changed string) error {
	chain, err := q.chain.With(rules)
	if err != nil {
		return err
	}
	q.rules, q.chain = rules, chain
	q.work.touch(store.Key{Kind: KindFilter, ID: changed})
	entries := q.inOrder()
	decisions := decideAll(chain, entries)
	for i, e := range entries {
		switch {
		case q.entries[e.id()] != e: // it has ended with one on which it depends
		case sameEffect(e.rule, decisions[i]):
			e.rule = decisions[i]
		default:
			q.redecide(e, decisions[i])
		}
	}
	return nil
}

// decideAll asks the rules about all entries, on all processors.
func decideAll(chain *jobfilter.Chain, entries []*entry) []jobfilter.Decision {
	out := make([]jobfilter.Decision, len(entries))
	spread(len(entries), func(i int) { out[i] = chain.Decide(int64(entries[i].id()), entries[i].inputs) })
	return out
}

// spread calls f with each number below n, on all processors.
func spread(n int, f func(int)) {
	share := n/runtime.GOMAXPROCS(0) + 1
	var all sync.WaitGroup
	for from := 0; from < n; from += share {
		all.Go(func() {
			for i := from; i < min(from+share, n); i++ {
				f(i)
			}
		})
	}
	all.Wait()
}

// sameEffect reports whether two decisions treat a job alike.
func sameEffect(a, b jobfilter.Decision) bool {
	if a.Rule == nil || b.Rule == nil {
		return a.Rule == b.Rule
	}
	return a.Rule.UUID == b.Rule.UUID && a.Rule.Watermark == b.Rule.Watermark && a.Rule.Action == b.Rule.Action
}
