package queue_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

// fillArchive submits jobs, with keys or without, of one opcode or several, and waits for their end.
func (r *rig) fillArchive(n int, key string) {
	r.t.Helper()
	var subs []queue.Submission
	for i := range n {
		s := queue.Submission{Ops: parse(r.t, slices.Repeat([]string{delay}, 1+i%3*i%5)...)}
		if i%2 == 0 {
			s.Key = fmt.Sprint(key, "-", i)
		}
		subs = append(subs, s)
	}
	r.succeed(subs)
}

// succeed submits jobs, and waits for their end.
func (r *rig) succeed(subs []queue.Submission) {
	r.t.Helper()
	out, err := r.q.SubmitMany(ctx, subs)
	r.check(err)
	for _, o := range out {
		r.check(o.Err)
		r.status(o.ID, job.Success)
	}
}

// everything is what the store has.
func (r *rig) everything() map[store.Key]store.Object {
	r.t.Helper()
	out := map[store.Key]store.Object{}
	for _, kind := range []store.Kind{queue.KindJob, queue.KindArchived, queue.KindPart, queue.KindFilter, queue.KindSubmission, queue.KindQueue,
		queue.KindEvent, exec.KindWork, exec.KindStep, "cluster", "node", "group", "instance", store.KindStore} {
		for o, err := range r.store.List(ctx, kind, store.Options{}) {
			r.check(err)
			out[o.Key] = o
		}
	}
	return out
}

// archived are the jobs of the archive by their ids.
func (r *rig) archived() (out []*job.Job) {
	r.t.Helper()
	for j, err := range r.q.Archived(ctx, 0, job.Never) {
		r.check(err)
		out = append(out, j)
	}
	slices.SortFunc(out, func(a, b *job.Job) int { return int(a.ID - b.ID) })
	return out
}

// A pruning removes what its dry run said, with all that belongs to it and nothing else, wherever it was interrupted and begun again.
func TestPruningRemovesWhatItsDryRunSaid(t *testing.T) {
	const jobs = 1300
	random := rand.New(rand.NewPCG(1, 2))
	r := newRig(t, 50)
	r.fillArchive(jobs, "a")
	if n, _, err := r.q.AutoArchive(ctx, 0, time.Hour, queue.By{}); n != jobs || err != nil {
		t.Fatal(n, err)
	}
	r.fillArchive(20, "b")
	for round := range 4 {
		all := r.archived()
		retention := queue.Retention{Before: job.Never, Keep: random.IntN(len(all))}
		if round%2 == 0 {
			retention.Before = all[random.IntN(len(all))].Ended
			retention.Keep /= 4
		}
		r.prunes(random, retention, all)
	}
}

// prunes carries a retention out, in the midst of which it is interrupted, and looks at what it left.
func (r *rig) prunes(random *rand.Rand, retention queue.Retention, all []*job.Job) {
	t := r.t
	t.Helper()
	want := r.everything()
	var first, last job.Time
	due, bytes := map[job.ID]bool{}, int64(0)
	for _, j := range all[:len(all)-max(retention.Keep, 1)] {
		if j.Ended >= retention.Before {
			continue
		}
		due[j.ID] = true
		if first == 0 || j.Ended < first {
			first = j.Ended
		}
		last = max(last, j.Ended)
		for _, p := range j.Parts() {
			bytes += int64(len(p.Value))
		}
	}
	foreseen, err := r.q.Prunable(ctx, retention)
	r.check(err)
	if foreseen != (queue.Pruning{Jobs: len(due), First: first, Last: last, Bytes: bytes}) {
		t.Fatalf("%+v would remove %+v, want %d jobs that ended from %d to %d, %d bytes", retention, foreseen, len(due), first, last, bytes)
	}
	if got := r.everything(); !maps.EqualFunc(got, want, sameObject) {
		t.Fatal("a dry run changed something")
	}
	for range random.IntN(3) { // interrupted at some moment, by whoever asked for it or by the end of the controller
		some, stop := context.WithCancel(ctx)
		time.AfterFunc(time.Duration(random.IntN(20))*time.Millisecond, stop)
		_, _ = r.q.Prune(some, retention, time.Hour, queue.By{}) // its outcome is not known
		stop()
		if random.IntN(2) == 0 {
			r.crash()
		}
	}
	if p, err := r.q.Prune(ctx, retention, time.Hour, queue.By{Trail: reason.Trail{{Source: "user", Reason: "too old"}}}); err != nil || p.More || p.Jobs > len(due) || p.Spared != 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	if p, err := r.q.Prunable(ctx, retention); p != (queue.Pruning{}) || err != nil {
		t.Errorf("%+v is left, %v", p, err)
	}
	r.left(want, due, all[len(all)-1].ID)
}

