package events_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
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

// rig is a controller and its store.
type rig struct {
	*testing.T
	store store.Store
	shown *picture.Picture
	queue *queue.Queue
}

func newRig(t *testing.T, keep store.Revision) *rig {
	t.Helper()
	c := controller.New(t, controller.Options{Keep: keep, Cluster: "c.example", Patience: time.Millisecond})
	return &rig{T: t, store: c.Store, shown: c.Picture, queue: c.Queue}
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
	r, b := newRig(t, 0), newBroker()
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

// TestNothingIsLostWhileTheBrokerIsAway: what ends then is published afterwards,
// also by the next controller, and when the store's feed does not reach back.
func TestNothingIsLostWhileTheBrokerIsAway(t *testing.T) {
	const keep = 20
	r, b := newRig(t, keep), newBroker()
	stop := r.run(b)
	r.begun()
	r.submit(tags("cluster", ""))
	b.await(t, "c.example:1:0:success")
	b.set(true)
	var ids []string
	var last job.ID
	for range 5 * keep {
		last = r.submit(tags("cluster", ""))
		ids = append(ids, "c.example:"+last.String()+":0:success")
		if _, err := r.queue.Wait(t.Context(), last, (*job.Job).Final); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if n, _, err := r.queue.AutoArchive(t.Context(), 0, patience, queue.By{}); err != nil || n == 0 {
		t.Fatalf("%d archived: %v", n, err)
	}
	b.set(false)
	stop = r.run(b)
	defer stop()
	b.await(t, ids...)
}

// TestWhatEndsWhileItCatchesUpIsPublished: the feed goes on where the look at all jobs
// began, not where it ended.
func TestWhatEndsWhileItCatchesUpIsPublished(t *testing.T) {
	const keep = 20
	r, b := newRig(t, keep), newBroker()
	stop := r.run(b)
	r.begun()
	r.submit(tags("cluster", ""))
	b.await(t, "c.example:1:0:success")
	stop()
	end := func() string {
		id := r.submit(tags("cluster", ""))
		if _, err := r.queue.Wait(t.Context(), id, (*job.Job).Final); err != nil {
			t.Error(err)
		}
		return "c.example:" + id.String() + ":0:success"
	}
	for range keep {
		end()
	}
	late := make(chan string, 1)
	b.once = func() { late <- end() }
	stop = r.run(b)
	defer stop()
	b.await(t, <-late)
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
	r, b := newRig(t, 0), newBroker()
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

// A place in the stream that cannot be read keeps nobody from going on with the present.
func TestADamagedPlaceCostsItselfOnly(t *testing.T) {
	r := newRig(t, 0)
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
