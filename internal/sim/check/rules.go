package check

import (
	"sync"
	"time"
)

// Rules knows which filter rules are in force for certain: each was acknowledged, and
// nobody has asked for another since. It is safe for concurrent use.
type Rules struct {
	verdict *Verdict

	mu      sync.Mutex
	inForce map[string]force // by the label of the jobs that it is about
}

// force is what a rule does, since when.
type force struct {
	action string
	limit  int
	since  time.Duration
}

// NewRules returns the checks while there are no rules.
func NewRules(v *Verdict) *Rules { return &Rules{verdict: v, inForce: map[string]force{}} }

// Asked says that somebody asks for a change of the rule of a label: until it is
// answered nobody knows what is in force.
func (r *Rules) Asked(label string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.inForce, label)
}

// InForce says that a rule was acknowledged. The limit is that of RATE_LIMIT.
func (r *Rules) InForce(label, action string, limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inForce[label] = force{action, limit, r.verdict.Since()}
}

// Acts says that a job of a label does something, which was handed in at a time, and that
// so many of the label run.
func (r *Rules) Acts(label string, job int64, handedIn time.Duration, running int) {
	r.mu.Lock()
	f, certain := r.inForce[label]
	r.mu.Unlock()
	switch {
	case !certain || handedIn <= f.since:
	case f.action == "PAUSE", f.action == "REJECT":
		r.verdict.Breakf(RuleHolds, "job %d of %s acts, which was handed in after a rule to %s was acknowledged", job, label, f.action)
	case f.action == "RATE_LIMIT" && running > f.limit:
		r.verdict.Breakf(RuleHolds, "job %d is one of %d of %s that run, and a rule lets %d", job, running, label, f.limit)
	}
}
