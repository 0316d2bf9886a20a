package world

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/sim/plan"
)

// client asks for one thing after the other, each until it is answered.
type client struct {
	w    *world
	name string
	id   int
	draw *rand.Rand
}

// request is what a client asks under a key, and what it was told.
type request struct {
	what string
	job  job.ID // zero until it is acknowledged
	// label is that of the job, and asked when it was asked for first.
	label string
	asked time.Duration
	// cancelled: a cancel of it was acknowledged, which was no kill.
	cancelled bool
}

func newClient(w *world, id int) *client {
	name := fmt.Sprintf("client%d", id+1)
	return &client{w: w, name: name, id: id, draw: w.streams.Of(name)}
}

// within waits for a time that is drawn.
func (c *client) within(most time.Duration) {
	time.Sleep(time.Duration(c.draw.Int64N(int64(most/time.Millisecond))) * time.Millisecond)
}

func (c *client) run() {
	c.within(2 * time.Second)
	for n := range c.w.plan.Size.Requests {
		what, op := c.choose(n)
		c.submit(fmt.Sprintf("%s-%d", c.name, n), what, op)
		if c.draw.IntN(6) == 0 {
			c.cancel(fmt.Sprintf("%s-%d", c.name, c.draw.IntN(n+1)))
		}
		c.within(2 * time.Duration(c.w.plan.Size.Trouble) / time.Duration(c.w.plan.Size.Requests+1))
	}
}

// usual are the opcodes that clients ask for of an instance, the frequent ones more
// often.
var usual = []string{
	"OP_INSTANCE_REINSTALL", "OP_INSTANCE_REINSTALL", "OP_INSTANCE_REINSTALL", "OP_INSTANCE_STARTUP", "OP_INSTANCE_STARTUP", "OP_INSTANCE_SHUTDOWN", "OP_INSTANCE_REBOOT",
	"OP_INSTANCE_REMOVE", "OP_INSTANCE_CREATE", "OP_INSTANCE_CREATE", "OP_INSTANCE_GROW_DISK", "OP_TAGS_SET", "OP_TEST_DELAY",
	"OP_INSTANCE_RENAME", "OP_INSTANCE_RENAME", "OP_INSTANCE_SET_PARAMS", "OP_INSTANCE_SET_PARAMS",
}

// diskSize is what clients ask for when they create or add a disk, and diskGrowth when they have a disk grow, in MiB.
const diskSize, diskGrowth = 8, 4

// choose draws what a client asks for: first for instances.
func (c *client) choose(n int) (what string, op *opcode.Opcode) {
	size := c.w.plan.Size
	instance := instanceName(c.draw.IntN(size.Instances))
	if c.draw.IntN(2) == 0 { // what somebody asked for just now may be under way
		instance = c.w.latest()
	}
	id := usual[c.draw.IntN(len(usual))]
	if n*size.Clients+c.id < size.Instances {
		instance, id = instanceName(n*size.Clients+c.id), "OP_INSTANCE_CREATE"
	}
	p := map[string]any{"instance_name": instance}
	if slices.Contains(counted, id) && !c.byIdentity(p) {
		id = "OP_INSTANCE_REINSTALL"
	}
	switch id {
	case "OP_INSTANCE_CREATE":
		p = map[string]any{"instance_name": instance, "mode": "create", "disk_template": "file", "disks": []any{map[string]any{"size": diskSize}}, "nics": []any{map[string]any{}},
			"os_type": system + "+default", "name_check": false, "ip_check": false, "start": c.draw.IntN(4) == 0, "no_install": c.draw.IntN(3) == 0,
			"pnode": c.w.nodes[c.draw.IntN(size.Nodes)].full()}
	case "OP_INSTANCE_REBOOT":
		p["reboot_type"] = "hard"
	case "OP_INSTANCE_GROW_DISK":
		p["disk"], p["amount"] = 0, diskGrowth
	case "OP_INSTANCE_RENAME":
		p["new_name"], p["name_check"], p["ip_check"] = instanceName(c.draw.IntN(size.Instances+furtherNames)), false, false
	case "OP_INSTANCE_SET_PARAMS":
		p["disks"] = []any{[]any{"add", map[string]any{"size": diskSize}}}
		if c.draw.IntN(2) == 0 { // never the first one, which is the one that grows
			p["disks"] = []any{[]any{"remove", 1, map[string]any{}}}
		}
	case "OP_TAGS_SET":
		p = map[string]any{"kind": "instance", "name": instance, "tags": []any{fmt.Sprintf("%s-%d", c.name, n)}}
	case "OP_TEST_DELAY":
		p = map[string]any{"duration": float64(1 + c.draw.IntN(10)), "on_master": false}
	}
	c.w.asked(instance)
	op, err := opcode.FromMap(id, p)
	if err != nil {
		panic(err) // the parameters above are wrong
	}
	return id + " " + instance, op
}

