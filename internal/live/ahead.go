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
	last job.ID         // that was asked for
	next []store.Object // heads of jobs behind it, by id
}

// job returns a whole job, live or archived; nil if there is none.
func (r *readAhead) job(ctx context.Context, id job.ID) (*job.Job, error) {
	head, found := r.take(id)
	if !found && r.last > 0 && r.last < id && id <= r.last+readTogether {
		r.read(ctx, id)
		head, found = r.take(id)
	}
	r.last = id
	if found {
		return r.kept.Decode(ctx, head)
	}
	j, err := r.kept.Job(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return j, err
}

// take takes a job out of those that were read, and forgets those before it.
func (r *readAhead) take(id job.ID) (head store.Object, found bool) {
	at, found := slices.BinarySearchFunc(r.next, id.String(), func(o store.Object, id string) int { return store.CompareIDs(o.ID, id) })
	if found {
		head = r.next[at]
		at++
	}
	clear(r.next[:at])
	r.next = r.next[at:]
	return head, found
}

// read reads jobs from an id on. What cannot be read is read by itself when it is
// asked for.
func (r *readAhead) read(ctx context.Context, id job.ID) {
	r.next = r.next[:0]
	bytes := 0
	for o, err := range r.kept.Heads(ctx, id, readTogether) {
		if err != nil {
			return
		}
		r.next = append(r.next, o)
		if bytes += len(o.Value); bytes >= readTogetherBytes {
			return
		}
	}
}
