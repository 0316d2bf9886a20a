package app

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/systemd"
)

// A controller of a group that is told to stop does not go at once: whoever divides requests among controllers has to see first that it
// is going. It says so on /readyz, gives the lead to one that stands by, and goes on answering as one that stands by
// itself for the delay of its settings. What runs has its grace meanwhile, beside requests that are taken as ever.

const (
	// defaultShutdownDelay is enough for two checks in a row of a balancer that looks every two seconds.
	defaultShutdownDelay = 5 * time.Second
	// leaveAgain is how often one that is leaving looks whether the lead came to it all the same.
	leaveAgain = 100 * time.Millisecond
	// successorTime bounds how long another may take to say that it could lead: on a machine that is very busy that takes a second and more.
	successorTime = 3 * time.Second
)

// untilLeft is when a controller that is asked to stop has left: at once without a delay. The second result ends it.
func (g *group) untilLeft(asked context.Context, o Options) (left context.Context, end func()) {
	if o.ShutdownDelay == 0 {
		return asked, func() {}
	}
	left, stop := context.WithCancelCause(context.WithoutCancel(asked))
	leaving := context.AfterFunc(asked, func() {
		g.leave(left, o)
		stop(context.Cause(asked))
	})
	return left, func() {
		leaving()
		stop(nil)
	}
}

// leave has a controller that goes on serving be one that is leaving, until its delay is over.
func (g *group) leave(ctx context.Context, o Options) {
	over, cancel := context.WithTimeout(ctx, o.ShutdownDelay)
	defer cancel()
	g.m.stopping.Store(true)
	g.leaves()
	g.m.tellManager(systemd.StateStopping, systemd.Status("is leaving"), systemd.MoreTime(o.ShutdownDelay+2*o.StopGrace+stopBesides))
	g.m.log.Info("this controller is leaving", "name", g.self.Name, "shutdown_delay_seconds", o.ShutdownDelay.Seconds())
	again := time.NewTicker(leaveAgain)
	defer again.Stop()
	for {
		if c := g.m.leads(); c != nil {
			g.handOver(ctx, c, o.StopGrace, true)
		}
		select {
		case <-over.Done():
			return
		case <-again.C:
		}
	}
}

// handOver gives the lead to one that stands by, if there is any who could take it. What runs may end before, for as long as
// the grace lasts: while nothing new begins, requests are answered here. It returns false if there is nobody.
func (g *group) handOver(ctx context.Context, c *controller, grace time.Duration, drained bool) bool {
	to, known := g.successor(ctx, drained)
	if !known {
		return false
	}
	quiet, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	c.queue.Quiesce(quiet)
	asked := resignation{successor: to.holder(), over: make(chan struct{})}
	select {
	case g.resigning <- asked:
		g.m.log.Info("this controller hands the lead over", "to", to.Name, "address", to.Address)
	case <-c.term.Done():
		return true
	case <-ctx.Done():
		return true
	}
	select {
	case <-asked.over:
	case <-ctx.Done():
	}
	return true
}

// successor is who is to have the lead after this controller: of those that stand by, and could lead, the one that knows most; one that is
// drained only if it may be, and there is no other.
func (g *group) successor(ctx context.Context, drained bool) (p peerRecord, known bool) {
	others, err := g.able(ctx)
	if err != nil {
		return p, false
	}
	others = slices.DeleteFunc(others, func(a able) bool { return a.status.Role != roleStandby || a.status.Drained && !drained })
	if len(others) == 0 {
		return p, false
	}
	return slices.MaxFunc(others, func(a, b able) int {
		if a.status.Drained != b.status.Drained {
			return map[bool]int{true: -1, false: 1}[a.status.Drained]
		}
		return cmp.Or(cmp.Compare(a.status.Revision, b.status.Revision), cmp.Compare(b.peer.Name, a.peer.Name))
	}).peer, true
}

const (
	// changesEnd and questionsEnd bound how long a term that is given up waits for the answers that it owes: those of changes, and of all else,
	// among which are requests that wait for something to happen.
	changesEnd   = 2 * time.Second
	questionsEnd = 100 * time.Millisecond
)

// owed counts the requests that a term answers, so that one which is given up can answer those that it took.
type owed struct {
	mu                 sync.Mutex
	closed             bool
	changes, questions int
	changed            chan struct{} // closed and replaced when one was answered, once closed
}

// takeHTTP takes a request of HTTP as take does, and counts questions, which are waited for a little.
func (o *owed) takeHTTP(r *http.Request) (answered func(), taken bool) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return o.count(&o.questions)
	}
	return o.count(&o.changes)
}

// take takes a request, unless no more are taken; answered says that it was answered. One of which nothing is owed is not waited for.
func (o *owed) take(owed bool) (answered func(), taken bool) {
	if owed {
		return o.count(&o.changes)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return func() {}, !o.closed
}

func (o *owed) count(of *int) (answered func(), taken bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, false
	}
	*of++
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if *of--; o.changed != nil {
			close(o.changed)
			o.changed = make(chan struct{})
		}
	}, true
}

// close takes no more requests, and waits until those that were taken are answered, for as long as their kinds are waited for.
func (o *owed) close() {
	changes, questions := time.NewTimer(changesEnd), time.NewTimer(questionsEnd)
	defer changes.Stop()
	defer questions.Stop()
	for patient := true; ; {
		o.mu.Lock()
		if !o.closed {
			o.closed, o.changed = true, make(chan struct{})
		}
		left, asked, changed := o.changes, o.questions, o.changed
		o.mu.Unlock()
		if left == 0 && (asked == 0 || !patient) {
			return
		}
		select {
		case <-changed:
		case <-questions.C:
			patient = false
		case <-changes.C:
			return
		}
	}
}
