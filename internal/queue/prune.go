package queue

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// What is in the archive stays there until somebody says otherwise. Then jobs go in
// portions, oldest first, each in one transaction with all that belongs to it.
//
//   - The newest job of the archive never goes: ids are given out above it.
//   - What something else still looks at stays: jobs that wait for it, servers and
//     deployments that are under way, others who are to be told how it ended.
//   - Submission keys stay for keysStay longer, so that what is repeated late makes no second job.

const (
	// leastPortion and mostPortion are how many jobs go in one transaction, while others write and while nobody does, and keysEach about how many objects of each.
	// Fewer of them would gather in the embedded store, which takes all that has gathered into its tables with somebody's commit.
	leastPortion, mostPortion, keysEach = 100, 500, 4
	// longPortion is how long a portion may take behind which the next one is not smaller: who comes then waits for one.
	longPortion = 50 * time.Millisecond
	// keysStay is how long submission keys of jobs stay that were pruned.
	keysStay = 365 * 24 * time.Hour
	// restForOthers is how many times as long as a portion took the rest behind it is while others write.
	restForOthers = 4
	// longestRest is how long it rests between two portions at most.
	longestRest = time.Second
)

// Retention says which jobs of the archive stay: those that ended at Before or later, and the newest Keep of them. What neither
// keeps goes.
type Retention struct {
	Before job.Time // job.Never keeps none for its time
	Keep   int      // at least one, the newest, stays
}

// Pruning is what went, or would go.
type Pruning struct {
	Jobs int
	// First and Last are when those ended that ended first and last; 0 if there are none.
	First, Last job.Time
	// Bytes is the size of their values in the store.
	Bytes int64
	// Spared counts those that stay though nothing keeps them.
	Spared int
	// More says that there was no time for all.
	More bool
}

func (p *Pruning) add(d *due) {
	p.Jobs++
	p.Bytes += d.bytes
	if at := job.Time(d.head.At); p.First == 0 || at < p.First {
		p.First = at
	}
	p.Last = max(p.Last, job.Time(d.head.At))
}

// Pruned tells up to which id jobs of the archive were removed.
type Pruned struct {
	Job job.ID `json:"job"`
}

// PrunedKey is where that is, once a job was.
var PrunedKey = store.Key{Kind: KindQueue, ID: "pruned"}

// due is a job of the archive that nothing keeps.
type due struct {
	id    job.ID
	head  store.Object
	key   string      // of its submission
	parts []store.Key // besides the head
	bytes int64
}

// pruned is what one transaction takes out of the archive.
type pruned struct {
	jobs []job.ID
	gone []store.Key
	kept []store.Put // submission keys
}

// Prunable tells what Prune would remove now.
func (q *Queue) Prunable(ctx context.Context, r Retention) (p Pruning, err error) {
	err = q.eachPortion(ctx, r, func() int { return mostPortion }, func(portion []due, spared int) (bool, error) {
		p.Spared += spared
		for i := range portion {
			p.add(&portion[i])
		}
		return true, nil
	})
	return p, err
}

// Prune removes the jobs of the archive that a retention does not keep, until the limit is over. It can be ended at any
// moment and begun again. fault.Busy if somebody else does so at the moment.
func (q *Queue) Prune(ctx context.Context, r Retention, limit time.Duration, by By) (p Pruning, err error) {
	if !q.prunes.TryLock() {
		return p, fault.New(fault.Busy, "the archive is being pruned at the moment").WithHint("try again when that is over")
	}
	defer q.prunes.Unlock()
	begun := q.cfg.Now()
	if err := q.forgetKeys(ctx, begun); err != nil {
		return p, err
	}
	pace, seen := pace{size: leastPortion}, q.Writes()
	err = q.eachPortion(ctx, r, func() int { return pace.size }, func(portion []due, spared int) (bool, error) {
		now := q.cfg.Now()
		if p.More = now.Sub(begun) >= limit; p.More {
			return false, nil
		}
		went, err := q.prune(ctx, portion, by)
		took := q.cfg.Now().Sub(now)
		p.Spared += spared + len(portion) - len(went)
		for i := range went {
			p.add(&went[i])
		}
		writes := q.Writes()
		pace = pace.next(took, writes-seen > 1) // one of them is this portion's
		seen = writes
		if err == nil {
			err = rest(ctx, pace.rest)
		}
		return true, err
	})
	return p, err
}

// pace is how fast jobs go: how many in the next transaction, and how long it rests behind it.
type pace struct {
	size int
	rest time.Duration
}

