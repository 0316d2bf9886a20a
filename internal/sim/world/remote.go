package world

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/sim/check"
	"github.com/drover-project/drover/internal/sim/plan"
	"github.com/drover-project/drover/internal/tagsync"
)

// remote is where servers are: another cluster than the group's own, with a queue of its
// own that does one thing at a time to an instance. It may be away.
type remote struct {
	w *world

	mu        sync.Mutex
	instances map[string]*instance
	jobs      map[job.ID]*remoteJob
	keys      map[string]job.ID
	newest    job.ID
	// busy are instances that a job works on, and happened what happened to which, in order.
	busy     map[string]chan struct{}
	happened []string
	changed  chan struct{} // closed and replaced when something has happened
	away     int
	// foreign are instances of somebody else, as they were, by name.
	foreign map[string]instance
	// keyed: it knows submission keys of rebuilds, too. A stock Ganeti knows none; there it is the controller that hands in no other.
	keyed bool
	// rebuilds are how jobs of rebuilds ended, by who asked for each.
	rebuilds map[string]*remoteJob
}

// instance is one of the cluster.
type instance struct {
	uuid    string
	tags    map[string]bool
	stopped bool
	made    job.Time
}

// remoteJob is a job of the cluster.
type remoteJob struct {
	ops []*opcode.Opcode
	// foreign: somebody else asked for it.
	foreign bool
	over    bool
	outcome servertag.Outcome
}

func newRemote(w *world) *remote {
	return &remote{w: w, keyed: w.streams.IntN("keys", 2) == 0, rebuilds: map[string]*remoteJob{}, foreign: map[string]instance{}, instances: map[string]*instance{}, jobs: map[job.ID]*remoteJob{}, keys: map[string]job.ID{}, busy: map[string]chan struct{}{}, changed: make(chan struct{})}
}

// goAway has the cluster answer nobody; what is returned ends that.
func (c *remote) goAway() (back func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.away--
	}
}

// someoneElses has instances of somebody else under names that those of servers will get.
func (c *remote) someoneElses() {
	draw := c.w.streams.Of("someone else")
	for range draw.IntN(3) {
		name, uuid, stopped := server.InstanceName(serverPrefix, int64(1+draw.IntN(3*users))), c.w.newUUID(), draw.IntN(2) == 0
		c.foreign[name] = instance{uuid: uuid, tags: map[string]bool{}, stopped: stopped}
		c.instances[name] = &instance{uuid: uuid, tags: map[string]bool{}, stopped: stopped}
		c.w.tellf("cluster", "has an instance of somebody else: %s (%s)", name, uuid)
	}
}

// submit takes a job, once under a key if it knows such of it.
func (c *remote) submit(key string, ops []*opcode.Opcode) job.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := rebuildOf(ops)
	if id := c.keys[key]; id != 0 && (c.keyed || asked == "") {
		c.w.Reached.Add("a cluster is handed a job again")
		return id
	}
	op, j := ops[0], &remoteJob{ops: ops}
	if asked != "" {
		if c.rebuilds[asked] != nil {
			c.w.verdict.Breakf(check.RebuiltOnce, "the cluster has a rebuild of %s already: %s", instanceOf(op), asked)
		}
		c.rebuilds[asked] = j
	}
	id := c.begin(j)
	c.keys[key] = id
	if op.ID == "OP_INSTANCE_CREATE" && c.w.streams.IntN("neighbour", neighbours) == 0 {
		c.begin(&remoteJob{ops: ops, foreign: true})
	}
	return id
}

// neighbours is how many creations there are to one whose name somebody else asks for at that moment, too: which of the two comes
// first is anybody's guess. The cluster had no such instance when the name was chosen.
const neighbours = 5

// rebuildOf is who asked for the rebuild that a job is; empty for any other.
func rebuildOf(ops []*opcode.Opcode) string {
	i := slices.IndexFunc(ops, func(op *opcode.Opcode) bool { return op.ID == "OP_INSTANCE_REINSTALL" })
	if i < 0 {
		return ""
	}
	trail := ops[i].Reason
	return trail[len(trail)-1].Reason
}

// begin has a job run. The caller holds the mutex.
func (c *remote) begin(j *remoteJob) job.ID {
	c.newest++
	c.jobs[c.newest] = j
	go c.run(c.newest, j)
	return c.newest
}

// instanceOf names what an opcode is about.
func instanceOf(op *opcode.Opcode) string {
	if name := op.Str("instance_name"); name != "" {
		return name
	}
	return op.Str("name")
}

