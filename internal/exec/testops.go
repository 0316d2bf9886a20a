package exec

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
)

// delayNodes returns the nodes on which OP_TEST_DELAY waits besides the master.
func delayNodes(op *opcode.Opcode, snap *cluster.Snapshot) ([]*cluster.Node, error) {
	wanted := op.Strings("on_nodes")
	if len(wanted) == 0 {
		wanted = op.Strings("on_node_uuids")
	}
	nodes := make([]*cluster.Node, 0, len(wanted))
	for _, name := range wanted {
		node, err := namedNode(name, snap)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// delayLocks locks the nodes that the delay is on, unless it asked for none.
func delayLocks(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	if op.Bool("no_locks") {
		return nil, nil
	}
	nodes, err := delayNodes(op, snap)
	if err != nil {
		return nil, err
	}
	var request lock.Request
	for _, n := range nodes {
		request = append(request, want(lock.Node, n.UUID, lock.Exclusive))
	}
	if op.Bool("on_master") {
		request = append(request, want(lock.Node, snap.Cluster().MasterNode, lock.Exclusive))
	}
	return request, nil
}

// longestDelay in seconds keeps a duration within what the clock can count.
const longestDelay = math.MaxInt64 / float64(time.Second) / 2

func testDelay(_ context.Context, env *Env) (Plan, error) {
	op := env.Op
	length := op.Float("duration")
	if length <= 0 {
		return Plan{}, fault.New(fault.Invalid, "Duration must be greater than zero").At("duration")
	}
	if length > longestDelay {
		return Plan{}, fault.New(fault.Invalid, "Duration must be at most %.0f seconds", float64(longestDelay)).At("duration")
	}
	if op.Bool("interruptible") {
		return Plan{}, fault.New(fault.Invalid, "A delay can't be interrupted through a socket").At("interruptible").
			WithHint("cancel the job instead")
	}
	agents, err := env.delayAgents()
	if err != nil {
		return Plan{}, err
	}
	d := time.Duration(length * float64(time.Second))
	return Plan{Do: func(ctx context.Context) (any, error) {
		repeat, passed := op.Int("repeat"), env.passed()
		for i := range max(repeat, 1) {
			master, nodes := d, d
			if !op.Bool("on_master") {
				master = 0
			}
			if len(agents) == 0 {
				nodes = 0
			}
			if passed >= master+nodes && passed > 0 {
				passed -= master + nodes // the controller before has waited for it, and said so
				continue
			}
			if repeat > 0 {
				env.Infof("Test delay iteration %d/%d", i, repeat-1)
			}
			gone := min(passed, master)
			if err := env.delay(ctx, master-gone, nodes-(passed-gone), agents); err != nil {
				return nil, err
			}
			passed = 0
		}
		return nil, nil
	}}, nil
}

// passed is how long ago the opcode began to run under a controller before, 0 if this one began it.
func (e *Env) passed() time.Duration {
	if e.Began.IsZero() {
		return 0
	}
	return max(0, e.Now().Sub(e.Began))
}

func (e *Env) delayAgents() ([]Node, error) {
	nodes, err := delayNodes(e.Op, e.snapshot())
	if err != nil {
		return nil, err
	}
	agents := make([]Node, len(nodes))
	for i, node := range nodes {
		if agents[i], err = e.onlineAgent(node); err != nil {
			return nil, err
		}
	}
	return agents, nil
}

// delay waits on the master for the one time first, then on all nodes at once for the other.
func (e *Env) delay(ctx context.Context, master, nodes time.Duration, agents []Node) error {
	if master > 0 {
		timer := time.NewTimer(master)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return fault.New(fault.Canceled, "the delay was interrupted: %w", context.Cause(ctx))
		}
	}
	failures := make([]error, len(agents))
	var all sync.WaitGroup
	for i, a := range agents {
		all.Go(func() { failures[i] = a.Delay(ctx, nodes) })
	}
	all.Wait()
	if i := slices.IndexFunc(failures, func(err error) bool { return err != nil }); i >= 0 {
		return failures[i]
	}
	return nil
}

// testDummy does what its parameters say. The reference knows the opcode but
// cannot run it.
func testDummy(_ context.Context, env *Env) (Plan, error) {
	messages, err := textList(env.Op.Params["messages"], "messages")
	if err != nil {
		return Plan{}, err
	}
	jobs, err := jobList(env.Op.Params["submit_jobs"], "submit_jobs")
	if err != nil {
		return Plan{}, err
	}
	fail, isBool := env.Op.Params["fail"].(bool)
	if !isBool && env.Op.Params["fail"] != nil {
		return Plan{}, fault.New(fault.Invalid, "parameter 'fail' must be true or false").At("fail")
	}
	return Plan{Do: func(ctx context.Context) (any, error) {
		for _, m := range messages {
			env.Logf("%s", m)
		}
		if fail {
			return nil, fault.New(fault.Failed, "Opcode failed as it was told to")
		}
		result := env.Op.Params["result"]
		if len(jobs) == 0 {
			return result, nil
		}
		submitted, err := env.submitChildren(ctx, jobs)
		return map[string]any{"jobs": submitted, "result": result}, err
	}, Dry: env.Op.Params["result"]}, nil
}

// textList reads a text, a list of texts, or null.
func textList(v any, field string) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return []string{v}, nil
	case []any:
		out := make([]string, len(v))
		for i, item := range v {
			s, ok := item.(string)
			if !ok {
				return nil, fault.New(fault.Invalid, "parameter '%s' must be a list of texts", field).At(field + "[" + strconv.Itoa(i) + "]")
			}
			out[i] = s
		}
		return out, nil
	}
	return nil, fault.New(fault.Invalid, "parameter '%s' must be a list of texts", field).At(field)
}

