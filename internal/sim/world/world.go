package world

import (
	"fmt"
	"hash"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/events"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/sim/check"
	"github.com/drover-project/drover/internal/sim/history"
	"github.com/drover-project/drover/internal/sim/memory"
	"github.com/drover-project/drover/internal/sim/plan"
)

// Options are what a history is given beside its plan.
type Options struct {
	// Dir is a directory for the small files of agents, which the history makes and empties.
	// It is best in memory.
	Dir string
	// Keep keeps the events, for people.
	Keep bool
	// Reached counts the rare places that the history came by.
	Reached *check.Reached
}

// Result is what a history came to.
type Result struct {
	Plan plan.Plan
	// Hash is of all events: the same history has the same one.
	Hash uint64
	// Broken is what did not hold.
	Broken []check.Broken
	// Events are kept if they were asked for.
	Events []Event
	// Struck are the faults that happened.
	Struck []plan.Fault
	// Record is what clients were told, to be checked outside of the bubble.
	Record *history.Record
	// Length is how much time passed in it; Told, Commits, Effects and Terms count
	// acknowledged requests, commits, what was done on nodes, and terms of leaders.
	Length                        time.Duration
	Told, Commits, Effects, Terms int
}

// world is a history.
type world struct {
	Options
	plan    plan.Plan
	streams *plan.Streams
	begun   time.Time
	verdict *check.Verdict
	epochs  *check.Epochs
	effects *check.Effects
	record  *history.Record

	db    *memory.Database
	procs []*process
	nodes []*node
	// What there is beside: the cluster of servers, the broker, rules, deployments.
	cluster  *remote
	broker   *broker
	rules    *check.Rules
	wishes   *check.Servers
	rollouts rollouts
	wires    wires
	// strangers are on nodes from the beginning.
	strangers []lonely
	// leftovers are the UUIDs of what is there from the beginning, too, and a job left.
	leftovers map[string]bool

	mu      sync.Mutex // guards what follows
	hash    hash.Hash64
	events  []Event
	crossed map[plan.Port]int
	struck  []plan.Fault
	commits int
	keys    map[string]*request
	servers map[string]*wanted // by id
	acted   map[string]job.ID  // the job that acted on an instance last
	begins  map[string]int     // how often an effect began, by its name
	last    string             // the instance that somebody asked something of last
	epoch   int64              // the highest under which somebody has begun to lead
	beings  []string           // who asks for something, so that each has a number
	// healing is when faults at crossings strike no more.
	healing bool
	heals   sync.WaitGroup
}

// Run lives through a history. It is to be called in a bubble.
func Run(p plan.Plan, o Options) *Result {
	w := &world{Options: o, plan: p, streams: plan.NewStreams(p.Seed), begun: time.Now(), record: &history.Record{}, hash: fnv.New64a(),
		crossed: map[plan.Port]int{}, keys: map[string]*request{}, servers: map[string]*wanted{}, acted: map[string]job.ID{}, begins: map[string]int{}, leftovers: map[string]bool{}}
	w.verdict = &check.Verdict{Since: w.since, Tell: func(b check.Broken) { w.tell(Event{Lane: "check", Mark: Wrong, Text: b.String()}) }}
	w.epochs, w.effects, w.rules = check.NewEpochs(w.verdict), check.NewEffects(w.verdict), check.NewRules(w.verdict)
	w.wishes = check.NewServers(w.verdict)
	w.cluster, w.broker = newRemote(w), &broker{w: w, taken: map[string]int{}}
	w.rollouts.passed = map[[2]int64]int64{}
	w.wires.listeners = map[string]*listener{}
	w.db = memory.New(memory.Options{Observe: w.committed})
	for i := range p.Size.Nodes {
		w.nodes = append(w.nodes, newNode(w, i))
	}
	if p.Has(plan.Group) {
		w.make()
	}
	for i := range p.Size.Controllers {
		w.procs = append(w.procs, newProcess(w, plan.Controller(i)))
	}
	for _, c := range w.procs {
		c.start()
	}
	var parts sync.WaitGroup
	for i := range p.Size.Clients {
		c := newClient(w, i)
		w.beings = append(w.beings, c.name)
		parts.Go(c.run)
	}
	for _, work := range p.Work {
		kinds[work].begin(w, &parts)
	}
	w.trouble()
	parts.Wait()
	w.settle()
	for _, c := range w.procs {
		c.end()
	}
	time.Sleep(time.Minute) // what was killed winds down
	w.look()
	return w.result()
}

func (w *world) result() *Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := 0
	for _, r := range w.keys {
		if r.job != 0 {
			told++
		}
	}
	return &Result{Plan: w.plan, Hash: w.hash.Sum64(), Broken: w.verdict.Broken(), Events: w.events, Struck: w.struck, Record: w.record,
		Length: w.since(), Told: told, Commits: w.commits, Effects: w.effects.Begun(), Terms: int(w.epochs.Newest())}
}

func (w *world) since() time.Duration { return time.Since(w.begun) }

// committed is told what the database commits.
func (w *world) committed(c memory.Committed) {
	w.epochs.Committed(c)
	w.rollouts.recorded(c)
	w.wished(c)
	h := fnv.New64a()
	for _, x := range c.Writes {
		_, _ = fmt.Fprintf(h, "%s/%s@%d=%s;", x.Key.Kind, x.Key.ID, x.Revision, x.Value)
		if x.Key.Kind == events.KindCursor && w.broker.since.IsZero() {
			w.broker.since = time.Now()
		}
	}
	w.mu.Lock()
	w.commits++
	w.mu.Unlock()
	for _, s := range c.Steps {
		if s.Lease.Name != "" {
			w.tell(Event{Lane: Store, Text: fmt.Sprintf("%s: lease %q of epoch %d until %v", c.By, s.Lease.Holder, s.Lease.Epoch, s.Lease.Expires.Sub(w.begun))})
		}
	}
	if len(c.Writes) > 0 {
		w.tell(Event{Lane: Store, Text: fmt.Sprintf("%s commits %d objects, %x", c.By, len(c.Writes), h.Sum64())})
	}
}

