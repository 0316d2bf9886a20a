// Package schedule decides what a job may do next, and says why. The decision
// is a function of values: the job, what the filter rules say of it, how the
// jobs it depends on ended, how full its buckets are and how many slots are
// free. The queue carries decisions out; explanations show the same values.
//
// Invariants:
//   - The order of the questions is fixed: ended, cancel, rules, dependencies,
//     nodes, buckets, slots. Locks come last and are the queue's business, so a job
//     that waits for a lock takes no slot.
//   - A job counts in a bucket only while an opcode of it is in flight, so a
//     held job starves nobody.
package schedule

import (
	"fmt"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/reason"
)

// Step is what happens to a job next.
type Step string

// The steps.
const (
	// Ended: the job is final, there is no next step.
	Ended Step = "ended"
	// InFlight: an opcode waits for its locks or runs.
	InFlight Step = "in-flight"
	// Cancel: what is left of the job is cancelled.
	Cancel Step = "cancel"
	// Fail: the next opcode fails without being tried.
	Fail Step = "fail"
	// Hold: a filter rule pauses the job.
	Hold Step = "hold"
	// WaitDependency: another job has to end first.
	WaitDependency Step = "wait-dependency"
	// WaitNode: the agent of a node that the next opcode works with has to come.
	WaitNode Step = "wait-node"
	// WaitBucket: as many jobs as allowed run in a bucket of this job.
	WaitBucket Step = "wait-bucket"
	// WaitSlot: as many jobs as allowed run in the cluster.
	WaitSlot Step = "wait-slot"
	// Run: the next opcode may take its locks and run.
	Run Step = "run"
)

// Stand is how a job stands that a step is of.
type Stand string

// The ways in which jobs stand.
const (
	Goes  Stand = "goes"  // nothing keeps it
	Waits Stand = "waits" // something does
	Ends  Stand = "ends"  // it is cancelled, or fails
	Over  Stand = "over"  // it has ended
)

// StepInfo is a step, with how a job stands of which it is the next, and for what such a job may wait.
type StepInfo struct {
	Step  Step
	Stand Stand
	For   []job.SpanKind
	// Hidden: it is carried out in the moment in which it is decided, so no list shows it.
	Hidden bool
}

// Steps are all of them.
var Steps = []StepInfo{
	{Step: Hold, Stand: Waits, For: []job.SpanKind{job.HeldByRule}},
	{Step: WaitDependency, Stand: Waits, For: []job.SpanKind{job.WaitForDependency}},
	{Step: WaitNode, Stand: Waits, For: []job.SpanKind{job.WaitForNode}},
	{Step: WaitBucket, Stand: Waits, For: []job.SpanKind{job.WaitForLimit}},
	{Step: WaitSlot, Stand: Waits, For: []job.SpanKind{job.WaitForSlot}},
	{Step: InFlight, Stand: Goes, For: []job.SpanKind{job.WaitForLock, job.WaitForSlot}},
	{Step: Cancel, Stand: Ends},
	{Step: Fail, Stand: Ends, Hidden: true},
	{Step: Run, Stand: Goes},
	{Step: Ended, Stand: Over},
}

// Stand is how a job stands that the step is of.
func (s Step) Stand() Stand {
	for i := range Steps {
		if Steps[i].Step == s {
			return Steps[i].Stand
		}
	}
	return ""
}

// StepNames names for help the steps that lists show.
func StepNames() string {
	var names []string
	for i := range Steps {
		if !Steps[i].Hidden {
			names = append(names, string(Steps[i].Step))
		}
	}
	n := len(names) - 1
	return strings.Join(names[:n], ", ") + " or " + names[n]
}

// Bucket limits how many jobs are in flight at once: those to which one
// RATE_LIMIT rule applies, or those that name the same ad-hoc limit in a
// reason. The zero value is no bucket.
type Bucket struct {
	// Rule is the UUID of the rule; empty for an ad-hoc limit.
	Rule  string
	Label string // of an ad-hoc limit
	Limit int
}

// Named names the bucket for a person, by the name of its rule if r is that rule.
func (b Bucket) Named(r *jobfilter.Rule) string {
	if r == nil || r.UUID != b.Rule {
		return b.String()
	}
	return fmt.Sprintf("rate limit %d of filter rule %s", b.Limit, r.Short())
}

// String names the bucket for as long as there is one.
func (b Bucket) String() string {
	if b.Rule != "" {
		return fmt.Sprintf("rate limit %d of filter rule %s", b.Limit, b.Rule)
	}
	return fmt.Sprintf("ad-hoc limit rate-limit:%d:%s", b.Limit, b.Label)
}

// Absence is that of a node that is waited for: its agent is not connected. It lasts until the agent comes, or has been waited for long enough.
type Absence struct {
	Node string `json:"node"`
	UUID string `json:"uuid"`
	// Since is when the agent was lost, or when this controller began to lead.
	Since job.Time `json:"since"`
	// Lost says that the agent has followed this controller before; else it may not know yet who leads.
	Lost bool `json:"lost"`
}

// String says what keeps work from the node, for as long as it is away.
func (a *Absence) String() string {
	if a.Lost {
		return "node " + a.Node + ", which is away"
	}
	return "node " + a.Node + ", which does not follow this controller yet"
}

