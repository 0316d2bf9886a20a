package machine

import (
	"cmp"
	"maps"
	"math"

	"github.com/tidwall/btree"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/schedule"
)

// place is where the machine keeps an entry.
type place uint8

const (
	nowhere      place = iota // being decided upon
	inReady                   // in line for a slot
	inHold                    // a rule holds it
	inDependents              // waits for other jobs
	inNodes                   // waits for a node to come
	inBucket                  // waits for a place in a bucket
	inLocks                   // waits in the lock table
	inGranted                 // has its locks, in line for a slot
	inRunner                  // its opcode runs, or will when that is durable
	inResume                  // its opcode ran when the controller ended, and waits for its locks to go on
)

// entry is a job that has not ended, with what the machine knows about it. Only
// the machine whose token it has may change it.
type entry struct {
	token  *token
	job    *job.Job // newest decision, perhaps not durable yet
	inputs []*opcode.Opcode
	weight int // see job.Weigh
	adhoc  []reason.Bucket
	rule   jobfilter.Decision

	place   place
	rank    rank            // with inReady, inNodes, inBucket, inGranted
	awaits  string          // UUID of the node, with inNodes
	wants   schedule.Bucket // with inBucket
	wait    wait            // what keeps it from going on
	let     *job.Hold       // by which it was held until letAt
	letAt   job.Time
	buckets []schedule.Bucket // counted in, while in flight
	request lock.Request      // what was asked of the lock table
	held    lock.Request      // what the next opcode held when it had begun, under the controller before
	// came are the jobs it depends on that have ended; pending is how many have not.
	came    map[job.ID]job.Status
	pending int
}

func (m *Machine) newEntry(j *job.Job) *entry {
	inputs := j.Inputs()
	return &entry{token: m.token, job: j, inputs: inputs, weight: job.Weigh(inputs), adhoc: schedule.AdHoc(j)}
}

// keep adds an entry to those that have not ended.
func (m *Machine) keep(e *entry) {
	m.jobs.Set(e.id(), e)
	m.weight += e.weight
	for _, id := range job.DependenciesOf(e.inputs) {
		m.named.Set(edge{id, e.id()})
	}
}

// drop takes an entry out of them.
func (m *Machine) drop(e *entry) {
	m.jobs.Delete(e.id())
	m.weight -= e.weight
	for _, id := range job.DependenciesOf(e.inputs) {
		m.named.Delete(edge{id, e.id()})
	}
}

func (e *entry) id() job.ID { return e.job.ID }

func (e *entry) owner() lock.Owner { return lock.Owner(e.job.ID) }

// entry returns the entry of a job to be changed, nil if it has none. One that a
// clone shares is copied first.
func (m *Machine) entry(id job.ID) *entry {
	e, ok := m.jobs.Get(id)
	if !ok || e.token == m.token {
		return e
	}
	c := *e
	c.token, c.came = m.token, maps.Clone(e.came)
	m.jobs.Set(id, &c)
	return &c
}

// rank is the order in which jobs are served: by priority, then by id.
type rank struct {
	priority int
	id       job.ID
}

func (a rank) compare(b rank) int {
	return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.id, b.id))
}

func (a rank) less(b rank) bool { return a.compare(b) < 0 }

func (e *entry) newRank() rank { return rank{e.job.Priority(), e.id()} }

// line is jobs in the order in which they are served.
type line struct{ tree *btree.BTreeG[rank] }

func newLine() line { return line{newTree(rank.less)} }

func (l line) copy() line { return line{l.tree.Copy()} }

func (l line) first() (rank, bool) { return l.tree.Min() }

// before is how many in the line come before a rank.
func (l line) before(r rank) int {
	n := 0
	l.tree.Scan(func(other rank) bool {
		if !other.less(r) {
			return false
		}
		n++
		return true
	})
	return n
}

// awaiting is a job that waits for a node.
type awaiting struct {
	node string // UUID
	rank
}

func (a awaiting) less(b awaiting) bool {
	return cmp.Or(cmp.Compare(a.node, b.node), a.compare(b.rank)) < 0
}

// firstAwaiting is the first one that waits for a node.
func (m *Machine) firstAwaiting(uuid string) (a awaiting, some bool) {
	m.awaiting.Ascend(awaiting{uuid, rank{priority: math.MinInt}}, func(first awaiting) bool {
		a, some = first, first.node == uuid
		return false
	})
	return a, some
}

// waiter is a job that waits for a place in a bucket.
type waiter struct {
	bucket schedule.Bucket
	rank   rank
}

func (a waiter) less(b waiter) bool {
	return cmp.Or(compareBuckets(a.bucket, b.bucket), a.rank.compare(b.rank)) < 0
}

// member is a job that has a place in a bucket.
type member struct {
	bucket schedule.Bucket
	id     job.ID
}

func (a member) less(b member) bool {
	return cmp.Or(compareBuckets(a.bucket, b.bucket), cmp.Compare(a.id, b.id)) < 0
}

// count is how many places of a bucket are taken.
type count struct {
	bucket schedule.Bucket
	n      int
}

func (a count) less(b count) bool { return compareBuckets(a.bucket, b.bucket) < 0 }

