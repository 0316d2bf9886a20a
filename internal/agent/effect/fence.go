package effect

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// patience is how long an order waits for what stands in its way and was ended, or is another agent's.
const patience = 10 * time.Second

// ending is how long whoever ends an effect of its own waits for its end. The rest is the next order's, which waits for the lock.
const ending = time.Second

// Config is what a fence needs to know about its node.
type Config struct {
	// Node is the node's name.
	Node string
	// Dir is the directory of the agent's files. The leader that the node follows is in the file epoch, and what runs is noted in
	// effects/ below it.
	Dir string
	// Host is where effects run; nil is the operating system, with its files in Dir.
	Host Host
	// Lead is how long this process may be sure that it leads; nil is for ever.
	Lead *Lead
	// Log is told what earlier controllers left; nil for nobody.
	Log *slog.Logger
}

// Fence is safe for concurrent use.
type Fence struct {
	cfg      Config
	orders   orders
	patience time.Duration

	mu    sync.Mutex
	lines map[string]*line
}

// line is where those wait in this process who want to act on a thing.
type line struct {
	held  chan struct{} // holds a token while somebody may
	users int
}

// Open returns the fence of a node.
func Open(cfg Config) (*Fence, error) {
	if cfg.Host == nil {
		host, err := System(cfg.Dir)
		if err != nil {
			return nil, err
		}
		cfg.Host = host
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Fence{cfg: cfg, orders: orders{latest: map[string]carried{}}, patience: patience, lines: map[string]*line{}}, nil
}

// Hold is the right to act on a thing, until it is left.
type Hold struct {
	fence   *Fence
	claim   Claim
	release func()  // of the host's hold; nil when that was given back
	leave   func()  // of the line
	joined  Process // nil if nothing was joined
}

// Enter waits until an order may be carried out, and gives it the right to act on its thing alone. What an earlier leader began
// on it is ended first, with all that it started. fault.Fenced if the node follows a newer leader; fault.Busy, naming
// who it is, if somebody who cannot be ended works on the thing; fault.Canceled if ctx ends first.
func (f *Fence) Enter(ctx context.Context, c Claim) (*Hold, error) {
	leave, err := f.queueUp(ctx, &c)
	if err != nil {
		return nil, err
	}
	h := &Hold{fence: f, claim: c, leave: leave}
	limit, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	if h.release, err = f.cfg.Host.Hold(limit, c.Of); err != nil {
		h.Leave()
		if ctx.Err() != nil {
			return nil, f.interrupted(ctx, &c)
		}
		return nil, fault.New(fault.Busy, "node %s cannot %s: %w", f.cfg.Node, c.What, err)
	}
	if err := h.clear(ctx); err != nil {
		h.Leave()
		return nil, err
	}
	return h, nil
}

// Check refuses an order that is about no thing if the node follows a newer leader.
func (f *Fence) Check(ctx context.Context, c Claim) error {
	follows, err := f.cfg.Host.Follows()
	if err != nil {
		return err
	}
	return f.follow(ctx, follows, &c)
}

// queueUp waits in this process for the turn of an order.
func (f *Fence) queueUp(ctx context.Context, c *Claim) (leave func(), err error) {
	f.mu.Lock()
	l := f.lines[c.Of]
	if l == nil {
		l = &line{held: make(chan struct{}, 1)}
		f.lines[c.Of] = l
	}
	l.users++
	f.mu.Unlock()
	gone := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(f.lines, c.Of)
		}
	}
	select {
	case l.held <- struct{}{}:
		return func() { <-l.held; gone() }, nil
	case <-ctx.Done():
		gone()
		return nil, f.interrupted(ctx, c)
	}
}

func (f *Fence) interrupted(ctx context.Context, c *Claim) error {
	return fault.New(fault.Canceled, "node %s was to %s, and the order was given up before its turn: %w", f.cfg.Node, c.What, context.Cause(ctx))
}

