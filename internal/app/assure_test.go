package app

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// slowToTell is a store that takes a while to say who leads.
type slowToTell struct {
	store.Shared

	takes time.Duration
	lease store.Lease
}

func (s *slowToTell) Lease(context.Context, string) (store.Lease, error) {
	time.Sleep(s.takes)
	return s.lease, nil
}

// TestNobodyIsSureUnheard: the lease that a term begins with says nothing about now, and what the store says is about
// the moment in which it was asked. It holds for as long as whoever takes the lease waits.
func TestNobodyIsSureUnheard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const moment = time.Millisecond
		tells := &slowToTell{takes: 200 * time.Millisecond, lease: store.Lease{Holder: "a", Epoch: 3}}
		c := &controller{member: &member{shared: tells}, begun: time.Now(), lease: store.Lease{Epoch: 3}}
		if c.isSure() {
			t.Error("a controller is sure that it leads, and has not asked")
		}
		time.Sleep(moment)
		if err := c.hear(t.Context()); err != nil || !c.isSure() {
			t.Errorf("it has heard that it leads, and is not sure: %v", err)
		}
		time.Sleep(100*time.Millisecond - moment)
		if !c.isSure() {
			t.Error("it is not sure 300 ms after it asked")
		}
		time.Sleep(2 * moment)
		if c.isSure() {
			t.Error("it is sure for longer than 300 ms after it asked")
		}
		tells.takes = 301 * time.Millisecond
		if err := c.hear(t.Context()); err != nil || c.isSure() {
			t.Errorf("it is sure upon an answer that took longer than it holds: %v", err)
		}
		tells.takes, tells.lease.Epoch = 0, 4
		if err := c.hear(t.Context()); !fault.Is(err, fault.Fenced) || c.isSure() {
			t.Errorf("another leads, and it heard %v", err)
		}
	})
}
