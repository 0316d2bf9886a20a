package job

import (
	"iter"
	"slices"
	"sort"

	"github.com/tidwall/btree"
)

// Table holds jobs by id, and finds them by status and by each of their times.
// Its changes are not safe for concurrent use; Copy makes a picture that
// may be read from any number of goroutines while the original goes on. A copy
// costs the same at any size, a change the logarithm of it.
//
// Jobs that have not ended are whole in it, and so are those that ended last: a
// client that waited for the end of a job asks for the rest of it next. Of all
// others it has what most lists show, and gives jobs that are brief (Job.Brief).
//
// Each tree that a change touches is copied in part for the picture before it, so
// there are few: what is found quickly by looking at all that run, or at
// all that ended last, has none.
type Table struct {
	whole *btree.Map[ID, *Job]
	// received has whole jobs by the time of their submission, begun those that
	// have begun and not ended, recent those that ended last, by their end.
	received *btree.BTreeG[moment]
	begun    *btree.Map[ID, struct{}]
	recent   *btree.BTreeG[moment]
	in       [len(Statuses)]int // how many whole jobs have each status
	weight   int                // of the recent ones
	ended    shelves
	owner    *owner
}

// How many jobs that have ended are whole, how many more may be until some are made
// brief together, and how much memory all may take, in bytes.
const (
	maxRecent       = 1000
	moreRecent      = 64
	maxRecentWeight = 4 << 20
)

// degree is how wide the trees are: a change copies a node of each level, so
// narrow ones cost less, and wide ones are lower.
const degree = 8

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

// moment is an entry of an index by time.
type moment struct {
	at Time
	id ID
}

func earlier(a, b moment) bool {
	return a.at < b.at || a.at == b.at && a.id < b.id
}

// NewTable returns a table of jobs.
func NewTable(jobs ...*Job) *Table {
	t := &Table{whole: btree.NewMap[ID, *Job](degree), received: newMoments(), begun: btree.NewMap[ID, struct{}](degree), recent: newMoments(),
		ended: newShelves(), owner: &owner{}}
	for _, j := range jobs {
		t.Put(j)
	}
	return t
}

func newMoments() *btree.BTreeG[moment] {
	return btree.NewBTreeGOptions(earlier, btree.Options{NoLocks: true, Degree: degree})
}

// Copy returns the table as it is now. It is a change of the table, for which it
// needs to be alone.
func (t *Table) Copy() *Table {
	t.owner = &owner{}
	c := *t
	c.whole, c.received, c.begun, c.recent = t.whole.Copy(), t.received.Copy(), t.begun.Copy(), t.recent.Copy()
	c.ended, c.owner = t.ended.copy(), &owner{}
	return &c
}

// Put sets a job, in place of the one with its id. One that is brief came out of
// a table, and changes nothing.
func (t *Table) Put(j *Job) {
	if j.brief != nil {
		return
	}
	old, replaced := t.whole.Set(j.ID, j)
	if replaced {
		t.forget(old, hasBegun(j))
	} else {
		t.ended.remove(t.owner, j.ID)
	}
	if !replaced || old.Received != j.Received {
		if replaced {
			t.received.Delete(moment{old.Received, j.ID})
		}
		t.received.Set(moment{j.Received, j.ID})
	}
	t.in[place(j.Status())]++
	if hasBegun(j) && (!replaced || !hasBegun(old)) {
		t.begun.Set(j.ID, struct{}{})
	}
	if !j.Final() {
		return
	}
	t.recent.Set(moment{j.Ended, j.ID})
	t.weight += j.weight()
	if t.recent.Len() < maxRecent+moreRecent && t.weight <= maxRecentWeight {
		return
	}
	t.shorten()
}

// hasBegun reports whether a job has begun and not ended.
func hasBegun(j *Job) bool { return !j.Final() && (j.Started != 0 || j.Status() != Queued) }

// forget takes a value of a job out of what is known beside it; goesOn says that the
// next one has begun and not ended.
func (t *Table) forget(j *Job, goesOn bool) {
	t.in[place(j.Status())]--
	if hasBegun(j) && !goesOn {
		t.begun.Delete(j.ID)
	}
	if j.Final() {
		t.recent.Delete(moment{j.Ended, j.ID})
		t.weight -= j.weight()
	}
}

// shorten makes those jobs brief that ended first of those that are whole.
func (t *Table) shorten() {
	var jobs []*Job
	for t.recent.Len() > maxRecent || t.weight > maxRecentWeight {
		oldest, _ := t.recent.Min()
		j := t.Get(oldest.id)
		t.Remove(j.ID)
		jobs = append(jobs, j)
	}
	t.ended.put(t.owner, jobs)
}

// Remove takes a job out; none with that id is no error.
func (t *Table) Remove(id ID) {
	old, found := t.whole.Delete(id)
	if !found {
		t.ended.remove(t.owner, id)
		return
	}
	t.received.Delete(moment{old.Received, id})
	t.forget(old, false)
}

// place is where a status is in Statuses.
func place(s Status) int {
	for i, other := range Statuses {
		if s == other {
			return i
		}
	}
	panic("job: no such status: " + string(s)) // Status returns no other
}

