package queue

import (
	"slices"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/store"
)

// A job is written in parts (job.Part), and only those that are different from
// what the store has. What it has is known of the value that was durable last,
// and of those that were handed over since: each of them may be in the store or
// not, until its work is settled.

// handed are the values of jobs in several parts that were handed to the store
// in works that are not settled, or failed and are to be written again.
type handed map[job.ID][]*job.Job

// settle forgets what a work handed over: it is durable and published, or was
// refused.
func (h handed) settle(w *work) {
	for _, j := range w.handed {
		rest := slices.DeleteFunc(h[j.ID], func(other *job.Job) bool { return other == j })
		if h[j.ID] = rest; len(rest) == 0 {
			delete(h, j.ID)
		}
	}
	w.handed = nil
}

// writeJob adds to a transaction what is new in a job: nothing else of it, and
// the head's removal if the job is in the archive or was never taken.
func (q *Queue) writeJob(tx *store.Tx, w *work, key store.Key) {
	id, _ := job.ParseID(key.ID)
	j := q.newest(id)
	if j == nil {
		tx.Delete = append(tx.Delete, key)
		return
	}
	durable := q.live(id)
	if durable != nil && durable.Brief() != nil {
		return // nothing is new: it has ended
	}
	var before []*job.Job
	if durable != nil {
		before = slices.Concat(q.handed[id], []*job.Job{durable})
	}
	for _, p := range j.Parts(before...) {
		put := store.Put{Key: key, At: int64(j.Ended), Value: p.Value}
		if p.Name != "" {
			put.Key, put.At = partKey(key.ID, p.Name), 0
		}
		tx.Put = append(tx.Put, put)
	}
	if j.Divided() {
		q.handed[id] = append(q.handed[id], j)
		w.handed = append(w.handed, j)
	}
}

func partKey(id, name string) store.Key { return store.Key{Kind: KindPart, ID: id + "/" + name} }
