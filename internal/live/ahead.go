package live

import (
	"context"
	"slices"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
)

// How many jobs are read together by a query that asks for one after the other, and
// at how many bytes of them the reading ends.
const (
	readTogether      = 64
	readTogetherBytes = 1 << 20
)

// readAhead reads jobs that have ended from the store for one query. A list asks for
// them in the order of their ids: from the second on it gets those that lie together
// at once, for a third of what each would take alone. What has ended does not change
// any more, so it makes no difference when it is read.
type readAhead struct {
	kept *queue.Stored
	last job.ID // that was asked for
	// live and archived are where jobs lie.
	live, archived stretch
}

// stretch is some heads of jobs of one kind, by id: all up to an id, but for those
// that were taken and those before them.
type stretch struct {
	kind  store.Kind
	heads []store.Object
	until job.ID
}

func newReadAhead(kept *queue.Stored) *readAhead {
	return &readAhead{kept: kept, live: stretch{kind: queue.KindJob}, archived: stretch{kind: queue.KindArchived}}
}

// job returns a whole job, live or archived; nil if there is none.
func (r *readAhead) job(ctx context.Context, id job.ID) (*job.Job, error) {
	goesOn := r.last > 0 && r.last < id && id <= r.last+readTogether
	r.last = id
	for _, s := range []*stretch{&r.live, &r.archived} {
		if goesOn && id > s.until {
			s.read(ctx, r.kept, id)
		}
		head, found := s.take(id)
		if !found {
			continue
		}
		j, err := r.kept.Decode(ctx, head)
		if err == nil {
			j.Archived = s.kind == queue.KindArchived
		}
		return j, err
	}
	j, err := r.kept.Job(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return j, err
}

// take takes a job out of the stretch, and forgets those before it.
func (s *stretch) take(id job.ID) (head store.Object, found bool) {
	at, found := slices.BinarySearchFunc(s.heads, id.String(), func(o store.Object, id string) int { return store.CompareIDs(o.ID, id) })
	if found {
		head = s.heads[at]
		at++
	}
	clear(s.heads[:at])
	s.heads = s.heads[at:]
	return head, found
}

// read reads jobs from an id on. What cannot be read is read by itself when it is
// asked for.
func (s *stretch) read(ctx context.Context, kept *queue.Stored, from job.ID) {
	s.heads, s.until = s.heads[:0], from
	bytes := 0
	for o, err := range kept.Heads(ctx, s.kind, from, readTogether) {
		id, bad := job.ParseID(o.ID)
		if err != nil || bad != nil {
			return
		}
		s.heads, s.until = append(s.heads, o), id
		if bytes += len(o.Value); bytes >= readTogetherBytes {
			return
		}
	}
	if len(s.heads) < readTogether {
		s.until = job.ID(job.Never) // there are no more
	}
}