// run does a job, when those before it about its instance are done.
func (c *remote) run(id job.ID, j *remoteJob) {
	name := instanceOf(j.ops[0])
	c.mu.Lock()
	before, done := c.busy[name], make(chan struct{})
	c.busy[name] = done
	c.mu.Unlock()
	if before != nil {
		<-before
	}
	began := job.At(time.Now())
	time.Sleep(c.w.streams.Between("cluster/"+name, 100*time.Millisecond, 6*time.Second))
	c.mu.Lock()
	for _, op := range j.ops {
		if j.outcome = c.do(name, op); !j.outcome.OK {
			break
		}
	}
	if j.foreign && j.outcome.OK {
		c.estranged(name)
	}
	changed := began
	c.mu.Unlock()
	time.Sleep(c.w.streams.Between("cluster/"+name, time.Millisecond, 500*time.Millisecond))
	c.mu.Lock()
	defer c.mu.Unlock()
	j.over, j.outcome.Began, j.outcome.Ended = true, changed, job.At(time.Now())
	c.w.tellf("cluster", "job %d, %s %s, ends: %v %s", id, j.ops[0].ID, name, j.outcome.OK, j.outcome.Text)
	c.tell(name)
	close(done)
}

// estranged makes the instance that was just made somebody else's, and of nobody's servers. The caller holds the mutex.
func (c *remote) estranged(name string) {
	i := c.instances[name]
	clear(i.tags)
	c.foreign[name] = instance{uuid: i.uuid, tags: map[string]bool{}, made: i.made}
	c.w.Reached.Add("somebody else takes the name of a server that is being made")
}

// tell says that something happened to an instance. The caller holds the mutex.
func (c *remote) tell(name string) {
	c.happened = append(c.happened, name)
	close(c.changed)
	c.changed = make(chan struct{})
}

// mishap is how many jobs there are to one that fails for no reason.
const mishap = 8

// do does what a job says. The caller holds the mutex.
func (c *remote) do(name string, op *opcode.Opcode) servertag.Outcome {
	if c.w.streams.IntN("cluster/"+name, mishap) == 0 {
		return servertag.Outcome{Text: "it did not work"}
	}
	i := c.instances[name]
	if op.ID == "OP_INSTANCE_CREATE" {
		if i != nil {
			return servertag.Outcome{Text: "there is one", Final: true}
		}
		i = &instance{uuid: c.w.newUUID(), tags: map[string]bool{}, made: job.At(time.Now())}
		for _, tag := range op.Strings("tags") {
			i.tags[tag] = true
		}
		c.instances[name] = i
		return servertag.Outcome{OK: true}
	}
	if uuid := op.Str("instance_uuid"); i == nil || uuid != "" && uuid != i.uuid {
		return servertag.Outcome{Text: "there is none", Missing: true}
	}
	switch op.ID {
	case "OP_INSTANCE_REMOVE":
		delete(c.instances, name)
	case "OP_INSTANCE_STARTUP", "OP_INSTANCE_REBOOT":
		i.stopped = false
	case "OP_INSTANCE_SHUTDOWN":
		i.stopped = true
	case "OP_TAGS_SET":
		for _, tag := range op.Strings("tags") {
			i.tags[tag] = true
		}
	case "OP_TAGS_DEL":
		for _, tag := range op.Strings("tags") {
			if !i.tags[tag] {
				return servertag.Outcome{Text: "there is no tag " + tag, Missing: true}
			}
		}
		for _, tag := range op.Strings("tags") {
			delete(i.tags, tag)
		}
	}
	return servertag.Outcome{OK: true}
}

// ofCluster is the cluster as one life of a controller reaches it. It implements
// tagsync.Backend.
type ofCluster struct {
	*remote

	life *life
}

// denials is how many looks there are at an instance to one at which the cluster says that it is not there, as one does whose front
// answers in its place; denied is for how long what the front said is all that is heard.
const (
	denials = 40
	denied  = time.Second
)

// unanswered is how many messages there are to one that is lost.
const unanswered = 20

// reach is a message to the cluster.
func (b ofCluster) reach(ctx context.Context) error {
	if err := b.life.cross(plan.Order); err != nil {
		return err
	}
	stream := "to-cluster/" + b.life.name
	if err := b.life.rest(ctx, b.w.streams.Between(stream, time.Millisecond, 20*time.Millisecond)); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away > 0 || b.w.streams.IntN(stream, unanswered) == 0 {
		return fault.New(fault.Unavailable, "the cluster does not answer")
	}
	return nil
}

// back is the answer to it.
func (b ofCluster) back() error {
	if err := b.life.cross(plan.Done); err != nil {
		return err
	}
	if b.w.streams.IntN("from-cluster/"+b.life.name, unanswered) == 0 {
		return fault.New(fault.Unavailable, "the answer of the cluster is lost")
	}
	return nil
}

