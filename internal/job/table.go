package job

import (
	"iter"
	"sort"

	"github.com/tidwall/btree"
)

// Table holds jobs by id, with an index by status and one by each of their
// times. Its changes are not safe for concurrent use; Copy makes a picture that
// may be read from any number of goroutines while the original goes on. A copy
// costs the same at any size, a change the logarithm of it.
//
// Jobs that have not ended are whole in it, and so are those that ended last: a
// client that waited for the end of a job asks for the rest of it next. Of all
// others it has what most lists show, and gives jobs that are brief (Job.Brief).
type Table struct {
	byID     *btree.Map[ID, *Job]
	byStatus [len(Statuses)]*btree.Map[ID, *Job]
	byTime   [len(clocks)]*btree.BTreeG[moment]
	// recent are the jobs in byID that have ended, weight is that of all of them.
	recent *btree.BTreeG[moment]
	weight int
	ended  shelves
	owner  *owner
	texts  texts
}

// How many jobs that have ended are whole, and how much memory they may take
// together, in bytes.
const (
	maxRecent       = 1000
	maxRecentWeight = 4 << 20
)

// Clock names one of the times of a job.
type Clock uint8

// The times of a job.
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
	t := &Table{byID: &btree.Map[ID, *Job]{}, recent: newMoments(), ended: newShelves(), owner: &owner{}, texts: texts{}}
	for i := range t.byStatus {
		t.byStatus[i] = &btree.Map[ID, *Job]{}
	}
	for i := range t.byTime {
		t.byTime[i] = newMoments()
	}
	for _, j := range jobs {
		t.Put(j)
	}
	return t
}

func newMoments() *btree.BTreeG[moment] {
	return btree.NewBTreeGOptions(earlier, btree.Options{NoLocks: true})
}

// Copy returns the table as it is now. It is a change of the table, for which it
// needs to be alone.
func (t *Table) Copy() *Table {
	t.owner = &owner{}
	c := &Table{byID: t.byID.Copy(), recent: t.recent.Copy(), weight: t.weight, ended: t.ended.copy(), owner: &owner{}, texts: t.texts}
	for i := range t.byStatus {
		c.byStatus[i] = t.byStatus[i].Copy()
	}
	for i := range t.byTime {
		c.byTime[i] = t.byTime[i].Copy()
	}
	return c
}

// Put sets a job, in place of the one with its id. One that is brief came out of
// a table, and changes nothing.
func (t *Table) Put(j *Job) {
	if j.brief != nil {
		return
	}
	old, replaced := t.byID.Set(j.ID, j)
	status := j.Status()
	if replaced {
		if was := old.Status(); was != status {
			t.byStatus[place(was)].Delete(j.ID)
		}
		t.forget(old)
	} else {
		t.ended.remove(t.owner, j.ID)
	}
	t.byStatus[place(status)].Set(j.ID, j)
	for i, clock := range clocks {
		at := clock(j)
		if replaced {
			was := clock(old)
			if was == at {
				continue
			}
			t.byTime[i].Delete(moment{was, j.ID})
		}
		t.byTime[i].Set(moment{at, j.ID})
	}
	if !status.Final() {
		return
	}
	t.recent.Set(moment{j.Ended, j.ID})
	t.weight += j.weight()
	for t.recent.Len() > maxRecent || t.weight > maxRecentWeight {
		t.shorten()
	}
}

// forget takes a job out of the account of those that ended last.
func (t *Table) forget(j *Job) {
	if j.Final() {
		t.recent.Delete(moment{j.Ended, j.ID})
		t.weight -= j.weight()
	}
}

// shorten makes the job brief that ended first of those that are whole.
func (t *Table) shorten() {
	oldest, _ := t.recent.Min()
	j := t.Get(oldest.id)
	t.Remove(j.ID)
	t.ended.put(t.owner, briefOf(j, t.texts.share))
}

// Remove takes a job out; none with that id is no error.
func (t *Table) Remove(id ID) {
	old, found := t.byID.Delete(id)
	if !found {
		t.ended.remove(t.owner, id)
		return
	}
	t.byStatus[place(old.Status())].Delete(id)
	for i, clock := range clocks {
		t.byTime[i].Delete(moment{clock(old), id})
	}
	t.forget(old)
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
	if j, ok := t.byID.Get(id); ok {
		return j
	}
	return t.ended.get(id)
}

// Len is the number of jobs.
func (t *Table) Len() int { return t.byID.Len() + t.ended.n }

// All yields the jobs in the order of their ids.
func (t *Table) All() iter.Seq[*Job] { return merged(t.byID, t.ended.all(nil, nil)) }

// Whole yields the jobs that are whole in the order of their ids: those that have
// not ended, and those that ended last.
func (t *Table) Whole() iter.Seq[*Job] { return merged(t.byID, func(func(*Job) bool) {}) }

// In yields the jobs with a status in the order of their ids.
func (t *Table) In(s Status) iter.Seq[*Job] {
	return merged(t.byStatus[place(s)], t.ended.withStatus(place(s)))
}

// CountIn is the number of jobs with a status.
func (t *Table) CountIn(s Status) int { return t.byStatus[place(s)].Len() + t.ended.in[place(s)] }

// merged yields whole and brief jobs in the order of their ids.
func merged(whole *btree.Map[ID, *Job], briefs iter.Seq[*Job]) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		next := whole.Iter()
		more := next.First()
		for b := range briefs {
			for ; more && next.Key() < b.ID; more = next.Next() {
				if !yield(next.Value()) {
					return
				}
			}
			if !yield(b) {
				return
			}
		}
		for ; more; more = next.Next() {
			if !yield(next.Value()) {
				return
			}
		}
	}
}

// Between yields the jobs with from <= time < until by one of their times, in no
// order. The time of what has not come yet is 0.
func (t *Table) Between(c Clock, from, until Time) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		more := true
		t.byTime[c].Ascend(moment{at: from}, func(m moment) bool {
			if m.at >= until {
				return false
			}
			j, _ := t.byID.Get(m.id)
			more = yield(j)
			return more
		})
		if more {
			t.ended.between(c, from, until)(yield)
		}
	}
}

// Unfinished yields the jobs that have not ended in the order of their ids.
func (t *Table) Unfinished() iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		t.byTime[ByEnded].Ascend(moment{}, func(m moment) bool {
			j, _ := t.byID.Get(m.id)
			return m.at == 0 && yield(j)
		})
	}
}

// CountBetween is the number of jobs that Between yields.
func (t *Table) CountBetween(c Clock, from, until Time) int {
	return max(0, t.before(c, until)-t.before(c, from)) + t.ended.countBetween(c, from, until)
}

// before is the number of whole jobs with a time before a moment.
func (t *Table) before(c Clock, at Time) int {
	tree := t.byTime[c]
	return sort.Search(tree.Len(), func(i int) bool {
		m, _ := tree.GetAt(i)
		return m.at >= at
	})
}
