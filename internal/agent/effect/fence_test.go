package effect

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// lives is how many nodes TestHistoriesOfANode lives through.
const lives = 5_000

// TestHistoriesOfANode has several controllers give a pretended node orders, while they are paused, killed and followed by others.
// Two never work on one thing, and none that another has followed begins anything.
func TestHistoriesOfANode(t *testing.T) {
	reached := map[string]int{}
	for seed := range uint64(lives) {
		synctest.Test(t, func(t *testing.T) {
			h := &nodeHistory{random: rand.New(rand.NewPCG(seed, 2)), reached: reached}
			if err := h.live(t); err != nil {
				t.Fatalf("history %d: %v", seed, err)
			}
		})
	}
	for _, rare := range []string{"done", "joined", "fenced", "busy", "canceled", "unsure", "killed"} {
		if reached[rare] < lives/100 {
			t.Errorf("%q: only %d times", rare, reached[rare])
		}
	}
	t.Log(reached)
}

type nodeHistory struct {
	random  *rand.Rand
	mu      sync.Mutex
	reached map[string]int
	orders  sync.WaitGroup
	n       *node
}

func (h *nodeHistory) count(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reached[what]++
}

// draw draws a number below n; orders draw at the same time.
func (h *nodeHistory) draw(n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.random.IntN(n)
}

// reign is one controller with the agent in its process.
type reign struct {
	*life

	fence *Fence
	lead  *Lead
	ctx   context.Context //nolint:containedctx // that of all it does
	stop  context.CancelCauseFunc
}

func (h *nodeHistory) begin(t *testing.T, epoch int64) *reign {
	t.Helper()
	r := &reign{life: h.n.newLife(epoch), lead: &Lead{}}
	var err error
	if r.fence, err = Open(Config{Node: "node1", Host: r.life, Lead: r.lead}); err != nil {
		t.Fatal(err)
	}
	r.ctx, r.stop = context.WithCancelCause(context.Background())
	return r
}

func (h *nodeHistory) live(t *testing.T) error {
	t.Helper()
	h.n = newNode(func() time.Duration { return time.Duration(h.draw(8000)) * time.Millisecond }, func() bool { return h.draw(15) == 0 })
	all := []*reign{h.begin(t, 1)}
	for range 40 {
		time.Sleep(time.Duration(h.draw(1000)) * time.Millisecond)
		r := all[len(all)-1-min(h.draw(4), h.draw(4), len(all)-1)] // mostly the newest
		switch h.draw(12) {
		case 0:
			all = append(all, h.begin(t, int64(len(all)+1)))
		case 1:
			r.pause(true)
		case 2:
			r.lead.Extend(time.Now().Add(Margin + time.Duration(h.draw(3000))*time.Millisecond))
		case 3:
			if len(all) > 1 {
				h.killed(r)
			}
		case 4:
			for _, r := range all {
				r.pause(false)
			}
		default:
			h.orders.Go(func() { h.order(r) })
		}
	}
	for _, r := range all {
		r.pause(false)
	}
	h.orders.Wait()
	synctest.Wait()
	pass(time.Minute) // all has ended
	for _, r := range all {
		r.lead.Lose(errDead)
		if len(r.fence.lines) > 0 {
			return fmt.Errorf("%d lines are left", len(r.fence.lines))
		}
	}
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	return h.n.wrong
}

func (h *nodeHistory) killed(r *reign) {
	select {
	case <-r.dead:
	default:
		h.count("killed")
		r.kill()
		r.stop(errDead)
	}
}

// order gives one order and waits for what comes of it.
func (h *nodeHistory) order(r *reign) {
	c := Claim{Order: Order{Epoch: r.epoch, Job: 1}, Of: fmt.Sprint("thing ", h.draw(2)), What: "do it"}
	switch h.draw(3) {
	case 0:
		c.Kind, c.Name = Script, fmt.Sprint("script ", h.draw(1000))
	case 1:
		c.Kind, c.Name = Task, fmt.Sprintf("%s, %d", c.Of, h.draw(2))
	}
	ctx, cancel := context.WithTimeout(r.ctx, time.Duration(1+h.draw(30_000))*time.Millisecond)
	defer cancel()
	err := h.carryOut(ctx, r, c)
	switch {
	case err == nil:
		h.count("done")
	case fault.Is(err, fault.Fenced):
		h.count("fenced")
	case fault.Is(err, fault.Busy):
		h.count("busy")
	case fault.Is(err, fault.Unavailable):
		h.count("unsure")
	default:
		h.count("canceled")
	}
}

