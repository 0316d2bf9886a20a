package effect

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// node is a pretended node that several agents share, and that notices when two work on one thing.
type node struct {
	mu      sync.Mutex
	follows int64
	notes   map[string]Effect
	procs   map[int]*proc
	holds   map[string]*life
	working map[string]string // by thing, who works on it
	next    int
	wrong   error
	reached map[string]int
	// lasts is how long an effect lasts, and stubborn whether it ends when it is told to.
	lasts    func() time.Duration
	stubborn func() bool
}

func newNode(lasts func() time.Duration, stubborn func() bool) *node {
	return &node{notes: map[string]Effect{}, procs: map[int]*proc{}, holds: map[string]*life{}, working: map[string]string{}, reached: map[string]int{},
		lasts: lasts, stubborn: stubborn}
}

// works notes that somebody works on a thing from now on. The caller holds mu.
func (n *node) works(of, who string) {
	if other := n.working[of]; other != "" && n.wrong == nil {
		n.wrong = fmt.Errorf("%s: %s begins while %s works on it", of, who, other)
	}
	n.working[of] = who
}

func (n *node) rests(of, who string) {
	if n.working[of] == who {
		delete(n.working, of)
	}
}

// life is one life of an agent on the node: its host.
type life struct {
	*node

	epoch int64
	dead  chan struct{}

	gate    sync.Mutex
	resumed chan struct{} // nil while it is not paused
}

func (n *node) newLife(epoch int64) *life {
	return &life{node: n, epoch: epoch, dead: make(chan struct{})}
}

var errDead = errors.New("this life is over")

// cross is what each call comes through: a paused life rests there, and one that is dead comes no further.
func (l *life) cross() error {
	for {
		l.gate.Lock()
		resumed := l.resumed
		l.gate.Unlock()
		select {
		case <-l.dead:
			return errDead
		default:
		}
		if resumed == nil {
			return nil
		}
		select {
		case <-resumed:
		case <-l.dead:
		}
	}
}

func (l *life) pause(on bool) {
	l.gate.Lock()
	defer l.gate.Unlock()
	if on && l.resumed == nil {
		l.resumed = make(chan struct{})
	} else if !on && l.resumed != nil {
		close(l.resumed)
		l.resumed = nil
	}
}

// kill ends the life as kill -9 would.
func (l *life) kill() {
	close(l.dead)
	l.mu.Lock()
	defer l.mu.Unlock()
	for of, who := range l.holds {
		if who == l {
			delete(l.holds, of)
			l.rests(of, fmt.Sprintf("an order of epoch %d", l.epoch))
		}
	}
	for _, p := range l.procs {
		if p.by == l && p.effect.Kind == Script {
			p.kill()
		}
	}
}

func (l *life) Hold(ctx context.Context, of string) (func(), error) {
	for {
		if err := l.cross(); err != nil {
			return nil, err
		}
		l.mu.Lock()
		free := l.holds[of] == nil
		if free {
			l.holds[of] = l
		}
		l.mu.Unlock()
		if free {
			return func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				if l.holds[of] == l {
					delete(l.holds, of)
				}
			}, nil
		}
		select {
		case <-ctx.Done():
			return nil, fault.New(fault.Busy, "%s is held by another life", of)
		case <-time.After(again):
		}
	}
}

func (l *life) Follows() (int64, error) {
	if err := l.cross(); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.follows, nil
}

func (l *life) Follow(epoch int64) error {
	if err := l.cross(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if epoch <= l.follows && l.wrong == nil {
		l.wrong = fmt.Errorf("the node followed epoch %d, and now follows %d", l.follows, epoch)
	}
	l.follows = epoch
	return nil
}

func (l *life) Noted(of string) (*Effect, error) {
	if err := l.cross(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.notes[of]; ok {
		return &e, nil
	}
	return nil, nil
}

func (l *life) All() (all []Effect, err error) {
	if err := l.cross(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.notes {
		all = append(all, e)
	}
	return all, nil
}

func (l *life) Note(e Effect) error {
	if err := l.cross(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes[e.Of] = e
	return nil
}

func (l *life) Forget(e Effect) error {
	if err := l.cross(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.notes, e.Of)
	return nil
}

func (l *life) Begin(e Effect, _ Command) (Process, error) {
	if err := l.cross(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Epoch < l.follows {
		return nil, fault.New(fault.Fenced, "the node follows epoch %d", l.follows)
	}
	l.next++
	e.Group = Group{PID: l.next}
	p := &proc{node: l.node, by: l, effect: e, told: make(chan struct{}), gone: make(chan struct{})}
	l.notes[e.Of] = e
	l.procs[l.next] = p
	l.works(e.Of, e.Name)
	go p.run(l.lasts(), l.stubborn())
	return p, nil
}

func (l *life) Find(e Effect) Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.procs[e.Group.PID]
}

// proc is an effect that runs on the node.
type proc struct {
	node   *node
	by     *life
	effect Effect
	told   chan struct{}
	once   sync.Once
	gone   chan struct{}
	exit   Exit
}

func (p *proc) run(lasts time.Duration, stubborn bool) {
	told := p.told
	if stubborn {
		told = nil
	}
	select {
	case <-time.After(lasts):
		p.exit = Exit{Known: true}
	case <-told:
		time.Sleep(again)
	}
	p.node.mu.Lock()
	defer p.node.mu.Unlock()
	p.node.rests(p.effect.Of, p.effect.Name)
	close(p.gone)
}

func (p *proc) kill() { p.once.Do(func() { close(p.told) }) }

func (p *proc) Effect() Effect { return p.effect }

func (p *proc) Ended() (Exit, bool) {
	select {
	case <-p.gone:
		return p.exit, true
	default:
		return Exit{}, false
	}
}

func (p *proc) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.gone:
		return p.exit, nil
	case <-ctx.Done():
		return Exit{}, context.Cause(ctx)
	}
}

func (p *proc) Kill() { p.kill() }

func (p *proc) Holders() string { return "process " + strconv.Itoa(p.effect.Group.PID) }

func (p *proc) Age() time.Duration { return 0 }
