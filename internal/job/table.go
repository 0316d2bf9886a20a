package job

import (
	"iter"
	"slices"
	"sync/atomic"
)

// Table holds jobs by id, and finds them by status and by each of their times.
//
// Jobs that have not ended are whole in it, and so are those that ended last: a
// client that waited for the end of a job asks for the rest of it next. Of all
// others it has what most lists show, and gives jobs that are brief (Job.Brief).
//
// A table is made of trees and a short list of what changed since they were up to date. To
// change a job is to add to the list, to copy a table is to share both, and the trees are
// changed for many changes together, since a change copies a node of each level that another
// table has. Get looks through the list. Whatever else is asked needs the trees: the first
// who asks makes those of this table, and its next copy goes on from them.
//
// Invariants:
//   - Put, Remove and Copy need the table to be alone, but for those who read it beside Copy.
//     All else is safe for concurrent use. A copy is changed and read without regard to
//     the original.
//   - Fewer than maxLate changes are in the list, and the jobs in it that have ended take
//     no more memory than those in the trees may.
//   - When the trees are brought up to date changes no answer, but which of the jobs that
//     have ended are brief.
type Table struct {
	base *trees
	late []change
	// current is base with the late changes, once somebody needed it; else nil.
	current atomic.Pointer[trees]
	weight  int // of the late jobs that have ended
	// alone says that no other table has base, so that it may be changed in place; room,
	// that no other table may write behind late. Only changes and Copy look at them.
	alone, room bool
}

// change is the new value of a job, nil if it was taken out.
type change struct {
	id  ID
	job *Job
}

// maxLate is how many changes are made in the trees together. With more of them
// Get looks longer, and who needs the trees first has more to do.
const maxLate = 64

// Clock names one of the times of a job.
type Clock uint8

// The times of a job. Only those that have ended have an end.
const (
	ByReceived Clock = iota
	ByStarted
	ByEnded
)

// clocks read the times, in the order of their names.
var clocks = [...]func(*Job) Time{
	ByReceived: func(j *Job) Time { return j.Received },
	ByStarted:  func(j *Job) Time { return j.Started },
	ByEnded:    func(j *Job) Time { return j.Ended },
}

// NewTable returns a table of jobs.
func NewTable(jobs ...*Job) *Table {
	t := &Table{base: newTrees(), alone: true}
	for _, j := range jobs {
		t.Put(j)
	}
	return t
}

// Copy returns the table as it is now. It costs the same at any size. The room behind
// the list goes to the copy: of pictures that follow each other the newest one grows.
func (t *Table) Copy() *Table {
	c := &Table{base: t.base, late: t.late, weight: t.weight, room: t.room}
	if current := t.current.Load(); current != nil {
		c = &Table{base: current}
	}
	t.alone, t.room = false, false
	return c
}

// Put sets a job, in place of the one with its id. One that is brief came out of
// a table, and changes nothing.
func (t *Table) Put(j *Job) {
	if j.brief != nil {
		return
	}
	if j.Final() {
		t.weight += j.weight()
	}
	t.change(change{j.ID, j})
}

// Remove takes a job out; none with that id is no error.
func (t *Table) Remove(id ID) { t.change(change{id: id}) }

// change adds to the list, and makes the changes in the trees when there are many.
func (t *Table) change(c change) {
	t.current.Store(nil)
	if !t.room {
		t.late, t.room = slices.Clip(t.late), true
	}
	t.late = append(t.late, c)
	if len(t.late) < maxLate && t.weight <= maxRecentWeight {
		return
	}
	if !t.alone {
		t.base, t.alone = t.base.copy(), true
	}
	t.base.apply(t.late)
	t.late, t.weight, t.room = nil, 0, false
}

// now returns trees in which all changes are made.
func (t *Table) now() *trees {
	if len(t.late) == 0 {
		return t.base
	}
	if current := t.current.Load(); current != nil {
		return current
	}
	made := t.base.copy()
	made.apply(t.late)
	t.current.Store(made) // others may have stored the same meanwhile
	return made
}

// Get returns the job with an id, nil if there is none.
func (t *Table) Get(id ID) *Job {
	for _, c := range slices.Backward(t.late) {
		if c.id == id {
			return c.job
		}
	}
	return t.base.get(id)
}

// Len is the number of jobs.
func (t *Table) Len() int {
	now := t.now()
	return now.whole.Len() + now.ended.n
}

// All yields the jobs in the order of their ids.
func (t *Table) All() iter.Seq[*Job] {
	now := t.now()
	return merged(now.each, now.ended.all(nil, nil))
}

// Whole yields the jobs that are whole in the order of their ids: those that have
// not ended, and those that ended last.
func (t *Table) Whole() iter.Seq[*Job] { return merged(t.now().each, none) }

// Unfinished yields the jobs that have not ended in the order of their ids.
func (t *Table) Unfinished() iter.Seq[*Job] {
	now := t.now()
	return merged(func() pull { return only(now.each(), func(j *Job) bool { return !j.Final() }) }, none)
}

// In yields the jobs with a status in the order of their ids.
func (t *Table) In(s Status) iter.Seq[*Job] {
	now := t.now()
	from := now.each
	switch {
	case s.Final():
		from = now.latest
	case s != Queued:
		from = now.running
	}
	fits := func(j *Job) bool { return j.Status() == s }
	return merged(func() pull { return only(from(), fits) }, now.ended.withStatus(place(s)))
}

// CountIn is the number of jobs with a status.
func (t *Table) CountIn(s Status) int {
	now := t.now()
	return now.in[place(s)] + now.ended.in[place(s)]
}

// Between yields the jobs with from <= time < until by one of their times, in no
// order. The time of what has not come yet is 0.
func (t *Table) Between(c Clock, from, until Time) iter.Seq[*Job] {
	now := t.now()
	fits := func(j *Job) bool { return from <= clocks[c](j) && clocks[c](j) < until }
	return func(yield func(*Job) bool) {
		for _, some := range now.near(c, from, until) {
			for next, j := some, some(); j != nil; j = next() {
				if fits(j) && !yield(j) {
					return
				}
			}
		}
		now.ended.between(c, from, until)(yield)
	}
}

// CountBetween is the number of jobs that Between yields.
func (t *Table) CountBetween(c Clock, from, until Time) int {
	now := t.now()
	n := now.ended.countBetween(c, from, until)
	if c == ByReceived {
		return n + max(0, now.before(until)-now.before(from))
	}
	some := []pull{now.latest()}
	unfinished := now.whole.Len() - now.recent.Len()
	switch coming := from <= 0 && until > 0; {
	case c == ByStarted:
		some = append(some, now.running())
		if coming {
			n += unfinished - now.begun.Len()
		}
	case coming:
		n += unfinished
	}
	for _, next := range some {
		for j := next(); j != nil; j = next() {
			if at := clocks[c](j); from <= at && at < until {
				n++
			}
		}
	}
	return n
}
