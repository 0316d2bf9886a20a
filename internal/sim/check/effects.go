package check

import (
	"fmt"
	"slices"
	"sync"
)

// Effect is something that works on a thing of a node: a script, a command, an order that
// the node carries out itself.
type Effect struct {
	Node string
	// Of is the thing, and What what is done to it.
	Of, What string
	// Owner is the life of the controller on whose behalf it is, under Epoch, for Job.
	Owner string
	Epoch int64
	Job   int64
	// Followed is the epoch of the leader that the node followed when it was last looked at,
	// before this begins.
	Followed int64
}

// String says it for people.
func (e Effect) String() string {
	return fmt.Sprintf("%s %s on %s for job %d of %s (epoch %d)", e.What, e.Of, e.Node, e.Job, e.Owner, e.Epoch)
}

// Effects is the ledger of what works on things. It is safe for concurrent use.
type Effects struct {
	verdict *Verdict

	mu    sync.Mutex
	works map[string][]*Effect // by node and thing
	acts  map[string][]*Effect // by life and instance
	begun int
}

// NewEffects returns an empty ledger.
func NewEffects(v *Verdict) *Effects {
	return &Effects{verdict: v, works: map[string][]*Effect{}, acts: map[string][]*Effect{}}
}

// Works says that an effect begins to work on its thing. What is returned says that it has
// ended.
func (l *Effects) Works(e Effect) (ended func()) {
	l.mu.Lock()
	key := e.Node + " " + e.Of
	others := slices.Clone(l.works[key])
	l.works[key] = append(l.works[key], &e)
	l.begun++
	l.mu.Unlock()
	for _, other := range others {
		l.verdict.Breakf(OneEffect, "%s begins while %s goes on", e, other)
	}
	if e.Epoch < e.Followed {
		l.verdict.Breakf(OldEpoch, "%s begins, and the node follows epoch %d", e, e.Followed)
	}
	return l.remover(l.works, key, &e)
}

// remover takes an effect out of a list once.
func (l *Effects) remover(of map[string][]*Effect, key string, e *Effect) func() {
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		of[key] = slices.DeleteFunc(of[key], func(o *Effect) bool { return o == e })
	}
}

// Acts says that a controller has a job act on an instance, which it does until what is
// returned is called.
func (l *Effects) Acts(e Effect) (over func()) {
	l.mu.Lock()
	key := e.Owner + " " + e.Of
	others := slices.Clone(l.acts[key])
	l.acts[key] = append(l.acts[key], &e)
	l.mu.Unlock()
	for _, other := range others {
		if other.Job != e.Job {
			l.verdict.Breakf(OneJob, "%s while %s", e, other)
		}
	}
	return l.remover(l.acts, key, &e)
}

// Left are the effects that still work on something.
func (l *Effects) Left() (all []Effect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, of := range l.works {
		for _, e := range of {
			all = append(all, *e)
		}
	}
	slices.SortFunc(all, func(a, b Effect) int {
		return slices.Compare([]string{a.Node, a.Of, a.What}, []string{b.Node, b.Of, b.What})
	})
	return all
}

// Begun is how many effects there were.
func (l *Effects) Begun() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.begun
}
