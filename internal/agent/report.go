package agent

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// Times of reports.
const (
	// heartbeat is how often the state is read while nothing changes, so that
	// what changed from outside shows as well.
	heartbeat = 10 * time.Second
	// maxAge is how old a state may be and still be handed out.
	maxAge = 15 * time.Second
	// answerTime is how long the driver may take to tell its state.
	answerTime = 5 * time.Second
	// gather lets changes of a moment come together before they are read, when
	// nobody waits for them.
	gather = 250 * time.Millisecond
)

// State is what the node told about itself at one moment. Who is given one must
// not change it.
type State struct {
	// At is when the driver was asked.
	At        time.Time
	Node      hypervisor.Node
	Instances []hypervisor.Instance // by name
	// Hooks are the directories of operators' hooks that have anything to run, by name.
	Hooks []string
	// Err says why there are no figures; nil when there are.
	Err error
	// Number tells the report from those before it, also from those of an agent before this one; 0 before the first.
	Number uint64
	// revision is how many changes had ended when the driver was asked.
	revision uint64
}

// reporter keeps the newest state of a node at hand. It alone asks the driver,
// one question at a time however many want to know: after changes, on a regular
// basis, and when somebody waits for a state that is newer than the last.
type reporter struct {
	node   string
	driver hypervisor.Driver
	dir    string // of the agent
	now    func() time.Time
	told   func()
	stop   context.CancelFunc
	ended  chan struct{} // closed when there are no more reports
	asking chan struct{} // holds a token while the driver is asked
	stale  chan struct{} // there was a change
	wanted chan struct{} // somebody waits

	mu        sync.Mutex
	revision  uint64
	newest    State
	number    uint64        // of the newest
	published chan struct{} // closed with the next report
}

func newReporter(cfg Config) *reporter {
	ctx, stop := context.WithCancel(context.Background())
	r := &reporter{
		node: cfg.Node, driver: cfg.Driver, dir: cfg.Dir, now: cfg.Now, told: cfg.Told, number: uint64(cfg.Now().UnixNano()), stop: stop, ended: make(chan struct{}), asking: make(chan struct{}, 1),
		stale: make(chan struct{}, 1), wanted: make(chan struct{}, 1), revision: 1, published: make(chan struct{}),
	}
	go r.run(ctx)
	return r
}

// close ends the reports.
func (r *reporter) close() {
	r.stop()
	<-r.ended
}

func (r *reporter) run(ctx context.Context) {
	defer close(r.ended)
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		r.publish(r.read(ctx))
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-r.wanted:
		case <-r.stale:
			select {
			case <-ctx.Done():
				return
			case <-r.wanted:
			case <-time.After(gather):
			}
		}
	}
}

// read asks the driver, unless it still owes the answer to an earlier question.
func (r *reporter) read(ctx context.Context) State {
	r.mu.Lock()
	s := State{At: r.now(), revision: r.revision}
	r.mu.Unlock()
	silent := s
	silent.Err = fault.New(fault.Unavailable, "node %s did not tell its state in time", r.node)
	select {
	case r.asking <- struct{}{}:
	default:
		return silent
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	answer := make(chan State)
	go func() {
		if s.Node, s.Err = r.driver.Node(ctx); s.Err == nil {
			s.Instances, s.Err = r.driver.Instances(ctx)
		}
		s.Hooks = hookDirs(r.dir)
		<-r.asking
		select {
		case answer <- s:
		case <-ctx.Done(): // too late for this report
			signal(r.stale)
		}
	}()
	select {
	case s := <-answer:
		return s
	case <-ctx.Done():
		return silent
	}
}

func (r *reporter) publish(s State) {
	r.mu.Lock()
	before := r.newest
	r.number++
	s.Number = r.number
	r.newest = s
	close(r.published)
	r.published = make(chan struct{})
	r.mu.Unlock()
	if r.told != nil && !s.Shows(&before) {
		r.told()
	}
}

// Shows tells whether a state shows the same of the node's instances and hooks as another one.
func (s *State) Shows(other *State) bool {
	return (s.Err == nil) == (other.Err == nil) && s.Node.BootID == other.Node.BootID && slices.Equal(s.Hooks, other.Hooks) && reflect.DeepEqual(s.Instances, other.Instances)
}

// changed is to be called when a call that may have changed something is about
// to return: from then on earlier states are not handed out any more.
func (r *reporter) changed() {
	r.mu.Lock()
	r.revision++
	r.mu.Unlock()
	signal(r.stale)
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// State returns the newest state if it knows all changes that this agent made
// and is not too old, and waits for the next otherwise; the driver is then asked
// once for all who wait. With fresh, it is always asked. A driver that fails is
// an error of the state. Unavailable when ctx ends first or the agent is closed.
func (a *Agent) State(ctx context.Context, fresh bool) (State, error) {
	r := a.reporter
	r.mu.Lock()
	if fresh || r.now().Sub(r.newest.At) > maxAge {
		r.revision++
	}
	want := r.revision
	r.mu.Unlock()
	return r.wait(ctx, true, "did not tell its state in time", func(s State) bool { return s.revision >= want })
}

// Next waits for a state other than the one of a number, 0 for any; it knows all changes that this agent had made when it was asked. Unavailable when
// ctx ends first or the agent is closed.
func (a *Agent) Next(ctx context.Context, after uint64) (State, error) {
	r := a.reporter
	r.mu.Lock()
	want := r.revision
	r.mu.Unlock()
	return r.wait(ctx, false, "told nothing new", func(s State) bool { return s.Number != 0 && s.Number != after && s.revision >= want })
}

// wait returns the first state that is enough. Who is in a hurry has the driver asked for it; late says what the node did where none came in time.
func (r *reporter) wait(ctx context.Context, hurry bool, late string, enough func(State) bool) (State, error) {
	for {
		r.mu.Lock()
		s, published := r.newest, r.published
		r.mu.Unlock()
		if enough(s) {
			return s, nil
		}
		if hurry {
			signal(r.wanted)
		}
		select {
		case <-published:
		case <-ctx.Done():
			return State{}, fault.New(fault.Unavailable, "node %s %s: %w", r.node, late, context.Cause(ctx))
		case <-r.ended:
			return State{}, fault.New(fault.Unavailable, "node %s does not tell its state: its agent is shut down", r.node)
		}
	}
}