// leads is the term of who leads with the newest epoch, nil if nobody does.
func (w *world) leads() (newest *term) {
	for _, p := range w.procs {
		if t := p.leads(); t != nil && (newest == nil || newest.lease.Epoch < t.lease.Epoch) {
			newest = t
		}
	}
	return newest
}

// follows notes that somebody begins to lead.
func (w *world) follows(epoch int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.epoch = max(w.epoch, epoch)
}

// outdated tells whether another has begun to lead since a term began.
func (w *world) outdated(t *term) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return t.lease.Epoch < w.epoch
}

// Event is something that happened.
type Event struct {
	At time.Duration
	// Lane is where: a controller, a node, a client, the store.
	Lane string
	Mark Mark
	// Bar names what begins or ends in its lane.
	Bar  string
	Text string
}

// Lanes beside those of controllers, nodes and clients: what is committed, and what there
// is in the end.
const (
	Store = "store"
	End   = "end"
)

// Mark is what an event is.
type Mark int

// The marks.
const (
	Point Mark = iota
	Opens      // a bar begins
	Closes
	Struck // a fault
	Wrong  // something is broken
)

// String says it for people.
func (e Event) String() string {
	return fmt.Sprintf("%11.6f %-8s %s", e.At.Seconds(), e.Lane, e.Text)
}

// tell adds an event to the history.
func (w *world) tell(e Event) {
	e.At = w.since()
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = fmt.Fprintln(w.hash, e)
	if w.Keep {
		w.events = append(w.events, e)
	}
}

// tellf adds an event that is a point.
func (w *world) tellf(lane, format string, args ...any) {
	w.tell(Event{Lane: lane, Text: fmt.Sprintf(format, args...)})
}

// trouble has the faults at times happen, and ends when everything is healed.
func (w *world) trouble() {
	for _, f := range w.plan.Faults {
		if f.Port != "" {
			continue
		}
		time.Sleep(time.Until(w.begun.Add(time.Duration(f.At))))
		if strike := w.outside(f); strike != nil {
			w.struckBy(f, f.Who)
			w.heal(f, strike())
			continue
		}
		for _, p := range w.meant(f.Who) {
			w.strike(f, p)
		}
	}
	time.Sleep(time.Until(w.begun.Add(time.Duration(w.plan.Size.Trouble))))
	w.mu.Lock()
	w.healing = true
	w.mu.Unlock()
	w.heals.Wait()
}

// meant are the controllers that a fault is for.
func (w *world) meant(who string) []*process {
	i := slices.IndexFunc(w.procs, func(p *process) bool { return p.name == who })
	t := w.leads()
	switch {
	case who == plan.All:
		return w.procs
	case who == plan.Leader && t != nil:
		return []*process{t.life.process}
	case who == plan.Standby && t != nil:
		i = slices.IndexFunc(w.procs, func(p *process) bool { return p != t.life.process })
	}
	return w.procs[max(0, i) : max(0, i)+1]
}

// crosses counts a crossing of a port, and has what the plan has for it happen. It tells
// whether the message is lost.
func (w *world) crosses(port plan.Port, p *process) (lost bool) {
	w.mu.Lock()
	w.crossed[port]++
	nth, healing := w.crossed[port], w.healing
	w.mu.Unlock()
	for _, f := range w.plan.Faults {
		if f.Port == port && f.Nth == nth && !healing {
			w.strike(f, p)
			lost = lost || f.Do == plan.Lose
		}
	}
	return lost
}

// strike has a fault happen to a controller, or to what it is about to reach.
func (w *world) strike(f plan.Fault, p *process) {
	w.struckBy(f, p.name)
	if strike := w.outside(f); strike != nil {
		w.heal(f, strike())
		return
	}
	w.heal(f, p.suffer(f))
}

func (w *world) struckBy(f plan.Fault, lane string) {
	w.mu.Lock()
	w.struck = append(w.struck, f)
	w.mu.Unlock()
	w.Reached.Add("fault: " + string(f.Do))
	w.tell(Event{Lane: lane, Mark: Struck, Text: fmt.Sprintf("FAULT %v", f)})
}

// heal has a fault end after its time, or at once when all is to be healed; nil is for
// one that has no end.
func (w *world) heal(f plan.Fault, heal func()) {
	if heal == nil {
		return
	}
	w.mu.Lock()
	over := w.healing
	if !over { // whoever waits for all that heals waits for this one, too
		w.heals.Go(func() {
			time.Sleep(time.Duration(f.For))
			heal()
		})
	}
	w.mu.Unlock()
	if over {
		heal()
	}
}

// outside is how a fault strikes that is not a controller's; nil for one that is.
func (w *world) outside(f plan.Fault) (strike func() (heal func())) {
	switch {
	case f.Who == plan.Cluster:
		return w.cluster.goAway
	case f.Who == plan.Broker, f.Port == plan.Publish && f.Do == plan.Reset:
		return w.broker.goAway
	case f.Who == plan.Tasks:
		return func() func() { return w.orphan(time.Duration(f.For)) }
	}
	return nil
}
