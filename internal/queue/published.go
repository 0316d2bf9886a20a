package queue

import (
	"context"
	"sync"

	"github.com/drover-project/drover/internal/job"
)

// published is what readers see: the newest durable value of every job that is
// not archived, and who waits for a change of one.
type published struct {
	mu      sync.Mutex
	jobs    *job.Table
	waiters map[job.ID][]chan struct{}
}

func (p *published) init() {
	p.jobs = job.NewTable()
	p.waiters = map[job.ID][]chan struct{}{}
}

func (p *published) get(id job.ID) *job.Job {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.jobs.Get(id)
}

func (p *published) put(jobs []*job.Job) {
	if len(jobs) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, j := range jobs {
		p.jobs.Put(j)
		p.wake(j.ID)
	}
}

func (p *published) hold(id job.ID, h *job.Hold) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if j := p.jobs.Get(id); j != nil && !j.Final() {
		p.jobs.Put(j.WithHold(h))
		p.wake(id)
	}
}

func (p *published) remove(id job.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.jobs.Remove(id)
	p.wake(id)
}

// wake tells those who wait for a change of the job. The caller holds mu.
func (p *published) wake(id job.ID) {
	for _, c := range p.waiters[id] {
		close(c)
	}
	delete(p.waiters, id)
}

// snapshot returns all jobs as they are now; later changes do not show in it.
func (p *published) snapshot() *job.Table {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.jobs.Copy()
}

// follow returns the job's value and a channel that is closed when it changes.
func (p *published) follow(id job.ID) (*job.Job, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.jobs.Get(id)
	if j == nil {
		return nil, nil
	}
	c := make(chan struct{})
	p.waiters[id] = append(p.waiters[id], c)
	return j, c
}

// wait returns the job's value as soon as until holds for it, or its value (nil
// if there is none) when ctx ends. until may take its time: it holds up nobody.
func (p *published) wait(ctx context.Context, id job.ID, until func(*job.Job) bool) *job.Job {
	for {
		j, c := p.follow(id)
		if j == nil {
			return nil
		}
		if until(j) {
			p.forget(id, c)
			return j
		}
		select {
		case <-c:
		case <-ctx.Done():
			p.forget(id, c)
			return j
		}
	}
}

func (p *published) forget(id job.ID, c chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.waiters[id]
	for i, other := range list {
		if other == c {
			p.waiters[id] = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(p.waiters[id]) == 0 {
		delete(p.waiters, id)
	}
}
