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
// asks: rules, dependencies, nodes, buckets, slots, locks.
type Explanation struct {
	Job     job.ID        `json:"job"`
	Status  job.Status    `json:"status"`
	Summary []string      `json:"summary"`
	Step    schedule.Step `json:"step"`
	// Reason is why the job was submitted: its trail as text, without what the
	// system itself added. Received is when it was.
	Reason   string   `json:"reason"`
	Received job.Time `json:"received"`
	// Why is the answer in one sentence, Change what would have to be different
	// for the job to go on.
	Why    string   `json:"why"`
	Change []Remedy `json:"change"`
	// Expected is when a job that waits is likely to go on.
	Expected *Expectation `json:"expected,omitempty"`
	// Held says by which rule the job is held and since when.
	Held *Held `json:"held,omitempty"`
	// Away is the node for which the job waits, or the opcode that runs: its agent is not connected.
	Away *schedule.Absence `json:"away,omitempty"`
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

// Remedy is something that would have to be different for a job to go on.
type Remedy struct {
	// Kind is what it is about, in the words of timelines: rule, dependency, node, limit,
	// lock or slot. On is the rule (by UUID), the node, the limit or the lock, Jobs are those
	// that would have to end, the first of them first.
	Kind job.SpanKind `json:"kind"`
	On   string       `json:"on,omitempty"`
	Jobs []job.ID     `json:"jobs,omitempty"`
	Text string       `json:"text"`
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
		Job: j.ID, Status: j.Status(), Summary: j.Summary(), Step: schedule.Ended, Reason: j.Trail().Text(), Received: j.Received,
		Why: j.Ending(), Rules: m.chain.Explain(int64(j.ID), j.Inputs()), Timeline: j.Timeline(),
	}
}

func (m *Machine) explain(e *entry) Explanation {
	j := e.job
	v := schedule.Next(j, m.facts(e, m.world.MaxRunning-m.running))
	x := Explanation{
		Job: j.ID, Status: j.Status(), Summary: j.Summary(), Step: v.Step, Why: v.Why, Reason: j.Trail().Text(), Received: j.Received,
		Rules: m.chain.Explain(int64(j.ID), e.inputs), Dependencies: m.explainDependencies(e),
		Away: v.Away, Buckets: m.explainBuckets(e), Slots: m.explainSlots(e), Locks: m.explainLocks(e), Timeline: m.timeline(e),
	}
	if j.Hold != nil && j.Hold.Rule != "" && e.rule.Rule != nil {
		x.Held = &Held{Rule: j.Hold.Rule, By: e.rule.Rule.Describe(), Since: j.Hold.Since}
	}
	if w, waits := m.locks.Waiting(e.owner(), math.MaxInt); waits {
		x.Why = m.waitsFor(&w)
	} else if e.place == inGranted {
		x.Why = job.NoSlotWhileReady
	} else if i := j.Next(); e.place == inRunner {
		text, node := atStep(&j.Ops[i])
		x.Why += text
		if x.Away = m.awayNamed(node); x.Away != nil {
			x.Why += "; it waits for " + x.Away.String()
		}
	}
	x.Change = m.remedies(e, v, x)
	return x
}

// awayNamed is the node of a name if it is waited for, else nil.
func (m *Machine) awayNamed(node string) *schedule.Absence {
	for _, a := range m.world.Away {
		if a.Node == node {
			return a
		}
	}
	return nil
}

