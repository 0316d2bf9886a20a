package lock

import "slices"

// State is one lock as a client may see it: who holds it how, and who waits.
type State struct {
	Name Name
	// Mode is how the lock is held; meaningless without holders.
	Mode    Mode
	Holders Owners
	Pending []Pending
}

// Pending is one waiter of a lock.
type Pending struct {
	Mode  Mode
	Owner Owner
}

// Wait tells what an owner waits for, and why.
type Wait struct {
	Name Name
	Mode Mode
	// Holders have the lock now; Ahead wait for it too and are served first.
	Holders []Owner
	Ahead   []Owner
	// MoreHolders and MoreAhead are how many there are that are not listed.
	MoreHolders, MoreAhead int
}

// Waiting returns what the owner waits for, and whether it waits at all. At most
// so many holders and others ahead are listed, the first ones.
func (t *Table) Waiting(owner Owner, most int) (Wait, bool) {
	h := t.owners[owner]
	if h == nil || h.waiting == nil {
		return Wait{}, false
	}
	want := h.plan[h.have]
	e := t.locks[want.Name]
	w := Wait{Name: want.Name, Mode: want.Mode}
	for o := range (Owners{e.holders}).All() {
		if len(w.Holders) == most {
			break
		}
		w.Holders = append(w.Holders, o)
	}
	w.MoreHolders = e.holders.Len() - len(w.Holders)
	ahead := e.queue[:e.place(h.waiting)]
	for _, other := range ahead[:min(most, len(ahead))] {
		w.Ahead = append(w.Ahead, other.holding.owner)
	}
	w.MoreAhead = len(ahead) - len(w.Ahead)
	return w, true
}

// Stuck returns the owners that began to wait for a lock since it was called
// last, in that order. They need not wait any more.
func (t *Table) Stuck() []Owner {
	out := t.stuck
	t.stuck = nil
	return out
}

// Held returns the locks that the owner holds, in the order it took them.
// Announcements at locksets are left out.
func (t *Table) Held(owner Owner) []Want {
	h := t.owners[owner]
	if h == nil {
		return nil
	}
	var out []Want
	for _, w := range h.plan[:h.have] {
		if w.Mode >= Shared {
			out = append(out, w)
		}
	}
	return out
}

// States returns every lock that is held or waited for, by name. A lockset at
// which members were merely announced is left out until somebody waits for it.
func (t *Table) States() []State {
	out := make([]State, 0, len(t.locks))
	for _, e := range t.locks {
		if s := e.state(); !s.Free() {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b State) int { return a.Name.compare(b.Name) })
	return out
}

// Changed returns the locks that may look different since it was called last,
// as they are now, in no order.
func (t *Table) Changed() []State {
	if len(t.touched) == 0 {
		return nil
	}
	out := make([]State, 0, len(t.touched))
	for n := range t.touched {
		s := State{Name: n}
		if e := t.locks[n]; e != nil {
			s = e.state()
		}
		out = append(out, s)
	}
	clear(t.touched)
	return out
}

// Now returns the locks that were told about as they are now.
func (t *Table) Now(told []State) []State {
	out := make([]State, len(told))
	for i := range told {
		out[i] = State{Name: told[i].Name}
		if e := t.locks[told[i].Name]; e != nil {
			out[i] = e.state()
		}
	}
	return out
}

// state is the lock as a client may see it: free if its members were merely
// announced.
func (e *entry) state() State {
	if e.count[Shared]+e.count[Exclusive] == 0 && len(e.queue) == 0 {
		return State{Name: e.name}
	}
	s := State{Name: e.name, Mode: Shared, Holders: Owners{e.holders.Copy()}}
	if e.count[Exclusive]+e.count[intendExclusive] > 0 {
		s.Mode = Exclusive
	}
	s.Pending = slices.Grow(s.Pending, len(e.queue))
	for _, w := range e.queue {
		s.Pending = append(s.Pending, Pending{w.holding.plan[w.holding.have].Mode, w.holding.owner})
	}
	return s
}

// Free reports whether nobody holds the lock and nobody waits for it.
func (s *State) Free() bool { return s.Holders.Len() == 0 && len(s.Pending) == 0 }
