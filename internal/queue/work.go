package queue

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/queue/machine"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// How a store that fails is tried again: after a pause that doubles from the
// shortest to the longest, until it works, or the queue closes and has waited long
// enough. Who waits for it is told after Config.Patience.
const (
	shortestPause   = 10 * time.Millisecond
	longestPause    = time.Second
	defaultPatience = 30 * time.Second
	// lastPatience is how long a store that fails holds up the end of the queue.
	lastPatience = 5 * time.Second
)

// trouble is a store that fails.
type trouble struct {
	err   error
	since time.Time
}

// work is what one update made: the keys whose present state has to become
// durable, and what has to happen after that.
type work struct {
	keys     []store.Key
	touched  machine.Distinct[store.Key] // of keys
	held     []job.ID
	locks    []lock.State
	events   []*audit.Event
	gone     []*job.Job
	begins   []begin
	after    []func(error)
	change   *state.Change // what the picture gains
	pruned   *pruned       // what goes out of the archive
	handed   []*job.Job    // see there
	attempts int
	failing  time.Time // when it failed first
	whole    *whole    // what it is a part of, if it is
	restores bool      // it takes something back that was refused
	waiting  []*work   // refused works of the same things, to be written when this one is over
	// ruleTexts are the rules that the work changed as they are stored, until it is written first:
	// what is written again is what there is then.
	ruleTexts map[string][]byte
}

// begin is what is to be done for a job once the work is durable.
type begin struct {
	job job.ID
	do  func()
}

// add takes over what an event led to.
func (w *work) add(r *machine.Ready) {
	for _, id := range r.Jobs {
		w.touch(jobKey(id))
	}
	for _, key := range r.Keys {
		w.touch(submissionKey(key))
	}
	for _, uuid := range r.Rules {
		w.touch(store.Key{Kind: KindFilter, ID: uuid})
	}
	if r.Flags {
		w.touch(FlagsKey)
	}
	w.gone = append(w.gone, r.Gone...)
	w.held = append(w.held, r.Holds...)
	w.locks = append(w.locks, r.Locks...)
}

// answer makes the work report its outcome.
func (w *work) answer() <-chan error {
	c := make(chan error, 1)
	w.after = append(w.after, func(err error) { c <- err })
	return c
}

// tire is for a work that is still to be written when those who wait for it have waited
// long enough: they are told that nobody knows.
func (w *work) tire(enough bool, err error) (tell []func()) {
	if !enough {
		return nil
	}
	unknown := fault.New(fault.Unavailable, "the change was not confirmed in time: %w", err).
		WithHint("it may take effect when the store works again; a submission key makes it safe to repeat a submission")
	for _, f := range w.after {
		tell = append(tell, func() { f(unknown) })
	}
	w.after = nil
	return tell
}

// touch marks a key as changed.
func (w *work) touch(key store.Key) { w.keys = w.touched.Append(w.keys, key) }

// FlagsKey is where the switches of the queue are (state.Flags), once one was set.
var FlagsKey = store.Key{Kind: KindQueue, ID: "flags"}

func jobKey(id job.ID) store.Key { return store.Key{Kind: KindJob, ID: id.String()} }

// flush hands the work of an update to the store. A transaction always writes
// the present state of its keys, so writing one again after a failure, even
// behind later ones, can only repeat what is true.
func (q *Queue) flush(w *work) {
	w.change = q.changeOf(w)
	if len(w.keys)+len(w.gone)+len(w.after) == 0 && w.pruned == nil && nothing(w.change) {
		return
	}
	// What changes in the picture without being stored gets a revision, too: then
	// whoever knows a revision knows what was to be seen.
	tx := store.Tx{Epoch: q.cfg.Epoch}
	for _, key := range w.keys {
		if key.Kind == KindSubmission && q.m.Key(key.ID) == 0 {
			continue // written for good when the job was archived
		}
		if key.Kind == KindJob {
			q.writeJob(&tx, w, key)
			continue
		}
		if text := w.ruleTexts[key.ID]; text != nil && key.Kind == KindFilter {
			tx.Put = append(tx.Put, store.Put{Key: key, Value: text})
			continue
		}
		put, exists := q.present(key)
		if !exists {
			tx.Delete = append(tx.Delete, key)
			continue
		}
		tx.Put = append(tx.Put, put)
	}
	for _, j := range w.gone {
		tx.Delete = append(tx.Delete, jobKey(j.ID))
		if j.Key != "" && q.m.Key(j.Key) == 0 {
			tx.Delete = append(tx.Delete, submissionKey(j.Key))
		}
	}
	w.ruleTexts = nil
	if w.pruned != nil {
		tx.Put, tx.Delete = append(tx.Put, w.pruned.kept...), append(tx.Delete, w.pruned.gone...)
	}
	q.putEvents(&tx, w.events)
	q.unsettled[w] = true
	q.outcomes.expect()
	q.writes.Add(1)
	q.cfg.Store.Enqueue(tx, func(revision store.Revision, err error) {
		if err == nil {
			w.change.Revision = int64(revision)
			q.cfg.Picture.Committed(w.change)
		}
		q.outcomes.add(outcome{w, err})
	})
}

