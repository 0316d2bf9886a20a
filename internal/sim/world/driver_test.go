package world

import (
	"context"
	"hash/fnv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/agent/effect"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/hypervisor/hypertest"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/sim/check"
	"github.com/drover-project/drover/internal/sim/plan"
)

// bare is a world with one node and no controller.
func bare(dir string) *world {
	w := &world{Options: Options{Dir: dir, Reached: new(check.Reached)}, plan: plan.Plan{}, streams: plan.NewStreams(1), begun: time.Now(), hash: fnv.New64a(),
		crossed: map[plan.Port]int{}, acted: map[string]job.ID{}, begins: map[string]int{}}
	w.verdict = &check.Verdict{Since: w.since}
	w.effects = check.NewEffects(w.verdict)
	w.nodes = []*node{newNode(w, 0)}
	return w
}

// born is a life of a controller that does nothing.
func (w *world) born(name string) *life {
	p := newProcess(w, name)
	l := &life{process: p, id: name + ".1", dead: make(chan struct{}), over: make(chan struct{})}
	l.ctx, l.stop = context.WithCancel(context.Background())
	p.now = l
	w.procs = append(w.procs, p)
	return l
}

// TestConformanceOfDriver: what a node does without a hypervisor is what a hypervisor does.
func TestConformanceOfDriver(t *testing.T) {
	var mu sync.Mutex
	nodes := map[string]*node{}
	hypertest.Run(t, func(t *testing.T, dir string) hypervisor.Driver {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if nodes[dir] == nil {
			nodes[dir] = bare(dir).nodes[0]
		}
		n := nodes[dir]
		n.w.effects = check.NewEffects(n.w.verdict) // agents keep orders about one instance apart
		return driver{n, n.w.born("c1"), 1}
	})
}

// TestAProcessThatDies loses its holds and its scripts, and reaches nothing any more; one
// that stands still loses nothing, and does nothing.
func TestAProcessThatDies(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := bare(dir)
		a, b := w.born("c1"), w.born("c2")
		mine, its := host{w.nodes[0], a, nil}, host{w.nodes[0], b, nil}
		p, err := mine.Begin(effect.Effect{Name: "script", Of: "x", Kind: effect.Script, Epoch: 1}, effect.Command{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := mine.Hold(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		a.suffer(plan.Fault{Do: plan.Pause})
		limit, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := its.Hold(limit, "x"); !fault.Is(err, fault.Busy) {
			t.Errorf("what one that stands still holds is had: %v", err)
		}
		noted := make(chan error, 1)
		go func() { noted <- mine.Note(effect.Effect{Of: "y"}) }()
		synctest.Wait()
		if len(noted) > 0 || len(w.nodes[0].noted) != 1 {
			t.Error("one that stands still wrote something")
		}
		a.kill()
		if release, err := its.Hold(t.Context(), "x"); err != nil {
			t.Errorf("what a dead one held is not free: %v", err)
		} else {
			release()
		}
		if err := <-noted; err == nil || len(w.nodes[0].noted) != 1 {
			t.Errorf("a dead one wrote something: %v", err)
		}
		if exit, err := p.Wait(t.Context()); err != nil || exit.Known {
			t.Errorf("its script ended with %+v, %v", exit, err)
		}
		if left := w.effects.Left(); len(left) > 0 || len(w.verdict.Broken()) > 0 {
			t.Errorf("%v are left, %v", left, w.verdict.Broken())
		}
	})
}

// TestWhatAProcessDoesEndsWithIt: what a dead one's hypervisor did is over in the instant of its
// death, in which another may begin.
func TestWhatAProcessDoesEndsWithIt(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := bare(dir)
		mine, its := driver{w.nodes[0], w.born("c1"), 1}, driver{w.nodes[0], w.born("c2"), 2}
		of := hypervisor.Thing{UUID: "6c3c9b0e-4f5a-4c1e-9d2a-000000000001", Name: "web1.example"}
		prepared := make(chan error, 1)
		go func() {
			_, err := mine.Prepare(t.Context(), of, hypervisor.Mark{}, nil)
			prepared <- err
		}()
		synctest.Wait()
		if left := w.effects.Left(); len(left) != 1 {
			t.Fatalf("%v works", left)
		}
		mine.life.kill()
		if _, err := its.Prepare(t.Context(), of, hypervisor.Mark{}, nil); err != nil {
			t.Errorf("the next one: %v", err)
		}
		if err := <-prepared; err == nil {
			t.Error("a dead one prepared something")
		}
		if left := w.effects.Left(); len(left) > 0 || len(w.verdict.Broken()) > 0 {
			t.Errorf("%v are left, %v", left, w.verdict.Broken())
		}
	})
}

// TestWhatIsFencedDoesNotBegin: a process that was to begin for a leader whom another has
// followed meanwhile does not.
func TestWhatIsFencedDoesNotBegin(t *testing.T) {
	w := bare(t.TempDir())
	h := host{w.nodes[0], w.born("c1"), nil}
	if err := h.Follow(2); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Begin(effect.Effect{Name: "script", Of: "x", Kind: effect.Script, Epoch: 1}, effect.Command{}); !fault.Is(err, fault.Fenced) || w.effects.Begun() > 0 {
		t.Errorf("it begins: %v", err)
	}
	if err := h.Follow(1); err != nil || len(w.verdict.Broken()) != 1 {
		t.Errorf("that a node goes back is not noticed: %v, %v", err, w.verdict.Broken())
	}
}

// TestWhatCannotBeReached: a message over a line that is cut is an error at once, or after
// a silence, and arrives when the line is whole again.
func TestWhatCannotBeReached(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := bare(dir)
		l := w.born("c1")
		for _, tc := range []struct {
			cut  plan.Kind
			lost bool
			took time.Duration
		}{{plan.Reset, true, time.Millisecond}, {plan.Silence, true, keepAlive}, {plan.Slow, false, 501 * time.Millisecond}} {
			heal := l.suffer(plan.Fault{Do: tc.cut})
			begun := time.Now()
			if err := l.Cross(t.Context(), "read"); (err != nil) != tc.lost || time.Since(begun) > tc.took {
				t.Errorf("%s: %v after %v", tc.cut, err, time.Since(begun))
			}
			time.AfterFunc(time.Second, heal)
			time.Sleep(2 * time.Second)
			if err := l.Cross(t.Context(), "read"); err != nil {
				t.Errorf("%s, and whole again: %v", tc.cut, err)
			}
		}
	})
}
