package queue

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestTheEndsOfRulesAreLookedAtOften, for the clock that tells them may be set, and a timer does not hear of it.
func TestTheEndsOfRulesAreLookedAtOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &Queue{expiring: make(bell, 1)}
		for next, want := range map[time.Duration]time.Duration{time.Second: time.Second, time.Hour: longestLook} {
			began := time.Now()
			if !q.awaitExpiry(t.Context(), began, began.Add(next)) || time.Since(began) != want {
				t.Errorf("a rule that ends in %v is looked at after %v, want %v", next, time.Since(began), want)
			}
		}
	})
}
