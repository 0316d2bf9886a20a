package machine

import "github.com/drover-project/drover/internal/job"

// Census is how many jobs are where in the queue. Each job that has not ended is
// in one place, so the counts add up to all of them.
type Census struct {
	// Held are kept by a filter rule.
	Held Count
	// Dependency, Node, Bucket, Slot and Lock wait for what their names say.
	Dependency, Node, Bucket, Slot, Lock Count
	// Running have a slot: an opcode of theirs runs.
	Running Count
	// Slots is how many may run at once.
	Slots int
}

// Count is how many jobs are in a place, and which of them is there for the longest time.
type Count struct {
	Jobs int
	// Oldest is that job, and Since when it came there: for what runs when its opcode began to. Both are 0 where there is no job.
	Oldest job.ID
	Since  job.Time
}

// Add counts a job that came there at a time.
func (c *Count) Add(id job.ID, since job.Time) {
	if c.Jobs++; c.Jobs == 1 || since < c.Since {
		c.Oldest, c.Since = id, since
	}
}

// Census counts the jobs. Its cost is that of a walk over all that have not
// ended: ask a clone.
func (m *Machine) Census() Census {
	c := Census{Slots: m.world.MaxRunning}
	m.jobs.Scan(func(id job.ID, e *entry) bool {
		if in := c.of(e.place); in != nil { // else only while the machine decides
			in.Add(id, e.since())
		}
		return true
	})
	return c
}

// of is the count of a place.
func (c *Census) of(p place) *Count {
	switch p {
	case inHold:
		return &c.Held
	case inDependents:
		return &c.Dependency
	case inNodes:
		return &c.Node
	case inBucket:
		return &c.Bucket
	case inReady, inGranted:
		return &c.Slot
	case inLocks, inResume:
		return &c.Lock
	case inRunner:
		return &c.Running
	default:
		return nil
	}
}

// since is when the entry came to where it is. Waits for a slot, and what runs, follow on what is known of the job.
func (e *entry) since() job.Time {
	if s, waits := e.wait.told(); waits {
		return s.From
	}
	return e.job.Known()
}
