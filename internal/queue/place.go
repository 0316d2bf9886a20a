package queue

import (
	"container/heap"
	"context"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/schedule"
)

// place is where the queue keeps an entry.
type place uint8

const (
	nowhere      place = iota // being decided upon
	inReady                   // in the ready heap: waits for a slot
	inHold                    // a rule holds it
	inDependents              // waits for other jobs
	inBucket                  // waits in q.full
	inLocks                   // waits in the lock table
	inGranted                 // has its locks, waits for a slot
	inRunner                  // its opcode runs, or will when that is durable
)

// entry is a job that has not ended, with what the queue knows about it.
type entry struct {
	number job.ID   // the job's id; unlike job it may be read without the mutex
	job    *job.Job // newest decision, perhaps not durable yet
	inputs []*opcode.Opcode
	adhoc  []reason.Bucket
	rule   jobfilter.Decision

	place    place
	heap     *entryHeap              // with inReady, inBucket, inGranted
	index    int                     // place in the heap
	buckets  []schedule.Bucket       // counted in, while in flight
	request  lock.Request            // what was asked of the lock table
	kill     context.CancelCauseFunc // with inRunner
	awaiting []job.ID                // with inDependents
	wants    schedule.Bucket         // with inBucket
	// unstorable: the store has refused it once.
	unstorable bool
}

func newEntry(j *job.Job) *entry {
	return &entry{number: j.ID, job: j, inputs: j.Inputs(), adhoc: schedule.AdHoc(j)}
}

func (e *entry) id() job.ID { return e.number }

func (e *entry) owner() lock.Owner { return lock.Owner(e.number) }

// leave takes the entry out of its place. One that was ready may have been let
// in from a bucket: its place there is on offer again until it takes it.
func (q *Queue) leave(e *entry) {
	switch e.place {
	case inReady, inGranted, inBucket:
		heap.Remove(e.heap, e.index)
		e.heap = nil
		if e.place == inReady && len(q.full) > 0 {
			q.offer(schedule.Buckets(e.rule, e.adhoc))
		}
		if e.place == inBucket && q.full[e.wants].Len() == 0 {
			delete(q.full, e.wants)
		}
	case inDependents:
		for _, id := range e.awaiting {
			q.forgetDependent(id, e)
		}
		e.awaiting = nil
	}
	e.place = nowhere
}

func (q *Queue) enter(e *entry, p place, h *entryHeap) {
	e.place, e.heap = p, h
	heap.Push(h, e)
}

func (q *Queue) forgetDependent(id job.ID, e *entry) {
	delete(q.dependents[id], e.id())
	if len(q.dependents[id]) == 0 {
		delete(q.dependents, id)
	}
}

// entryHeap orders entries by priority, then by id.
type entryHeap []*entry

func (h entryHeap) Len() int { return len(h) }

func (h entryHeap) Less(i, j int) bool { return before(h[i], h[j]) }

func before(a, b *entry) bool {
	return schedule.Before(a.job.Priority(), a.job.ID, b.job.Priority(), b.job.ID)
}

func (h entryHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *entryHeap) Push(x any) {
	e := x.(*entry)
	e.index = len(*h)
	*h = append(*h, e)
}

// Pop implements heap.Interface.
func (h *entryHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}
