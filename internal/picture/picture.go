// Package picture publishes the state of a controller: one immutable State
// behind one atomic pointer, replaced after each durable change, in the order of
// the store's revisions.
//
// Whoever writes to the store hands over what a transaction changed when the
// store says that it is durable (Committed), and makes it visible before it tells
// anybody (Publish). The store answers in the order of revisions, so a change
// is published with all before it, whoever made them: readers never see a
// revision without its content.
//
// Invariants:
//   - Load takes no lock, and holds up nobody.
//   - Revisions are published in order, and none before it is durable.
//   - Once Publish has returned, everything committed before is visible.
package picture

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/state"
)

// Picture is safe for concurrent use.
type Picture struct {
	now atomic.Pointer[state.State]

	committed struct {
		sync.Mutex
		changes []*state.Change
	}
	publishing struct {
		sync.Mutex                 // one at a time: order
		spare      []*state.Change // room for what is committed meanwhile
	}

	waiting struct {
		sync.Mutex
		next      chan struct{} // closed when the picture changes; nil if nobody waits
		jobs      map[job.ID][]chan struct{}
		followers map[*Follower]bool
	}
}

// New returns the picture of nothing.
func New() *Picture {
	p := &Picture{}
	p.now.Store(state.Empty())
	p.waiting.jobs = map[job.ID][]chan struct{}{}
	p.waiting.followers = map[*Follower]bool{}
	return p
}

// Load returns the newest state.
func (p *Picture) Load() *state.State { return p.now.Load() }

// Committed takes in what a durable transaction changed. It is to be called when
// the store reports the transaction, so in the order of revisions, and is
// quick. The change must not be written to any more.
func (p *Picture) Committed(c *state.Change) {
	p.committed.Lock()
	p.committed.changes = append(p.committed.changes, c)
	p.committed.Unlock()
}

// Publish makes everything visible that was committed before the call.
func (p *Picture) Publish() {
	p.publishing.Lock()
	defer p.publishing.Unlock()
	p.committed.Lock()
	changes := p.committed.changes
	if len(changes) == 0 {
		p.committed.Unlock()
		return
	}
	p.committed.changes = p.publishing.spare
	p.committed.Unlock()
	p.show(p.now.Load().With(changes...), changes)
	clear(changes)
	p.publishing.spare = changes[:0]
}

// show replaces the picture and tells those who wait for any change, or for one
// of a job.
func (p *Picture) show(next *state.State, changes []*state.Change) {
	p.waiting.Lock()
	defer p.waiting.Unlock()
	p.now.Store(next)
	if p.waiting.next != nil {
		close(p.waiting.next)
		p.waiting.next = nil
	}
	for f := range p.waiting.followers {
		f.take(changes)
	}
	if len(p.waiting.jobs) == 0 {
		return
	}
	for _, c := range changes {
		for _, j := range c.Jobs {
			p.wakeJob(j.ID)
		}
		for _, h := range c.Holds {
			p.wakeJob(h.Job)
		}
		for _, j := range c.Archived {
			p.wakeJob(j.ID)
		}
	}
}

// wakeJob tells those who wait for a change of a job. The caller holds waiting.
func (p *Picture) wakeJob(id job.ID) {
	for _, c := range p.waiting.jobs[id] {
		close(c)
	}
	delete(p.waiting.jobs, id)
}

// Changed returns a channel that is closed at the next change. Take it before
// loading the state that is to be compared with.
func (p *Picture) Changed() <-chan struct{} {
	p.waiting.Lock()
	defer p.waiting.Unlock()
	if p.waiting.next == nil {
		p.waiting.next = make(chan struct{})
	}
	return p.waiting.next
}

// Wait returns a state that is not older than a revision, as soon as there is
// one; fault.Unavailable if ctx ends first.
func (p *Picture) Wait(ctx context.Context, revision int64) (*state.State, error) {
	for {
		changed := p.Changed()
		s := p.Load()
		if s.Revision >= revision {
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fault.New(fault.Unavailable, "revision %d has not been reached, the newest is %d", revision, s.Revision).
				WithHint("the revision may be one of another cluster, or of a controller that is ahead of this one")
		}
	}
}

// WaitJob returns a job's value as soon as until holds for it, or its value when
// ctx ends; nil if it is not among those that are not archived. until may take
// its time: it holds up nobody.
func (p *Picture) WaitJob(ctx context.Context, id job.ID, until func(*job.Job) bool) *job.Job {
	for {
		changed := p.follow(id)
		j := p.Load().Jobs.Get(id)
		if j == nil || until(j) {
			p.forget(id, changed)
			return j
		}
		select {
		case <-changed:
		case <-ctx.Done():
			p.forget(id, changed)
			return j
		}
	}
}

// follow returns a channel that is closed when the job changes.
func (p *Picture) follow(id job.ID) chan struct{} {
	p.waiting.Lock()
	defer p.waiting.Unlock()
	c := make(chan struct{})
	p.waiting.jobs[id] = append(p.waiting.jobs[id], c)
	return c
}

func (p *Picture) forget(id job.ID, c chan struct{}) {
	p.waiting.Lock()
	defer p.waiting.Unlock()
	list := slices.DeleteFunc(p.waiting.jobs[id], func(other chan struct{}) bool { return other == c })
	if len(list) == 0 {
		delete(p.waiting.jobs, id)
		return
	}
	p.waiting.jobs[id] = list
}
