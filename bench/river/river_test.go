package river

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// nothing are the arguments of a job that does nothing.
type nothing struct{}

func (nothing) Kind() string { return "nothing" }

type worker struct {
	river.WorkerDefaults[nothing]
}

func (*worker) Work(context.Context, *river.Job[nothing]) error { return nil }

// riverSetting is how River is configured.
type riverSetting struct {
	workers int
	// eager has it fetch jobs as often as its own benchmark does, every 2 ms in place of 100.
	eager bool
	// before has all jobs inserted before the first is worked; only the work counts then.
	before bool
}

func (s riverSetting) config() *river.Config {
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{})
	c := &river.Config{
		Logger:  slog.New(slog.DiscardHandler),
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: s.workers}},
		Workers: workers,
	}
	if s.eager {
		c.FetchCooldown, c.FetchPollInterval = 2*time.Millisecond, 20*time.Millisecond
	}
	return c
}

func (s riverSetting) run(b *testing.B, url string, n int, timed func(func())) {
	b.Helper()
	pool, err := pgxpool.New(b.Context(), url)
	check(b, err)
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	check(b, err)
	_, err = migrator.Migrate(b.Context(), rivermigrate.DirectionUp, nil)
	check(b, err)
	client, err := river.NewClient(driver, s.config())
	check(b, err)
	// The events tell of ends that are durable.
	ended, cancel := client.SubscribeConfig(&river.SubscribeConfig{ChanSize: n, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	defer cancel()
	first, then := func() { check(b, client.Start(b.Context())) }, func() { insert(b, client, n) }
	if s.before {
		first, then = then, first
	}
	first()
	timed(func() {
		then()
		for range n {
			<-ended
		}
	})
	check(b, client.Stop(b.Context()))
}

func insert(b *testing.B, client *river.Client[pgx.Tx], n int) {
	b.Helper()
	hand(b, n, func(n int) error {
		_, err := client.InsertManyFast(b.Context(), slices.Repeat([]river.InsertManyParams{{Args: nothing{}}}, n))
		return err
	})
}
