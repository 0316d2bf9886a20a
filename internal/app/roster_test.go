package app

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// TestStrangersCostTheStoreNothing: who belongs to a group is known without a question to the
// store, and a flood of those who do not costs it five in a second.
func TestStrangersCostTheStoreNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads int
		r := newRoster(func(context.Context) ([]peerRecord, error) {
			reads++
			return []peerRecord{{Name: "c1", Fingerprint: "one"}}, nil
		})
		for range 1000 {
			if err := r.known(t.Context(), "one"); err != nil {
				t.Fatal(err)
			}
		}
		if reads != 1 {
			t.Errorf("a controller that is known cost %d readings", reads)
		}
		begun := time.Now()
		var strangers sync.WaitGroup
		for range 100 {
			for range 10 {
				strangers.Go(func() {
					if err := r.known(t.Context(), "two"); !fault.Is(err, fault.NotFound) {
						t.Errorf("a stranger: %v", err)
					}
				})
			}
			time.Sleep(10 * time.Millisecond)
		}
		strangers.Wait()
		if took := time.Since(begun); took > 2*time.Second || reads > 8 {
			t.Errorf("a thousand strangers within a second cost %d readings, %v", reads, took)
		}
	})
}

func TestGroupIsRememberedWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("away")
		there, err := []peerRecord{{Fingerprint: "one"}, {Fingerprint: "two"}}, error(nil)
		r := newRoster(func(context.Context) ([]peerRecord, error) { return there, err })
		if err := r.known(t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		// One that has left is refused when that was read, and one that came is known at once.
		there = []peerRecord{{Fingerprint: "two"}, {Fingerprint: "three"}}
		if err := r.known(t.Context(), "three"); err != nil {
			t.Error(err)
		}
		if err := r.known(t.Context(), "one"); !fault.Is(err, fault.NotFound) {
			t.Errorf("one that has left: %v", err)
		}
		time.Sleep(2 * rosterAge)
		err = away
		if err := r.known(t.Context(), "three"); err != nil {
			t.Errorf("one that was there before the store went away: %v", err)
		}
		if err := r.known(t.Context(), "four"); !errors.Is(err, away) {
			t.Errorf("a stranger while the store is away: %v", err)
		}
		// One who waits for that leaves when he likes.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.known(ctx, "four"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		// What is old is read again.
		there, err = []peerRecord{{Fingerprint: "three"}}, nil
		time.Sleep(2 * rosterAge)
		if err := r.known(t.Context(), "two"); !fault.Is(err, fault.NotFound) {
			t.Errorf("one that has left long ago: %v", err)
		}
	})
}