// clear decides about the order, and ends what stands in its way.
func (h *Hold) clear(ctx context.Context) error {
	f := h.fence
	follows, err := f.cfg.Host.Follows()
	if err != nil {
		return err
	}
	runs, err := f.cfg.Host.Noted(h.claim.Of)
	if err != nil {
		return err
	}
	var p Process
	if runs != nil {
		p = f.cfg.Host.Find(*runs)
		if _, ended := p.Ended(); ended {
			if err := f.cfg.Host.Forget(*runs); err != nil {
				return err
			}
			runs = nil
		}
	}
	v := Decide(follows, runs, &h.claim)
	if v.Do == Refuse {
		return f.refused(&h.claim, follows, v.Why)
	}
	if err := f.follow(ctx, follows, &h.claim); err != nil {
		return err
	}
	switch v.Do {
	case Join:
		e := *runs
		e.Epoch = h.claim.Order.Epoch
		h.joined = p
		return f.cfg.Host.Note(e)
	case End:
		f.cfg.Log.Warn("what an earlier controller began is ended", "node", f.cfg.Node, "effect", runs.Name, "epoch", runs.Epoch, "for", h.claim.What, "under", h.claim.Order.Epoch)
		p.Kill()
		return h.awaitEnd(ctx, p, v.Why)
	case Await:
		return h.awaitEnd(ctx, p, v.Why)
	}
	return nil
}

// awaitEnd waits for the end of what stands in the way, with its lock.
func (h *Hold) awaitEnd(ctx context.Context, p Process, why string) error {
	f := h.fence
	limit, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	if _, err := p.Wait(limit); err != nil {
		if ctx.Err() != nil {
			return f.interrupted(ctx, &h.claim)
		}
		return fault.New(fault.Busy, "node %s cannot %s: %s, and its lock is held by %s", f.cfg.Node, h.claim.What, why, p.Holders()).
			WithHint("end what holds the lock, if it is not needed, and try again")
	}
	return f.cfg.Host.Forget(p.Effect())
}

// refused is the error of an order under an epoch that is over. No controller ever has an older one again than a node has
// seen, unless its store was put back: one that goes on to lead is to say so.
func (f *Fence) refused(c *Claim, follows int64, why string) error {
	if follows > c.Order.Epoch && f.cfg.Lead.overtaken(f.cfg.Node, follows) {
		f.cfg.Log.Error("a node follows a controller of a later epoch, and refuses the orders of this one", "node", f.cfg.Node, "epoch", follows, "ours", c.Order.Epoch)
	}
	return fault.New(fault.Fenced, "%s", why).
		WithHint("if the database was restored by its own means, stop all controllers and run: drover store advance URL")
}

// follow makes the leader who gave an order the one that the node follows, if it is newer. All that earlier ones began and
// nobody joins is then told to end, also on other things.
func (f *Fence) follow(ctx context.Context, follows int64, c *Claim) error {
	refused := func(follows int64) error { return f.refused(c, follows, Decide(follows, nil, c).Why) }
	if c.Order.Epoch <= follows {
		if c.Order.Epoch < follows {
			return refused(follows)
		}
		return nil
	}
	limit, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	release, err := f.cfg.Host.Hold(limit, Leader)
	if err != nil {
		return fault.New(fault.Busy, "node %s cannot %s: %w", f.cfg.Node, c.What, err)
	}
	defer release()
	if follows, err = f.cfg.Host.Follows(); err != nil { // an agent in another process may have been quicker
		return err
	}
	if c.Order.Epoch < follows {
		return refused(follows)
	}
	if c.Order.Epoch > follows {
		if err := f.cfg.Host.Follow(c.Order.Epoch); err != nil {
			return err
		}
		f.endOld(c.Order.Epoch)
	}
	return nil
}

// endOld tells all effects to end that were begun before an epoch and that nobody can join. Whoever acts on their
// things next waits for them.
func (f *Fence) endOld(epoch int64) {
	all, err := f.cfg.Host.All()
	if err != nil {
		f.cfg.Log.Error("it is not known what earlier controllers began; each order will look for its own", "node", f.cfg.Node, "error", err)
		return
	}
	for _, e := range all {
		if p := f.cfg.Host.Find(e); e.Epoch < epoch && !e.Kind.joins() {
			p.Kill()
		}
	}
}

