package job

import (
	"cmp"
	"iter"
	"slices"
	"sort"

	"github.com/tidwall/btree"
)

// trees hold the jobs of tables, and their indexes. What is found quickly by looking at
// all that run, or at all that ended last, has none.
type trees struct {
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

// moment is an entry of an index by time.
type moment struct {
	at Time
	id ID
}

func earlier(a, b moment) bool {
	return a.at < b.at || a.at == b.at && a.id < b.id
}

func newTrees() *trees {
	return &trees{whole: btree.NewMap[ID, *Job](degree), received: newMoments(), begun: btree.NewMap[ID, struct{}](degree),
		recent: newMoments(), ended: newShelves(), owner: &owner{}}
}

func newMoments() *btree.BTreeG[moment] {
	return btree.NewBTreeGOptions(earlier, btree.Options{NoLocks: true, Degree: degree})
}

// copy returns trees that may be changed, as long as these are not.
func (t *trees) copy() *trees {
	c := *t
	c.whole, c.received, c.begun, c.recent = copyMap(t.whole), copyMoments(t.received), copyMap(t.begun), copyMoments(t.recent)
	c.ended, c.owner = t.ended.copy(), &owner{}
	return &c
}

// copyMap copies a tree that does not change any more. Its own Copy writes to it so
// that it may change, and others may be copying it at the same time.
func copyMap[V any](m *btree.Map[ID, V]) *btree.Map[ID, V] {
	own := *m
	return own.Copy()
}

func copyMoments(m *btree.BTreeG[moment]) *btree.BTreeG[moment] {
	own := *m
	return own.Copy()
}

// apply makes changes. Only the last one of each job counts, and neighbours in the
// trees are changed one after the other.
func (t *trees) apply(changes []change) {
	changes = slices.Clone(changes)
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.id, b.id) })
	for i, c := range changes {
		switch {
		case i+1 < len(changes) && changes[i+1].id == c.id:
		case c.job != nil:
			t.put(c.job)
		default:
			t.remove(c.id)
		}
	}
	if t.recent.Len() >= maxRecent+moreRecent || t.weight > maxRecentWeight {
		t.shorten()
	}
}

// put sets a job, in place of the one with its id.
func (t *trees) put(j *Job) {
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
	if j.Final() {
		t.recent.Set(moment{j.Ended, j.ID})
		t.weight += j.weight()
	}
}

// hasBegun reports whether a job has begun and not ended.
func hasBegun(j *Job) bool { return !j.Final() && (j.Started != 0 || j.Status() != Queued) }

// forget takes a value of a job out of what is known beside it; goesOn says that the
// next one has begun and not ended.
func (t *trees) forget(j *Job, goesOn bool) {
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
func (t *trees) shorten() {
	var jobs []*Job
	for t.recent.Len() > maxRecent || t.weight > maxRecentWeight {
		oldest, _ := t.recent.Min()
		j := t.get(oldest.id)
		t.remove(j.ID)
		jobs = append(jobs, j)
	}
	t.ended.put(t.owner, jobs)
}

// remove takes a job out; none with that id is no error.
func (t *trees) remove(id ID) {
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

// get returns the job with an id, nil if there is none.
func (t *trees) get(id ID) *Job {
	if j, ok := t.whole.Get(id); ok {
		return j
	}
	return t.ended.get(id)
}

func none(func(*Job) bool) {}

// pull returns one job after the other, nil behind the last.
type pull func() *Job

// each gives the whole jobs in the order of their ids.
func (t *trees) each() pull {
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
func (t *trees) running() pull {
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
func (t *trees) latest() pull {
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

// near gives whole jobs, among which are all that have a time in a span.
func (t *trees) near(c Clock, from, until Time) []pull {
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
func (t *trees) receivedFrom(from, until Time) pull {
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

// before is the number of whole jobs that were submitted before a moment.
func (t *trees) before(at Time) int {
	return sort.Search(t.received.Len(), func(i int) bool {
		m, _ := t.received.GetAt(i)
		return m.at >= at
	})
}
