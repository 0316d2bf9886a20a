package machine

import "github.com/drover-project/drover/internal/job"

// Census is how many jobs are where in the queue. Each job that has not ended is
// in one place, so the counts add up to all of them.
type Census struct {
	// Held are kept by a filter rule.
	Held int
	// Dependency, Node, Bucket, Slot and Lock wait for what their names say.
	Dependency, Node, Bucket, Slot, Lock int
	// Running have a slot: an opcode of theirs runs.
	Running int
	// Slots is how many may run at once.
	Slots int
}

// Census counts the jobs. Its cost is that of a walk over all that have not
// ended: ask a clone.
func (m *Machine) Census() Census {
	c := Census{Slots: m.world.MaxRunning}
	m.jobs.Scan(func(_ job.ID, e *entry) bool {
		switch e.place {
		case inHold:
			c.Held++
		case inDependents:
			c.Dependency++
		case inNodes:
			c.Node++
		case inBucket:
			c.Bucket++
		case inReady, inGranted:
			c.Slot++
		case inLocks, inResume:
			c.Lock++
		case inRunner:
			c.Running++
		case nowhere: // only while the machine decides
		}
		return true
	})
	return c
}
