package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/hypervisor/fake"
)

// reporting returns an agent on the clock of the test whose driver calls hook
// whenever it is asked for its state.
func reporting(t *testing.T, hook func() error) *Agent {
	t.Helper()
	return reportingTo(t, hook, nil)
}

// reportingTo calls told as well when something new is reported.
func reportingTo(t *testing.T, hook func() error, told func()) *Agent {
	t.Helper()
	dir := t.TempDir()
	driver, err := fake.Open(fake.Config{Dir: filepath.Join(dir, "fake"), Fault: func(c fake.Call) error {
		if c.Method == "node" && !c.After {
			return hook()
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(Config{Node: "node1", Dir: dir, Driver: driver, Told: told})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func stateOf(t *testing.T, a *Agent, fresh bool) State {
	t.Helper()
	s, err := a.State(t.Context(), fresh)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStateIsAskedOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		a := reporting(t, func() error { asked.Add(1); return nil })
		check := func(when string, want int64) {
			t.Helper()
			if got := asked.Load(); got != want {
				t.Errorf("%s: asked %d times, want %d", when, got, want)
			}
		}
		synctest.Wait()
		for range 100 {
			stateOf(t, a, false)
		}
		check("opened", 1)
		stateOf(t, a, true)
		check("fresh", 2)
		<-time.After(heartbeat + time.Second)
		check("after a heartbeat", 3)
		if age := time.Since(stateOf(t, a, false).At); age > heartbeat {
			t.Errorf("the state is %v old", age)
		}
		check("read after a heartbeat", 3)
	})
}

func TestStateKnowsTheOwnChanges(t *testing.T) {
	a := reporting(t, func() error { return nil })
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			spec := hypervisor.Spec{Name: fmt.Sprint("i", n), UUID: fmt.Sprint("u", n), Memory: 64}
			for range 20 {
				if err := a.Start(t.Context(), Order{}, spec, nil); err != nil {
					t.Error(err)
				}
				if got := stateIn(t, a, spec.Name); got != hypervisor.Running {
					t.Errorf("%s is %q after its start", spec.Name, got)
				}
				if err := a.Stop(t.Context(), Order{}, spec.Thing(), hypervisor.Stop{Force: true}, nil); err != nil {
					t.Error(err)
				}
				if got := stateIn(t, a, spec.Name); got != hypervisor.Stopped {
					t.Errorf("%s is %q after its stop", spec.Name, got)
				}
			}
		})
	}
	all.Wait()
}

// TestAStateIsAsOldAsItsQuestion has a change end while the driver, which has looked before it, still owes its answer.
func TestAStateIsAsOldAsItsQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		dir := t.TempDir()
		driver, err := fake.Open(fake.Config{Dir: filepath.Join(dir, "fake"), Fault: func(c fake.Call) error {
			if c.Method == "instances" && c.After {
				<-answer
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := New(Config{Node: "node1", Dir: dir, Driver: driver})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close() //nolint:errcheck // it ends the reports
		synctest.Wait()
		if err := a.Start(t.Context(), Order{}, hypervisor.Spec{UUID: "uuid", Name: "one", Memory: 64}, nil); err != nil {
			t.Fatal(err)
		}
		close(answer)
		synctest.Wait()
		if got := stateIn(t, a, "one"); got != hypervisor.Running {
			t.Errorf("the instance is %q after its start", got)
		}
	})
}

func stateIn(t *testing.T, a *Agent, name string) hypervisor.State {
	s, err := a.State(t.Context(), false)
	if err != nil {
		t.Error(err)
	}
	for _, i := range s.Instances {
		if i.Name == name {
			return i.State
		}
	}
	return ""
}

func TestChangesAreReportedUnasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		a := reporting(t, func() error { asked.Add(1); return nil })
		synctest.Wait()
		for n := range 50 {
			if err := a.Prepare(t.Context(), Order{}, hypervisor.Thing{UUID: fmt.Sprint("u", n), Name: fmt.Sprint("i", n)}, nil); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(3 * gather) // changes may be gathered twice: before and behind the first report
		synctest.Wait()
		if got := asked.Load(); got < 2 || got > 3 {
			t.Errorf("asked %d times for 50 changes of a moment", got)
		}
		before := asked.Load()
		stateOf(t, a, false)
		if asked.Load() != before {
			t.Error("the state of after the changes was not there")
		}
	})
}

func TestADriverThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		a := reporting(t, func() error { <-release; return nil })
		began := time.Now()
		if s := stateOf(t, a, false); !fault.Is(s.Err, fault.Unavailable) || time.Since(began) != answerTime {
			t.Errorf("got %v after %v", s.Err, time.Since(began))
		}
		// It is known to hang, so nobody waits for it again.
		began = time.Now()
		for _, fresh := range []bool{false, true, true} {
			if s := stateOf(t, a, fresh); s.Err == nil || time.Since(began) != 0 {
				t.Errorf("fresh %v: got %v after %v", fresh, s.Err, time.Since(began))
			}
		}
		close(release)
		<-time.After(2 * gather)
		if s := stateOf(t, a, false); s.Err != nil || s.Node.CPUs == 0 {
			t.Errorf("answering again: %+v", s)
		}
	})
}

func TestStateEndsWithItsContextAndItsAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		a := reporting(t, func() error { <-release; return errors.New("broken") })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.State(ctx, false); !fault.Is(err, fault.Unavailable) {
			t.Errorf("context: %v", err)
		}
		close(release)
		if s := stateOf(t, a, false); s.Err == nil {
			t.Error("a broken driver told its state")
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := a.State(t.Context(), true); !fault.Is(err, fault.Unavailable) {
			t.Errorf("closed: %v", err)
		}
	})
}

// TestOldStateIsNotHandedOut lets the clock go on without the heartbeat, as it
// does when the driver hangs.
func TestOldStateIsNotHandedOut(t *testing.T) {
	var clock atomic.Int64
	dir := t.TempDir()
	driver, err := fake.Open(fake.Config{Dir: filepath.Join(dir, "fake")})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(Config{Node: "node1", Dir: dir, Driver: driver, Now: func() time.Time { return time.Unix(0, clock.Load()) }})
	if err != nil {
		t.Fatal(err)
	}
	first := stateOf(t, a, true)
	clock.Add(int64(maxAge))
	if got := stateOf(t, a, false); !got.At.Equal(first.At) {
		t.Errorf("a state of age %v was asked for anew", maxAge)
	}
	clock.Add(1)
	if got := stateOf(t, a, false); got.At.Equal(first.At) {
		t.Errorf("a state older than %v was handed out", maxAge)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// selfish is a driver whose instances change by themselves.
type selfish struct {
	hypervisor.Driver
	changed func()
}

func (s *selfish) Watch(changed func()) { s.changed = changed }

func TestWhatChangesByItselfIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		pretended, err := fake.Open(fake.Config{Dir: filepath.Join(dir, "fake")})
		if err != nil {
			t.Fatal(err)
		}
		driver := &selfish{Driver: pretended}
		a, err := New(Config{Node: "node1", Dir: dir, Driver: driver})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = a.Close() }()
		if s := stateOf(t, a, false); len(s.Instances) != 0 {
			t.Fatalf("a new node has %+v", s.Instances)
		}
		if _, err := pretended.Start(t.Context(), hypervisor.Spec{Name: "one", UUID: "u"}); err != nil { // without the agent
			t.Fatal(err)
		}
		driver.changed()
		if s := stateOf(t, a, false); len(s.Instances) != 1 {
			t.Errorf("what has changed by itself is not told: %+v", s.Instances)
		}
	})
}

// TestNextTellsWhatIsNew waits for the next report of a number: at once for none, behind a change in time, and never the same twice.
func TestNextTellsWhatIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int64
		a := reportingTo(t, func() error { return nil }, func() { told.Add(1) })
		next := func(after uint64) State {
			t.Helper()
			s, err := a.Next(t.Context(), after)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		first := next(0)
		begun := time.Now()
		a.reporter.changed()
		second := next(first.Number)
		if took := time.Since(begun); took > gather || second.Number == first.Number || !second.Shows(&first) {
			t.Errorf("behind a change the next report came after %v: %+v behind %+v", took, second, first)
		}
		begun = time.Now()
		if third := next(second.Number); third.Number == second.Number || time.Since(begun) > heartbeat {
			t.Errorf("without one it came after %v: %+v", time.Since(begun), third)
		}
		before := told.Load()
		a.reporter.publish(State{Instances: []hypervisor.Instance{{Name: "web1", State: hypervisor.Running}}})
		a.reporter.publish(State{Instances: []hypervisor.Instance{{Name: "web1", State: hypervisor.Running}}})
		a.reporter.publish(State{Instances: []hypervisor.Instance{{Name: "web1", EndedItself: true}}})
		if told := told.Load() - before; told != 2 {
			t.Errorf("of two changes of instances %d were told", told)
		}
	})
}
