package tagsync_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/tagsync"
)

// fronted is a cluster whose front answers in its place, when it is told to: it says of every instance that it is not there, and refuses
// deletions with an error.
type fronted struct {
	tagsync.Backend

	denies  atomic.Bool
	refuses atomic.Pointer[fault.Error]
	refused chan struct{} // a deletion that was
}

func (f *fronted) Look(ctx context.Context, instance server.Ref, jobs []job.ID) (server.Sight, error) {
	sight, err := f.Backend.Look(ctx, instance, jobs)
	if f.denies.Load() && err == nil {
		sight = server.Sight{Sight: servertag.Sight{Ended: sight.Ended}, Absent: "the front says so"}
	}
	return sight, err
}

func (f *fronted) Submit(ctx context.Context, key string, ops ...*opcode.Opcode) (job.ID, error) {
	if err := f.refuses.Load(); err != nil && ops[0].ID == "OP_INSTANCE_REMOVE" {
		select {
		case f.refused <- struct{}{}:
		default:
		}
		return 0, err
	}
	return f.Backend.Submit(ctx, key, ops...)
}

func newFronted(t *testing.T) (*rig, *fronted) {
	t.Helper()
	front := &fronted{refused: make(chan struct{}, 1)}
	r := newRigAround(t, func(b tagsync.Backend) tagsync.Backend {
		front.Backend = b
		return front
	})
	return r, front
}

// TestADeniedServerComesBack: with all that its user wants of it, and what is found of it before anything else looks says what will be done.
func TestADeniedServerComesBack(t *testing.T) {
	r, front := newFronted(t)
	s := r.create("mine")
	front.denies.Store(true)
	r.engine.Reconcile()
	gone := r.until(s.ID, "is gone", func(s *server.Server) bool { return s.Status() == server.Gone })
	if gone.Gone != "the front says so" || !gone.Tags.Has(user, "mine") {
		t.Errorf("it is %+v", gone)
	}
	r.check(r.engine.Attend(t.Context(), s.ID)) // nothing looks at it any more
	front.denies.Store(false)
	found := r.examine(s.ID, false)
	if !found.Drift || len(found.Findings) != 1 || len(found.Findings[0].Differences) != 1 || found.Findings[0].Differences[0].Name != "mine" {
		t.Errorf("found is %+v", found)
	}
	r.engine.Reconcile()
	back := r.until(s.ID, "is back", func(s *server.Server) bool { return s.Status() == server.Active && s.PendingTags() == 0 })
	if back.UUID != s.UUID || !slices.Contains(r.onCluster(back), "cyclades:user:mine") {
		t.Errorf("it is %+v", back)
	}
}

// TestADeletionOutlivesAFront: what is said not to be there is deleted all the same.
func TestADeletionOutlivesAFront(t *testing.T) {
	r, front := newFronted(t)
	s := r.create("mine")
	front.denies.Store(true)
	r.engine.Reconcile()
	r.until(s.ID, "is gone", func(s *server.Server) bool { return s.Status() == server.Gone })
	_, err := r.engine.Begin(s.ID, server.Delete, r.asked())
	r.check(err)
	r.until(s.ID, "is done with", func(s *server.Server) bool { return s == nil })
	if r.shown.Load().Inventory.Instance(s.UUID) != nil {
		t.Error("its instance is nobody's now")
	}
}

// TestADeletionThatFindsNothing ends a server whose cluster was seen to lack the instance, also where another one has its name by now. While it was seen there last it
// may only have another name: it is looked for again.
func TestADeletionThatFindsNothing(t *testing.T) {
	for _, code := range []fault.Code{fault.NotFound, fault.Exists} {
		t.Run(string(code), func(t *testing.T) {
			r, front := newFronted(t)
			s := r.create("mine")
			front.refuses.Store(fault.New(code, "there is nothing of that name, or another's"))
			_, err := r.engine.Begin(s.ID, server.Delete, r.asked())
			r.check(err)
			<-front.refused
			if err := r.engine.Attend(t.Context(), s.ID); err == nil || !strings.Contains(err.Error(), "was not found to be deleted") {
				t.Errorf("a deletion that was not taken: %v", err)
			}
			if now := r.engine.Servers().Get(s.ID); now == nil || !now.Deleting() {
				t.Fatalf("it is %+v", now)
			}
			front.denies.Store(true)
			r.engine.Reconcile()
			r.until(s.ID, "is done with", func(s *server.Server) bool { return s == nil })
		})
	}
}
