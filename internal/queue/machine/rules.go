package machine

import (
	"slices"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
)

// SetRules puts rules in force, on every job at once. It is made by PlanRules,
// which does what takes long, on a clone.
type SetRules struct {
	rules   []jobfilter.Rule
	chain   *jobfilter.Chain
	changed []string // UUIDs of rules that were put or removed
	base    uint64   // revision of the rules that the plan was made from
	decided []decided
	seen    job.ID // the newest job that the plan knows
}

// decided is a job about which the new rules say something else; in the order of
// ids.
type decided struct {
	id   job.ID
	rule jobfilter.Decision
}

// Edit makes new rules of the present ones and tells the UUIDs of those that it
// put or removed.
type Edit func(rules []jobfilter.Rule, lastID job.ID) (next []jobfilter.Rule, changed []string, err error)

// PlanRules prepares a change of the rules: it compiles them and asks them about
// every job that has not ended. The parameter each calls a function for each
// number below n, in any order or at the same time.
func (m *Machine) PlanRules(edit Edit, each func(n int, f func(int))) (SetRules, error) {
	rules, changed, err := edit(slices.Clone(m.rules), m.lastID)
	if err != nil {
		return SetRules{}, err
	}
	chain, err := m.chain.With(rules)
	if err != nil {
		return SetRules{}, err
	}
	s := SetRules{rules: rules, chain: chain, changed: changed, base: m.revision, seen: m.lastID}
	entries := m.jobs.Values()
	found := make([]decided, len(entries))
	each(len(entries), func(i int) {
		e := entries[i]
		if rule := chain.Decide(int64(e.id()), e.inputs); !s.same(e.rule, rule) {
			found[i] = decided{e.id(), rule}
		}
	})
	s.decided = slices.DeleteFunc(found, func(d decided) bool { return d == decided{} })
	return s, nil
}

// same reports whether two decisions are by one rule that was left alone.
func (s *SetRules) same(a, b jobfilter.Decision) bool {
	if a.Rule == nil || b.Rule == nil {
		return a.Rule == b.Rule
	}
	return a.Rule.UUID == b.Rule.UUID && !slices.Contains(s.changed, a.Rule.UUID)
}

// ErrStale refuses a plan that was overtaken by another one: plan again.
var ErrStale = fault.New(fault.Conflict, "the filter rules have changed meanwhile")

func (s SetRules) apply(m *Machine) {
	if s.base != m.revision {
		m.out.Refused = ErrStale
		return
	}
	m.rules, m.chain = s.rules, s.chain
	m.revision++
	m.out.Rules = s.changed
	m.out.Holds = make([]job.ID, 0, len(s.decided))
	all := slices.Clone(s.decided)
	// Jobs that came after the plan was made.
	m.jobs.Ascend(s.seen+1, func(id job.ID, e *entry) bool {
		all = append(all, decided{id, s.chain.Decide(int64(id), e.inputs)})
		return true
	})
	var waiting []decided
	for _, d := range all {
		if e, lives := m.jobs.Get(d.id); lives && e.waitsForLocks() {
			waiting = append(waiting, d)
		} else {
			m.reconsider(d.id, d.rule)
		}
	}
	// They have begun nothing: of a limit they get what those leave that have, as they are served.
	slices.SortFunc(waiting, func(a, b decided) int {
		if m.rankOf(a.id).less(m.rankOf(b.id)) {
			return -1
		}
		return 1
	})
	for _, d := range waiting {
		m.reconsider(d.id, d.rule)
	}
}

// rankOf is the place of a job among those that are served.
func (m *Machine) rankOf(id job.ID) rank {
	e, lives := m.jobs.Get(id)
	if !lives {
		return rank{id: id}
	}
	return e.newRank()
}

// reconsider lets a new decision take effect on a job, unless it has ended with
// one on which it depends.
func (m *Machine) reconsider(id job.ID, rule jobfilter.Decision) {
	e := m.entry(id)
	if e == nil {
		return
	}
	if sameEffect(e.rule, rule) {
		e.rule = rule
		return
	}
	m.redecide(e, rule)
}

// sameEffect reports whether two decisions treat a job alike.
func sameEffect(a, b jobfilter.Decision) bool {
	if a.Rule == nil || b.Rule == nil {
		return a.Rule == b.Rule
	}
	return a.Rule.UUID == b.Rule.UUID && a.Rule.Watermark == b.Rule.Watermark && a.Rule.Action == b.Rule.Action
}
