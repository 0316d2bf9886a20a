package world

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/events"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/sim/check"
	"github.com/drover-project/drover/internal/sim/memory"
	"github.com/drover-project/drover/internal/sim/plan"
	"github.com/drover-project/drover/internal/store"
)

// broker takes messages for good, unless it is away.
type broker struct {
	w *world

	mu    sync.Mutex
	taken map[string]int // by id
	away  int
	// since is when the first place up to which events are published was stored; zero
	// before that.
	since time.Time
}

// goAway has the broker take nothing; what is returned ends that.
func (b *broker) goAway() (back func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.away--
	}
}

// feedKept is how many revisions the feed keeps where there are events: who tells of them
// may be away for longer.
const feedKept = 8

func (w *world) keep() store.Revision {
	if w.plan.Has(plan.Events) {
		return feedKept
	}
	return 0
}

// hear has jobs end that end at the same moment.
func (w *world) hear(parts *sync.WaitGroup) {
	c := w.beside("hearer", 0)
	parts.Go(func() { c.rounds(c.together) })
}

// together hands jobs in that end together.
func (c *client) together(n int) {
	const many = 3
	seconds := float64(1 + c.draw.IntN(3))
	err := c.ask(func(ctx context.Context, t *term) error {
		subs := make([]queue.Submission, many)
		for i := range subs {
			op := opcodeOf("OP_TEST_DELAY", map[string]any{"duration": seconds, "on_master": false})
			subs[i] = queue.Submission{Ops: []*opcode.Opcode{op}, Key: fmt.Sprintf("%s-%d-%d", c.name, n, i)}
		}
		_, err := t.queue.SubmitMany(ctx, subs)
		return err
	})
	if err != nil {
		panic(err) // nothing refuses what clients ask for
	}
}

// publishTime is how long the broker takes for a message, and publishPause how long it is
// left alone when it is away.
const (
	publishTime  = 2 * time.Millisecond
	publishPause = time.Second
)

// publishAll publishes in a term until ctx ends, which it is told the end of: who cannot
// publish leads no more.
func (t *term) publishAll(ctx context.Context, s store.Store, stop context.CancelCauseFunc) {
	o := &events.Outbox{Store: s, Epoch: t.lease.Epoch, Queue: t.queue, Picture: t.shown, Publish: t.publish, Log: slog.New(slog.DiscardHandler)}
	if err := o.Run(ctx); err != nil {
		stop(err)
	}
}

// publish is how a leader hands a message to the broker: it tries until it is taken.
func (t *term) publish(ctx context.Context, m events.Message) error {
	l := t.life
	for {
		err := l.cross(plan.Publish)
		if err == nil {
			err = l.rest(ctx, publishTime)
		}
		if err != nil {
			return err
		}
		b := l.w.broker
		b.mu.Lock()
		away := b.away > 0
		if !away {
			b.taken[m.ID]++
		}
		b.mu.Unlock()
		if !away {
			return l.gate()
		}
		l.w.Reached.Add("the broker is away")
		if err := l.rest(ctx, publishPause); err != nil {
			return err
		}
	}
}

// missing are the events of opcodes that ended and were not published.
func (w *world) missing() (all []string) {
	w.broker.mu.Lock()
	defer w.broker.mu.Unlock()
	if w.broker.since.IsZero() {
		return nil
	}
	s := w.db.Open(memory.Handle{Name: "events"})
	defer func() { _ = s.Close() }() // it never fails
	read := queue.NewStored(s)
	for o, err := range s.List(context.Background(), queue.KindJob, store.Options{}) {
		var j *job.Job
		if err == nil {
			j, err = read.Decode(context.Background(), o)
		}
		if err != nil || !j.Final() || j.Ended <= job.At(w.broker.since) {
			continue
		}
		for i := range j.Ops {
			if m, ended := events.Of(clusterName, j, i, nil); ended && w.broker.taken[m.ID] == 0 {
				all = append(all, m.ID)
			}
		}
	}
	return all
}

func (t *term) eventsUndone() string {
	if missing := t.life.w.missing(); len(missing) > 0 {
		return fmt.Sprintf("%d events are not published, such as %s", len(missing), missing[0])
	}
	return ""
}

func (t *term) eventsAgree() {
	for _, id := range t.life.w.missing() {
		t.life.w.verdict.Breakf(check.Published, "%s was not", id)
	}
}
