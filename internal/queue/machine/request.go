package machine

import (
	"fmt"

	"github.com/drover-project/drover/internal/job"
)

// Cancel asks to end a job. What no opcode has begun is cancelled at once; of a
// running job the present opcode completes and the rest is cancelled, unless
// Kill asks to end that opcode too.
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
		e.job = e.job.RequestCancel(job.ByRequest)
		m.out.touch(c.Job)
		m.out.Answer = Answer{false, "Job no longer waiting, can't cancel (informed it anyway)"}
		if c.Kill {
			m.out.Kills = append(m.out.Kills, c.Job)
			m.out.Answer = Answer{true, "The running opcode was told to end"}
		}
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
		m.ready.tree.Delete(e.rank)
		m.enter(e, inReady)
	case inGranted:
		m.granted.tree.Delete(e.rank)
		m.enter(e, inGranted)
	case inBucket:
		m.full.Delete(waiter{e.wants, e.rank})
		m.enter(e, inBucket)
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
