package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

// Who reads a job that is only in the store is told of the stop that ends the
// reading, and not that the job is damaged.
func TestAStopInterruptsReadingAJob(t *testing.T) {
	stops := &stopsAtParts{}
	r := newRigWith(t, 1, func(r *rig) {
		r.wrap = func(s store.Store) store.Store { stops.Store = s; return stops }
	})
	id := r.submit(delay, delay)
	r.status(id, job.Success)
	if ok, err := r.q.Archive(ctx, id, queue.By{}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	stopping := fault.New(fault.Unavailable, "the controller is stopping")
	stopped, stop := context.WithCancelCause(t.Context())
	stop(stopping)
	if _, err := r.q.Job(stopped, id); !errors.Is(err, error(stopping)) {
		t.Errorf("one job: %v", err)
	}
	for _, err := range r.q.Archived(stopped, 0, job.Never) {
		if !errors.Is(err, error(stopping)) {
			t.Errorf("all archived: %v", err)
		}
	}
	// Its head was read before the stop, its parts are not.
	reading, halt := context.WithCancelCause(t.Context())
	before := func() { halt(stopping) }
	stops.before.Store(&before)
	if _, err := r.q.Job(reading, id); !errors.Is(err, error(stopping)) {
		t.Errorf("between its parts: %v", err)
	}
}

// Explaining a job holds up nobody, however long it takes.
func TestExplainingHoldsUpNobody(t *testing.T) {
	slow := &stopsAtParts{}
	r := newRigWith(t, 1, func(r *rig) {
		r.wrap = func(s store.Store) store.Store { slow.Store = s; return slow }
	})
	id := r.submit(delay, delay)
	r.status(id, job.Success)
	if ok, err := r.q.Archive(ctx, id, queue.By{}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	reads, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	before := func() { once.Do(func() { close(reads); <-goOn }) }
	slow.before.Store(&before)
	explained := make(chan error, 1)
	go func() {
		_, err := r.q.Explain(ctx, id)
		explained <- err
	}()
	soon(t, reads)
	next := make(chan error, 1)
	go func() {
		_, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, delay)})
		next <- err
	}()
	r.check(soon(t, next))
	close(goOn)
	r.check(soon(t, explained))
}

// stopsAtParts is a store that does something before it reads a part of a job
// other than its head.
type stopsAtParts struct {
	store.Store
	before atomic.Pointer[func()]
}

func (s *stopsAtParts) Get(ctx context.Context, key store.Key) (store.Object, error) {
	if before := s.before.Load(); before != nil && key.Kind == queue.KindPart {
		(*before)()
	}
	return s.Store.Get(ctx, key)
}

// scale is a store that adds up the sizes of the values it is given.
type scale struct {
	store.Store
	bytes atomic.Int64
}

func (s *scale) Enqueue(tx store.Tx, done func(store.Revision, error)) {
	for _, p := range tx.Put {
		s.bytes.Add(int64(len(p.Value)))
	}
	s.Store.Enqueue(tx, done)
}

// newWeighedRig is a rig whose writes are weighed.
func newWeighedRig(t *testing.T) (*rig, *scale) {
	t.Helper()
	weighed := &scale{}
	r := newRigWith(t, 1, func(r *rig) {
		r.wrap = func(s store.Store) store.Store { weighed.Store = s; return weighed }
	})
	return r, weighed
}

// A job of a thousand opcodes took 410 MiB to write, one with 20,000 log entries
// 1.5 GiB: it was written whole at each step.
func TestWritesOfAJobGrowWithWhatChanged(t *testing.T) {
	r, weighed := newWeighedRig(t)
	opcodes := func(n int) float64 {
		before := weighed.bytes.Load()
		r.status(r.submit(slices.Repeat([]string{delay}, n)...), job.Success)
		return float64(weighed.bytes.Load() - before)
	}
	entries := func(n int) float64 {
		before := weighed.bytes.Load()
		id := r.submit(dummy)
		r.began(id, 0)
		const atOnce = 50 // go into one write
		for i := range n / atOnce {
			for range atOnce {
				r.gate(id, 0).env.Log(job.LogMessage, "copied one more of many disks")
			}
			r.reaches(id, "further", func(j *job.Job) bool { return j.LastSerial() == int64((i+1)*atOnce) })
		}
		r.finish(id, 0, nil)
		r.status(id, job.Success)
		return float64(weighed.bytes.Load() - before)
	}
	for _, c := range []struct {
		what      string
		write     func(int) float64
		few, many int
	}{{"opcodes", opcodes, 100, 1000}, {"entries", entries, 2000, 20_000}} {
		few, many := c.write(c.few), c.write(c.many)
		t.Logf("%d %s: %.0f bytes, %d: %.0f", c.few, c.what, few, c.many, many)
		if many > 11*few {
			t.Errorf("ten times the %s take %.1f times the bytes", c.what, many/few)
		}
	}
}