// Buckets returns the buckets of a job: that of the rule which applies to it,
// then the ad-hoc ones of its reason trails.
func Buckets(d jobfilter.Decision, adhoc []reason.Bucket) []Bucket {
	var out []Bucket
	if a := d.Action(); a.Kind == jobfilter.RateLimit {
		out = append(out, Bucket{Rule: d.Rule.UUID, Limit: a.Limit})
	}
	for _, b := range adhoc {
		out = append(out, Bucket{Label: b.Label, Limit: b.Limit})
	}
	return out
}

// AdHoc returns the ad-hoc limits that any opcode of the job names.
func AdHoc(j *job.Job) []reason.Bucket {
	var all reason.Trail
	for i := range j.Ops {
		for _, e := range j.Ops[i].Input.Reason {
			if strings.HasPrefix(e.Reason, reason.LimitPrefix) {
				all = append(all, e)
			}
		}
	}
	return all.Buckets()
}

// Facts is what a decision depends on beside the job itself.
type Facts struct {
	// Rule is what the filter rules say.
	Rule jobfilter.Decision
	// Depend gives the status of another job and whether it exists.
	Depend func(job.ID) (job.Status, bool)
	// Away is a node that the next opcode works with and that is waited for; nil for none.
	Away *Absence
	// Buckets are those of the job; InFlight counts the jobs in one.
	Buckets  []Bucket
	InFlight func(Bucket) int
	// SlotsFree is how many more jobs may run.
	SlotsFree int
}

// Verdict is a decision with its reason.
type Verdict struct {
	Step Step
	// Why tells a person.
	Why string
	// Rule is the filter rule that decided, if one did.
	Rule *jobfilter.Rule
	// On are the jobs that have to end first, with WaitDependency.
	On []job.ID
	// Away is the node that has to come, with WaitNode.
	Away *Absence
	// Bucket is the full one, with WaitBucket.
	Bucket Bucket
	// Err is what the next opcode fails with, with Fail.
	Err error
}

// Next decides the next step of a job.
func Next(j *job.Job, f Facts) Verdict {
	if s := j.Status(); s.Final() {
		return Verdict{Step: Ended, Why: "the job ended as " + string(s)}
	}
	if j.Busy() {
		return Verdict{Step: InFlight, Why: fmt.Sprintf("opcode %d is %s", j.Next(), j.Ops[j.Next()].Status)}
	}
	if j.CancelReason != "" {
		return Verdict{Step: Cancel, Why: j.CancelReason}
	}
	for _, decide := range []func(*job.Job, Facts) (Verdict, bool){byRule, byDependency, byNode, byBucket, bySlot} {
		if v, decided := decide(j, f); decided {
			return v
		}
	}
	return Verdict{Step: Run, Why: "nothing stands in the way", Rule: f.Rule.Rule}
}

func byRule(_ *job.Job, f Facts) (Verdict, bool) {
	switch r := f.Rule.Rule; f.Rule.Action().Kind {
	case jobfilter.Reject:
		return Verdict{Step: Cancel, Rule: r, Why: "rejected by " + r.Describe()}, true
	case jobfilter.Pause:
		return Verdict{Step: Hold, Rule: r, Why: r.Paused()}, true
	default:
		return Verdict{}, false
	}
}

func byDependency(j *job.Job, f Facts) (Verdict, bool) {
	var pending []job.ID
	for _, id := range j.Dependencies() {
		if status, exists := f.Depend(id); exists && !status.Final() {
			pending = append(pending, id)
		}
	}
	if len(pending) > 0 {
		return Verdict{Step: WaitDependency, On: pending, Why: "waits for " + list(pending) + " to end"}, true
	}
	for _, d := range j.Ops[j.Next()].Input.Depends {
		status, exists := f.Depend(job.ID(d.Job))
		switch state, why := job.CheckDependency(d, status, exists); state {
		case job.DependencyCanceled:
			return Verdict{Step: Cancel, Why: why}, true
		case job.DependencyFailed:
			return Verdict{Step: Fail, Why: why, Err: fault.New(fault.Failed, "%s", why)}, true
		}
	}
	return Verdict{}, false
}

func byNode(_ *job.Job, f Facts) (Verdict, bool) {
	if f.Away == nil {
		return Verdict{}, false
	}
	return Verdict{Step: WaitNode, Away: f.Away, Why: "waits for " + f.Away.String()}, true
}

func byBucket(_ *job.Job, f Facts) (Verdict, bool) {
	for _, b := range f.Buckets {
		if n := f.InFlight(b); n >= b.Limit {
			return Verdict{Step: WaitBucket, Bucket: b, Why: fmt.Sprintf("%d of %d jobs of the %s are in flight", n, b.Limit, b.Named(f.Rule.Rule))}, true
		}
	}
	return Verdict{}, false
}

func bySlot(_ *job.Job, f Facts) (Verdict, bool) {
	if f.SlotsFree > 0 {
		return Verdict{}, false
	}
	return Verdict{Step: WaitSlot, Why: job.NoSlot}, true
}

func list(ids []job.ID) string {
	var b strings.Builder
	b.WriteString("job")
	if len(ids) > 1 {
		b.WriteString("s")
	}
	for i, id := range ids {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(" " + id.String())
	}
	return b.String()
}

// Before is the order in which jobs are served: by priority, then by id.
func Before(priorityA int, a job.ID, priorityB int, b job.ID) bool {
	if priorityA != priorityB {
		return priorityA < priorityB
	}
	return a < b
}