// jobList reads a list of jobs, each a list of opcodes in their wire form.
func jobList(v any, field string) ([][]*opcode.Opcode, error) {
	list, ok := v.([]any)
	if !ok && v != nil {
		return nil, fault.New(fault.Invalid, "parameter '%s' must be a list of jobs", field).At(field)
	}
	jobs := make([][]*opcode.Opcode, len(list))
	for i, one := range list {
		place := field + "[" + strconv.Itoa(i) + "]"
		ops, ok := one.([]any)
		if !ok {
			return nil, fault.New(fault.Invalid, "each of '%s' must be a list of opcodes", field).At(place)
		}
		for n, raw := range ops {
			op, err := parseChild(raw)
			if err != nil {
				return nil, fault.New(fault.Invalid, "%s[%d]: %w", place, n, err).At(place + "[" + strconv.Itoa(n) + "]")
			}
			jobs[i] = append(jobs[i], op)
		}
	}
	return jobs, nil
}

func parseChild(raw any) (*opcode.Opcode, error) {
	text, err := encodeResult(raw)
	if err != nil {
		return nil, err
	}
	op, err := opcode.Parse(text, opcode.Options{})
	if err != nil {
		return nil, err
	}
	// Its trail comes from outside, as the parameter that it is in does.
	return op, reason.CheckOutside(op.Reason, nil)
}

// testPrefix begins each message that was given, by which a test knows them among others.
const testPrefix = "TESTMSG="

// onMaster locks the master: a test of the queue wants some lock.
func onMaster(_ *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	return lock.Request{want(lock.Node, snap.Cluster().MasterNode, lock.Exclusive)}, nil
}

// testJobQueue prepares OP_TEST_JQUEUE, by which the queue is tested from outside: with notify_exec it goes on when its test has connected to a socket that an entry
// of the log names, looked at the job, and hung up. That locks are waited for is not told in this way: an opcode begins when it has them.
func testJobQueue(_ context.Context, env *Env) (Plan, error) {
	op := env.Op
	notify := op.Bool("notify_exec")
	if notify && env.machine == nil {
		return Plan{}, fault.New(fault.WrongState, "There is no machine here on which a test could be met").At("notify_exec")
	}
	tell := func(ctx context.Context, what string, about any) error {
		if !notify {
			return nil
		}
		return env.machine.Meet(ctx, func(socket string) { env.Log(job.LogQueueTest, []any{socket, what, about}) })
	}
	return Plan{Do: func(ctx context.Context) (any, error) {
		if err := tell(ctx, "exec", nil); err != nil {
			return nil, err
		}
		env.Infof("Executing")
		messages := op.Strings("log_messages")
		if len(messages) > 0 {
			if err := tell(ctx, "startmsg", len(messages)); err != nil {
				return nil, err
			}
		}
		for i, m := range messages {
			env.Infof("Sending log message %d", i+1)
			env.Logf("%s", testPrefix+m)
			if err := tell(ctx, "logmsg", i+1); err != nil {
				return nil, err
			}
		}
		if op.Bool("fail") {
			return nil, fault.New(fault.Failed, "Opcode failure was requested")
		}
		return true, nil
	}, Dry: true}, nil
}

// testOSParams prepares OP_TEST_OS_PARAMS: it shows that secrets have arrived, and keeps them.
func testOSParams(_ context.Context, env *Env) (Plan, error) {
	names := slices.Sorted(maps.Keys(env.Op.Map("osparams_secret")))
	if len(names) == 0 {
		return Plan{}, fault.New(fault.Invalid, "Opcode needs secret parameters").At("osparams_secret")
	}
	return Plan{Do: func(context.Context) (any, error) {
		shown := make([]string, len(names))
		for i, name := range names {
			shown[i] = "'" + name + "': '<redacted>'"
		}
		env.Logf("Secret OS parameters: {%s}", strings.Join(shown, ", "))
		return nil, nil
	}}, nil
}
