package world

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover/internal/agent/effect"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/sim/check"
)

// node is a machine: what runs on it, what its agents keep, its hypervisor. Each life of
// a controller has an agent of its own on it, which sees it as a host.
type node struct {
	w         *world
	name, dir string

	mu      sync.Mutex
	follows int64
	noted   map[string]effect.Effect
	procs   map[int]*proc
	held    map[string]holding
	changed chan struct{} // closed and replaced when a hold is given up
	pids    int
	// machines are the instances that the hypervisor knows, by UUID.
	machines map[string]hypervisor.Instance
	// started are with what they were started last, by UUID.
	started map[string]hypervisor.Spec
	acting  map[*acting]bool
}

// holding is who holds a thing, and whom the node followed when that began.
type holding struct {
	by      *life
	follows int64
}

// acting is what a life's hypervisor does.
type acting struct {
	by    *life
	ended func()
}

// system is the operating system whose creation script installs instances.
const system = "pretended"

func newNode(w *world, i int) *node {
	n := &node{w: w, name: fmt.Sprintf("node%d", i+1), noted: map[string]effect.Effect{}, procs: map[int]*proc{}, held: map[string]holding{}, acting: map[*acting]bool{},
		changed: make(chan struct{}), machines: map[string]hypervisor.Instance{}, started: map[string]hypervisor.Spec{}}
	n.dir = filepath.Join(w.Dir, n.full())
	if err := n.install(); err != nil {
		panic(err) // the directory cannot be used
	}
	return n
}

// full is the name that the inventory has.
func (n *node) full() string { return n.name + ".example" }

