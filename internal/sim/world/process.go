package world

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/sim/memory"
	"github.com/drover-project/drover/internal/sim/plan"
)

// process is a controller as its machine sees it: it runs or stands still, and reaches
// the database or does not. It has one life after the other.
type process struct {
	w    *world
	name string

	mu    sync.Mutex
	lives int
	now   *life
	// paused, cut, slow and away count the faults that make it so, which may overlap: away is
	// apart from the others. silent tells which cut it is.
	paused, cut, slow, away int
	// wentOn is when it last went on behind standing still.
	wentOn time.Time
	silent bool
	// changed is closed and replaced when one of them changes.
	changed chan struct{}
}

// life is one life of a controller. Everything that it has reaches the world through it.
type life struct {
	*process
	id   string
	dead chan struct{} // closed when it was killed
	ctx  context.Context
	stop context.CancelFunc
	over chan struct{} // closed when nothing of it is left

	// Guarded by the process's mutex:
	store  *memory.Store
	term   *term
	member *app.Member // of a whole controller
}

func newProcess(w *world, name string) *process {
	return &process{w: w, name: name, changed: make(chan struct{})}
}

// start begins a life.
func (p *process) start() {
	l := &life{process: p, dead: make(chan struct{}), over: make(chan struct{})}
	l.ctx, l.stop = context.WithCancel(context.Background())
	p.set(func() {
		p.lives++
		p.now = l
		l.id = fmt.Sprintf("%s.%d", p.name, p.lives)
	})
	p.w.tell(Event{Lane: p.name, Mark: Opens, Bar: "life " + l.id, Text: "starts, life " + l.id})
	if p.w.plan.Has(plan.Group) {
		go l.liveWhole()
		return
	}
	go l.live()
}

// end ends the present life in good order, and waits for it.
func (p *process) end() {
	p.mu.Lock()
	l := p.now
	p.mu.Unlock()
	l.stop()
	<-l.over
}

// set changes what is guarded, and wakes those who wait for that.
func (p *process) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// leads is the present term of the controller, nil if it does not lead or is dead.
func (p *process) leads() *term {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil || p.now.isDead() {
		return nil
	}
	return p.now.term
}

// isApart tells whether a controller is cut from the others of its group.
func (p *process) isApart() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.away > 0
}

// isCut tells whether a controller is cut from the database.
func (p *process) isCut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut > 0
}

func (l *life) isDead() bool {
	select {
	case <-l.dead:
		return true
	default:
		return false
	}
}

var (
	errDead = fault.New(fault.Unavailable, "the process is dead")
	errCut  = fault.New(fault.Unavailable, "the connection is broken")
)

// kill is kill -9.
func (l *life) kill() {
	l.set(func() {
		if !l.isDead() {
			close(l.dead)
		}
		l.paused = 0
	})
	l.w.tell(Event{Lane: l.name, Mark: Closes, Bar: "life " + l.id, Text: "is killed"})
	l.mu.Lock()
	s := l.store
	l.mu.Unlock()
	if s != nil {
		s.Disconnect()
	}
	l.w.wires.broken(l)
	for _, n := range l.w.nodes {
		n.died(l)
	}
	l.stop()
}

// suffer has a fault happen, and returns what heals it; nil if nothing has to.
func (p *process) suffer(f plan.Fault) (heal func()) {
	p.mu.Lock()
	l := p.now
	p.mu.Unlock()
	switch f.Do {
	case plan.Kill:
		if l.isDead() {
			return nil // it starts anew when the fault that killed it is over
		}
		l.kill()
		return p.start
	case plan.Pause:
		if l.isDead() {
			return nil
		}
		p.set(func() { p.paused++ })
		p.w.tell(Event{Lane: p.name, Mark: Opens, Bar: "paused", Text: "stands still"})
		return func() {
			p.set(func() { p.paused, p.wentOn = max(0, p.paused-1), time.Now() })
			p.w.tell(Event{Lane: p.name, Mark: Closes, Bar: "paused", Text: "goes on"})
		}
	case plan.Apart:
		p.set(func() { p.away++ })
		p.w.tell(Event{Lane: p.name, Mark: Opens, Bar: "apart", Text: "is apart from the others"})
		return func() {
			p.set(func() { p.away-- })
			p.w.tell(Event{Lane: p.name, Mark: Closes, Bar: "apart", Text: "is with the others again"})
		}
	case plan.Slow:
		p.set(func() { p.slow++ })
		return func() { p.set(func() { p.slow-- }) }
	case plan.Reset, plan.Silence:
		return p.cutOff(f.Do == plan.Silence)
	case plan.Lose:
		return nil
	}
	return nil
}

