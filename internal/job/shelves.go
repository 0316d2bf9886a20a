package job

import (
	"cmp"
	"iter"
	"slices"

	"github.com/tidwall/btree"
)

// shelves hold brief jobs by id, in little memory: a shelf has the jobs of a
// range of ids next to each other. There is no index by status or time; instead
// it is known of each zone, a longer range, how many jobs have which status, and
// from when until when their times are. Ids grow with time, so a search skips
// nearly all zones that have nothing to find.
type shelves struct {
	byID  *btree.Map[ID, *shelf] // by id / shelfSize
	zones *btree.Map[ID, zone]   // by id / zoneSize
	n     int
	in    [len(Statuses)]int
}

const (
	shelfSize = 32
	zoneSize  = 64 * shelfSize
)

// shelf has its jobs in the order of their ids, and their texts. Only its owner may
// change it.
type shelf struct {
	owner   *owner
	entries []entry
	texts   string
}

// owner tells trees from their copies; it has a size so that no two are one.
type owner struct{ _ byte }

// zone is what is known of a range of ids. The times may lie further apart than
// those of the jobs that are left.
type zone struct {
	in          [len(Statuses)]int32
	first, last [len(clocks)]Time
}

func newShelves() shelves {
	return shelves{byID: btree.NewMap[ID, *shelf](degree), zones: btree.NewMap[ID, zone](degree)}
}

// copy returns shelves that may be changed, as long as these are not.
func (s *shelves) copy() shelves {
	c := *s
	c.byID, c.zones = copyMap(s.byID), copyMap(s.zones)
	return c
}

// find returns the shelf of a job, nil if there is none, and where in it the job
// is or would be.
func (s *shelves) find(id ID) (on *shelf, i int, found bool) {
	on, ok := s.byID.Get(id / shelfSize)
	if !ok {
		return nil, 0, false
	}
	i, found = on.search(id)
	return on, i, found
}

func (on *shelf) search(id ID) (int, bool) {
	return slices.BinarySearchFunc(on.entries, id, func(e entry, id ID) int { return cmp.Compare(e.id, id) })
}

func (s *shelves) get(id ID) *Job {
	on, i, found := s.find(id)
	if !found {
		return nil
	}
	return &on.jobs(i, i+1)[0]
}

func (on *shelf) jobs(from, to int) []Job { return jobsOf(on.entries[from:to], on.texts) }

// own returns a shelf that may be changed, with room for some more.
func (s *shelves) own(who *owner, on *shelf, id ID, more int) *shelf {
	switch {
	case on == nil:
		on = &shelf{}
	case on.owner == who && len(on.entries)+more <= cap(on.entries):
		return on
	}
	mine := &shelf{who, append(make([]entry, 0, len(on.entries)+more), on.entries...), on.texts}
	s.byID.Set(id/shelfSize, mine)
	return mine
}

// put adds jobs that are not there. Those of one shelf share the work.
func (s *shelves) put(who *owner, jobs []*Job) {
	slices.SortFunc(jobs, func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
	for len(jobs) > 0 {
		n, at := 1, jobs[0].ID/shelfSize
		for n < len(jobs) && jobs[n].ID/shelfSize == at {
			n++
		}
		s.putOn(who, jobs[:n])
		jobs = jobs[n:]
	}
}

func (s *shelves) putOn(who *owner, jobs []*Job) {
	on, _, _ := s.find(jobs[0].ID)
	on = s.own(who, on, jobs[0].ID, len(jobs))
	texts := []byte(on.texts)
	for _, j := range jobs {
		e, summary, why := entryOf(j)
		texts, e.summary = keep(texts, summary)
		texts, e.reason = keep(texts, why)
		i, _ := on.search(e.id)
		on.entries = slices.Insert(on.entries, i, e)
		s.count(&e)
	}
	on.texts = string(texts)
}

// count takes a new job into the account of its zone.
func (s *shelves) count(e *entry) {
	s.n++
	s.in[e.status]++
	z, known := s.zones.Get(e.id / zoneSize)
	z.in[e.status]++
	for c := range z.first {
		at := e.time(Clock(c)) // there are three
		if !known || at < z.first[c] {
			z.first[c] = at
		}
		if !known || at > z.last[c] {
			z.last[c] = at
		}
	}
	s.zones.Set(e.id/zoneSize, z)
}

// remove takes a job out, if it is there.
func (s *shelves) remove(who *owner, id ID) {
	on, i, found := s.find(id)
	if !found {
		return
	}
	status := on.entries[i].status
	if len(on.entries) == 1 {
		s.byID.Delete(id / shelfSize)
	} else {
		on = s.own(who, on, id, 0)
		on.entries = slices.Delete(on.entries, i, i+1)
	}
	s.n--
	s.in[status]--
	z, _ := s.zones.Get(id / zoneSize)
	z.in[status]--
	if z.in == (zone{}).in {
		s.zones.Delete(id / zoneSize)
		return
	}
	s.zones.Set(id/zoneSize, z)
}

// all yields the jobs that fit, in the order of their ids; any if fits is nil.
func (s *shelves) all(has func(*zone) bool, fits func(*entry) bool) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		s.each(has, func(on *shelf) bool {
			if fits == nil {
				made := on.jobs(0, len(on.entries))
				for i := range made {
					if !yield(&made[i]) {
						return false
					}
				}
				return true
			}
			for i := range on.entries {
				if fits(&on.entries[i]) && !yield(&on.jobs(i, i+1)[0]) {
					return false
				}
			}
			return true
		})
	}
}

// each yields the shelves of the zones that have something to find.
func (s *shelves) each(has func(*zone) bool, yield func(*shelf) bool) {
	if has == nil {
		s.byID.Scan(func(_ ID, on *shelf) bool { return yield(on) })
		return
	}
	const perZone = zoneSize / shelfSize
	s.zones.Scan(func(n ID, z zone) bool {
		more := true
		if has(&z) {
			s.byID.Ascend(n*perZone, func(at ID, on *shelf) bool {
				if at >= (n+1)*perZone {
					return false
				}
				more = yield(on)
				return more
			})
		}
		return more
	})
}

func (s *shelves) withStatus(status int) iter.Seq[*Job] {
	return s.all(func(z *zone) bool { return z.in[status] > 0 }, func(b *entry) bool { return int(b.status) == status })
}

func (s *shelves) between(c Clock, from, until Time) iter.Seq[*Job] {
	return s.all(func(z *zone) bool { return z.last[c] >= from && z.first[c] < until },
		func(b *entry) bool { return b.time(c) >= from && b.time(c) < until })
}

// countBetween is the number of jobs that between yields.
func (s *shelves) countBetween(c Clock, from, until Time) (n int) {
	partly := func(z *zone) bool {
		switch {
		case z.last[c] < from || z.first[c] >= until:
			return false
		case z.first[c] >= from && z.last[c] < until:
			for _, some := range z.in {
				n += int(some)
			}
			return false
		}
		return true
	}
	s.each(partly, func(on *shelf) bool {
		for i := range on.entries {
			if at := on.entries[i].time(c); at >= from && at < until {
				n++
			}
		}
		return true
	})
	return n
}
