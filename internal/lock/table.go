package lock

import (
	"cmp"
	"slices"
)

// Owner is who holds or wants locks: a job, by its id.
type Owner int64

// Table holds the state of all locks that are held or wanted. The zero value
// is not usable; call NewTable.
type Table struct {
	locks  map[Name]*entry
	owners map[Owner]*holding
	seq    uint64
	// touched are the locks that may look different since Changed.
	touched map[Name]bool
	// stuck are the owners that began to wait since Stuck.
	stuck []Owner
}

// entry is one lock.
type entry struct {
	name    Name
	holders *owners
	count   [modes]int
	queue   []*waiter // the most urgent first, then the earliest
}

// holding is one owner's way through its plan: plan[:have] is held, and
// plan[have] is waited for when waiting is set.
type holding struct {
	owner    Owner
	priority int
	plan     []Want
	have     int
	waiting  *waiter
}

type waiter struct {
	holding *holding
	seq     uint64
}

// NewTable returns a table in which every lock is free.
func NewTable() *Table {
	return &Table{locks: map[Name]*entry{}, owners: map[Owner]*holding{}, touched: map[Name]bool{}}
}

// Clone returns a table in the same state; neither sees the other's changes.
func (t *Table) Clone() *Table {
	c := &Table{locks: make(map[Name]*entry, len(t.locks)), owners: make(map[Owner]*holding, len(t.owners)), seq: t.seq, touched: map[Name]bool{}}
	for o, h := range t.owners {
		copied := *h
		copied.plan = slices.Clone(h.plan)
		c.owners[o] = &copied
	}
	for n, e := range t.locks {
		copied := &entry{name: n, holders: e.holders.Copy(), count: e.count, queue: make([]*waiter, len(e.queue))}
		for i, w := range e.queue {
			h := c.owners[w.holding.owner]
			h.waiting = &waiter{holding: h, seq: w.seq}
			copied.queue[i] = h.waiting
		}
		c.locks[n] = copied
	}
	return c
}

// Acquire begins to take the locks of a request and reports whether all of
// them are held now. If not, the owner waits, and a later Release names it. An
// owner must have released everything before it acquires again.
func (t *Table) Acquire(owner Owner, priority int, req Request) bool {
	h := &holding{owner: owner, priority: priority, plan: req.plan()}
	t.owners[owner] = h
	return t.advance(h)
}

// advance takes as many locks of the plan as it can and reports whether that
// was all of them.
func (t *Table) advance(h *holding) bool {
	for h.have < len(h.plan) {
		want := h.plan[h.have]
		e := t.entry(want.Name)
		if !e.admits(want.Mode) || e.isBehind(h) {
			t.seq++
			h.waiting = &waiter{holding: h, seq: t.seq}
			e.join(h.waiting)
			t.stuck = append(t.stuck, h.owner)
			return false
		}
		e.hold(h.owner, want.Mode)
		h.have++
	}
	return true
}

func (t *Table) entry(n Name) *entry {
	t.touched[n] = true
	e := t.locks[n]
	if e == nil {
		e = &entry{name: n, holders: newOwners()}
		t.locks[n] = e
	}
	return e
}

// Release gives back everything the owner holds and withdraws what it waits
// for. It returns the owners that hold all they asked for because of it, in
// the order in which they were served.
func (t *Table) Release(owner Owner) []Owner {
	h := t.owners[owner]
	if h == nil {
		return nil
	}
	delete(t.owners, owner)
	var freed []*entry
	if h.waiting != nil {
		e := t.entry(h.plan[h.have].Name)
		e.leave(h.waiting)
		freed = append(freed, e)
	}
	for i := h.have - 1; i >= 0; i-- {
		freed = append(freed, t.drop(h, i))
	}
	return t.serve(freed)
}

// ReleaseSome gives back some of the locks that the owner holds, before it is
// done, and returns the owners that now hold all they asked for. Names that
// the owner does not hold are passed over.
func (t *Table) ReleaseSome(owner Owner, names ...Name) []Owner {
	h := t.owners[owner]
	if h == nil || h.waiting != nil {
		return nil
	}
	var freed []*entry
	for i := h.have - 1; i >= 0; i-- {
		if slices.Contains(names, h.plan[i].Name) {
			freed = append(freed, t.drop(h, i))
			h.plan = slices.Delete(h.plan, i, i+1)
			h.have--
		}
	}
	return t.serve(freed)
}

// drop gives back the lock at place i of the plan.
func (t *Table) drop(h *holding, i int) *entry {
	e := t.entry(h.plan[i].Name)
	e.count[h.plan[i].Mode]--
	e.holders.Delete(h.owner)
	return e
}

// serve grants freed locks to their waiters and follows those that go on to
// further locks.
func (t *Table) serve(freed []*entry) []Owner {
	var done []Owner
	for _, e := range freed {
		for len(e.queue) > 0 {
			h := e.queue[0].holding
			mode := h.plan[h.have].Mode
			if !e.admits(mode) {
				break
			}
			e.leave(h.waiting)
			h.waiting = nil
			e.hold(h.owner, mode)
			h.have++
			if t.advance(h) {
				done = append(done, h.owner)
			}
		}
		if e.holders.Len() == 0 && len(e.queue) == 0 {
			delete(t.locks, e.name)
		}
	}
	return done
}

// SetPriority changes how urgent an owner's wait is. It returns the owners that
// hold all they asked for because of it.
func (t *Table) SetPriority(owner Owner, priority int) []Owner {
	h := t.owners[owner]
	if h == nil {
		return nil
	}
	if h.waiting == nil {
		h.priority = priority
		return nil
	}
	e := t.entry(h.plan[h.have].Name)
	e.leave(h.waiting) // as long as its place can be found by its priority
	h.priority = priority
	e.join(h.waiting)
	return t.serve([]*entry{e})
}

func (e *entry) admits(m Mode) bool {
	for held := range modes {
		if e.count[held] > 0 && !compatible[held][m] {
			return false
		}
	}
	return true
}

// isBehind reports whether somebody waits who goes before a newcomer.
func (e *entry) isBehind(h *holding) bool {
	return len(e.queue) > 0 && e.queue[0].holding.priority <= h.priority
}

func (e *entry) hold(o Owner, m Mode) {
	e.holders.Set(o, struct{}{})
	e.count[m]++
}

// place is where a waiter stands in the queue, or belongs.
func (e *entry) place(w *waiter) int {
	at, _ := slices.BinarySearchFunc(e.queue, w, (*waiter).compare)
	return at
}

func (e *entry) join(w *waiter) { e.queue = slices.Insert(e.queue, e.place(w), w) }

func (e *entry) leave(w *waiter) {
	at := e.place(w)
	e.queue = slices.Delete(e.queue, at, at+1)
}

// compare tells who is served first. No two waiters are equal.
func (w *waiter) compare(o *waiter) int {
	return cmp.Or(cmp.Compare(w.holding.priority, o.holding.priority), cmp.Compare(w.seq, o.seq))
}
