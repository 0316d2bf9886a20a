package events_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/events"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/testkit/controller"
)

// lagging is a store whose answers about the ends of jobs are late, while its feed tells of them: the picture is behind the feed.
type lagging struct {
	store.Store

	late chan func() // nil answers at once
}

func (s *lagging) Enqueue(tx store.Tx, done func(store.Revision, error)) {
	ends := slices.ContainsFunc(tx.Put, func(p store.Put) bool { return p.Kind == queue.KindJob && bytes.Contains(p.Value, []byte(`"success"`)) })
	if s.late == nil || !ends {
		s.Store.Enqueue(tx, done)
		return
	}
	s.Store.Enqueue(tx, func(r store.Revision, err error) { s.late <- func() { done(r, err) } })
}

// told is a store that says when its feed hands over a change of a job.
type told struct {
	store.Store

	job  func(store.Change) bool
	tell func()
}

func (s *told) Watch(ctx context.Context, after store.Revision) iter.Seq2[[]store.Change, error] {
	return func(yield func([]store.Change, error) bool) {
		for changes, err := range s.Store.Watch(ctx, after) {
			if slices.ContainsFunc(changes, s.job) {
				s.tell()
			}
			if !yield(changes, err) {
				return
			}
		}
	}
}

// TestAnEndIsPublishedThoughThePictureIsLate: the feed tells of a job before the queue shows that it has ended, and does not tell again.
func TestAnEndIsPublishedThoughThePictureIsLate(t *testing.T) {
	kept := &lagging{late: make(chan func(), 10)}
	c := controller.New(t, controller.Options{Cluster: "c.example", WrapQueue: func(beneath store.Store) store.Store {
		kept.Store = beneath
		return kept
	}})
	r, b := &rig{T: t, store: &shortFeed{Store: c.Store}, shown: c.Picture, queue: c.Queue}, newBroker()
	// The queue's picture comes after a moment, in which who does not wait for it has looked at the job.
	catchUp := sync.OnceFunc(func() {
		time.AfterFunc(100*time.Millisecond, func() {
			go func() {
				for f := range kept.late {
					f()
				}
			}()
		})
	})
	ended := func(change store.Change) bool {
		return change.Kind == queue.KindJob && bytes.Contains(change.Value, []byte(`"success"`))
	}
	ctx, cancel := context.WithCancel(t.Context())
	o := &events.Outbox{Store: &told{kept.Store, ended, catchUp}, Queue: r.queue, Picture: r.shown, Publish: b.publish, Log: slog.New(slog.DiscardHandler)}
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	r.begun()
	id := r.submit(tags("cluster", ""))
	b.await(t, "c.example:"+id.String()+":0:success")
	if _, err := r.queue.Wait(t.Context(), id, (*job.Job).Final); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// listed is a store that says when somebody lists its jobs.
type listed struct {
	store.Store

	tell func()
}

func (s *listed) List(ctx context.Context, kind store.Kind, opts store.Options) iter.Seq2[store.Object, error] {
	if kind == queue.KindJob {
		s.tell()
	}
	return s.Store.List(ctx, kind, opts)
}

// TestAnEndIsCaughtUpWithThoughThePictureIsLate: where the feed does not reach back, too, the store has the end of a job before the
// queue shows it, and whoever has caught up does not look again.
func TestAnEndIsCaughtUpWithThoughThePictureIsLate(t *testing.T) {
	kept := &lagging{late: make(chan func(), 10)}
	c := controller.New(t, controller.Options{Cluster: "c.example", WrapQueue: func(beneath store.Store) store.Store {
		kept.Store = beneath
		return kept
	}})
	r, b := &rig{T: t, store: &shortFeed{Store: c.Store}, shown: c.Picture, queue: c.Queue}, newBroker()
	id := r.submit(tags("cluster", ""))
	show := <-kept.late // it has ended, and the picture does not show it
	head, err := c.Store.Get(t.Context(), store.Key{Kind: queue.KindJob, ID: id.String()})
	if err != nil {
		t.Fatal(err)
	}
	// All up to the very change before it is published.
	cursor := store.Put{Key: store.Key{Kind: events.KindCursor, ID: "published"}, Value: fmt.Appendf(nil, `{"revision": %d, "ended": 1}`, head.Revision-1)}
	if _, err := store.Commit(t.Context(), c.Store, store.Tx{Put: []store.Put{cursor}}); err != nil {
		t.Fatal(err)
	}
	r.forget()
	catchUp := sync.OnceFunc(func() {
		time.AfterFunc(100*time.Millisecond, func() { // as above
			show()
			go func() {
				for f := range kept.late {
					f()
				}
			}()
		})
	})
	ctx, cancel := context.WithCancel(t.Context())
	o := &events.Outbox{Store: &listed{r.store, catchUp}, Queue: r.queue, Picture: r.shown, Publish: b.publish, Log: slog.New(slog.DiscardHandler)}
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	b.await(t, "c.example:"+id.String()+":0:success")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