// present returns what the store should hold under a key now; jobs are written by
// writeJob.
func (q *Queue) present(key store.Key) (store.Put, bool) {
	switch key.Kind {
	case KindArchived:
		id, _ := job.ParseID(key.ID)
		head := q.archiving[id].head
		return store.Put{Key: key, At: head.At, Value: head.Value}, true
	case KindSubmission:
		return store.Put{Key: key, Value: []byte(q.m.Key(key.ID).String())}, true
	case exec.KindWork:
		text, runs := q.works[key.ID]
		return store.Put{Key: key, Value: text}, runs
	case exec.KindStep:
		return store.Put{}, false
	case KindFilter:
		for _, r := range q.m.Rules() {
			if r.UUID == key.ID {
				return store.Put{Key: key, Value: encode(r)}, true
			}
		}
		return store.Put{}, false
	default:
		if key == PrunedKey {
			return store.Put{Key: key, Value: encode(Pruned{q.pruned})}, true
		}
		return store.Put{Key: key, Value: encode(q.m.Flags())}, true
	}
}

// newest returns the newest value of a live job, nil if it is archived or on
// its way there.
func (q *Queue) newest(id job.ID) *job.Job {
	if j := q.m.Job(id); j != nil {
		return j
	}
	if _, leaves := q.archiving[id]; leaves {
		return nil
	}
	return q.live(id)
}

// encode writes values of our own that cannot fail to encode.
func encode(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		panic(fault.New(fault.Internal, "queue: a value that cannot be encoded: %w", err))
	}
	return out
}

// outcome is what became of a work.
type outcome struct {
	work *work
	err  error
}

// outcomes carries outcomes from the store's writer to a goroutine of the
// queue, so that the writer never waits for the queue.
type outcomes struct {
	mu      sync.Mutex
	wake    *sync.Cond
	list    []outcome
	pending int // works handed to the store that are not settled
	closed  bool
	done    chan struct{}
	idle    []chan struct{} // closed when nothing is pending
}

func (o *outcomes) init() {
	o.wake = sync.NewCond(&o.mu)
	o.done = make(chan struct{})
}

// expect announces an outcome.
func (o *outcomes) expect() {
	o.mu.Lock()
	o.pending++
	o.mu.Unlock()
}

// settled waits until all that was handed to the store is settled.
func (o *outcomes) settled() {
	c := make(chan struct{})
	o.mu.Lock()
	if o.pending == 0 {
		o.mu.Unlock()
		return
	}
	o.idle = append(o.idle, c)
	o.mu.Unlock()
	<-c
}

// expected takes an announcement back: another one took its place.
func (o *outcomes) expected() {
	o.mu.Lock()
	o.pending--
	o.tellIdle()
	o.mu.Unlock()
	o.wake.Signal()
}

// tellIdle tells those who wait for it that nothing is pending. The caller holds
// mu.
func (o *outcomes) tellIdle() {
	if o.pending > 0 {
		return
	}
	for _, c := range o.idle {
		close(c)
	}
	o.idle = nil
}

func (o *outcomes) add(x outcome) {
	o.mu.Lock()
	o.list = append(o.list, x)
	o.mu.Unlock()
	o.wake.Signal()
}

