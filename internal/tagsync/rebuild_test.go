package tagsync_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/tagsync"
	"github.com/drover-project/drover/internal/testkit"
)

// createDisk makes a server with a disk, and waits until it runs.
func (r *rig) createDisk() *server.Server {
	r.Helper()
	s, err := r.engine.Create(r.ctx, &tagsync.Wish{Name: "web", Project: "p", User: "u", Flavor: server.DefaultFlavors()[0], Image: r.engine.Images()[0], Asked: r.asked()})
	r.check(err)
	return r.until(s.ID, "is active and at rest", func(s *server.Server) bool { return s.Status() == server.Active && atRest(s) })
}

func asIs(s *server.Server) (*server.Server, error) { return s, nil }

func (r *rig) rebuild(id string) error {
	_, err := r.engine.Rebuild(id, server.Renewal{Image: r.engine.Images()[0]}, r.asked(), asIs)
	return err
}

// rebuilds are the jobs that install the disk of a server anew.
func (r *rig) rebuilds() (jobs []string) {
	for j := range r.shown.Load().Jobs.All() {
		var ids []string
		for i := range j.Ops {
			ids = append(ids, strings.TrimPrefix(j.Ops[i].Input.ID, "OP_INSTANCE_"))
		}
		if text := strings.Join(ids, " "); strings.Contains(text, "REINSTALL") {
			jobs = append(jobs, text)
		}
	}
	return jobs
}

// awaitRebuild waits until a server is not being rebuilt any more, or the controller has died.
func (r *rig) awaitRebuild(id string, died <-chan struct{}) {
	r.Helper()
	late := time.After(testkit.Patience())
	for {
		changed := r.shown.Changed()
		if s := r.engine.Servers().Get(id); closed(died) || s.Doing() == nil {
			return
		}
		select {
		case <-changed:
		case <-died:
		case <-late:
			r.Fatalf("the rebuild does not end")
		}
	}
}

// writesServer is true of each write of a server.
func writesServer(tx store.Tx) bool { return len(tx.Put) > 0 && tx.Put[0].Kind == tagsync.KindServer }

// keyless is a cluster that knows no submission keys: what is handed in twice it does twice.
type keyless struct {
	tagsync.Backend

	r  *rig
	mu sync.Mutex
	n  int
	// next is what becomes of the next rebuilds that are handed in.
	next []fate
	// coming is what arrives when it was looked for.
	coming func()
	// met is told of each that was handed in, or was to be.
	met chan fate
}

// fate is what becomes of a job that is handed in.
type fate int

const (
	taken    fate = iota
	unheard       // it is taken, and there is no answer
	lost          // it does not arrive, and there is no answer
	late          // the same, but it arrives when it was looked for in vain
	sentBack      // it is not taken, as the cluster says
)

func (k *keyless) Newest(context.Context) (newest job.ID, keyed bool, err error) {
	for j := range k.r.shown.Load().Jobs.All() {
		newest = max(newest, j.ID)
	}
	return newest, false, nil
}