func sameObject(a, b store.Object) bool {
	return a.Revision == b.Revision && a.At == b.At && string(a.Value) == string(b.Value)
}

// left compares what the store has with what it had but for jobs that were pruned.
func (r *rig) left(want map[store.Key]store.Object, due map[job.ID]bool, newest job.ID) {
	t := r.t
	t.Helper()
	got := r.everything()
	if _, there := got[store.Key{Kind: queue.KindArchived, ID: newest.String()}]; !there {
		t.Errorf("the newest job of the archive, %d, is gone", newest)
	}
	for key, o := range want {
		id, err := job.ParseID(strings.Split(key.ID, "/")[0])
		goes := err == nil && due[id] && (key.Kind == queue.KindArchived || key.Kind == queue.KindPart)
		now, there := got[key]
		delete(got, key)
		switch {
		case goes != !there:
			t.Errorf("%s %s is there: %v", key.Kind, key.ID, there)
		case goes, key == queue.PrunedKey:
		case key.Kind == queue.KindSubmission:
			if string(now.Value) != string(o.Value) {
				t.Errorf("the key %s is that of job %s, not %s", key.ID, now.Value, o.Value)
			}
			if of, err := job.ParseID(string(o.Value)); err != nil || due[of] && now.At == 0 {
				t.Errorf("the key %s of a job that went has no time: %v", key.ID, err)
			}
		case !sameObject(o, now):
			t.Errorf("%s %s was changed", key.Kind, key.ID)
		}
	}
	for key, o := range got {
		e, _ := audit.Decode(o.Value)
		if key != queue.PrunedKey && (key.Kind != queue.KindEvent || e.What != audit.ArchivePrune) {
			t.Errorf("%s %s came", key.Kind, key.ID)
		}
	}
}

// meanwhile is a store beside whose lists something happens.
type meanwhile struct {
	store.Store

	do func()
}

func (m *meanwhile) List(ctx context.Context, kind store.Kind, opts store.Options) iter.Seq2[store.Object, error] {
	if do := m.do; do != nil && kind != queue.KindArchived && kind != queue.KindSubmission {
		m.do = nil // what it does may list, too
		do()
		m.do = do
	}
	return m.Store.List(ctx, kind, opts)
}

// TestPruningGoesInPortions: one transaction, for which others wait, takes 100 jobs at first, and never more than 500, or as many of many opcodes as have four times as many objects;
// while others write none takes more than 100.
func TestPruningGoesInPortions(t *testing.T) {
	const most = 100 // objects of one job
	var (
		list     meanwhile
		portions atomic.Pointer[[]portion]
	)
	r := newRigWith(t, 50, func(r *rig) {
		r.wrap = func(s store.Store) store.Store {
			faulty := faultstore.New(s)
			faulty.Inject(faultstore.Fault{When: func(tx store.Tx) bool {
				p := portion{objects: len(tx.Delete)}
				for _, k := range tx.Delete {
					if k.Kind == queue.KindArchived {
						p.jobs++
					}
				}
				if p.jobs > 0 {
					all := append(slices.Clone(*portions.Load()), p)
					portions.Store(&all)
				}
				return false
			}})
			list.Store = faulty
			return &list
		}
	})
	portions.Store(&[]portion{})
	for _, c := range []struct {
		name         string
		jobs, ops    int // besides one that stays
		before       job.Time
		others       bool
		size, number int // of jobs in a portion at most, and of portions at least
	}{
		{"all", 1300, 1, job.Never, false, 500, 4},
		{"by age", 1300, 1, job.Never - 1, false, 500, 4},
		{"of many opcodes", 45, most - 1, job.Never, false, 500, 3},
		{"while others write", 1300, 2, job.Never, true, 100, 13},
	} {
		subs := slices.Repeat([]queue.Submission{{Ops: parse(t, slices.Repeat([]string{delay}, c.ops)...)}}, c.jobs)
		r.succeed(append(subs, queue.Submission{Ops: parse(t, delay)}))
		_, _, err := r.q.AutoArchive(ctx, 0, time.Hour, queue.By{})
		r.check(err)
		portions.Store(&[]portion{})
		if seen := -1; c.others {
			list.do = func() {
				if now := len(*portions.Load()); now != seen { // one for each portion
					seen = now
					r.submit(delay)
				}
			}
		}
		_, err = r.q.Prune(ctx, queue.Retention{Before: c.before, Keep: 1}, time.Hour, queue.By{})
		list.do = nil
		r.check(err)
		all, size := *portions.Load(), 100
		if len(all) < c.number {
			t.Errorf("%s: %d portions, want %d at least", c.name, len(all), c.number)
		}
		for i, p := range all {
			if p.jobs > size || p.objects >= 4*size+most {
				t.Errorf("%s: portion %d has %d jobs, %d objects; want %d jobs at most", c.name, i, p.jobs, p.objects, size)
			}
			size = min(2*size, c.size)
		}
		if c.ops < 3 && all[0].jobs != 100 {
			t.Errorf("%s: the first portion has %d jobs", c.name, all[0].jobs)
		}
	}
}