// next is the pace behind a portion that took so long. While others write, who wait for it, few jobs go, and most of the time is theirs; else ever more, as long as
// that is quick.
func (p pace) next(took time.Duration, others bool) pace {
	switch {
	case others:
		return pace{leastPortion, min(restForOthers*took, longestRest)}
	case took > longPortion:
		return pace{max(p.size/2, leastPortion), min(took, longestRest)}
	}
	return pace{min(2*p.size, mostPortion), min(took, longestRest)}
}

// rest leaves the store to others for a time.
func rest(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// prune removes jobs, and returns those that it did remove.
func (q *Queue) prune(ctx context.Context, portion []due, by By) (went []due, err error) {
	if len(portion) == 0 {
		return nil, nil
	}
	err = q.change(ctx, func(w *work) error {
		w.pruned = &pruned{}
		for i := range portion {
			d := &portion[i]
			if q.m.Named(d.id) {
				continue
			}
			went = append(went, *d)
			w.pruned.take(d, q.cfg.Now())
			q.pruned = max(q.pruned, d.id)
			q.pruning[d.id] = true
		}
		if len(went) == 0 {
			w.pruned = nil
			return nil
		}
		q.archivals++ // who looked one of them up does so again
		w.touch(PrunedKey)
		e := audit.New(audit.ArchivePrune, "", by)
		e.After = encode(map[string]any{"jobs": len(went), "first": went[0].id, "last": went[len(went)-1].id})
		q.record(w, e)
		w.first(func(err error) {
			if err == nil || permanent(err) {
				q.prunedNow(went)
			}
		})
		return nil
	})
	if err != nil {
		went = nil
	}
	return went, err
}

func (p *pruned) take(d *due, now time.Time) {
	p.jobs = append(p.jobs, d.id)
	p.gone = append(append(p.gone, store.Key{Kind: KindArchived, ID: d.head.ID}), d.parts...)
	if d.key != "" {
		p.kept = append(p.kept, store.Put{Key: submissionKey(d.key), At: int64(job.At(now)), Value: []byte(d.head.ID)})
	}
}

// prunedNow notes that jobs are on their way out no more.
func (q *Queue) prunedNow(went []due) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.archivals++
	for i := range went {
		delete(q.pruning, went[i].id)
	}
}