func (h *nodeHistory) carryOut(ctx context.Context, r *reign, c Claim) error {
	hold, err := r.fence.Enter(ctx, c)
	if err != nil {
		return err
	}
	defer hold.Leave()
	switch c.Kind {
	case Script:
		_, err := hold.Run(ctx, Command{})
		return err
	case Task:
		p := hold.Joined()
		if p != nil {
			h.count("joined")
		} else if p, err = hold.Begin(Command{}); err != nil {
			return err
		}
		hold.Leave()
		if _, err := p.Wait(ctx); err != nil {
			return r.fence.End(c.Order, p)
		}
		r.fence.Forget(p)
		return nil
	}
	who := fmt.Sprintf("an order of epoch %d", r.epoch)
	if err := r.cross(); err != nil {
		return err
	}
	h.n.mu.Lock()
	h.n.works(c.Of, who)
	h.n.mu.Unlock()
	time.Sleep(time.Duration(h.draw(3000)) * time.Millisecond)
	h.n.mu.Lock()
	h.n.rests(c.Of, who)
	h.n.mu.Unlock()
	return r.cross()
}

// pretended is a node on which effects last for an hour, unless they are ended.
func pretended() *nodeHistory {
	h := &nodeHistory{random: rand.New(rand.NewPCG(1, 1)), reached: map[string]int{}}
	h.n = newNode(func() time.Duration { return time.Hour }, func() bool { return false })
	return h
}

// outcome is how an order ended that was given in the background.
type outcome struct {
	over bool
	err  error
	took time.Duration
}

// give gives an order in the background.
func (h *nodeHistory) give(r *reign, c Claim) *outcome {
	o, begun := new(outcome), time.Now()
	c.Order, c.What = Order{Epoch: r.epoch}, "work on "+c.Of
	go func() {
		err := h.carryOut(r.ctx, r, c)
		h.n.mu.Lock()
		defer h.n.mu.Unlock()
		*o = outcome{true, err, time.Since(begun)}
	}()
	synctest.Wait()
	return o
}

// pass lets time pass, and all that is to happen in it. Who only sleeps has no right to look at what others wrote meanwhile.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestTheLeadEndsScriptsInTime has a controller renew its lease once, and nobody tell it anything. What cannot be joined ends before
// another may lead, and nothing more begins until the lease is renewed.
func TestTheLeadEndsScriptsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := pretended()
		r := h.begin(t, 1)
		const lease = 15 * time.Second
		r.lead.Extend(time.Now().Add(lease))
		pass(5 * time.Second)
		r.lead.Extend(time.Now().Add(lease))
		r.lead.Extend(time.Now()) // what comes late changes nothing
		script, task := h.give(r, Claim{Of: "one", Kind: Script, Name: "script"}), h.give(r, Claim{Of: "two", Kind: Task, Name: "task"})
		pass(time.Minute)
		if want := lease - Margin; !script.over || !fault.Is(script.err, fault.Unavailable) || script.took < want || script.took > want+time.Second {
			t.Errorf("the script: %+v, want its end after %v", *script, want)
		}
		if task.over {
			t.Errorf("the task: %+v", *task)
		}
		if more := h.give(r, Claim{Of: "one", Kind: Script, Name: "script"}); !fault.Is(more.err, fault.Unavailable) || h.n.next != 2 {
			t.Errorf("a script without a lease: %+v, and %d effects were begun", *more, h.n.next)
		}
		r.lead.Extend(time.Now().Add(lease))
		more := h.give(r, Claim{Of: "one", Kind: Script, Name: "script"})
		if more.over {
			t.Errorf("a script under a renewed lease: %+v", *more)
		}
		lost := fault.New(fault.Fenced, "another leads")
		r.lead.Lose(lost)
		pass(time.Second)
		if !more.over || !fault.Is(more.err, fault.Fenced) || task.over {
			t.Errorf("after the lead was lost: %+v, the task %+v", *more, *task)
		}
		r.lead.Extend(time.Now().Add(lease))
		if more := h.give(r, Claim{Of: "one", Kind: Script, Name: "script"}); !fault.Is(more.err, fault.Fenced) {
			t.Errorf("a script after the lead was lost: %+v", *more)
		}
		pass(time.Hour)
	})
}

// TestWhoWaitsForTheLeadIsTold waits for a lead that is sure again, one that is lost, and one that stays as it is.
func TestWhoWaitsForTheLeadIsTold(t *testing.T) {
	lost := fault.New(fault.Fenced, "another leads")
	for what, c := range map[string]struct {
		then func(l *Lead, stop func())
		want fault.Code
	}{
		"sure again": {func(l *Lead, _ func()) { l.Extend(time.Now().Add(time.Hour)) }, ""},
		"lost":       {func(l *Lead, _ func()) { l.Lose(lost) }, fault.Fenced},
		"given up":   {func(_ *Lead, stop func()) { stop() }, fault.Internal},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, told := &Lead{}, make(chan error, 1)
			l.Extend(time.Now())
			ctx, stop := context.WithCancel(t.Context())
			go func() { told <- l.Await(ctx) }()
			pass(time.Minute)
			if len(told) != 0 {
				t.Fatalf("%s: nobody waits: %v", what, <-told)
			}
			c.then(l, stop)
			synctest.Wait()
			if len(told) != 1 {
				t.Errorf("%s: who waits is not told", what)
			} else if err := <-told; fault.CodeOf(err) != c.want {
				t.Errorf("%s: %v", what, err)
			}
			stop()
			synctest.Wait()
		})
	}
}