// portion is what one transaction takes out of the archive.
type portion struct{ jobs, objects int }

// Ids do not come again when all but the newest job went, whatever comes between.
func TestPrunedIDsDoNotComeAgain(t *testing.T) {
	r := newRig(t, 10)
	r.fillArchive(7, "a")
	_, _, err := r.q.AutoArchive(ctx, 0, time.Hour, queue.By{})
	r.check(err)
	for range 2 {
		p, err := r.q.Prune(ctx, queue.Retention{Before: job.Never}, time.Hour, queue.By{})
		r.check(err)
		if got := r.archived(); p.More || len(got) != 1 || got[0].ID != 7 {
			t.Fatalf("%+v left %d jobs", p, len(got))
		}
		r.crash()
	}
	if id := r.submit(delay); id != 8 {
		t.Errorf("the next job is %d", id)
	}
	for id, want := range map[job.ID]string{3: "Job 3 not found: jobs of the archive up to 6 were pruned", 9: "Job 9 not found"} {
		if _, err := r.q.Job(ctx, id); !fault.Is(err, fault.NotFound) || err.Error() != want {
			t.Errorf("job %d: %v", id, err)
		}
	}
}

// What is submitted once more with the key of a job that was pruned makes no second job, until the key is as old as it gets.
func TestKeysOutliveTheirJobs(t *testing.T) {
	r := newRig(t, 10)
	submit := func() (job.ID, error) {
		return r.q.Submit(ctx, queue.Submission{Ops: parse(t, delay), Key: "once"})
	}
	id, err := submit()
	r.check(err)
	r.status(id, job.Success)
	r.status(r.submit(delay), job.Success)
	_, _, err = r.q.AutoArchive(ctx, 0, time.Hour, queue.By{})
	r.check(err)
	prune := func() {
		t.Helper()
		_, err := r.q.Prune(ctx, queue.Retention{Before: job.Never}, time.Hour, queue.By{})
		r.check(err)
	}
	prune()
	for range 2 {
		if again, err := submit(); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "belongs to job 1, which is not kept any more") {
			t.Fatalf("the key made job %d, %v", again, err)
		}
		r.crash()
	}
	key := store.Key{Kind: queue.KindSubmission, ID: "once"}
	for _, age := range []int{364, 366} {
		_, err := store.Commit(ctx, r.store, store.Tx{Put: []store.Put{{Key: key, At: time.Now().AddDate(0, 0, -age).UnixMicro(), Value: []byte("1")}}})
		r.check(err)
		prune()
		if _, err := r.store.Get(ctx, key); (age < 365) != (err == nil) {
			t.Errorf("after %d days: %v", age, err)
		}
	}
	if again, err := submit(); again != 3 || err != nil {
		t.Errorf("the key that was forgotten made job %d, %v", again, err)
	}
}