// Submit implements tagsync.Backend.
func (b ofCluster) Submit(ctx context.Context, key string, ops ...*opcode.Opcode) (job.ID, error) {
	if err := b.reach(ctx); err != nil {
		return 0, err
	}
	id := b.submit(key, ops)
	return id, b.back()
}

// Newest implements tagsync.Backend.
func (b ofCluster) Newest(ctx context.Context) (id job.ID, keyed bool, err error) {
	if b.keyed {
		return 0, true, nil
	}
	if err := b.reach(ctx); err != nil {
		return 0, false, err
	}
	b.mu.Lock()
	id = b.newest
	b.mu.Unlock()
	return id, false, b.back()
}

// Find implements tagsync.Backend: a stock Ganeti keeps no reason of reinstallations, so it is the first of the instance behind a job.
func (b ofCluster) Find(ctx context.Context, after job.ID, ops ...*opcode.Opcode) (job.ID, error) {
	if err := b.reach(ctx); err != nil {
		return 0, err
	}
	b.mu.Lock()
	found := job.ID(0)
	for id := after + 1; id <= b.newest && found == 0; id++ {
		if j := b.jobs[id]; rebuildOf(j.ops) != "" && instanceOf(j.ops[0]) == instanceOf(ops[0]) {
			b.w.Reached.Add("a rebuild is found where it was handed in")
			found = id
		}
	}
	b.mu.Unlock()
	return found, b.back()
}

// Look implements tagsync.Backend.
func (b ofCluster) Look(ctx context.Context, ref server.Ref, jobs []job.ID) (server.Sight, error) {
	sight := server.Sight{Sight: servertag.Sight{Ended: map[job.ID]servertag.Outcome{}}}
	if err := b.reach(ctx); err != nil {
		return sight, err
	}
	b.mu.Lock()
	for _, id := range jobs {
		if j := b.jobs[id]; j != nil && j.over {
			sight.Ended[id] = j.outcome
		}
	}
	name, i := b.find(ref)
	if i != nil && ref.UUID != "" && b.w.streams.IntN("denied/"+b.life.name, denials) == 0 {
		b.w.Reached.Add("a cluster denies that it has an instance")
		time.AfterFunc(denied, func() { b.mu.Lock(); defer b.mu.Unlock(); b.tell(name) })
		i = nil
	}
	if i == nil || ref.UUID != "" && i.uuid != ref.UUID {
		sight.Absent = "it is not among the instances"
	}
	if i != nil {
		sight.Instance, sight.Name, sight.UUID, sight.Stopped, sight.Made = true, name, i.uuid, i.stopped, i.made
		sight.Tags = slices.Sorted(maps.Keys(i.tags))
	}
	b.mu.Unlock()
	return sight, b.back()
}

// find is the instance that is meant: that with the UUID, or else that of the name. The
// caller holds the mutex.
func (c *remote) find(ref server.Ref) (name string, i *instance) {
	for name, i := range c.instances {
		if i.uuid == ref.UUID {
			return name, i
		}
	}
	return ref.Name, c.instances[ref.Name]
}

// has reports whether there is an instance with a UUID.
func (c *remote) has(uuid string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, i := c.find(server.Ref{UUID: uuid})
	return i != nil
}

// Creation implements tagsync.Backend.
func (b ofCluster) Creation(ctx context.Context, key string, _ *server.Server) (o servertag.Outcome, known bool, err error) {
	if err := b.reach(ctx); err != nil {
		return o, false, err
	}
	b.mu.Lock()
	j := b.jobs[b.keys[key]]
	if j != nil && j.over {
		o, known = j.outcome, true
	}
	b.mu.Unlock()
	return o, known, b.back()
}

// Has implements tagsync.Backend.
func (b ofCluster) Has(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.instances[name] != nil
}

// Met implements tagsync.Backend.
func (ofCluster) Met() tagsync.Met { return tagsync.Met{} }

// lookAround is how often a controller looks for what it was not told of.
const lookAround = 30 * time.Second

// Follow implements tagsync.Backend.
func (b ofCluster) Follow(ctx context.Context, changed func(server.Ref)) error {
	changed(server.Ref{})
	again := time.NewTicker(lookAround)
	defer again.Stop()
	b.mu.Lock()
	at, more := len(b.happened), b.changed
	b.mu.Unlock()
	for {
		select {
		case <-more:
		case <-again.C:
			changed(server.Ref{})
			continue
		case <-ctx.Done():
			return nil
		}
		if err := b.life.gate(); err != nil {
			return err
		}
		b.mu.Lock()
		news := slices.Clone(b.happened[at:])
		at, more = len(b.happened), b.changed
		unheard := b.away > 0
		b.mu.Unlock()
		for _, name := range news {
			if !unheard {
				changed(server.Ref{Name: name})
			}
		}
	}
}