// A job in parts is the same after a restart and in the archive, whatever the
// store failed to write meanwhile.
func TestAJobInPartsIsKept(t *testing.T) {
	r, faulty := newFaultyRig(t, 1)
	for i := range 12 {
		effect := []faultstore.Effect{faultstore.FailBefore, faultstore.FailAfter}[i%2]
		faulty.Inject(faultstore.Fault{Do: effect, Skip: 2 + 3*i, When: func(tx store.Tx) bool { return len(tx.Put) > 0 }})
	}
	id := r.submit(dummy, delay, dummy, delay, dummy)
	for _, i := range []int{0, 2} {
		r.began(id, i)
		for n := range 100 {
			r.gate(id, i).env.Log(job.LogMessage, fmt.Sprint("entry ", n))
		}
		r.reaches(id, "logged", func(j *job.Job) bool { return len(j.Ops[i].Log) == 100 })
		r.finish(id, i, nil)
	}
	r.began(id, 4)
	r.crash()
	ended := r.status(id, job.Error)
	if n := len(ended.Ops[2].Log); n != 100 {
		t.Errorf("%d log entries are left", n)
	}
	before := string(ended.Encode())
	r.crash()
	if got := string(r.whole(id).Encode()); got != before {
		t.Errorf("after a restart\n%s\nbefore\n%s", got, before)
	}
	if ok, err := r.q.Archive(ctx, id, queue.By{}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if got := r.whole(id); string(got.Encode()) != before || !got.Archived {
		t.Errorf("archived\n%s\nbefore\n%s", got.Encode(), before)
	}
}

// whole returns a job as it is told to those who ask for it.
func (r *rig) whole(id job.ID) *job.Job {
	r.t.Helper()
	j, err := r.q.Job(ctx, id)
	r.check(err)
	return j
}

// A job of which a part is gone is set aside; the others go on.
func TestAJobWithoutAPartIsSetAside(t *testing.T) {
	r := newRig(t, 1)
	id := r.submit(dummy, dummy)
	r.began(id, 0)
	_, err := store.Commit(ctx, r.store, store.Tx{Delete: []store.Key{{Kind: queue.KindPart, ID: id.String() + "/op/1"}}})
	r.check(err)
	r.crash()
	if list := r.q.Unreadable(); len(list) != 1 || !strings.Contains(list[0], "op/1") {
		t.Errorf("unreadable: %q", list)
	}
	r.status(r.submit(delay), job.Success)
}

// Jobs that a version without parts stored go on, and are whole in the new form.
func TestJobsStoredWholeGoOn(t *testing.T) {
	r := newRig(t, 1)
	const op = `{"input":{"OP_ID":"OP_TEST_DELAY","duration":1},"status":"queued","priority":0}`
	for id, ended := range []int64{1: 0, 2: 5} {
		if id == 0 {
			continue
		}
		ops := op + "," + op
		if ended != 0 {
			ops = strings.ReplaceAll(ops, `"queued"`, `"success"`)
		}
		text := fmt.Sprintf(`{"id":%d,"received":3,"ended":%d,"ops":[%s]}`, id, ended, ops)
		_, err := store.Commit(ctx, r.store, store.Tx{Put: []store.Put{{Key: store.Key{Kind: queue.KindJob, ID: strconv.Itoa(id)}, At: ended, Value: []byte(text)}}})
		r.check(err)
	}
	r.crash()
	r.status(1, job.Success)
	for _, id := range []job.ID{1, 2} {
		if ok, err := r.q.Archive(ctx, id, queue.By{}); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	r.crash()
	for _, id := range []job.ID{1, 2} {
		if j := r.whole(id); len(j.Ops) != 2 || j.Status() != job.Success || !j.Archived {
			t.Errorf("job %d is %s", id, j.Encode())
		}
	}
}
