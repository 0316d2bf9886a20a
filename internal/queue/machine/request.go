package machine

import (
	"fmt"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/schedule"
)

// Cancel asks to end a job. What no opcode has begun is cancelled at once; of a
// running job the present opcode completes and the rest is cancelled, unless
// Kill asks to end that opcode too. One that the end of a controller interrupted
// runs, also while it waits for its locks.
type Cancel struct {
	Job  job.ID
	Kill bool
}

func (c Cancel) apply(m *Machine) {
	e := m.entry(c.Job)
	if e == nil {
		m.out.Answer = notInQueue(c.Job)
		return
	}
	m.out.Answer = Answer{true, fmt.Sprintf("Dequeued job %d", c.Job)}
	switch e.place {
	case inRunner:
		m.informOfCancel(e, "Job no longer waiting, can't cancel (informed it anyway)")
		if c.Kill {
			e.job = e.job.RequestCancel(job.Killed)
			m.out.Kills = append(m.out.Kills, c.Job)
			m.out.Answer = Answer{true, "The running opcode was told to end"}
		}
	case inResume:
		m.informOfCancel(e, fmt.Sprintf("Job %d has begun, and goes on as soon as it has its locks again; can't cancel (informed it anyway)", c.Job))
	case inLocks, inGranted:
		m.out.Answer.Message = "Job successfully cancelled"
		m.end(e, e.job.Cancel(job.ByRequest, m.at()))
	default:
		if e.job.Started != 0 {
			m.end(e, e.job.Cancel(job.ByRequest, m.at()))
			return
		}
		m.end(e, e.job.Dequeue(m.at()))
	}
}

// informOfCancel has the opcodes behind the one that has begun not begin.
func (m *Machine) informOfCancel(e *entry, answer string) {
	if e.job.CancelReason != job.Killed {
		e.job = e.job.RequestCancel(job.ByRequest)
	}
	m.out.touch(e.id())
	m.out.Answer = Answer{false, answer}
}

func notInQueue(id job.ID) Answer { return Answer{false, fmt.Sprintf("Job %d not found in queue", id)} }

// The range of priorities, the most urgent first.
const (
	MinPriority = -20
	MaxPriority = 19
)

// ChangePriority changes how urgent the opcodes of a job are that have not ended.
type ChangePriority struct {
	Job      job.ID
	Priority int
}

func (c ChangePriority) apply(m *Machine) {
	e := m.entry(c.Job)
	switch {
	case e == nil:
		m.out.Answer = notInQueue(c.Job)
		return
	case c.Priority < MinPriority || c.Priority > MaxPriority:
		m.out.Answer = Answer{false, fmt.Sprintf("Priority %d is not between %d and %d", c.Priority, MinPriority, MaxPriority)}
		return
	}
	e.job = e.job.SetPriority(c.Priority)
	m.out.touch(c.Job)
	m.out.Answer = Answer{true, fmt.Sprintf("Priorities of pending opcodes for job %d have been changed to %d", c.Job, c.Priority)}
	switch e.place {
	case inReady:
		m.leave(e) // who waits for its place in a bucket may come first now
		m.enter(e, inReady)
	case inGranted:
		m.granted.tree.Delete(e.rank)
		m.enter(e, inGranted)
	case inNodes:
		m.leave(e)
		m.enter(e, inNodes)
	case inBucket:
		m.full.Delete(waiter{e.wants, e.rank})
		m.enter(e, inBucket)
		m.offer([]schedule.Bucket{e.wants}) // whoever was let in for a free place may come behind it now
	case inLocks:
		m.serve(m.locks.SetPriority(e.owner(), c.Priority))
	default:
	}
}

// Forget says that the keys of jobs that were archived are looked up in the
// store from now on.
type Forget struct{ Keys []string }

func (f Forget) apply(m *Machine) {
	for _, key := range f.Keys {
		m.keys.Delete(key)
	}
}