func (k *keyless) Find(_ context.Context, after job.ID, ops ...*opcode.Opcode) (job.ID, error) {
	for j := range k.r.shown.Load().Jobs.All() {
		if j.ID > after && len(j.Ops) == len(ops) && j.Ops[1].Input.ID == ops[1].ID && j.Ops[1].Input.Str("instance_name") == ops[1].Str("instance_name") {
			return j.ID, nil
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.coming != nil {
		k.coming()
		k.coming = nil
	}
	return 0, nil
}

func (k *keyless) Submit(ctx context.Context, key string, ops ...*opcode.Opcode) (id job.ID, err error) {
	if len(ops) == 1 {
		return k.Backend.Submit(ctx, key, ops...)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	is := taken
	if len(k.next) > 0 {
		is, k.next = k.next[0], k.next[1:]
	}
	defer func() { k.met <- is }()
	gone := fault.New(fault.Unavailable, "there is no answer")
	switch is {
	case sentBack:
		return 0, &tagsync.UntakenError{Err: gone}
	case lost:
		return 0, gone
	case late:
		k.coming = func() { _, _ = k.Backend.Submit(context.WithoutCancel(ctx), key+"/late", ops...) } // what comes of it is found
		return 0, gone
	}
	k.n++
	if id, err = k.Backend.Submit(ctx, fmt.Sprint(key, "/", k.n), ops...); is == unheard {
		return 0, gone
	}
	return id, err
}

// newKeyless is a rig whose cluster is one.
func newKeyless(t *testing.T, next ...fate) (*rig, *keyless) {
	t.Helper()
	k := &keyless{next: next, met: make(chan fate, 100)}
	r := newRigAround(t, func(b tagsync.Backend) tagsync.Backend {
		k.Backend = b
		return k
	})
	k.r = r
	return r, k
}

// rebuildDying rebuilds a server with the controller dying at a write of it, if there are so many, and has the next one bring that to its end. err is what who asked was told.
func (r *rig) rebuildDying(at faultstore.Effect, skip int) (s *server.Server, dead bool, err error) {
	r.Helper()
	s = r.createDisk()
	died := r.store.Inject(faultstore.Fault{Do: at, Skip: skip, When: writesServer})
	if err = r.rebuild(s.ID); err == nil {
		r.awaitRebuild(s.ID, died)
	}
	if dead = closed(died); dead {
		r.stop()
		r.ahead.Store(int64(time.Hour)) // nothing arrives any more
		r.start()
	}
	return r.settled(s.ID), dead, err
}

// rebuildsAgain has a server rebuilt once more, whatever became of the rebuilds before.
func (r *rig) rebuildsAgain(id, what string, before int) {
	r.Helper()
	if err := r.rebuild(id); err != nil {
		r.Fatalf("%s and again: %v", what, err)
	}
	if s := r.settled(id); s.Status() != server.Active || len(r.rebuilds()) != before+1 {
		r.Fatalf("%s and again: %s, with the jobs %q", what, s.Status(), r.rebuilds())
	}
}

// TestRebuildsOutliveTheController: it dies with each write of the server, before or after that is durable, and whoever leads next brings the rebuild to its end.
// The disk is installed once for each time that it was asked for, whether or not the cluster knows keys; where nobody can tell, it is not, and the server is in error.
func TestRebuildsOutliveTheController(t *testing.T) {
	for _, keyed := range []bool{true, false} {
		for _, at := range []faultstore.Effect{faultstore.CrashBefore, faultstore.CrashAfter} {
			struck, failed := 0, 0
			for skip := 0; skip == struck; skip++ {
				r := newRig(t)
				if !keyed {
					r, _ = newKeyless(t)
				}
				s, dead, err := r.rebuildDying(at, skip)
				if dead {
					struck++
				}
				jobs := r.rebuilds()
				what := fmt.Sprintf("with keys: %v, and the controller dying at write %d (%d)", keyed, skip, at)
				switch {
				case err != nil && s.Broken == nil && len(jobs) == 0: // it was never written down
				case s.Status() == server.Failed && len(jobs) == 0 && !keyed && strings.Contains(s.Trouble().Text, "not asked twice"):
					failed++
				case s.Status() != server.Active || fmt.Sprint(jobs) != "[SHUTDOWN REINSTALL STARTUP]":
					t.Errorf("%s it is %s (%+v), with the jobs %q", what, s.Status(), s.Trouble(), jobs)
				}
				if dead {
					r.rebuildsAgain(s.ID, what, len(jobs))
				}
			}
			fewest, most := 3, 0 // it is asked for, handed in, and over
			if !keyed {
				fewest, most = 4, 1 // and is about to be handed in: who dies then leaves it to nobody
			}
			if struck < fewest || failed > most {
				t.Errorf("with keys: %v, it died at %d writes only, and %d rebuilds were not done", keyed, struck, failed)
			}
		}
	}
}

// TestNoRebuildIsHandedInTwice: a cluster that knows no keys does not answer. The job that it has is found; of one that it has not nobody can tell, and it is told so.
func TestNoRebuildIsHandedInTwice(t *testing.T) {
	t.Run("the answer is lost", func(t *testing.T) {
		r, _ := newKeyless(t, unheard)
		s := r.createDisk()
		r.check(r.rebuild(s.ID))
		if s = r.settled(s.ID); s.Status() != server.Active || len(r.rebuilds()) != 1 {
			t.Errorf("it is %s (%+v), by %q", s.Status(), s.Trouble(), r.rebuilds())
		}
	})
	t.Run("the request is late", func(t *testing.T) {
		r, _ := newKeyless(t, late)
		s := r.createDisk()
		r.check(r.rebuild(s.ID))
		if s = r.settled(s.ID); s.Status() != server.Active || len(r.rebuilds()) != 1 {
			t.Errorf("it is %s (%+v), by %q", s.Status(), s.Trouble(), r.rebuilds())
		}
	})
	t.Run("the request is lost", func(t *testing.T) {
		r, k := newKeyless(t, lost)
		s := r.createDisk()
		r.check(r.rebuild(s.ID))
		<-k.met
		if s = r.engine.Servers().Get(s.ID); s.Status() != server.Rebuilding || s.Doing().Anew.Handed == 0 {
			t.Errorf("while it may come it is %s, %+v", s.Status(), s.Doing())
		}
		r.ahead.Store(int64(time.Hour))
		if s = r.settled(s.ID); s.Status() != server.Failed || !strings.Contains(s.Trouble().Text, "not asked twice") || len(r.rebuilds()) != 0 {
			t.Errorf("it is %s (%+v), by %q", s.Status(), s.Trouble(), r.rebuilds())
		}
		if acts := s.Acts(); acts[len(acts)-1].Do != server.Rebuild || acts[len(acts)-1].Failed == "" {
			t.Errorf("its history is %+v", acts)
		}
		r.check(r.rebuild(s.ID))
		if s = r.settled(s.ID); s.Status() != server.Active || len(r.rebuilds()) != 1 {
			t.Errorf("asked for again it is %s (%+v), by %q", s.Status(), s.Trouble(), r.rebuilds())
		}
	})
	t.Run("it is sent back", func(t *testing.T) {
		r, _ := newKeyless(t, sentBack, sentBack)
		s := r.createDisk()
		r.check(r.rebuild(s.ID))
		if s = r.settled(s.ID); s.Status() != server.Active || len(r.rebuilds()) != 1 {
			t.Errorf("it is %s (%+v), by %q", s.Status(), s.Trouble(), r.rebuilds())
		}
	})
}

// TestARestoredStoreRebuildsNothing: what it has asked for may have been done before it was put back.
func TestARestoredStoreRebuildsNothing(t *testing.T) {
	r := &rig{Failing: t, ctx: t.Context(), dir: t.TempDir(), log: quiet, life: "first"}
	r.start()
	defer func() { r.stop() }()
	s := r.createDisk()
	died := r.store.Inject(faultstore.Fault{Do: faultstore.CrashAfter, When: writesServer})
	if err := r.rebuild(s.ID); err == nil {
		t.Fatal("it is acknowledged")
	}
	<-died
	r.stop()
	r.life = "second"
	r.start()
	if s = r.settled(s.ID); s.Status() != server.Failed || !strings.Contains(s.Trouble().Text, "restored") || len(r.rebuilds()) != 0 {
		t.Errorf("it is %s (%+v), by %q", s.Status(), s.Trouble(), r.rebuilds())
	}
}

// TestRebuildsWaitForTheFormat: a program of before would hand a job in again.
func TestRebuildsWaitForTheFormat(t *testing.T) {
	present := format.Rebuilds - 1
	r := &rig{Failing: t, ctx: t.Context(), dir: t.TempDir(), log: quiet, format: func() int { return present }}
	r.start()
	defer r.stop()
	s := r.createDisk()
	if err := r.rebuild(s.ID); !fault.Is(err, fault.WrongState) {
		t.Errorf("below the format: %v", err)
	}
	present = format.Rebuilds
	if err := r.rebuild(s.ID); err != nil {
		t.Errorf("at the format: %v", err)
	}
	if s = r.settled(s.ID); s.Status() != server.Active || len(r.rebuilds()) != 1 {
		t.Errorf("it is %s, by %q", s.Status(), r.rebuilds())
	}
}

// TestAStoppedServerIsRebuiltStopped: and what cannot be installed is told, and mended by another image.
func TestAStoppedServerIsRebuiltStopped(t *testing.T) {
	r := newRig(t)
	s := r.createDisk()
	_, err := r.engine.Begin(s.ID, server.Stop, r.asked())
	r.check(err)
	r.settled(s.ID)
	r.check(r.rebuild(s.ID))
	if s = r.settled(s.ID); s.Status() != server.Shutoff || fmt.Sprint(r.rebuilds()) != "[SHUTDOWN REINSTALL]" {
		t.Errorf("it is %s (%+v), by %q", s.Status(), s.Trouble(), r.rebuilds())
	}
	_, err = r.engine.Rebuild(s.ID, server.Renewal{Image: server.Image{ID: "x", OS: "nosuch"}}, r.asked(), asIs)
	r.check(err)
	if s = r.settled(s.ID); s.Status() != server.Failed || !strings.Contains(s.Trouble().Text, "nosuch") {
		t.Errorf("by what is not there it is %s (%+v)", s.Status(), s.Trouble())
	}
	r.check(r.rebuild(s.ID))
	if s = r.settled(s.ID); s.Status() != server.Active || s.Image.OS != "noop" {
		t.Errorf("mended it is %s (%+v), of %s", s.Status(), s.Trouble(), s.Image.OS)
	}
}
