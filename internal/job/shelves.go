package job

import (
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

// shelf has its jobs in the order of their ids. Only its owner may change it.
type shelf struct {
	owner  *owner
	briefs []Brief
}

// owner tells a table from its copies; it has a size so that no two are one.
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

func (s *shelves) copy() shelves {
	c := *s
	c.byID, c.zones = s.byID.Copy(), s.zones.Copy()
	return c
}

// find returns the shelf of a job, nil if there is none, and where in it the job
// is or would be.
func (s *shelves) find(id ID) (on *shelf, i int, found bool) {
	on, ok := s.byID.Get(id / shelfSize)
	if !ok {
		return nil, 0, false
	}
	i, found = slices.BinarySearchFunc(on.briefs, id, func(b Brief, id ID) int { return int(b.id - id) })
	return on, i, found
}

func (s *shelves) get(id ID) *Job {
	on, i, found := s.find(id)
	if !found {
		return nil
	}
	return &jobsOf(on.briefs[i : i+1])[0]
}

// own returns a shelf that may be changed, with room for one more.
func (s *shelves) own(who *owner, on *shelf, id ID) *shelf {
	const more = 4
	switch {
	case on == nil:
		on = &shelf{}
	case on.owner == who && len(on.briefs) < cap(on.briefs):
		return on
	}
	mine := &shelf{who, append(make([]Brief, 0, min(len(on.briefs)+more, shelfSize)), on.briefs...)}
	s.byID.Set(id/shelfSize, mine)
	return mine
}

// put adds a job that is not there.
func (s *shelves) put(who *owner, b Brief) {
	on, i, _ := s.find(b.id)
	on = s.own(who, on, b.id)
	on.briefs = slices.Insert(on.briefs, i, b)
	s.n++
	s.in[b.status]++
	z, known := s.zones.Get(b.id / zoneSize)
	z.in[b.status]++
	for c := range z.first {
		at := b.time(Clock(c)) // there are three
		if !known || at < z.first[c] {
			z.first[c] = at
		}
		if !known || at > z.last[c] {
			z.last[c] = at
		}
	}
	s.zones.Set(b.id/zoneSize, z)
}

// remove takes a job out, if it is there.
func (s *shelves) remove(who *owner, id ID) {
	on, i, found := s.find(id)
	if !found {
		return
	}
	status := on.briefs[i].status
	if len(on.briefs) == 1 {
		s.byID.Delete(id / shelfSize)
	} else {
		on = s.own(who, on, id)
		on.briefs = slices.Delete(on.briefs, i, i+1)
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
func (s *shelves) all(has func(*zone) bool, fits func(*Brief) bool) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		s.each(has, func(on *shelf) bool {
			briefs := on.briefs
			if fits == nil {
				made := jobsOf(briefs)
				for i := range made {
					if !yield(&made[i]) {
						return false
					}
				}
				return true
			}
			for i := range briefs {
				if fits(&briefs[i]) && !yield(&jobsOf(briefs[i : i+1])[0]) {
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
	return s.all(func(z *zone) bool { return z.in[status] > 0 }, func(b *Brief) bool { return int(b.status) == status })
}

func (s *shelves) between(c Clock, from, until Time) iter.Seq[*Job] {
	return s.all(func(z *zone) bool { return z.last[c] >= from && z.first[c] < until },
		func(b *Brief) bool { return b.time(c) >= from && b.time(c) < until })
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
		for i := range on.briefs {
			if at := on.briefs[i].time(c); at >= from && at < until {
				n++
			}
		}
		return true
	})
	return n
}
