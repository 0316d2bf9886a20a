package tagsync_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/tagsync"
	"github.com/drover-project/drover/internal/testkit"
)

// TestResizesOutliveTheController: it dies with each write of the server, before or after that is durable, and whoever leads next brings the server to the same
// end. Each thing is done once: what was asked for is one job, and what runs begins anew one time.
func TestResizesOutliveTheController(t *testing.T) {
	for _, at := range []faultstore.Effect{faultstore.CrashBefore, faultstore.CrashAfter} {
		struck := 0
		for skip := 0; skip == struck; skip++ {
			r := newRig(t)
			s := r.create()
			died := r.store.Inject(faultstore.Fault{Do: at, Skip: skip, When: func(tx store.Tx) bool { return len(tx.Put) > 0 && tx.Put[0].Kind == tagsync.KindServer }})
			to := server.Flavor{ID: "d2", RAM: 192, VCPUs: 2}
			as := func(s *server.Server) (*server.Server, error) { return s, nil }
			_, err := r.engine.Resize(s.ID, to, r.asked(), as)
			if err == nil {
				r.awaitResize(s.ID, died)
			}
			if closed(died) {
				struck++
				r.stop()
				r.start()
			}
			if now := r.engine.Servers().Get(s.ID); err != nil && now.Doing() == nil && now.Before == nil { // it was never written down
				_, err := r.engine.Resize(s.ID, to, r.asked(), as)
				r.check(err)
			}
			s = r.settled(s.ID)
			i := r.shown.Load().Inventory.Instance(s.UUID)
			if s.Status() != server.Resized || s.Flavor != to || fmt.Sprint(i.BEParams["maxmem"], i.BEParams["vcpus"]) != "192 2" || i.AdminState != "up" {
				t.Errorf("with the controller dying at write %d it is %s, and runs with %v", skip, s.Status(), i.BEParams)
			}
			jobs := map[string]int{}
			for j := range r.shown.Load().Jobs.All() {
				jobs[j.Ops[0].Input.ID]++
			}
			if fmt.Sprint(jobs) != "map[OP_INSTANCE_CREATE:1 OP_INSTANCE_REBOOT:1 OP_INSTANCE_SET_PARAMS:1]" {
				t.Errorf("with the controller dying at write %d there are the jobs %v", skip, jobs)
			}
		}
		const fewest = 4 // it is asked for, two jobs are handed in, two are over
		if struck < fewest {
			t.Errorf("it died at %d writes only", struck)
		}
	}
}

// awaitResize waits until a server has another size, or the controller has died.
func (r *rig) awaitResize(id string, died <-chan struct{}) {
	r.Helper()
	late := time.After(testkit.Patience())
	for {
		changed := r.shown.Changed()
		if s := r.engine.Servers().Get(id); closed(died) || s.Before != nil && s.Doing() == nil {
			return
		}
		select {
		case <-changed:
		case <-died:
		case <-late:
			r.Fatalf("the resize does not end")
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestWhatMayHaveBeenResizedTakesItsRoom: who asked was told that nobody knows, and until somebody does there is no room for another.
func TestWhatMayHaveBeenResizedTakesItsRoom(t *testing.T) {
	r := &rig{Failing: t, ctx: t.Context(), dir: t.TempDir(), log: quiet, room: func(string) server.Amount { return server.Amount{Instances: 9, Cores: 3, RAM: 1 << 20} }}
	r.start()
	defer r.stop()
	one, other := r.create(), r.create()
	r.store.Inject(faultstore.Fault{Do: faultstore.FailAfter, When: writes("d2")})
	to, as := server.Flavor{ID: "d2", RAM: 128, VCPUs: 2}, func(s *server.Server) (*server.Server, error) { return s, nil }
	if _, err := r.engine.Resize(one.ID, to, r.asked(), as); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("it is answered with %v", err)
	}
	if _, err := r.engine.Resize(other.ID, to, r.asked(), as); !fault.Is(err, fault.Denied) {
		t.Errorf("the other one: %v", err)
	}
	if s := r.until(one.ID, "has its size", func(s *server.Server) bool { return s.Status() == server.Resized && atRest(s) }); s.Flavor.ID != "d2" {
		t.Errorf("it has %s", s.Flavor.ID)
	}
}

// TestWhatHasNoRoomIsNotResized: two servers of a project that ask at the same time do not both get what there is for one, nor does a server that is made
// beside.
func TestWhatHasNoRoomIsNotResized(t *testing.T) {
	r := &rig{Failing: t, ctx: t.Context(), dir: t.TempDir(), log: quiet, room: func(string) server.Amount { return server.Amount{Instances: 9, Cores: 3, RAM: 1 << 20} }}
	r.start()
	defer r.stop()
	one, other := r.create(), r.create()
	gate := make(chan struct{})
	held := r.store.Inject(faultstore.Fault{Do: faultstore.Hold, Gate: gate, When: writes("d2")})
	to, as := server.Flavor{ID: "d2", RAM: 128, VCPUs: 2}, func(s *server.Server) (*server.Server, error) { return s, nil }
	by := servertag.Asked{User: "alice", Time: r.engine.Now()}
	ended := make(chan error, 1)
	go func() {
		_, err := r.engine.Resize(one.ID, to, by, as)
		ended <- err
	}()
	<-held // it is on its way to the store
	if _, err := r.engine.Resize(other.ID, to, by, as); !fault.Is(err, fault.Denied) {
		t.Errorf("the other one: %v", err)
	}
	if _, err := r.engine.Create(r.ctx, &tagsync.Wish{Name: "web", Project: "p", User: "u", Flavor: server.DefaultFlavors()[3], Image: r.engine.Images()[0], Asked: by}); !fault.Is(err, fault.Denied) {
		t.Errorf("a new one: %v", err)
	}
	close(gate)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if s := r.settled(one.ID); s.Status() != server.Resized {
		t.Errorf("it is %s", s.Status())
	}
	if _, err := r.engine.Resize(other.ID, to, by, as); !fault.Is(err, fault.Denied) {
		t.Errorf("the other one afterwards: %v", err)
	}
	_, err := r.engine.Change(one.ID, func(s *server.Server) (*server.Server, error) { return s.RevertResize(by) })
	r.check(err)
	r.settled(one.ID)
	if _, err := r.engine.Resize(other.ID, to, by, as); err != nil {
		t.Errorf("the other one, when there is room again: %v", err)
	}
}