// atStep says which step of an opcode runs, and on which node, if it does several things.
func atStep(op *job.Op) (text, node string) {
	for i, s := range op.Steps {
		if s.State != job.StepRunning {
			continue
		}
		where := ""
		if s.Node != "" {
			where = " on " + s.Node
		}
		return fmt.Sprintf(", at step %d of %d: %s%s", i+1, len(op.Steps), s.Text, where), s.Node
	}
	return "", ""
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
		p := BucketPlace{Name: b.Named(e.rule.Rule), Rule: b.Rule, Limit: b.Limit, InFlight: []job.ID{}}
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
		request = m.needs(e)
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

// maxFollowed is how far the line of jobs that wait for one another is followed.
const maxFollowed = 8

// awaited tells of a job that one depends on what it is doing, and follows it to
// what holds it.
func (m *Machine) awaited(id job.ID) Remedy {
	r := Remedy{Kind: job.WaitForDependency, Jobs: []job.ID{id}, Text: fmt.Sprintf("job %d has to end", id)}
	who := "it"
	for len(r.Jobs) <= maxFollowed {
		e, ok := m.jobs.Get(id)
		if !ok {
			break
		}
		does, next := m.standing(e)
		r.Text += fmt.Sprintf("; %s is %s%s", who, e.job.Status(), does)
		if next == 0 {
			break
		}
		id, who = next, fmt.Sprintf("job %d", next)
		r.Jobs = append(r.Jobs, id)
	}
	return r
}

// standing says what keeps a job that has not ended, and for which job it waits
// first, 0 if for none.
func (m *Machine) standing(e *entry) (text string, on job.ID) {
	switch e.place {
	case inHold:
		if e.rule.Rule != nil {
			return ", held by " + e.rule.Rule.Describe(), 0
		}
	case inDependents:
		for _, id := range e.job.Dependencies() {
			if status, exists := m.status(e, id); exists && !status.Final() {
				return fmt.Sprintf(", and waits for job %d", id), id
			}
		}
	case inNodes:
		if a := m.world.Away[e.awaits]; a != nil {
			return ", and waits for " + a.String(), 0
		}
	case inBucket:
		return fmt.Sprintf(", number %d in the line of the %s", m.placeInLine(e), e.wants.Named(e.rule.Rule)), 0
	case inLocks, inResume:
		if w, waits := m.locks.Waiting(e.owner(), job.MaxWaitJobs); waits {
			return ", and " + m.waitsFor(&w), 0
		}
	case inReady, inGranted:
		return ", and waits for a slot", 0
	case inRunner, nowhere:
	}
	return "", 0
}

// passingBy says how one job is let past a rule: by a rule before it. There is no
// place before the smallest priority.
func passingBy(r *jobfilter.Rule, id job.ID) string {
	place, first := r.Priority-1, ""
	if place < 0 {
		const apart = 10
		place, first = apart-1, fmt.Sprintf("move that rule back (drover filter modify %s --rule-priority %d) and ", r.Short(), apart)
	}
	return fmt.Sprintf("or %sadd a rule before it that accepts this job (drover filter add --action ACCEPT --rule-priority %d --when 'jobid: id == %d')",
		first, place, id)
}

// remedies lists what would have to change for the job to go on.
func (m *Machine) remedies(e *entry, v schedule.Verdict, x Explanation) []Remedy {
	switch v.Step {
	case schedule.Hold:
		return []Remedy{
			{Kind: job.HeldByRule, On: v.Rule.UUID, Text: fmt.Sprintf("delete or change filter rule %s, which pauses it (drover filter delete %s); %s",
				v.Rule.Short(), v.Rule.Short(), m.without(e, v.Rule))},
			{Kind: job.HeldByRule, Text: passingBy(v.Rule, e.id())},
		}
	case schedule.WaitDependency:
		out := make([]Remedy, len(v.On))
		for i, id := range v.On {
			out[i] = m.awaited(id)
		}
		return out
	case schedule.WaitNode:
		return []Remedy{{Kind: job.WaitForNode, On: v.Away.Node,
			Text: fmt.Sprintf("the agent of node %s has to connect; see whether it runs, and reaches this controller. Else the job goes on without it after a while, and fails", v.Away.Node)}}
	case schedule.WaitBucket:
		r := Remedy{Kind: job.WaitForLimit, On: v.Bucket.String(),
			Text: fmt.Sprintf("one of the jobs in flight in the %s has to end, or the limit has to grow", v.Bucket.Named(e.rule.Rule))}
		for _, b := range x.Buckets {
			if b.Rule == v.Bucket.Rule && b.Place > 0 {
				r.Jobs = b.InFlight
			}
		}
		return []Remedy{r}
	case schedule.WaitSlot:
		return []Remedy{noSlot(x.Slots.Running)}
	case schedule.InFlight:
		if w := x.Locks.Waits; w != nil {
			r := Remedy{Kind: job.WaitForLock, On: w.Name, Text: "the jobs that hold the lock " + w.Name + " have to end: " + owners(w.Holders, 0)}
			for _, holder := range w.Holders {
				r.Jobs = append(r.Jobs, job.ID(holder))
			}
			return []Remedy{r}
		}
		if e.place == inGranted {
			return []Remedy{noSlot(x.Slots.Running)}
		}
	}
	return []Remedy{}
}

func noSlot(running int) Remedy {
	return Remedy{Kind: job.WaitForSlot, Text: fmt.Sprintf("one of the %d running jobs has to end, or max_running_jobs has to grow", running)}
}
