package queue

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue/machine"
	"github.com/drover-project/drover/internal/store"
)

// archiveBatch is how many jobs move into the archive in one transaction.
const archiveBatch = 500

// Archive moves a job that has ended out of the live list. It reports false for
// a job that is not there or has not ended.
func (q *Queue) Archive(ctx context.Context, id job.ID, by By) (bool, error) {
	n, err := q.archive(ctx, []job.ID{id}, by)
	return n == 1, err
}

// AutoArchive moves the jobs that ended longer ago than age into the archive;
// every job that has ended if age is zero or negative. It stops after the
// limit, and returns how many it moved and how many it did not look at. One that is damaged stays, and is
// told when the others have moved.
func (q *Queue) AutoArchive(ctx context.Context, age, limit time.Duration, by By) (archived, left int, err error) {
	now := q.cfg.Now()
	due := q.endedBefore(now.Add(-max(age, 0)))
	deadline := now.Add(limit)
	for len(due) > 0 && q.cfg.Now().Before(deadline) {
		batch := due[:min(archiveBatch, len(due))]
		due = due[len(batch):]
		n, bad := q.archive(ctx, batch, by)
		archived += n
		if bad != nil && !damaged(bad) {
			return archived, len(due), bad
		}
		err = cmp.Or(err, bad)
	}
	return archived, len(due), err
}

// endedBefore returns the jobs that ended at a moment or earlier, by id.
func (q *Queue) endedBefore(t time.Time) []job.ID {
	var due []job.ID
	for j := range q.Jobs().Between(job.ByEnded, 1, job.At(t)+1) {
		due = append(due, j.ID)
	}
	slices.Sort(due)
	return due
}

// leaving is a job on its way into the archive, with its head as it is stored: only
// that moves, its other parts stay where they are.
type leaving struct {
	*job.Job

	key  string // of its submission
	head store.Object
}

func (q *Queue) archive(ctx context.Context, ids []job.ID, by By) (int, error) {
	heads, err := q.heads(ctx, ids)
	if err != nil && !damaged(err) {
		return 0, err
	}
	var n atomic.Int64
	failed := q.change(ctx, func(w *work) error {
		var moved []job.ID
		for _, id := range ids {
			j := q.live(id)
			_, leaves := q.archiving[id]
			if j == nil || !j.Final() || leaves || heads[id].At == 0 {
				continue
			}
			q.m.Stored(j) // what is published is durable, settled or not
			key := heads[id].key
			q.archiving[id] = leaving{j, key, heads[id].Object}
			w.touch(jobKey(id))
			w.touch(store.Key{Kind: KindArchived, ID: id.String()})
			if key != "" {
				// Once the job is out of sight nobody else can write it again.
				w.touch(submissionKey(key))
			}
			moved = append(moved, id)
		}
		if len(moved) > 0 {
			e := audit.New(audit.JobArchive, moved[0].String(), by)
			if len(moved) > 1 {
				e.Object, e.After = "", encode(moved)
			}
			q.record(w, e)
			w.first(func(err error) {
				if err == nil || permanent(err) {
					n.Store(int64(q.archivedNow(moved)))
				}
			})
		}
		return nil
	})
	return int(n.Load()), cmp.Or(failed, err)
}

// head is the stored head of a job. One with a time is that of a job that has
// ended, and will not change any more.
type head struct {
	store.Object

	key string
}

// heads reads the stored heads of jobs. Those that are damaged are left out, and the first of them is the error.
func (q *Queue) heads(ctx context.Context, ids []job.ID) (out map[job.ID]head, bad error) {
	out = make(map[job.ID]head, len(ids))
	for _, id := range ids {
		o, err := q.read(ctx, jobKey(id))
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil && !damaged(err) {
			return nil, err
		}
		key := ""
		if err == nil {
			key, err = job.KeyOf(o.Value)
		}
		if err != nil {
			bad = cmp.Or(bad, error(fault.New(fault.WrongState, "job %d cannot be archived: %w", id, err)))
			continue
		}
		out[id] = head{o, key}
	}
	return out, bad
}

// archivedNow forgets jobs that are in the archive now, unless the store refused
// them, and returns how many are.
func (q *Queue) archivedNow(ids []job.ID) (n int) {
	q.update(func(w *work) {
		var keys []string
		for _, id := range ids {
			j, moved := q.archiving[id]
			if !moved {
				continue
			}
			if n++; j.key != "" {
				keys = append(keys, j.key)
			}
			delete(q.archiving, id)
		}
		q.archivals++
		q.apply(w, machine.Forget{Keys: keys})
	})
	return n
}

// Job returns a job, whole, live or archived; fault.NotFound if there is none, a
// *job.DamageError if it cannot be read.
func (q *Queue) Job(ctx context.Context, id job.ID) (*job.Job, error) {
	j := q.live(id)
	switch {
	case j == nil:
		return q.archived(ctx, id)
	case j.Brief() == nil:
		return j, nil
	}
	return q.Stored.Job(ctx, id)
}
