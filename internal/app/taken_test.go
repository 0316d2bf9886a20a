package app

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// TestALeadThatAnotherTookIsAskedForAgain: who was too slow for the lead that it was given learns who has it now, and not only that the time is over.
func TestALeadThatAnotherTookIsAskedForAgain(t *testing.T) {
	onFakeTime(t, func(t *testing.T, s store.Store) {
		lease, err := s.AcquireLease(t.Context(), leaseName, "c2", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		leads := func(p peerRecord) {
			t.Helper()
			text, err := json.Marshal(p)
			if err == nil {
				_, err = store.Commit(t.Context(), s, store.Tx{Epoch: lease.Epoch, Put: []store.Put{{Key: leaderKey, Value: text}}})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		g := &group{m: &member{store: s}, self: peerRecord{Name: "c1", Instance: "one"}}
		former := peerRecord{Name: "c2", Instance: "two", Epoch: 7}
		leads(former)
		if _, err := g.taken(t.Context(), former, time.After(time.Second)); !fault.Is(err, fault.Unavailable) {
			t.Errorf("while nobody takes it: %v", err)
		}
		again := former
		again.Epoch = 9
		leads(again)
		if p, err := g.taken(t.Context(), former, time.After(time.Second)); err != nil || p.Epoch != 9 || p.Instance != "two" {
			t.Errorf("when another has taken it: %+v, %v", p, err)
		}
	})
}
