package machine

import (
	"fmt"
	"math"
	"slices"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/schedule"
)

// Explanation says why a job is where it is, in the order in which the queue
// asks: rules, dependencies, buckets, slots, locks.
type Explanation struct {
	Job     job.ID        `json:"job"`
	Status  job.Status    `json:"status"`
	Summary []string      `json:"summary"`
	Step    schedule.Step `json:"step"`
	// Why is the answer in one sentence, Change what would have to be different
	// for the job to go on.
	Why    string   `json:"why"`
	Change []string `json:"change"`
	// Held says by which rule the job is held and since when.
	Held *Held `json:"held,omitempty"`
	// Rules are all rules in order, each with its verdict on this job.
	Rules        []jobfilter.Verdict `json:"rules"`
	Dependencies []Dependency        `json:"dependencies"`
	Buckets      []BucketPlace       `json:"buckets"`
	Slots        Slots               `json:"slots"`
	Locks        Locks               `json:"locks"`
	// Timeline is what became of the job until now: what it waited for, from when
	// to when, when and where it ran.
	Timeline []job.Span `json:"timeline"`
}

// Held says by which rule a job is held, since when, and who added the rule.
type Held struct {
	Rule  string   `json:"rule"`
	By    string   `json:"by"`
	Since job.Time `json:"since"`
}

// Dependency is another job that this one depends on.
type Dependency struct {
	Job      job.ID     `json:"job"`
	Opcode   int        `json:"opcode"`
	Statuses []string   `json:"statuses"`
	Status   job.Status `json:"status,omitempty"`
	Met      bool       `json:"met"`
	Why      string     `json:"why"`
}

// BucketPlace is a job's standing in one bucket.
type BucketPlace struct {
	Name     string   `json:"name"`
	Rule     string   `json:"rule,omitempty"`
	Limit    int      `json:"limit"`
	InFlight []job.ID `json:"in_flight"`
	// Inside says that the job itself is one of those in flight; Place is else
	// how many wait in front of it, plus one, and 0 when it does not wait here.
	Inside bool `json:"inside"`
	Place  int  `json:"place"`
}

// Slots says how many jobs run and how many may, and how many are served
// before this one.
type Slots struct {
	Running  int  `json:"running"`
	Max      int  `json:"max"`
	Has      bool `json:"has"`
	Priority int  `json:"priority"`
	Ahead    int  `json:"ahead"`
}

// Locks says what the job holds and what it waits for.
type Locks struct {
	Needs []Lock    `json:"needs"`
	Held  []Lock    `json:"held"`
	Waits *LockWait `json:"waits,omitempty"`
}

// Lock is a lock in a mode.
type Lock struct {
	Name string `json:"name"`
	Mode string `json:"mode"`
}

// LockWait is a lock that is waited for, with who is in the way.
type LockWait struct {
	Lock
	Holders []lock.Owner `json:"holders"`
	Ahead   []lock.Owner `json:"ahead"`
}

// Explain says why a job is where it is, false if it has ended. On a clone it
// holds up nobody.
func (m *Machine) Explain(id job.ID) (Explanation, bool) {
	e, ok := m.jobs.Get(id)
	if !ok {
		return Explanation{}, false
	}
	return m.explain(e), true
}

// ExplainEnded says how a job ended, and what the rules in force now would say.
func (m *Machine) ExplainEnded(j *job.Job) Explanation {
	return Explanation{
		Job: j.ID, Status: j.Status(), Summary: j.Summary(), Step: schedule.Ended,
		Why: j.Ending(), Rules: m.chain.Explain(int64(j.ID), j.Inputs()), Timeline: j.Timeline(),
	}
}

func (m *Machine) explain(e *entry) Explanation {
	j := e.job
	v := schedule.Next(j, m.facts(e, m.world.MaxRunning-m.running))
	x := Explanation{
		Job: j.ID, Status: j.Status(), Summary: j.Summary(), Step: v.Step, Why: v.Why,
		Rules: m.chain.Explain(int64(j.ID), e.inputs), Dependencies: m.explainDependencies(e),
		Buckets: m.explainBuckets(e), Slots: m.explainSlots(e), Locks: m.explainLocks(e), Timeline: m.timeline(e),
	}
	if j.Hold != nil && e.rule.Rule != nil {
		x.Held = &Held{Rule: j.Hold.Rule, By: e.rule.Rule.Describe(), Since: j.Hold.Since}
	}
	if w, waits := m.locks.Waiting(e.owner(), math.MaxInt); waits {
		x.Why = m.waitsFor(&w)
	} else if e.place == inGranted {
		x.Why = job.NoSlotWhileReady
	}
	x.Change = m.remedies(e, v, x)
	return x
}

func (m *Machine) explainDependencies(e *entry) []Dependency {
	out := []Dependency{}
	for i := range e.job.Ops {
		for _, d := range e.job.Ops[i].Input.Depends {
			status, exists := m.status(e, job.ID(d.Job))
			state, why := job.CheckDependency(d, status, exists)
			out = append(out, Dependency{Job: job.ID(d.Job), Opcode: i, Statuses: d.Statuses, Status: status,
				Met: state == job.DependencyMet, Why: why})
		}
	}
	return out
}