// install empties the agent's directory and puts an operating system into it.
func (n *node) install() error {
	for _, dir := range []string{"instance-reason", "tasks"} {
		if err := os.RemoveAll(filepath.Join(n.dir, dir)); err != nil {
			return err
		}
	}
	dir := filepath.Join(n.dir, "os", system)
	if _, err := os.Stat(dir); err == nil {
		return nil // of an earlier history
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	for name, text := range map[string]string{"ganeti_api_version": "20\n", "variants.list": "default\n", "create": "#!/bin/sh\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// died has a life lose what a process loses with its life: what it does by itself, its holds,
// and its scripts. What it does is over before its holds are another's.
func (n *node) died(l *life) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for a := range n.acting {
		if a.by == l {
			a.ended()
		}
	}
	for of, by := range n.held {
		if by.by == l {
			delete(n.held, of)
		}
	}
	n.wake()
	for _, p := range n.procs {
		if p.by == l && p.effect.Kind == effect.Script {
			p.kill()
		}
	}
}

// wake wakes those who wait for a hold. The caller holds the mutex.
func (n *node) wake() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// host is a node as the agent of one life sees it in a term. It implements effect.Host.
type host struct {
	*node
	life *life
	term *term
}

// do lets the life look at the node, or change it.
func (h host) do(act func()) error {
	if err := h.life.gate(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	act()
	return nil
}

// Hold implements effect.Host.
func (h host) Hold(ctx context.Context, of string) (release func(), err error) {
	for {
		var by *life
		var changed <-chan struct{}
		if err := h.do(func() {
			if by, changed = h.held[of].by, h.changed; by == nil {
				h.held[of] = holding{h.life, h.follows}
			}
		}); err != nil {
			return nil, err
		}
		if by == nil {
			return func() { h.release(of) }, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fault.New(fault.Busy, "%s is held by %s", of, by.id)
		}
	}
}

func (h host) release(of string) {
	_ = h.do(func() { // who is dead has lost it already
		if h.held[of].by == h.life {
			delete(h.held, of)
			h.wake()
		}
	})
}

// Follows implements effect.Host.
func (h host) Follows() (epoch int64, err error) {
	err = h.do(func() { epoch = h.follows })
	return epoch, err
}

// Follow implements effect.Host.
func (h host) Follow(epoch int64) error {
	var was int64
	err := h.do(func() { was, h.follows = h.follows, epoch })
	if err != nil {
		return err
	}
	if was >= epoch {
		h.w.verdict.Breakf(check.OldEpoch, "%s follows epoch %d after %d", h.name, epoch, was)
	}
	h.w.tellf(h.name, "follows epoch %d", epoch)
	return nil
}

// Noted implements effect.Host.
func (h host) Noted(of string) (e *effect.Effect, err error) {
	err = h.do(func() {
		if noted, there := h.noted[of]; there {
			e = &noted
		}
	})
	return e, err
}

// All implements effect.Host.
func (h host) All() (all []effect.Effect, err error) {
	err = h.do(func() {
		for _, e := range h.noted {
			all = append(all, e)
		}
	})
	slices.SortFunc(all, func(a, b effect.Effect) int { return a.Group.PID - b.Group.PID })
	return all, err
}

// Note implements effect.Host.
func (h host) Note(e effect.Effect) error { return h.do(func() { h.noted[e.Of] = e }) }

// Forget implements effect.Host.
func (h host) Forget(e effect.Effect) error { return h.do(func() { delete(h.noted, e.Of) }) }

// Begin implements effect.Host: a process that waits is noted, and goes on only if the node
// follows nobody newer by then.
func (h host) Begin(e effect.Effect, c effect.Command) (effect.Process, error) {
	if e.Files == "" {
		e.Files = c.Files
	}
	if err := empty(c.Log); err != nil {
		return nil, err
	}
	p := &proc{node: h.node, by: h.life, told: make(chan struct{}), gone: make(chan struct{}), longer: make(chan time.Duration, 1)}
	if err := h.do(func() {
		h.pids++
		e.Group = effect.Group{PID: h.pids}
		p.effect = e
		h.noted[e.Of], h.procs[e.Group.PID] = e, p
	}); err != nil {
		return nil, err
	}
	follows, err := h.Follows()
	switch {
	case err != nil: // the one who waits sees that nobody will tell it to go on
		p.leave(effect.Exit{})
		return nil, err
	case follows > e.Epoch:
		p.leave(effect.Exit{})
		return nil, fault.New(fault.Fenced, "the node follows epoch %d", follows)
	}
	h.begin(e)
	var id job.ID
	if _, err := fmt.Sscanf(e.Name, "job %d,", &id); err == nil {
		h.term.acts(id, strings.TrimPrefix(e.Of, "instance "))
	}
	p.begun = time.Now()
	p.ended = h.w.effects.Works(check.Effect{Node: h.name, Of: e.Of, What: e.Name, Owner: h.life.id, Epoch: e.Epoch, Followed: follows})
	h.w.tell(Event{Lane: h.name, Mark: Opens, Bar: p.bar(), Text: fmt.Sprintf("%s begins, for %s under epoch %d", e.Name, h.life.id, e.Epoch)})
	longest := 20 * time.Second
	if e.Kind == effect.Task {
		longest = 2 * time.Second
	}
	go p.run(h.w.streams.Between("script/"+e.Of, time.Second, longest), h.w.streams.IntN("script/"+e.Of, 10))
	return p, nil
}

// empty makes the file that a command writes into; an empty name is none.
func empty(name string) error {
	if name == "" {
		return nil
	}
	return os.WriteFile(name, nil, 0o600)
}

// begin counts that an effect begins, under whom. Nothing is installed on what runs.
func (h host) begin(e effect.Effect) {
	h.w.countBegin(e, 1)
	_, uuid, installs := strings.Cut(e.Name, ": install ")
	h.mu.Lock()
	runs := h.machines[uuid].Active()
	h.mu.Unlock()
	if installs && runs {
		h.w.verdict.Breakf(check.RunOnce, "%s begins while it runs", e.Name)
	}
}

// countBegin counts how often an effect was begun under a leader. One that was told to end before its time does not count: a leader that was
// not sure that it leads ends what it began, and begins it anew when it is.
func (w *world) countBegin(e effect.Effect, times int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begins[fmt.Sprintf("%s under epoch %d", e.Name, e.Epoch)] += times
}

// Find implements effect.Host.
func (h host) Find(e effect.Effect) effect.Process {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.procs[e.Group.PID]
}

// proc is the process of an effect.
type proc struct {
	node   *node
	by     *life
	effect effect.Effect
	begun  time.Time
	ended  func() // of the ledger
	once   sync.Once
	told   chan struct{} // closed when it is to end
	gone   chan struct{} // closed when it has
	exit   effect.Exit
	// orphan: who waited for the end of the command is dead, so nobody will write down
	// how it ended. The command goes on, and its lock is held.
	orphan atomic.Bool
	longer chan time.Duration // how much longer it lasts
}

func (p *proc) bar() string { return fmt.Sprintf("%s/%d", p.effect.Of, p.effect.Group.PID) }

// run is what the process does: it works for some time. One of ten fails, and one needs a
// while to end when it is told to.
func (p *proc) run(lasts time.Duration, odds int) {
	timer := time.NewTimer(lasts)
	defer timer.Stop()
	exit := effect.Exit{Known: true}
	if odds == 0 {
		exit.Status = 1
	}
	for going := true; going; {
		select {
		case <-timer.C:
			going = false
		case more := <-p.longer:
			timer.Reset(more)
		case <-p.told:
			going, exit = false, effect.Exit{}
			p.node.w.countBegin(p.effect, -1)
			if odds == 1 {
				time.Sleep(3 * time.Second)
			}
		}
	}
	if p.orphan.Load() {
		exit = effect.Exit{}
	}
	p.write(exit)
	p.ended()
	p.node.w.tell(Event{Lane: p.node.name, Mark: Closes, Bar: p.bar(), Text: p.effect.Name + " ends"})
	p.leave(exit)
}

// write writes down how a task ended, where the next agent looks for it.
func (p *proc) write(exit effect.Exit) {
	if files := p.effect.Files; p.effect.Kind == effect.Task && exit.Known {
		for name, text := range map[string]string{files: strconv.Itoa(exit.Status) + "\n", effect.AllWritten(files): ""} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				panic(err) // the directory cannot be used
			}
		}
	}
}

// orphan kills what waits for the end of the tasks that run. Their commands go on for a
// while.
func (w *world) orphan(longer time.Duration) (heal func()) {
	for _, n := range w.nodes {
		n.mu.Lock()
		for _, pid := range slices.Sorted(maps.Keys(n.procs)) {
			p := n.procs[pid]
			if _, ended := p.Ended(); ended || p.effect.Kind != effect.Task || p.orphan.Swap(true) {
				continue
			}
			w.Reached.Add("a command of a task is an orphan")
			select {
			case p.longer <- longer:
			default: // it is just ending
			}
		}
		n.mu.Unlock()
	}
	return nil
}

func (p *proc) leave(exit effect.Exit) {
	p.exit = exit
	close(p.gone)
}

// kill tells the process to end.
func (p *proc) kill() { p.once.Do(func() { close(p.told) }) }

// Effect implements effect.Process.
func (p *proc) Effect() effect.Effect { return p.effect }

// Ended implements effect.Process.
func (p *proc) Ended() (effect.Exit, bool) {
	select {
	case <-p.gone:
		return p.exit, true
	default:
		return effect.Exit{}, false
	}
}

// Wait implements effect.Process.
func (p *proc) Wait(ctx context.Context) (effect.Exit, error) {
	select {
	case <-p.gone:
		return p.exit, nil
	case <-ctx.Done():
		return effect.Exit{}, context.Cause(ctx)
	}
}

// Kill implements effect.Process.
func (p *proc) Kill() { p.kill() }

// Holders implements effect.Process.
func (p *proc) Holders() string { return fmt.Sprintf("process %d", p.effect.Group.PID) }

// Age implements effect.Process.
func (p *proc) Age() time.Duration { return time.Since(p.begun) }