// furtherNames are so many names that instances only get by a rename.
const furtherNames = 2

// counted are the opcodes whose jobs are counted at the end, for each instance: they name it by
// its UUID, for a name may be another's by the time they run.
var counted = []string{"OP_INSTANCE_GROW_DISK", "OP_INSTANCE_SET_PARAMS"}

// byIdentity has the parameters of an opcode mean the instance that has the name now, by its UUID; false if nobody shows one.
func (c *client) byIdentity(p map[string]any) bool {
	t := c.w.leads()
	if t == nil {
		return false
	}
	inst := t.shown.Load().Inventory.InstanceNamed(p["instance_name"].(string))
	if inst == nil {
		return false
	}
	p["instance_uuid"] = inst.UUID
	return true
}

// askTime is how long a client waits for an answer, before it asks again.
const askTime = 3 * time.Second

// ask asks whoever leads until it is answered. The answer counts only if it reaches the
// client. Whoever has stood still or is cut off asks the store first whether it still leads (app.assured).
func (c *client) ask(question func(context.Context, *term) error) error {
	for {
		if t := c.w.leads(); t != nil && t.life.gate() == nil && !c.w.outdated(t) {
			ctx, cancel := context.WithTimeout(context.Background(), askTime)
			err := question(ctx, t)
			told := ctx.Err() == nil && t.life.cross(plan.Told) == nil
			cancel()
			if told && (err == nil || !again(err)) {
				return err
			}
		}
		c.within(400 * time.Millisecond)
	}
}

// submit asks for a job under a key until it is acknowledged.
func (c *client) submit(key, what string, op *opcode.Opcode) {
	if err := c.handIn(key, what, op); err != nil {
		panic(fmt.Sprintf("%s: %v", what, err)) // nothing refuses what clients ask for
	}
}

// handIn is submit of what may be refused.
func (c *client) handIn(key, what string, op *opcode.Opcode) error {
	r := &request{what: what, asked: c.w.since()}
	if c.w.plan.Has(plan.Rules) {
		if r.label = c.drawLabel(); r.label != "" {
			op = op.WithReason(reason.Trail{{Source: "user", Reason: r.label, Time: 1}})
		}
	}
	c.w.mu.Lock()
	c.w.keys[key] = r
	c.w.mu.Unlock()
	var id job.ID
	err := c.ask(func(ctx context.Context, t *term) (err error) {
		id, err = t.queue.Submit(ctx, queue.Submission{Ops: []*opcode.Opcode{op}, Key: key})
		return err
	})
	if err != nil {
		return err
	}
	c.w.tellf(c.name, "%s is job %d", what, id)
	c.w.mu.Lock()
	r.job = id
	c.w.mu.Unlock()
	return nil
}

// cancel asks for a job to be cancelled, or killed.
func (c *client) cancel(key string) {
	kill := c.draw.IntN(2) == 0
	c.w.mu.Lock()
	r := c.w.keys[key]
	c.w.mu.Unlock()
	var a queue.Answer
	err := c.ask(func(ctx context.Context, t *term) (err error) {
		a, err = t.queue.Cancel(ctx, r.job, kill, queue.By{})
		return err
	})
	c.w.tellf(c.name, "cancels job %d: %v %v (kill: %v)", r.job, a.OK, err, kill)
	c.w.mu.Lock()
	r.cancelled = r.cancelled || err == nil && a.OK && !kill
	c.w.mu.Unlock()
}

// again tells whether an answer leaves open what happened, so that the client asks again.
func again(err error) bool {
	return fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Fenced) || fault.Is(err, fault.Canceled)
}

// instanceName is the name of an instance by its number.
func instanceName(i int) string { return fmt.Sprintf("inst%d.example", i) }

// asked remembers the instance that somebody asked something of last, which latest tells.
func (w *world) asked(instance string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = instance
}

func (w *world) latest() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cmp.Or(w.last, instanceName(0))
}