func (m *Machine) explainBuckets(e *entry) []BucketPlace {
	out := []BucketPlace{}
	for _, b := range schedule.Buckets(e.rule, e.adhoc) {
		p := BucketPlace{Name: b.String(), Rule: b.Rule, Limit: b.Limit, InFlight: []job.ID{}}
		m.members.Ascend(member{bucket: b}, func(other member) bool {
			if other.bucket == b {
				p.InFlight = append(p.InFlight, other.id)
				p.Inside = p.Inside || other.id == e.id()
			}
			return other.bucket == b
		})
		if e.place == inBucket && e.wants == b {
			p.Place = m.placeInLine(e)
		}
		out = append(out, p)
	}
	return out
}

// placeInLine is how many wait before the entry for its bucket, plus one.
func (m *Machine) placeInLine(e *entry) int {
	n := 1
	m.full.Ascend(waiter{bucket: e.wants, rank: rank{priority: math.MinInt}}, func(w waiter) bool {
		if w.rank == e.rank {
			return false
		}
		n++
		return true
	})
	return n
}

func (m *Machine) explainSlots(e *entry) Slots {
	s := Slots{Running: m.running, Max: m.world.MaxRunning, Has: e.place == inRunner, Priority: e.job.Priority()}
	if e.place == inReady || e.place == inGranted {
		s.Ahead = m.ready.before(e.rank) + m.granted.before(e.rank)
	}
	return s
}

func (m *Machine) explainLocks(e *entry) Locks {
	out := Locks{Needs: []Lock{}, Held: []Lock{}}
	request := e.request
	if request == nil {
		request = m.world.Locks(e.inputs[e.job.Next()])
	}
	for _, w := range request {
		if need := (Lock{m.lockName(w.Name), w.Mode.String()}); !slices.Contains(out.Needs, need) { // an opcode may name one twice
			out.Needs = append(out.Needs, need)
		}
	}
	for _, w := range m.locks.Held(e.owner()) {
		out.Held = append(out.Held, Lock{m.lockName(w.Name), w.Mode.String()})
	}
	if w, waits := m.locks.Waiting(e.owner(), math.MaxInt); waits {
		out.Waits = &LockWait{Lock: Lock{m.lockName(w.Name), w.Mode.String()}, Holders: w.Holders, Ahead: w.Ahead}
	}
	return out
}

// without says what would become of a job if the rule that decides were gone:
// advice must not be worse than waiting.
func (m *Machine) without(e *entry, rule *jobfilter.Rule) string {
	next := m.chain.Without(rule.UUID, int64(e.id()), e.inputs)
	switch next.Action().Kind {
	case jobfilter.Reject:
		return "but then " + next.Rule.Describe() + " would reject it, and the job would be cancelled"
	case jobfilter.Pause:
		return "then " + next.Rule.Describe() + " would hold it"
	case jobfilter.RateLimit:
		return "then " + next.Rule.Describe() + " would let it wait for a place"
	}
	return "then no other rule would keep it"
}

// awaited tells of the jobs that one depends on what they are doing, and what
// holds them.
func (m *Machine) awaited(ids []job.ID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = fmt.Sprintf("job %d has to end", id)
		other, ok := m.jobs.Get(id)
		if !ok {
			continue
		}
		out[i] += fmt.Sprintf("; it is %s", other.job.Status())
		if other.place == inHold && other.rule.Rule != nil {
			out[i] += ", held by " + other.rule.Rule.Describe()
		} else if other.place == inDependents {
			out[i] += fmt.Sprintf(", and waits for others itself (drover job explain %d)", id)
		}
	}
	return out
}

// remedies lists what would have to change for the job to go on.
func (m *Machine) remedies(e *entry, v schedule.Verdict, x Explanation) []string {
	switch v.Step {
	case schedule.Hold:
		return []string{
			fmt.Sprintf("delete or change filter rule %s, which pauses it (drover filter delete %s); %s", v.Rule.UUID, v.Rule.Short(), m.without(e, v.Rule)),
			fmt.Sprintf("or add a rule before it (priority below %d) that accepts this job", v.Rule.Priority),
		}
	case schedule.WaitDependency:
		return m.awaited(v.On)
	case schedule.WaitBucket:
		return []string{fmt.Sprintf("one of the jobs in flight in the %s has to end, or the limit has to grow", v.Bucket)}
	case schedule.WaitSlot:
		return []string{fmt.Sprintf("one of the %d running jobs has to end, or max_running_jobs has to grow", x.Slots.Running)}
	case schedule.InFlight:
		if x.Locks.Waits != nil {
			return []string{"the jobs that hold the lock " + x.Locks.Waits.Name + " have to end: " + owners(x.Locks.Waits.Holders, 0)}
		}
		if e.place == inGranted {
			return []string{"one of the running jobs has to end, or max_running_jobs has to grow"}
		}
	}
	return []string{}
}
