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
type Table struct {
	byID     *btree.Map[ID, *Job]
	byStatus [len(Statuses)]*btree.Map[ID, *Job]
	byTime   [len(clocks)]*btree.BTreeG[moment]
}

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
	t := &Table{byID: &btree.Map[ID, *Job]{}}
	for i := range t.byStatus {
		t.byStatus[i] = &btree.Map[ID, *Job]{}
	}
	for i := range t.byTime {
		t.byTime[i] = btree.NewBTreeGOptions(earlier, btree.Options{NoLocks: true})
	}
	for _, j := range jobs {
		t.Put(j)
	}
	return t
}

// Copy returns the table as it is now.
func (t *Table) Copy() *Table {
	c := &Table{byID: t.byID.Copy()}
	for i := range t.byStatus {
		c.byStatus[i] = t.byStatus[i].Copy()
	}
	for i := range t.byTime {
		c.byTime[i] = t.byTime[i].Copy()
	}
	return c
}

// Put sets a job, in place of the one with its id.
func (t *Table) Put(j *Job) {
	old, replaced := t.byID.Set(j.ID, j)
	status := place(j.Status())
	if replaced {
		if was := place(old.Status()); was != status {
			t.byStatus[was].Delete(j.ID)
		}
	}
	t.byStatus[status].Set(j.ID, j)
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
}

// Remove takes a job out; none with that id is no error.
func (t *Table) Remove(id ID) {
	old, found := t.byID.Delete(id)
	if !found {
		return
	}
	t.byStatus[place(old.Status())].Delete(id)
	for i, clock := range clocks {
		t.byTime[i].Delete(moment{clock(old), id})
	}
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
func (t *Table) Get(id ID) *Job { j, _ := t.byID.Get(id); return j }

// Len is the number of jobs.
func (t *Table) Len() int { return t.byID.Len() }

// All yields the jobs in the order of their ids.
func (t *Table) All() iter.Seq[*Job] { return values(t.byID) }

// In yields the jobs with a status in the order of their ids.
func (t *Table) In(s Status) iter.Seq[*Job] { return values(t.byStatus[place(s)]) }

// CountIn is the number of jobs with a status.
func (t *Table) CountIn(s Status) int { return t.byStatus[place(s)].Len() }

func values(m *btree.Map[ID, *Job]) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		m.Scan(func(_ ID, j *Job) bool { return yield(j) })
	}
}

// Between yields the jobs with from <= time < until by one of their times, in
// the order of it. The time of what has not come yet is 0.
func (t *Table) Between(c Clock, from, until Time) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		t.byTime[c].Ascend(moment{at: from}, func(m moment) bool {
			return m.at < until && yield(t.Get(m.id))
		})
	}
}

// Unfinished yields the jobs that have not ended in the order of their ids.
func (t *Table) Unfinished() iter.Seq[*Job] { return t.Between(ByEnded, 0, 1) }

// CountBetween is the number of jobs that Between yields.
func (t *Table) CountBetween(c Clock, from, until Time) int {
	return max(0, t.before(c, until)-t.before(c, from))
}

// before is the number of jobs with a time before a moment.
func (t *Table) before(c Clock, at Time) int {
	tree := t.byTime[c]
	return sort.Search(tree.Len(), func(i int) bool {
		m, _ := tree.GetAt(i)
		return m.at >= at
	})
}
