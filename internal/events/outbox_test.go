package events_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/events"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/controller"
)

// patience is how long something may take that is to come.
var patience = testkit.Patience()

// broker takes messages while it is there.
type broker struct {
	mu     sync.Mutex
	away   bool
	taken  []events.Message
	change chan struct{} // closed when something happens
	// once, if it is set, is called when a message has been taken, before whoever
	// publishes it goes on.
	once func()
}

func newBroker() *broker { return &broker{change: make(chan struct{})} }

func (b *broker) happened() {
	close(b.change)
	b.change = make(chan struct{})
}

func (b *broker) set(away bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = away
	b.happened()
}

// publish waits while the broker is away.
func (b *broker) publish(ctx context.Context, m events.Message) error {
	for {
		b.mu.Lock()
		away, change := b.away, b.change
		if !away {
			b.taken = append(b.taken, m)
			b.happened()
			once := b.once
			b.once = nil
			b.mu.Unlock()
			if once != nil {
				once()
			}
			return nil
		}
		b.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// await waits for a message of each id, and returns the last of each.
func (b *broker) await(t *testing.T, ids ...string) map[string]events.Message {
	t.Helper()
	limit := time.After(patience)
	for {
		b.mu.Lock()
		change, found := b.change, map[string]events.Message{}
		for _, m := range b.taken {
			found[m.ID] = m
		}
		b.mu.Unlock()
		if !slices.ContainsFunc(ids, func(id string) bool { return found[id].ID == "" }) {
			return found
		}
		select {
		case <-change:
		case <-limit:
			t.Fatalf("there is no message of each of %v: %v", ids, found)
		}
	}
}

// toldOnce fails the test if a message was taken twice.
func (b *broker) toldOnce(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	times := map[string]int{}
	for _, m := range b.taken {
		if times[m.ID]++; times[m.ID] == 2 {
			t.Errorf("told again is %s", m.ID)
		}
	}
}

// shortFeed is a store whose feed can be made to begin later, as it does when one was
// away for long.
type shortFeed struct {
	store.Store
	oldest atomic.Int64
	// slow, if it is set, has the feed tell of each change by itself, and of none before it is closed.
	slow atomic.Pointer[chan struct{}]
}

func (s *shortFeed) Watch(ctx context.Context, after store.Revision) iter.Seq2[[]store.Change, error] {
	if oldest := s.oldest.Load(); int64(after) < oldest {
		return func(yield func([]store.Change, error) bool) {
			yield(nil, fault.New(fault.Compacted, "the feed begins with %d", oldest))
		}
	}
	gate := s.slow.Load()
	if gate == nil {
		return s.Store.Watch(ctx, after)
	}
	return func(yield func([]store.Change, error) bool) {
		for changes, err := range s.Store.Watch(ctx, after) {
			<-*gate
			if err != nil {
				yield(nil, err)
				return
			}
			for _, c := range changes {
				if !yield([]store.Change{c}, nil) {
					return
				}
			}
		}
	}
}

// rig is a controller and its store.
type rig struct {
	*testing.T
	store *shortFeed
	shown *picture.Picture
	queue *queue.Queue
}

func newRig(t *testing.T) *rig {
	t.Helper()
	kept := &shortFeed{}
	c := controller.New(t, controller.Options{Cluster: "c.example", Patience: time.Millisecond, Wrap: func(beneath store.Store) store.Store {
		kept.Store = beneath
		return kept
	}})
	return &rig{T: t, store: kept, shown: c.Picture, queue: c.Queue}
}

// forget has the feed begin with what is still to come.
func (r *rig) forget() {
	r.Helper()
	now, err := r.store.Revision(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	r.store.oldest.Store(int64(now))
}

// end runs a job to its end, and returns the id of the message about it.
func (r *rig) end() (id string, j *job.Job) {
	r.Helper()
	j, err := r.queue.Wait(r.Context(), r.submit(tags("cluster", "")), (*job.Job).Final)
	if err != nil {
		r.Fatal(err)
	}
	return "c.example:" + j.ID.String() + ":0:success", j
}

// run runs an outbox until it is stopped.
func (r *rig) run(b *broker) (stop func()) {
	r.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan error, 1)
	o := &events.Outbox{Store: r.store, Queue: r.queue, Picture: r.shown, Publish: b.publish, Log: slog.New(slog.DiscardHandler)}
	go func() { done <- o.Run(ctx) }()
	return func() {
		r.Helper()
		cancel()
		if err := <-done; err != nil {
			r.Fatal(err)
		}
	}
}

// begun waits until an outbox knows where it began.
func (r *rig) begun() {
	r.Helper()
	for limit := time.Now().Add(patience); time.Now().Before(limit); {
		_, err := r.store.Get(r.Context(), store.Key{Kind: events.KindCursor, ID: "published"})
		if !fault.Is(err, fault.NotFound) {
			return
		}
	}
	r.Fatal("the outbox never begins")
}

// looked waits until an outbox has looked at everything that is stored.
func (r *rig) looked(o *events.Outbox) {
	r.Helper()
	now, err := r.store.Revision(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	for limit := time.Now().Add(patience); o.Looked() < int64(now); {
		if time.Now().After(limit) {
			r.Fatalf("the outbox looked at what is stored up to revision %d of %d", o.Looked(), now)
		}
	}
}

func (r *rig) submit(ops ...map[string]any) job.ID {
	r.Helper()
	var list []*opcode.Opcode
	for _, params := range ops {
		id, _ := params["OP_ID"].(string)
		delete(params, "OP_ID")
		op, err := opcode.FromMap(id, params)
		if err != nil {
			r.Fatal(err)
		}
		list = append(list, op)
	}
	id, err := r.queue.Submit(r.Context(), queue.Submission{Ops: list})
	if err != nil {
		r.Fatal(err)
	}
	return id
}

func tags(kind, name string) map[string]any {
	return map[string]any{"OP_ID": "OP_TAGS_SET", "kind": kind, "name": name, "tags": []any{"cyclades:user:a*b"}}
}

// TestOutcomesArePublished: success, failure and cancellation, each with its
// key, its id and the tags that it was about.
func TestOutcomesArePublished(t *testing.T) {
	r, b := newRig(t), newBroker()
	stop := r.run(b)
	defer stop()
	r.begun()
	r.submit(tags("cluster", ""), tags("instance", "snf-9"))
	predicates, err := jobfilter.ParsePredicates([]byte(`[["opcode", ["=", "OP_ID", "OP_TAGS_SET"]]]`))
	if err != nil {
		t.Fatal(err)
	}
	b.await(t, "c.example:1:0:success", "c.example:1:1:error")
	if _, _, err := r.queue.PutFilter(t.Context(), "", jobfilter.Rule{Predicates: predicates, Action: jobfilter.Action{Kind: jobfilter.Pause}}, queue.By{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.queue.Cancel(t.Context(), r.submit(tags("instance", "snf-9")), false, queue.By{}); err != nil {
		t.Fatal(err)
	}
	taken := b.await(t, "c.example:2:0:canceled")
	for id, want := range map[string]struct{ key, instance string }{
		"c.example:1:0:success": {"ganeti.event.op", ""}, "c.example:1:1:error": {"ganeti.snf.event.op", "snf-9"}, "c.example:2:0:canceled": {"ganeti.snf.event.op", "snf-9"},
	} {
		e, err := events.Parse(taken[id].Body)
		if err != nil {
			t.Fatal(err)
		}
		if taken[id].Key != want.key || e.Instance != want.instance || !slices.Equal(e.Tags, []string{"cyclades:user:a*b"}) || e.Cluster != "c.example" || e.Time[0] == 0 {
			t.Errorf("%s: %s %+v", id, taken[id].Key, e)
		}
	}
	var body map[string]any
	if err := json.Unmarshal(taken["c.example:1:1:error"].Body, &body); err != nil {
		t.Fatal(err)
	}
	if result, _ := body["result"].([]any); len(result) != 2 || result[0] != "OpPrereqError" || body["logmsg"] != nil || body["type"] != "ganeti-op-status" || body["jobId"] != 1.0 {
		t.Errorf("the message of a failure is %v", body)
	}
}

// TestAnOpcodeIsToldOnce: however often its job changes before it ends; of a job that has ended nothing is kept in memory.
func TestAnOpcodeIsToldOnce(t *testing.T) {
	r, b := newRig(t), newBroker()
	ctx, cancel := context.WithCancel(t.Context())
	o := &events.Outbox{Store: r.store, Queue: r.queue, Picture: r.shown, Publish: b.publish, Log: slog.New(slog.DiscardHandler)}
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	r.begun()
	id := r.submit(tags("cluster", ""), map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 600.0, "on_master": true, "no_locks": true})
	first := fmt.Sprintf("c.example:%s:0:success", id)
	b.await(t, first)
	for _, priority := range []int{5, -5} {
		if _, err := r.queue.ChangePriority(t.Context(), id, priority, queue.By{}); err != nil {
			t.Fatal(err)
		}
		other, _ := r.end() // behind the change
		b.await(t, other)
	}
	b.toldOnce(t)
	if _, err := r.queue.Cancel(t.Context(), id, true, queue.By{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.queue.Wait(t.Context(), id, (*job.Job).Final); err != nil {
		t.Fatal(err)
	}
	other, _ := r.end()
	b.await(t, other)
	b.toldOnce(t)
	r.looked(o)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := o.Remembered(); n != 0 {
		t.Errorf("of %d jobs is known what was told, and all have ended", n)
	}
}

// TestAnOpcodeIsToldOnceThoughTheFeedIsBehind: a feed that tells of each change by itself, and of the first when the job has ended.
func TestAnOpcodeIsToldOnceThoughTheFeedIsBehind(t *testing.T) {
	r, b := newRig(t), newBroker()
	gate := make(chan struct{})
	r.store.slow.Store(&gate)
	ctx, cancel := context.WithCancel(t.Context())
	o := &events.Outbox{Store: r.store, Queue: r.queue, Picture: r.shown, Publish: b.publish, Log: slog.New(slog.DiscardHandler)}
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	r.begun()
	first, _ := r.end()
	second, _ := r.end()
	close(gate)
	b.await(t, first, second)
	r.looked(o)
	b.toldOnce(t)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := o.Remembered(); n != 0 {
		t.Errorf("of %d jobs is known what was told, and all have ended", n)
	}
}

// TestNothingIsLostWhileTheBrokerIsAway: what ends then is published afterwards,
// also by the next controller, and when the store's feed does not reach back.
func TestNothingIsLostWhileTheBrokerIsAway(t *testing.T) {
	for what, away := range map[string]func(*rig){"the feed reaches back": func(*rig) {}, "it does not": (*rig).forget} {
		t.Run(what, func(t *testing.T) {
			r, b := newRig(t), newBroker()
			stop := r.run(b)
			r.begun()
			first, _ := r.end()
			b.await(t, first)
			b.set(true)
			var ids []string
			const jobs = 30
			for range jobs {
				id, _ := r.end()
				ids = append(ids, id)
			}
			stop()
			if n, _, err := r.queue.AutoArchive(t.Context(), 0, patience, queue.By{}); err != nil || n == 0 {
				t.Fatalf("%d archived: %v", n, err)
			}
			id, _ := r.end() // and one that is not
			away(r)
			b.set(false)
			stop = r.run(b)
			defer stop()
			b.await(t, append(ids, id)...)
		})
	}
}

// TestWhatAFeedDoesNotReachComesInOrder: as the jobs came to their ends, not as their ids are sorted in the store.
func TestWhatAFeedDoesNotReachComesInOrder(t *testing.T) {
	r, b := newRig(t), newBroker()
	stop := r.run(b)
	r.begun()
	first, _ := r.end()
	b.await(t, first)
	stop()
	long := r.submit(map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 600.0, "on_master": true, "no_locks": true})
	want := []string{first}
	for range 12 {
		id, _ := r.end()
		want = append(want, id)
	}
	if _, err := r.queue.Cancel(t.Context(), long, true, queue.By{}); err != nil {
		t.Fatal(err)
	}
	j, err := r.queue.Wait(t.Context(), long, (*job.Job).Final)
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, fmt.Sprintf("c.example:%s:0:%s", long, j.Ops[0].Status))
	r.forget()
	defer r.run(b)()
	b.await(t, want...)
	var got []string
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.taken {
		got = append(got, m.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("published were %v, want %v", got, want)
	}
}

// TestWhatEndsWhileItCatchesUpIsPublished: the feed goes on where the look at all jobs
// began, not where it ended.
func TestWhatEndsWhileItCatchesUpIsPublished(t *testing.T) {
	r, b := newRig(t), newBroker()
	stop := r.run(b)
	r.begun()
	first, _ := r.end()
	b.await(t, first)
	stop()
	r.end()
	r.forget()
	looked, more := make(chan struct{}), make(chan struct{})
	b.once = func() {
		close(looked)
		<-more
	}
	stop = r.run(b)
	defer stop()
	goOn := sync.OnceFunc(func() { close(more) })
	defer goOn()
	<-looked
	late, _ := r.end()
	goOn()
	b.await(t, late)
}

// takenOver has another controller take the lead over, and returns the epoch that is over.
func takenOver(t *testing.T, kept store.Store) (old int64) {
	t.Helper()
	first, err := kept.AcquireLease(t.Context(), "leader", "one", time.Hour)
	if err == nil {
		err = kept.ReleaseLease(t.Context(), first)
	}
	if err == nil {
		_, err = kept.AcquireLease(t.Context(), "leader", "two", time.Hour)
	}
	if err != nil {
		t.Fatal(err)
	}
	return first.Epoch
}

// TestWhoDoesNotLeadMovesNothingOn: a controller whose lead was taken over while it
// published ends, and leaves the place in the stream to the one that leads.
func TestWhoDoesNotLeadMovesNothingOn(t *testing.T) {
	r, b := newRig(t), newBroker()
	stop := r.run(b)
	r.begun()
	stop()
	key := store.Key{Kind: events.KindCursor, ID: "published"}
	before, err := r.store.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	id := r.submit(tags("cluster", ""))
	o := &events.Outbox{Store: r.store, Epoch: takenOver(t, r.store), Queue: r.queue, Picture: r.shown, Publish: b.publish, Log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := o.Run(ctx); !fault.Is(err, fault.Fenced) {
		t.Errorf("it ended with %v", err)
	}
	b.await(t, "c.example:"+id.String()+":0:success") // told once too often rather than never
	if after, err := r.store.Get(t.Context(), key); err != nil || after.Revision != before.Revision {
		t.Errorf("the place was %+v and is %+v, %v", before, after, err)
	}
}

// TestWhatEndsDuringACatchUpIsPublished: a job that ends while others are caught up with, before one of them does, is found by
// the next catching up: it became durable behind what was published, whenever it ended.
func TestWhatEndsDuringACatchUpIsPublished(t *testing.T) {
	r, b := newRig(t), newBroker()
	stop := r.run(b)
	r.begun()
	r.submit(tags("cluster", ""))
	b.await(t, "c.example:1:0:success")
	stop()
	late := r.submit(map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0.001, "on_master": false})
	if _, err := r.queue.Wait(t.Context(), late, (*job.Job).Final); err != nil {
		t.Fatal(err)
	}
	// As if the newest published opcode had ended after that one, and become durable before.
	var at struct {
		Revision store.Revision `json:"revision"`
		Ended    job.Time       `json:"ended"`
	}
	key := store.Key{Kind: events.KindCursor, ID: "published"}
	o, err := r.store.Get(t.Context(), key)
	if err == nil {
		err = json.Unmarshal(o.Value, &at)
	}
	if err != nil {
		t.Fatal(err)
	}
	at.Ended = job.At(time.Now().Add(time.Minute))
	text, err := json.Marshal(at)
	if err == nil {
		_, err = store.Commit(t.Context(), r.store, store.Tx{Put: []store.Put{{Key: key, Value: text}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	r.forget()
	stop = r.run(b)
	defer stop()
	b.await(t, "c.example:"+late.String()+":0:success")
}

// TestWhatWasArchivedMeanwhileIsPublished: a job that is in the archive is caught up with by when it ended. Another may have ended in the
// same microsecond, or later and become durable before, and been published: that passes nothing over.
func TestWhatWasArchivedMeanwhileIsPublished(t *testing.T) {
	for name, before := range map[string]time.Duration{"in the same microsecond": 0, "half an hour before": 30 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			r, b := newRig(t), newBroker()
			id, j := r.end()
			if archived, err := r.queue.Archive(t.Context(), j.ID, queue.By{}); err != nil || !archived {
				t.Fatalf("it is archived: %v, %v", archived, err)
			}
			now, err := r.store.Revision(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Appendf(nil, `{"revision": %d, "ended": %d}`, now, int64(j.Ops[0].End)+before.Microseconds())
			key := store.Key{Kind: events.KindCursor, ID: "published"}
			if _, err := store.Commit(t.Context(), r.store, store.Tx{Put: []store.Put{{Key: key, Value: text}}}); err != nil {
				t.Fatal(err)
			}
			r.forget()
			stop := r.run(b)
			defer stop()
			b.await(t, id)
		})
	}
}

// TestADamagedJobOfTheArchiveCostsItselfOnly: the ends of others are caught up with all the same.
func TestADamagedJobOfTheArchiveCostsItselfOnly(t *testing.T) {
	r, b := newRig(t), newBroker()
	stop := r.run(b)
	r.begun()
	stop()
	_, damaged := r.end()
	id, whole := r.end()
	for _, j := range []*job.Job{damaged, whole} {
		if archived, err := r.queue.Archive(t.Context(), j.ID, queue.By{}); err != nil || !archived {
			t.Fatalf("it is archived: %v, %v", archived, err)
		}
	}
	key := store.Key{Kind: queue.KindArchived, ID: damaged.ID.String()}
	stored, err := r.store.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Commit(t.Context(), r.store, store.Tx{Put: []store.Put{{Key: key, At: stored.At, Value: []byte("{")}}}); err != nil {
		t.Fatal(err)
	}
	late, _ := r.end() // and one that is not archived
	r.forget()
	var said bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	o := &events.Outbox{Store: r.store, Queue: r.queue, Picture: r.shown, Publish: b.publish, Log: slog.New(slog.NewTextHandler(&said, nil))}
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	b.await(t, id, late)
	cancel()
	if err := <-done; err != nil || !strings.Contains(said.String(), "no event can tell how a job ended that cannot be read\" job="+damaged.ID.String()) {
		t.Errorf("%v; the log says %q", err, &said)
	}
}

// A place in the stream that cannot be read keeps nobody from going on with the present.
func TestADamagedPlaceCostsItselfOnly(t *testing.T) {
	r := newRig(t)
	key := store.Key{Kind: events.KindCursor, ID: "published"}
	if _, err := store.Commit(t.Context(), r.store, store.Tx{Put: []store.Put{{Key: key, Value: []byte("{")}}}); err != nil {
		t.Fatal(err)
	}
	stop := r.run(newBroker())
	defer stop()
	for limit := time.Now().Add(patience); time.Now().Before(limit); {
		if o, err := r.store.Get(t.Context(), key); err == nil && string(o.Value) != "{" {
			return
		}
	}
	t.Error("the outbox does not go on")
}

// refusing is a store that refuses to keep a place up to which events are published, for as long as it is told to.
type refusing struct {
	store.Store

	mu  sync.Mutex
	why error
	// asked, if it is set, is called at each refusal.
	asked func()
}

func (s *refusing) refuse(why error, asked func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.why, s.asked = why, asked
}

// fails has the store fail from now on. Met waits until somebody came upon that, who must not end by it, and has the store work again.
func (s *refusing) fails(t *testing.T, why error, ended <-chan error) (met func()) {
	asked := make(chan struct{}, 1)
	s.refuse(why, func() {
		select {
		case asked <- struct{}{}:
		default:
		}
	})
	return func() {
		t.Helper()
		select {
		case <-asked:
		case err := <-ended:
			t.Fatalf("%v: it ended: %v", why, err)
		}
		s.refuse(nil, nil)
	}
}

func (s *refusing) answer() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why != nil && s.asked != nil {
		s.asked()
	}
	return s.why
}

func (s *refusing) Get(ctx context.Context, k store.Key) (store.Object, error) {
	if k.Kind == events.KindCursor {
		if err := s.answer(); err != nil {
			return store.Object{}, err
		}
	}
	return s.Store.Get(ctx, k)
}

func (s *refusing) Enqueue(tx store.Tx, done func(store.Revision, error)) {
	if slices.ContainsFunc(tx.Put, func(p store.Put) bool { return p.Kind == events.KindCursor }) {
		if err := s.answer(); err != nil {
			done(0, err)
			return
		}
	}
	s.Store.Enqueue(tx, done)
}

// passing are failures of a store that pass.
var passing = []error{fault.New(fault.Exhausted, "the disk of the store is full"), fault.New(fault.Unavailable, "the database is away")}

// TestAStoreThatFailsIsWaitedFor: when it is asked where to begin, and when it is to keep how far that came; nothing is lost, and the place is kept in the end.
func TestAStoreThatFailsIsWaitedFor(t *testing.T) {
	for _, why := range passing {
		r, b := newRig(t), newBroker()
		s, done := &refusing{Store: r.store}, make(chan error, 1)
		met := s.fails(t, why, done)
		o := &events.Outbox{Store: s, Queue: r.queue, Picture: r.shown, Publish: b.publish, Log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- o.Run(ctx) }()
		met()
		r.begun()
		before, err := r.store.Get(t.Context(), store.Key{Kind: events.KindCursor, ID: "published"})
		if err != nil {
			t.Fatal(err)
		}
		met = s.fails(t, why, done)
		first, _ := r.end()
		b.await(t, first)
		met()
		for limit := time.Now().Add(patience); ; { // nothing else is published that would have it kept
			now, err := r.store.Get(t.Context(), store.Key{Kind: events.KindCursor, ID: "published"})
			if err == nil && now.Revision > before.Revision {
				break
			}
			if time.Now().After(limit) {
				t.Fatalf("%v: how far it came is never kept: %v", why, err)
			}
		}
		second, _ := r.end()
		b.await(t, second)
		b.toldOnce(t)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("%v: it ended with %v", why, err)
		}
	}
}

// TestTheArchiveOfBeforeIsNotPublished: publishing begins at the present also where the broker does not answer from the first, and the feed does not reach back
// to that when it does; and where an earlier program has kept a place at which nothing was published.
func TestTheArchiveOfBeforeIsNotPublished(t *testing.T) {
	for _, kept := range []string{"", `{"revision": 1, "ended": 0}`} {
		r, b := newRig(t), newBroker()
		archive := func() (id string) {
			id, j := r.end()
			if done, err := r.queue.Archive(t.Context(), j.ID, queue.By{}); err != nil || !done {
				t.Fatal(done, err)
			}
			return id
		}
		var before []string
		for range 3 {
			before = append(before, archive())
		}
		if kept != "" {
			if _, err := store.Commit(t.Context(), r.store, store.Tx{Put: []store.Put{{Key: store.Key{Kind: events.KindCursor, ID: "published"}, Value: []byte(kept)}}}); err != nil {
				t.Fatal(err)
			}
		}
		b.set(true)
		stop := r.run(b)
		r.began()
		var behind []string
		if kept == "" { // of what an earlier program has not told, what is not archived alone is found
			behind = append(behind, archive())
		}
		id, _ := r.end()
		behind = append(behind, id)
		stop()
		r.forget()
		b.set(false)
		stop = r.run(b)
		told := b.await(t, behind...)
		id, _ = r.end()
		maps.Copy(told, b.await(t, id)) // all of the archive would have come before
		stop()
		for _, id := range before {
			if told[id].ID != "" {
				t.Errorf("with %q kept, it is told of %s, which ended before there were events", kept, id)
			}
		}
	}
}

// began waits until it is kept since when an outbox publishes.
func (r *rig) began() {
	r.Helper()
	for limit := time.Now().Add(patience); time.Now().Before(limit); {
		o, err := r.store.Get(r.Context(), store.Key{Kind: events.KindCursor, ID: "published"})
		if err == nil && bytes.Contains(o.Value, []byte(`"since"`)) {
			return
		}
	}
	r.Fatal("the outbox never begins")
}