// keepAlive is after how long of silence a connection is known to be broken, at either
// end.
const keepAlive = 11 * time.Second

// cutOff cuts the controller from the database.
func (p *process) cutOff(silent bool) (heal func()) {
	p.set(func() { p.cut, p.silent = p.cut+1, silent })
	p.w.tell(Event{Lane: p.name, Mark: Opens, Bar: "cut", Text: "is cut from the store"})
	noticed := func() {
		p.mu.Lock()
		var s *memory.Store
		if p.cut > 0 && p.now != nil {
			s = p.now.store
		}
		p.mu.Unlock()
		if s != nil {
			s.Disconnect()
		}
	}
	if silent {
		time.AfterFunc(keepAlive, noticed)
	} else {
		noticed()
	}
	return func() {
		p.set(func() { p.cut-- })
		p.w.tell(Event{Lane: p.name, Mark: Closes, Bar: "cut", Text: "reaches the store again"})
	}
}

// gate lets a life do something that others see: not while it stands still, and never
// when it is dead.
func (l *life) gate() error {
	for {
		l.mu.Lock()
		dead, paused, changed := l.isDead(), l.paused > 0, l.changed
		l.mu.Unlock()
		switch {
		case dead:
			return errDead
		case !paused:
			return nil
		}
		<-changed
	}
}

// cross is gate at a port: what the plan has for it happens first.
func (l *life) cross(port plan.Port) error {
	if err := l.gate(); err != nil {
		return err
	}
	lost := l.w.crosses(port, l.process)
	if err := l.gate(); err != nil {
		return err
	}
	if lost {
		return errCut
	}
	return nil
}

// ports of messages to the database.
var portOf = map[memory.Message]plan.Port{memory.Commit: plan.Commit, memory.Answer: plan.Answer}

// Cross implements memory.Line: the way to the database.
func (l *life) Cross(ctx context.Context, m memory.Message) error {
	err := l.message(ctx, m)
	if err != nil && m == memory.Answer && !l.isDead() {
		l.w.Reached.Add("the answer of a commit is lost")
	}
	return err
}

func (l *life) message(ctx context.Context, m memory.Message) error {
	if err := l.gate(); err != nil {
		return err
	}
	if port := portOf[m]; port != "" {
		if err := l.cross(port); err != nil {
			return err
		}
	}
	if err := l.reach(ctx); err != nil {
		return err
	}
	return l.gate()
}

// reach waits until a message to or from the database arrives.
func (l *life) reach(ctx context.Context) error {
	d := l.w.streams.Between("line/"+l.name, 100*time.Microsecond, 900*time.Microsecond)
	limit := time.NewTimer(keepAlive)
	defer limit.Stop()
	for {
		l.mu.Lock()
		cut, silent, slow, changed := l.cut > 0, l.silent, l.slow > 0, l.changed
		l.mu.Unlock()
		if slow {
			d += 500 * time.Millisecond
		}
		if !cut {
			return l.rest(ctx, d)
		}
		if !silent {
			if err := l.rest(ctx, d); err != nil {
				return err
			}
			return errCut
		}
		select {
		case <-changed:
		case <-limit.C:
			return errCut
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.dead:
			return errDead
		}
	}
}

// rest waits, unless the life or the question ends first.
func (l *life) rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.dead:
		return errDead
	}
}