func compareBuckets(a, b schedule.Bucket) int {
	return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Label, b.Label), cmp.Compare(a.Limit, b.Limit))
}

// edge says that a job depends on another one.
type edge struct{ on, by job.ID }

func (a edge) less(b edge) bool {
	return cmp.Or(cmp.Compare(a.on, b.on), cmp.Compare(a.by, b.by)) < 0
}

func (m *Machine) inFlight(b schedule.Bucket) int {
	c, _ := m.counts.Get(count{bucket: b})
	return c.n
}

// firstWaiting is the next one for a place in a bucket.
func (m *Machine) firstWaiting(b schedule.Bucket) (w waiter, some bool) {
	m.full.Ascend(waiter{bucket: b, rank: rank{priority: math.MinInt}}, func(first waiter) bool {
		w, some = first, first.bucket == b
		return false
	})
	return w, some
}

// begun reports whether the next opcode of the job has begun, here or under the
// controller before: nothing but its end moves the job from there.
func (e *entry) begun() bool { return e.place == inRunner || e.place == inResume }

// waitsForLocks reports whether the opcode in flight has begun nothing: it waits for its locks, or for a slot with them.
func (e *entry) waitsForLocks() bool { return e.place == inLocks || e.place == inGranted }

// enter puts an entry that is nowhere into a line.
func (m *Machine) enter(e *entry, p place) {
	e.place, e.rank = p, e.newRank()
	switch p {
	case inReady:
		m.ready.tree.Set(e.rank)
	case inGranted:
		m.granted.tree.Set(e.rank)
	case inNodes:
		m.awaiting.Set(awaiting{e.awaits, e.rank})
	case inBucket:
		m.full.Set(waiter{e.wants, e.rank})
	default:
	}
}

// leave takes an entry out of its place. One that was ready may have been let
// in from a bucket: its place there is on offer again until it takes it.
func (m *Machine) leave(e *entry) {
	switch e.place {
	case inReady:
		m.ready.tree.Delete(e.rank)
		if m.full.Len() > 0 {
			m.offer(schedule.Buckets(e.rule, e.adhoc))
		}
	case inGranted:
		m.granted.tree.Delete(e.rank)
	case inNodes:
		m.awaiting.Delete(awaiting{e.awaits, e.rank})
	case inBucket:
		m.full.Delete(waiter{e.wants, e.rank})
	default:
	}
	e.place = nowhere
}

// enterBuckets takes the places that the entry's rule and reasons ask for.
func (m *Machine) enterBuckets(e *entry) {
	e.buckets = schedule.Buckets(e.rule, e.adhoc)
	for _, b := range e.buckets {
		m.members.Set(member{b, e.id()})
		m.counts.Set(count{b, m.inFlight(b) + 1})
	}
}

// leaveBuckets gives up the entry's places.
func (m *Machine) leaveBuckets(e *entry) {
	for _, b := range e.buckets {
		m.members.Delete(member{b, e.id()})
		if n := m.inFlight(b) - 1; n > 0 {
			m.counts.Set(count{b, n})
		} else {
			m.counts.Delete(count{bucket: b})
		}
	}
	m.offer(e.buckets)
	e.buckets = nil
}

// offer notes that there may be places in buckets: one was given up, or an
// entry that could have taken one goes another way.
func (m *Machine) offer(buckets []schedule.Bucket) {
	if m.full.Len() == 0 {
		return
	}
	for _, b := range buckets {
		if _, some := m.firstWaiting(b); some {
			m.offered = append(m.offered, b)
		}
	}
}

// connect notes what a job depends on: what has ended already, as the machine
// knows or is told, and what has not.
func (m *Machine) connect(e *entry, ended map[job.ID]job.Status) {
	for _, id := range e.job.Dependencies() {
		if _, live := m.jobs.Get(id); live || m.unread[id] {
			m.edges.Set(edge{id, e.id()})
			e.pending++
			continue
		}
		status, known := ended[id]
		if j, ok := m.ending.Get(id); ok {
			status, known = j.Status(), true
		}
		if known && status != "" {
			e.learn(id, status)
		}
	}
}

// learn notes what a job came to that this one depends on.
func (e *entry) learn(id job.ID, s job.Status) {
	if e.came == nil {
		e.came = map[job.ID]job.Status{}
	}
	e.came[id] = s
}

// disconnect forgets what a job depends on that has not ended.
func (m *Machine) disconnect(e *entry) {
	if e.pending == 0 {
		return
	}
	for _, id := range e.job.Dependencies() {
		m.edges.Delete(edge{id, e.id()})
	}
	e.pending = 0
}

// Named reports whether a job that has not ended depends on a job, which may have ended long ago.
func (m *Machine) Named(id job.ID) (named bool) {
	m.named.Ascend(edge{on: id}, func(x edge) bool {
		named = x.on == id
		return false
	})
	return named
}

// dependents returns who depends on a job that has not ended.
func (m *Machine) dependents(id job.ID) []job.ID {
	var out []job.ID
	m.edges.Ascend(edge{on: id}, func(x edge) bool {
		if x.on == id {
			out = append(out, x.by)
		}
		return x.on == id
	})
	return out
}
