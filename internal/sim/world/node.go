package world

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
	// machines are the instances that the hypervisor knows.
	machines map[string]hypervisor.Instance
}

// holding is who holds a thing, and whom the node followed when that began.
type holding struct {
	by      *life
	follows int64
}

// system is the operating system whose creation script installs instances.
const system = "pretended"

func newNode(w *world, i int) *node {
	n := &node{w: w, name: fmt.Sprintf("node%d", i+1), noted: map[string]effect.Effect{}, procs: map[int]*proc{}, held: map[string]holding{},
		changed: make(chan struct{}), machines: map[string]hypervisor.Instance{}}
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
	if err := os.RemoveAll(filepath.Join(n.dir, "instance-reason")); err != nil {
		return err
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

// died has a life lose what a process loses with its life: its holds, and its scripts.
func (n *node) died(l *life) {
	n.mu.Lock()
	defer n.mu.Unlock()
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
func (h host) Begin(e effect.Effect, _ effect.Command) (effect.Process, error) {
	p := &proc{node: h.node, by: h.life, told: make(chan struct{}), gone: make(chan struct{})}
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
	h.w.begin(e.Name)
	var id job.ID
	if _, err := fmt.Sscanf(e.Name, "job %d,", &id); err == nil {
		h.term.acts(id, strings.TrimPrefix(e.Of, "instance "))
	}
	p.begun = time.Now()
	p.ended = h.w.effects.Works(check.Effect{Node: h.name, Of: e.Of, What: e.Name, Owner: h.life.id, Epoch: e.Epoch, Followed: follows})
	h.w.tell(Event{Lane: h.name, Mark: Opens, Bar: p.bar(), Text: fmt.Sprintf("%s begins, for %s under epoch %d", e.Name, h.life.id, e.Epoch)})
	go p.run(h.w.streams.Between("script/"+e.Of, time.Second, 20*time.Second), h.w.streams.IntN("script/"+e.Of, 10))
	return p, nil
}

// begin counts that an effect begins.
func (w *world) begin(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begins[name]++
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
	select {
	case <-timer.C:
	case <-p.told:
		exit = effect.Exit{}
		if odds == 1 {
			time.Sleep(3 * time.Second)
		}
	}
	p.ended()
	p.node.w.tell(Event{Lane: p.node.name, Mark: Closes, Bar: p.bar(), Text: p.effect.Name + " ends"})
	p.leave(exit)
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