// Jobs stay for which others wait, and those that others are still to be told of.
func TestWhatIsStillLookedAtIsNotPruned(t *testing.T) {
	told := store.Revision(1 << 40)
	r := newRigWith(t, 10, func(r *rig) { r.told = func() store.Revision { return told } })
	r.fillArchive(5, "a")
	r.submit(dummy)
	r.began(6, 0)
	waiting := r.submit(`{"OP_ID":"OP_TEST_DELAY","duration":1,"depends":[[2,["success"]],[6,["success"]]]}`)
	_, _, err := r.q.AutoArchive(ctx, 0, time.Hour, queue.By{})
	r.check(err)
	try := func(jobs, spared int) {
		t.Helper()
		if p, err := r.q.Prunable(ctx, queue.Retention{Before: job.Never}); p.Jobs != jobs || p.Spared != spared || err != nil {
			t.Errorf("%+v would go, %v; want %d, and %d that stay", p, err, jobs, spared)
		}
	}
	try(3, 1)
	o, err := r.store.Get(ctx, store.Key{Kind: queue.KindArchived, ID: "3"})
	r.check(err)
	told = o.Revision - 1
	try(0, 4)
	told = o.Revision
	p, err := r.q.Prune(ctx, queue.Retention{Before: job.Never}, time.Hour, queue.By{})
	if p.Jobs != 3 || p.Spared != 1 || err != nil {
		t.Errorf("%+v, %v", p, err)
	}
	r.crash() // what the waiting job depends on is read anew; what ran is resumed or lost
	r.gate(6, 0)
	if j := r.reaches(waiting, "an end", (*job.Job).Final); j.Status() != job.Error || strings.Contains(string(j.Ops[0].Result), "not found") {
		t.Errorf("job %d is %s, %s", waiting, j.Status(), j.Ops[0].Result)
	}
	try(1, 0)
}

// A job that comes while what it depends on is on its way out of the store does not depend on what will not be there.
func TestNothingComesToDependOnWhatIsBeingPruned(t *testing.T) {
	var faulty *faultstore.Store
	r := newRigWith(t, 10, func(r *rig) {
		r.wrap = func(s store.Store) store.Store { faulty = faultstore.New(s); return faulty }
	})
	r.fillArchive(2, "a")
	_, _, err := r.q.AutoArchive(ctx, 0, time.Hour, queue.By{})
	r.check(err)
	goes := func(tx store.Tx) bool {
		return slices.Contains(tx.Delete, store.Key{Kind: queue.KindArchived, ID: "1"})
	}
	struck := faulty.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: goes})
	for range 6 { // it is written again for a while, and is not stored
		faulty.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: goes})
	}
	open := make(chan struct{})
	faulty.Inject(faultstore.Fault{Do: faultstore.Hold, Gate: open, When: goes})
	over := make(chan error, 1)
	go func() {
		_, err := r.q.Prune(ctx, queue.Retention{Before: job.Never}, time.Hour, queue.By{})
		over <- err
	}()
	<-struck
	submitted := make(chan job.ID, 1)
	go func() { submitted <- r.submit(after(1, `["success"]`)) }()
	if _, err := r.q.Prune(ctx, queue.Retention{Before: job.Never}, time.Hour, queue.By{}); !fault.Is(err, fault.Busy) {
		t.Errorf("a second one at the same time: %v", err)
	}
	close(open)
	r.check(<-over)
	if j := r.status(<-submitted, job.Error); !strings.Contains(string(j.Ops[0].Result), "Job 1 not found") {
		t.Errorf("it failed because of %s", j.Ops[0].Result)
	}
}

// TestNothingIsLeftWhereAllStay: a pruning that has no time for anything says that there is more only if something is due.
func TestNothingIsLeftWhereAllStay(t *testing.T) {
	r := newRig(t, 5)
	r.succeed(slices.Repeat([]queue.Submission{{Ops: parse(t, delay)}}, 4))
	_, _, err := r.q.AutoArchive(ctx, 0, time.Hour, queue.By{})
	r.check(err)
	for _, before := range []job.Time{job.Never, job.Never - 1} {
		for keep, more := range map[int]bool{2: true, 4: false, 9: false} {
			p, err := r.q.Prune(ctx, queue.Retention{Before: before, Keep: keep}, 0, queue.By{})
			if err != nil || p.More != more || p.Jobs != 0 {
				t.Errorf("keeping %d of 4: %+v, %v", keep, p, err)
			}
		}
	}
	_, err = r.q.Prune(ctx, queue.Retention{Before: job.Never, Keep: 2}, time.Hour, queue.By{})
	r.check(err)
	for _, before := range []job.Time{job.Never, job.Never - 1} {
		if p, err := r.q.Prune(ctx, queue.Retention{Before: before, Keep: 2}, 0, queue.By{}); err != nil || p.More {
			t.Errorf("behind what went: %+v, %v", p, err)
		}
	}
}