// Repeated tells whether the order was carried out before, so that nothing is to be done.
func (h *Hold) Repeated() bool { return h.fence.orders.repeated(h.claim.Order, h.claim.Of) }

// Carried remembers that the order was carried out.
func (h *Hold) Carried() { h.fence.orders.enter(h.claim.Order, h.claim.Of) }

// Joined returns the effect that is what was ordered and runs already; nil if it is to be begun.
func (h *Hold) Joined() Process { return h.joined }

// Begin begins the effect of the order. From then on the effect itself keeps others from its thing, and not the hold.
func (h *Hold) Begin(c Command) (Process, error) {
	f := h.fence
	if !h.claim.Kind.joins() {
		if err := f.cfg.Lead.sure(); err != nil {
			return nil, err
		}
	}
	p, err := f.cfg.Host.Begin(Effect{Name: h.claim.Name, Of: h.claim.Of, Kind: h.claim.Kind, Epoch: h.claim.Order.Epoch, Files: c.Files}, c)
	if fault.Is(err, fault.Fenced) {
		return nil, err
	}
	if err != nil {
		return nil, fault.New(fault.Environment, "node %s cannot %s: %w", f.cfg.Node, h.claim.What, err)
	}
	h.release()
	h.release = nil
	return p, nil
}

// Run begins the effect of the order and waits for its end. When ctx ends first, or the lead, the effect is ended with all that
// it started, and the cause is the error. fault.Fenced if it was ended on behalf of a newer leader.
func (h *Hold) Run(ctx context.Context, c Command) (Exit, error) {
	f := h.fence
	p, err := h.Begin(c)
	if err != nil {
		return Exit{}, err
	}
	ctx, stop := f.cfg.Lead.bind(ctx)
	defer stop()
	exit, err := p.Wait(ctx)
	if err != nil || !exit.Known {
		p.Kill()
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), ending)
		defer cancel()
		_, _ = p.Wait(limit) // the next order waits for the rest
	}
	f.forget(p)
	if err == nil && !exit.Known {
		if follows, _ := f.cfg.Host.Follows(); follows > h.claim.Order.Epoch {
			return exit, fault.New(fault.Fenced, "%s was ended: the node follows a controller of epoch %d", h.claim.What, follows)
		}
	}
	return exit, err
}

// forget removes the note of an effect that has ended, if it is there still. If that is in doubt the note stays: who finds it sees
// that its effect has ended.
func (f *Fence) forget(p Process) {
	if _, ended := p.Ended(); !ended {
		return
	}
	e := p.Effect()
	limit, cancel := context.WithTimeout(context.Background(), ending)
	defer cancel()
	release, err := f.cfg.Host.Hold(limit, e.Of)
	if err != nil {
		return
	}
	defer release()
	if noted, err := f.cfg.Host.Noted(e.Of); err == nil && noted != nil && noted.Group == e.Group {
		_ = f.cfg.Host.Forget(*noted)
	}
}

// End ends an effect that may be joined, with all that it started, and waits for its end. It is left alone, and the error is
// fault.Fenced, if a newer leader has joined it.
func (f *Fence) End(o Order, p Process) error {
	e := p.Effect()
	if noted, err := f.cfg.Host.Noted(e.Of); err == nil && noted != nil && noted.Group == e.Group && noted.Epoch > o.Epoch {
		return fault.New(fault.Fenced, "%s belongs to the controller of epoch %d by now", e.Name, noted.Epoch)
	}
	p.Kill()
	limit, cancel := context.WithTimeout(context.Background(), ending)
	defer cancel()
	_, _ = p.Wait(limit) // the next order waits for the rest
	f.forget(p)
	return nil
}

// Forget takes note that an effect has ended that was waited for.
func (f *Fence) Forget(p Process) { f.forget(p) }

// Leave gives the right to act back.
func (h *Hold) Leave() {
	if h.release != nil {
		h.release()
		h.release = nil
	}
	if h.leave != nil {
		h.leave()
		h.leave = nil
	}
}