// run settles outcomes in order until drain.
func (o *outcomes) run(settle func([]outcome)) {
	defer close(o.done)
	settled := 0
	for {
		o.mu.Lock()
		o.pending -= settled
		o.tellIdle()
		for len(o.list) == 0 && !(o.closed && o.pending == 0) {
			o.wake.Wait()
		}
		batch := o.list
		o.list = nil
		o.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		settle(batch)
		settled = len(batch)
	}
}

// drain waits until everything handed to the store is settled, also what has
// to be written again, and ends run.
func (o *outcomes) drain() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.wake.Signal()
	<-o.done
}

// settle publishes what became durable, then does what waited for it.
func (q *Queue) settle(batch []outcome) {
	q.cfg.Picture.Publish()
	q.mu.Lock()
	var after []func()
	for _, o := range batch {
		over := true
		switch {
		case o.err == nil:
			q.recovered()
			q.handed.settle(o.work)
			for _, j := range o.work.change.Jobs {
				q.m.Stored(j)
			}
		case permanent(o.err):
			q.handed.settle(o.work)
			delete(q.unsettled, o.work)
			over = q.refused(o.work, o.err)
		case q.retry(o):
			over = false
			after = append(after, o.work.tire(q.cfg.Now().Sub(o.work.failing) >= q.cfg.Patience, o.err)...)
		default:
			q.fail(o.err)
		}
		if over {
			delete(q.unsettled, o.work)
			q.release(o.work)
			after = append(after, o.work.conclude(q.outcome(o.err))...)
		}
	}
	q.mu.Unlock()
	for _, f := range after {
		f()
	}
}

func (q *Queue) outcome(err error) error {
	switch {
	case err == nil:
		return nil
	case permanent(err):
		return refusal(err)
	}
	return fault.New(fault.Unavailable, "the change could not be stored: %w", err)
}

// retry has a work written again whose outcome is unknown, a little later and
// with the state of its keys as it is then. It reports false when there is no
// point in that.
func (q *Queue) retry(o outcome) bool {
	w, now := o.work, q.cfg.Now()
	if w.failing.IsZero() {
		w.failing = now
	}
	if fault.Is(o.err, fault.Fenced) || damaged(o.err) || q.phase > open && now.Sub(w.failing) >= min(q.cfg.Patience, lastPatience) {
		return false
	}
	since := now
	if before := q.trouble.Load(); before != nil {
		since = before.since
	} else {
		q.cfg.Log.Warn("the store fails; what was decided is written again until it works", "error", o.err)
	}
	q.trouble.Store(&trouble{o.err, since})
	w.attempts++
	q.outcomes.expect()
	time.AfterFunc(pause(w.attempts-1), func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		w.locks = q.m.LocksNow(w.locks)
		q.flush(w)
		q.outcomes.expected()
	})
	return true
}

// pause is how long to wait after so many failures and one.
func pause(failures int) time.Duration {
	return min(shortestPause<<min(failures, 10), longestPause)
}

// recovered notes that the store works.
func (q *Queue) recovered() {
	if q.trouble.Swap(nil) != nil {
		q.cfg.Log.Info("the store works again")
	}
}

// Health says what is wrong with the queue: that it has stopped, or that the
// store fails and is tried again. nil when all is well.
func (q *Queue) Health() error {
	q.mu.Lock()
	stopped := q.failed
	q.mu.Unlock()
	if stopped != nil {
		return stopped
	}
	if t := q.trouble.Load(); t != nil {
		return t.told()
	}
	return nil
}

func (t *trouble) told() error {
	return fault.New(fault.Unavailable, "the store fails, and is tried again: %w", t.err)
}

// Unreadable lists the stored objects that could not be read when the queue was
// opened, and those that can no longer be written, each with why. They are left
// alone: the rest serves.
func (q *Queue) Unreadable() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.unread)
}

// fail stops the queue: it takes no more requests and starts nothing.
func (q *Queue) fail(err error) {
	if q.failed != nil {
		return
	}
	q.failed = fault.New(fault.Unavailable, "the job queue has stopped: %w", err).
		WithHint("see the controller's log, and restart it when the store works again")
	q.cfg.Log.Error("the job queue stops: its decisions cannot be stored", "error", err)
	q.m.Apply(machine.Stop{}, q.cfg.Now())
	why := q.failed
	if fault.Is(err, fault.Fenced) { // another leads, and may be stood by
		why = fault.New(fault.Fenced, "the job queue has stopped: %w", err)
	}
	q.stop(why)
}
