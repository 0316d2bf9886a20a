package tagsync_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/tagsync"
)

// holdServers holds back what writes servers, until it is let go.
func (r *rig) holdServers() (letGo func()) {
	gate := make(chan struct{})
	r.store.Inject(faultstore.Fault{Do: faultstore.Hold, Gate: gate, When: func(tx store.Tx) bool {
		return len(tx.Put) > 0 && tx.Put[0].Key.Kind == tagsync.KindServer
	}})
	return func() { close(gate) }
}

// TestConcurrentCreationsKeepTheLimit: those that the store has not acknowledged count, too; and none that it refused.
func TestConcurrentCreationsKeepTheLimit(t *testing.T) {
	r := newRig(t)
	r.room = func(string) server.Amount { return server.Amount{Instances: 10, Cores: -1, RAM: -1} }
	r.stop()
	r.start()
	r.store.Inject(faultstore.Fault{Do: faultstore.FailBefore, Err: fault.New(fault.TooLarge, "too much"), When: makesServer})
	if _, err := r.engine.CreateMany(r.ctx, r.wish(), 5, 5); err == nil {
		t.Fatal("the store took it")
	}
	letGo := r.holdServers()
	var made, refused atomic.Int64
	var done sync.WaitGroup
	asked := make(chan struct{}, 40)
	for i := range cap(asked) {
		done.Go(func() {
			asked <- struct{}{}
			all, err := r.engine.CreateMany(r.ctx, r.wish(), 1, 1+i%3)
			switch {
			case fault.Is(err, fault.Denied):
				refused.Add(1)
			case err != nil:
				t.Error(err)
			}
			made.Add(int64(len(all)))
		})
	}
	for range cap(asked) {
		<-asked
	}
	letGo()
	done.Wait()
	if made.Load() != 10 || refused.Load() == 0 || r.engine.Servers().Count("p") != 10 {
		t.Errorf("%d were made, %d refused, and there are %d", made.Load(), refused.Load(), r.engine.Servers().Count("p"))
	}
	for s := range r.engine.Servers().Of("p") {
		_, err := r.engine.Begin(s.ID, server.Delete, r.asked())
		r.check(err)
		r.until(s.ID, "is gone", func(s *server.Server) bool { return s == nil })
		break
	}
	if again, err := r.engine.CreateMany(r.ctx, r.wish(), 1, 3); err != nil || len(again) != 1 {
		t.Errorf("when one is gone: %d, %v", len(again), err)
	}
}