// TestTasksAreJoinedAndEnded has the next leader order the same step of a deployment, and then another attempt at it.
func TestTasksAreJoinedAndEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := pretended()
		first, second, third := h.begin(t, 1), h.begin(t, 2), h.begin(t, 3)
		former := h.give(first, Claim{Of: "step", Kind: Task, Name: "attempt 1"})
		joined := h.give(second, Claim{Of: "step", Kind: Task, Name: "attempt 1"})
		if h.n.next != 1 || joined.over || former.over {
			t.Fatalf("%d effects; %+v, %+v", h.n.next, *former, *joined)
		}
		first.stop(errDead) // it was told to end the task, and does not know that another has it
		synctest.Wait()
		if !fault.Is(former.err, fault.Fenced) || joined.over {
			t.Errorf("the former leader ended a task that another has joined: %+v, %+v", *former, *joined)
		}
		other := h.give(third, Claim{Of: "step", Kind: Task, Name: "attempt 2"})
		pass(time.Second)
		if h.n.next != 2 || other.over || !joined.over {
			t.Errorf("%d effects; %+v, %+v", h.n.next, *joined, *other)
		}
		third.stop(errDead)
		pass(time.Second)
		if !other.over || other.took > 10*time.Second || len(h.n.notes) != 0 {
			t.Errorf("a task that its own leader ends: %+v, noted %v", *other, h.n.notes)
		}
		pass(time.Hour)
	})
}

// TestACanceledScriptIsEnded at once, and not only when something else is to happen to its thing.
func TestACanceledScriptIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := pretended()
		r := h.begin(t, 1)
		script := h.give(r, Claim{Of: "one", Kind: Script, Name: "script"})
		pass(time.Minute)
		r.stop(errDead)
		pass(time.Second)
		if len(h.n.working) > 0 || len(h.n.notes) > 0 || !script.over {
			t.Errorf("%v work on, noted %v; %+v", h.n.working, h.n.notes, *script)
		}
		pass(time.Hour)
	})
}

// TestWhoCannotBeEndedIsNamed has an effect stand in the way that does not end when it is told to.
func TestWhoCannotBeEndedIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := pretended()
		h.n.stubborn = func() bool { return true }
		former, newer := h.begin(t, 1), h.begin(t, 2)
		h.give(former, Claim{Of: "one", Kind: Script, Name: "script 1"})
		begun := time.Now()
		_, err := newer.fence.Enter(newer.ctx, Claim{Order: Order{Epoch: 2}, Of: "one", What: "start one"})
		if !fault.Is(err, fault.Busy) || !strings.Contains(err.Error(), "process 1") || !strings.Contains(err.Error(), "script 1 (script of epoch 1)") {
			t.Errorf("what cannot be ended: %v", err)
		}
		if waited := time.Since(begun); waited != patience {
			t.Errorf("it was awaited for %v", waited)
		}
		if other, err := newer.fence.Enter(newer.ctx, Claim{Order: Order{Epoch: 2}, Of: "two", What: "start two"}); err != nil {
			t.Errorf("another thing: %v", err)
		} else {
			other.Leave()
		}
		pass(2 * time.Hour)
	})
}

// TestTheFirstOrderEndsWhatIsLeft also on things that it is not about.
func TestTheFirstOrderEndsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := pretended()
		former, newer := h.begin(t, 1), h.begin(t, 2)
		script, task := h.give(former, Claim{Of: "one", Kind: Script, Name: "script"}), h.give(former, Claim{Of: "two", Kind: Task, Name: "task"})
		if err := newer.fence.Check(newer.ctx, Claim{Order: Order{Epoch: 2}, What: "look"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if !script.over || !fault.Is(script.err, fault.Fenced) || task.over {
			t.Errorf("the script of the former leader %+v, the task %+v", *script, *task)
		}
		if err := former.fence.Check(former.ctx, Claim{Order: Order{Epoch: 1}, What: "look"}); !fault.Is(err, fault.Fenced) {
			t.Errorf("a look of the former leader: %v", err)
		}
		pass(2 * time.Hour)
	})
}