// Get returns the job with an id, nil if there is none.
func (t *Table) Get(id ID) *Job {
	if j, ok := t.whole.Get(id); ok {
		return j
	}
	return t.ended.get(id)
}

// Len is the number of jobs.
func (t *Table) Len() int { return t.whole.Len() + t.ended.n }

// All yields the jobs in the order of their ids.
func (t *Table) All() iter.Seq[*Job] { return merged(t.each, t.ended.all(nil, nil)) }

// Whole yields the jobs that are whole in the order of their ids: those that have
// not ended, and those that ended last.
func (t *Table) Whole() iter.Seq[*Job] { return merged(t.each, none) }

func none(func(*Job) bool) {}

// Unfinished yields the jobs that have not ended in the order of their ids.
func (t *Table) Unfinished() iter.Seq[*Job] {
	return merged(func() pull { return only(t.each(), func(j *Job) bool { return !j.Final() }) }, none)
}

// In yields the jobs with a status in the order of their ids.
func (t *Table) In(s Status) iter.Seq[*Job] {
	from := t.each
	switch {
	case s.Final():
		from = t.latest
	case s != Queued:
		from = t.running
	}
	fits := func(j *Job) bool { return j.Status() == s }
	return merged(func() pull { return only(from(), fits) }, t.ended.withStatus(place(s)))
}

// CountIn is the number of jobs with a status.
func (t *Table) CountIn(s Status) int { return t.in[place(s)] + t.ended.in[place(s)] }

// pull returns one job after the other, nil behind the last.
type pull func() *Job

// each gives the whole jobs in the order of their ids.
func (t *Table) each() pull {
	next := t.whole.Iter()
	more := next.First()
	return func() (j *Job) {
		if more {
			j = next.Value()
			more = next.Next()
		}
		return j
	}
}

// running gives those of them that have begun and not ended.
func (t *Table) running() pull {
	next := t.begun.Iter()
	more := next.First()
	return func() (j *Job) {
		if more {
			j, _ = t.whole.Get(next.Key())
			more = next.Next()
		}
		return j
	}
}

// latest gives those of them that have ended.
func (t *Table) latest() pull {
	ids := make([]ID, 0, t.recent.Len())
	t.recent.Scan(func(m moment) bool {
		ids = append(ids, m.id)
		return true
	})
	slices.Sort(ids)
	return func() (j *Job) {
		if len(ids) > 0 {
			j, _ = t.whole.Get(ids[0])
			ids = ids[1:]
		}
		return j
	}
}

// only gives the jobs that fit.
func only(next pull, fits func(*Job) bool) pull {
	return func() *Job {
		for j := next(); j != nil; j = next() {
			if fits(j) {
				return j
			}
		}
		return nil
	}
}

// merged yields whole and brief jobs in the order of their ids.
func merged(whole func() pull, briefs iter.Seq[*Job]) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		next := whole()
		j := next()
		for b := range briefs {
			for ; j != nil && j.ID < b.ID; j = next() {
				if !yield(j) {
					return
				}
			}
			if !yield(b) {
				return
			}
		}
		for ; j != nil; j = next() {
			if !yield(j) {
				return
			}
		}
	}
}

// Between yields the jobs with from <= time < until by one of their times, in no
// order. The time of what has not come yet is 0.
func (t *Table) Between(c Clock, from, until Time) iter.Seq[*Job] {
	fits := func(j *Job) bool { return from <= clocks[c](j) && clocks[c](j) < until }
	return func(yield func(*Job) bool) {
		for _, some := range t.near(c, from, until) {
			for next, j := some, some(); j != nil; j = next() {
				if fits(j) && !yield(j) {
					return
				}
			}
		}
		t.ended.between(c, from, until)(yield)
	}
}

// near gives whole jobs, among which are all that have a time in a span.
func (t *Table) near(c Clock, from, until Time) []pull {
	switch {
	case c == ByReceived:
		return []pull{t.receivedFrom(from, until)}
	case from <= 0 && until > 0:
		return []pull{t.each()}
	case c == ByStarted:
		return []pull{t.running(), t.latest()}
	}
	return []pull{t.latest()}
}

// receivedFrom gives the whole jobs that were submitted in a span.
func (t *Table) receivedFrom(from, until Time) pull {
	next := t.received.Iter()
	more := next.Seek(moment{at: from})
	return func() (j *Job) {
		if more && next.Item().at < until {
			j, _ = t.whole.Get(next.Item().id)
			more = next.Next()
		}
		return j
	}
}

// CountBetween is the number of jobs that Between yields.
func (t *Table) CountBetween(c Clock, from, until Time) int {
	n := t.ended.countBetween(c, from, until)
	if c == ByReceived {
		return n + max(0, t.before(until)-t.before(from))
	}
	some := []pull{t.latest()}
	unfinished := t.whole.Len() - t.recent.Len()
	switch coming := from <= 0 && until > 0; {
	case c == ByStarted:
		some = append(some, t.running())
		if coming {
			n += unfinished - t.begun.Len()
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

// before is the number of whole jobs that were submitted before a moment.
func (t *Table) before(at Time) int {
	return sort.Search(t.received.Len(), func(i int) bool {
		m, _ := t.received.GetAt(i)
		return m.at >= at
	})
}
