package inventory

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/sim/memory"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

// inBubble opens a keeper of a cluster on a store that fails on command, where time
// passes when nobody has anything to do.
func inBubble(t *testing.T, f func(t *testing.T, s *faultstore.Store, k *Keeper)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := faultstore.New(memory.New(memory.Options{}).Open(memory.Handle{}))
		k := open(t, s, 0)
		if err := k.Bootstrap(t.Context(), setup("node1")); err != nil {
			t.Fatal(err)
		}
		f(t, s, k)
		k.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

var lost = map[string]faultstore.Effect{"not stored": faultstore.FailBefore, "stored, and said to be not": faultstore.FailAfter}

// When the store cannot say what became of a transaction it is looked up: the update is
// made, once, and shown, and nobody hears of the trouble.
func TestLostAnswersAreLookedUp(t *testing.T) {
	for name, effect := range lost {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *faultstore.Store, k *Keeper) {
				tried := 0
				s.Inject(faultstore.Fault{Do: effect})
				err := k.Update(t.Context(), func(snap *cluster.Snapshot) ([]cluster.Change, error) {
					tried++
					return addTag("a")(snap)
				})
				if want := map[faultstore.Effect]int{faultstore.FailBefore: 2, faultstore.FailAfter: 1}[effect]; err != nil || tried != want {
					t.Errorf("made %d times, want %d: %v", tried, want, err)
				}
				if !k.Snapshot().Cluster().Tags.Has("a") {
					t.Error("it is not shown")
				}
				s.Inject(faultstore.Fault{Do: effect})
				err = k.Update(t.Context(), func(snap *cluster.Snapshot) ([]cluster.Change, error) {
					node := snap.NodeNamed("node1")
					if node == nil {
						return nil, nil
					}
					return []cluster.Change{cluster.Delete(cluster.KindNode, node.UUID)}, nil
				})
				if stored, readErr := Read(t.Context(), s.Store); err != nil || readErr != nil || stored.NodeCount() != 0 || k.Snapshot().NodeCount() != 0 {
					t.Errorf("a node that was deleted: %v, %v, %d shown", err, readErr, k.Snapshot().NodeCount())
				}
			})
		})
	}
}

// outage fails all transactions for a time.
func outage(s *faultstore.Store, d time.Duration) {
	over := time.Now().Add(d)
	for range 200 {
		s.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: func(store.Tx) bool { return time.Now().Before(over) }})
	}
}

// An update waits for its outcome no longer than half a minute; then it is told that this
// is not known, which is no refusal. What was made is shown as soon as the store tells,
// though nobody changes anything; and who came meanwhile is told that nothing was begun.
func TestOutcomesThatStayUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faultstore.Store, k *Keeper) {
		s.Inject(faultstore.Fault{Do: faultstore.FailAfter})
		outage(s, time.Minute)
		begun := time.Now()
		var second error
		go func() {
			time.Sleep(time.Second)
			second = k.Update(t.Context(), addTag("b"))
		}()
		err := k.Update(t.Context(), addTag("a"))
		if waited := time.Since(begun); !fault.Is(err, fault.Unavailable) || waited < patience || waited > patience+2*longestPause {
			t.Errorf("after %s: %v", waited, err)
		}
		synctest.Wait()
		if !fault.Is(second, fault.Unavailable) {
			t.Errorf("the second update: %v", second)
		}
		var told atomic.Int64
		k.OnChange(func(*cluster.Snapshot) { told.Add(1) })
		time.Sleep(time.Minute)
		if tags := k.Snapshot().Cluster().Tags; !tags.Has("a") || tags.Has("b") || told.Load() != 1 {
			t.Errorf("when the store works again %v is shown, and watchers were told %d times", tags, told.Load())
		}
		if err := k.Update(t.Context(), addTag("c")); err != nil {
			t.Errorf("the next update: %v", err)
		}
	})
}

// Who gives up waiting, or closes the keeper, is not kept by a store that does not answer.
func TestNobodyIsKeptByALookUp(t *testing.T) {
	for name, end := range map[string]func(k *Keeper, cancel func()){
		"the caller gives up": func(_ *Keeper, cancel func()) { cancel() },
		"the keeper closes":   func(k *Keeper, _ func()) { k.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *faultstore.Store, k *Keeper) {
				outage(s, time.Minute)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				begun := time.Now()
				go func() {
					time.Sleep(5 * time.Second)
					end(k, cancel)
				}()
				err := k.Update(ctx, addTag("a"))
				if waited := time.Since(begun); !fault.Is(err, fault.Unavailable) || waited > 5*time.Second+longestPause {
					t.Errorf("after %s: %v", waited, err)
				}
			})
		})
	}
}

// A controller that is no longer the leader does not know what became of what it wrote
// last, though it is refused whatever it writes now.
func TestAnOutcomeUnderAnotherLeaderIsUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faultstore.Store, _ *Keeper) {
		lease, err := s.AcquireLease(t.Context(), "leader", "me", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		k := open(t, s, lease.Epoch)
		defer k.Close()
		s.Inject(faultstore.Fault{Do: faultstore.FailAfter})
		s.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: func(tx store.Tx) bool { return len(tx.Put) == 0 },
			Err: fault.New(fault.Fenced, "another leads")})
		if err := k.Update(t.Context(), addTag("a")); !fault.Is(err, fault.Unavailable) {
			t.Errorf("the update is answered %v", err)
		}
	})
}

// late is a store whose next transaction comes late: it is said to have failed, and is
// made before the one that follows it.
type late struct {
	store.Store

	next bool
	held *store.Tx
}

func (s *late) Enqueue(tx store.Tx, done func(store.Revision, error)) {
	if s.next {
		s.next, s.held = false, &tx
		done(0, fault.New(fault.Unavailable, "the connection was lost at the commit"))
		return
	}
	if s.held != nil {
		s.Store.Enqueue(*s.held, nil)
		s.held = nil
	}
	s.Store.Enqueue(tx, done)
}

// What was on its way when its answer was lost has come or will not come, before it is
// looked for.
func TestOutcomesAreLookedForBehindABarrier(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faultstore.Store, _ *Keeper) {
		slow := &late{Store: s}
		k := open(t, slow, 0)
		defer k.Close()
		tried := 0
		slow.next = true
		err := k.Update(t.Context(), func(snap *cluster.Snapshot) ([]cluster.Change, error) {
			tried++
			return addTag("a")(snap)
		})
		if err != nil || tried != 1 || !k.Snapshot().Cluster().Tags.Has("a") {
			t.Errorf("made %d times: %v", tried, err)
		}
	})
}