// forgetKeys removes submission keys of jobs that were pruned long ago.
func (q *Queue) forgetKeys(ctx context.Context, now time.Time) error {
	opts := store.Options{ByAt: true, Since: 1, Until: int64(job.At(now.Add(-keysStay))), Limit: mostPortion * keysEach}
	for opts.Until > 0 {
		var old []store.Key
		for o, err := range q.cfg.Store.List(ctx, KindSubmission, opts) {
			if err != nil {
				return err
			}
			old = append(old, o.Key)
		}
		if len(old) == 0 {
			break
		}
		err := q.change(ctx, func(w *work) error {
			w.pruned = &pruned{gone: old}
			w.touch(PrunedKey)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachPortion hands over the jobs of the archive that a retention does not keep, a portion of a size at a time, with how many there were
// besides that stay, until it is told to stop.
func (q *Queue) eachPortion(ctx context.Context, r Retention, size func() int, do func(portion []due, spared int) (bool, error)) error {
	if r.Before <= 0 { // to the store it would be no bound
		return nil
	}
	until, err := q.firstKept(ctx, max(r.Keep, 1))
	if err != nil || until == 0 {
		return err
	}
	at := walk{store: q.cfg.Store, before: r.Before, until: until, seen: map[string]bool{}}
	for {
		heads, err := at.next(ctx)
		if err != nil || len(heads) == 0 {
			return err
		}
		for len(heads) > 0 {
			portion, spared, rest, err := q.portion(ctx, heads, until, size())
			if err != nil {
				return err
			}
			heads = rest
			if len(portion)+spared == 0 { // all of them are to stay
				continue
			}
			if goOn, err := do(portion, spared); err != nil || !goOn {
				return err
			}
		}
	}
}

// portion takes so many jobs that are due from the front of a list as go in one transaction.
func (q *Queue) portion(ctx context.Context, heads []store.Object, until job.ID, size int) (portion []due, spared int, rest []store.Object, err error) {
	uses := usedBy(q.cfg.Picture.Load())
	keys := 0
	for i := range heads {
		if len(portion) >= size || keys >= size*keysEach {
			return portion, spared, heads[i:], nil
		}
		id, bad := job.ParseID(heads[i].ID)
		if bad != nil || id >= until {
			continue
		}
		d, ok, err := q.dueFor(ctx, id, heads[i])
		if err != nil {
			return nil, 0, nil, err
		}
		if !ok || uses[id] || q.cfg.Told != nil && heads[i].Revision > q.cfg.Told() || q.named(id) {
			spared++
			continue
		}
		portion = append(portion, d)
		keys += 1 + len(d.parts)
	}
	return portion, spared, nil, nil
}

func (q *Queue) named(id job.ID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.m.Named(id)
}

// dueFor finds what belongs to a job of the archive; not ok if its head cannot be read, which somebody may want to see.
func (q *Queue) dueFor(ctx context.Context, id job.ID, head store.Object) (d due, ok bool, err error) {
	key, divided, bad := job.Outline(head.Value)
	if bad != nil {
		return d, false, nil
	}
	d = due{id: id, head: head, key: key, bytes: int64(len(head.Value))}
	d.head.Value = nil
	if !divided {
		return d, true, nil
	}
	prefix := head.ID + "/"
	for o, err := range q.paged(ctx, KindPart, store.Options{After: prefix, Limit: partsPage}) {
		if err != nil {
			return d, false, err
		}
		if !strings.HasPrefix(o.ID, prefix) {
			break
		}
		d.parts = append(d.parts, o.Key)
		d.bytes += int64(len(o.Value))
	}
	return d, true, nil
}

// partsPage and keptPage are how many objects are read together.
const partsPage, keptPage = 64, 2000

// paged reads a list by ids, a page of the limit at a time.
func (q *Queue) paged(ctx context.Context, kind store.Kind, opts store.Options) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		for {
			n := 0
			for o, err := range q.cfg.Store.List(ctx, kind, opts) {
				if !yield(o, err) || err != nil {
					return
				}
				n, opts.After = n+1, o.ID
			}
			if n < opts.Limit {
				return
			}
		}
	}
}

// firstKept is the least id of the newest so many jobs of the archive; 0 if there are no more than those.
func (q *Queue) firstKept(ctx context.Context, keep int) (first job.ID, err error) {
	n := 0
	for o, err := range q.paged(ctx, KindArchived, store.Options{Desc: true, Limit: min(keep+1, keptPage)}) {
		if err != nil {
			return 0, err
		}
		id, bad := job.ParseID(o.ID)
		if bad != nil {
			continue
		}
		if n == keep {
			return first, nil
		}
		n, first = n+1, id
	}
	return 0, nil
}

// usedBy are the jobs that servers and deployments look at which are under way.
func usedBy(now *state.State) map[job.ID]bool {
	out := map[job.ID]bool{}
	for s := range now.Servers.All() {
		for _, id := range s.Jobs() {
			out[id] = true
		}
	}
	for d := range now.Deployments.Active() {
		for k := range now.Deployments.Known(d.ID) {
			out[job.ID(k.Job)] = true
		}
	}
	return out
}

// walk goes through the archive: by the times at which jobs ended if only those before one are meant, or else by their ids.
type walk struct {
	store  store.Store
	before job.Time
	// until is the first job that stays: in the order of ids nothing comes behind it.
	until job.ID
	// since is where it is, and seen are those that ended at that very moment and were handed over.
	since int64
	after string
	seen  map[string]bool
}

// next reads on; it returns nothing at the end.
func (w *walk) next(ctx context.Context) (out []store.Object, err error) {
	opts := store.Options{After: w.after, Limit: mostPortion}
	byTime := w.before < job.Never
	if byTime {
		opts = store.Options{ByAt: true, Since: w.since, Until: int64(w.before), Limit: mostPortion + len(w.seen)}
	}
	for o, err := range w.store.List(ctx, KindArchived, opts) {
		if err != nil {
			return nil, err
		}
		if !w.seen[o.ID] {
			out = append(out, o)
		}
		if len(out) == mostPortion { // those that were seen may be gone
			break
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	last := out[len(out)-1]
	if !byTime {
		w.after = last.ID
		return slices.DeleteFunc(out, func(o store.Object) bool {
			id, err := job.ParseID(o.ID)
			return err == nil && id >= w.until
		}), nil
	}
	if last.At != w.since {
		w.since = last.At
		clear(w.seen)
	}
	for _, o := range out {
		if o.At == w.since {
			w.seen[o.ID] = true
		}
	}
	return out, nil
}

// prunedUpTo is the greatest id of a job that was pruned, 0 if none was.
func (s *Stored) prunedUpTo(ctx context.Context) (job.ID, error) {
	o, err := s.read(ctx, PrunedKey)
	if fault.Is(err, fault.NotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var p Pruned
	if err := json.Unmarshal(o.Value, &p); err != nil {
		return 0, fault.New(fault.Internal, "up to which id jobs were pruned cannot be read: %w", err)
	}
	return p.Job, nil
}

// missing is the error of a job that is not there: it may have been once.
func (s *Stored) missing(ctx context.Context, id job.ID) error {
	if last, err := s.prunedUpTo(ctx); err == nil && id > 0 && id <= last {
		return fault.New(fault.NotFound, "Job %d not found: jobs of the archive up to %d were pruned", id, last)
	}
	return notFound(id)
}
