package app

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/rollout"
)

func TestWhatTheArchiveKeeps(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]Keep{
		"": {}, " ": {}, "90d": {For: 90 * day}, "2w": {For: 14 * day}, "36h30m": {For: 36*time.Hour + 30*time.Minute},
		"100000 jobs": {Jobs: 100000}, "90d, 100000 jobs": {For: 90 * day, Jobs: 100000}, "5 jobs,1w": {For: 7 * day, Jobs: 5},
		"events 2y": {Events: 730 * day}, "events  30d , 90d": {For: 90 * day, Events: 30 * day},
		"deployments 1y": {Deployments: 365 * day}, "90d, events 2y, deployments 30d": {For: 90 * day, Events: 730 * day, Deployments: 30 * day},
	} {
		if got, err := parseKeep(text); got != want || err != nil {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"90", "0d", "-1d", "0 jobs", "-5 jobs", "d", "90d,", "90d, 80d", "5 jobs, 6 jobs", "many jobs", "99999d", "1.5d", "9999999999 jobs", "events", "events 5", "events 1d, events 2d", "deployments", "deployments 5", "deployments 1d, deployments 2d", "900y"} {
		if got, err := parseKeep(text); err == nil || got != (Keep{}) {
			t.Errorf("%q is taken as %+v", text, got)
		}
	}
	now := time.UnixMicro(1e15)
	if r := (Keep{For: day}).from(now); r != (queue.Retention{Before: job.At(now.Add(-day))}) {
		t.Errorf("a day is %+v", r)
	}
	if r := (Keep{Jobs: 5}).from(now); r != (queue.Retention{Before: job.Never, Keep: 5}) {
		t.Errorf("five jobs are %+v", r)
	}
}

// What the archive need not keep goes every quarter of an hour, and nothing does where nothing is said.
func TestTheArchiveIsPrunedByItself(t *testing.T) {
	for _, keep := range []Keep{{}, {For: time.Minute, Jobs: 7}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			var asked []queue.Retention
			var at []time.Duration
			begun := time.Now()
			over := make(chan error)
			go func() {
				over <- keepWithin(ctx, keep, slog.New(slog.DiscardHandler), func(_ context.Context, r queue.Retention, _ time.Duration, by queue.By) (queue.Pruning, error) {
					asked, at = append(asked, r), append(at, time.Since(begun))
					if by.Account.Name != "drover" {
						t.Errorf("it is asked for by %+v", by)
					}
					return queue.Pruning{}, nil
				})
			}()
			time.Sleep(40 * time.Minute)
			stop()
			if err := <-over; err != nil {
				t.Error(err)
			}
			if keep == (Keep{}) {
				if len(asked) > 0 {
					t.Errorf("%+v was pruned", asked)
				}
				return
			}
			if len(asked) != 2 || at[0] != pruneEvery || asked[1] != (queue.Retention{Before: job.At(begun.Add(2*pruneEvery - time.Minute)), Keep: 7}) {
				t.Errorf("after %v %+v was pruned", at, asked)
			}
		})
	}
}

// Deployments go every quarter of an hour where an age is said, and else never.
func TestDeploymentsArePrunedByThemselves(t *testing.T) {
	for _, keep := range []Keep{{For: time.Minute}, {Deployments: time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			var asked []time.Time
			begun := time.Now()
			over := make(chan error)
			go func() {
				over <- keepDeployments(ctx, keep, slog.New(slog.DiscardHandler), func(_ context.Context, before time.Time, _ time.Duration, dry bool, by rollout.By) (*rollout.Removal, error) {
					if asked = append(asked, before); by.Account.Name != "drover" || dry {
						t.Errorf("it is asked for by %+v, only to look: %t", by, dry)
					}
					return &rollout.Removal{}, nil
				})
			}()
			time.Sleep(20 * time.Minute)
			stop()
			if err := <-over; err != nil {
				t.Error(err)
			}
			var want []time.Time
			if keep.Deployments > 0 {
				want = []time.Time{begun.Add(pruneEvery - time.Minute)}
			}
			if !slices.EqualFunc(asked, want, time.Time.Equal) {
				t.Errorf("%v were pruned, want %v", asked, want)
			}
		})
	}
}

// Old events go every quarter of an hour; where no age is said, those beyond the bound.
func TestEventsArePrunedByThemselves(t *testing.T) {
	for _, keep := range []Keep{{}, {Events: time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			var asked []time.Time
			begun := time.Now()
			over := make(chan error)
			go func() {
				over <- keepEvents(ctx, keep, slog.New(slog.DiscardHandler), func(_ context.Context, before time.Time, _ time.Duration, by *queue.By) (queue.EventPruning, error) {
					if asked = append(asked, before); by != nil {
						t.Errorf("it leaves an event of %+v", by)
					}
					return queue.EventPruning{}, nil
				})
			}()
			time.Sleep(pruneEvery)
			stop()
			if err := <-over; err != nil {
				t.Error(err)
			}
			want := time.Time{}
			if keep.Events > 0 {
				want = begun.Add(pruneEvery/2 - time.Minute) // between two of jobs
			}
			if len(asked) != 1 || !asked[0].Equal(want) {
				t.Errorf("%v were pruned, want %v", asked, want)
			}
		})
	}
}
