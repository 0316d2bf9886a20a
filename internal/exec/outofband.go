package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/outofband"
	"github.com/drover-project/drover/internal/work"
)

// Programs are those that ask management controllers of nodes, on the machine of the controller.
type Programs interface {
	// Check refuses one that may not be run.
	Check(program string) error
	// Run runs one with a command and the name of a node, for so long at most, and returns what it said: fault.Failed if it did not succeed.
	Run(ctx context.Context, program, command, node string, most time.Duration) ([]byte, error)
}

// The verbs of power.
const (
	askController = "ask-controller" // run the program that asks a node's management controller, and note the answer in the result
	recordPower   = "record-power"   // record that a node is on or off, if that was answered
)

// longestWait in seconds bounds how long a program may take, and what is between two of them.
const longestWait = 3600

// The states of rows of the result, as those of a query.
const (
	rowNormal  = 0
	rowNoData  = 2
	rowUnavail = 3
)

// row is what of a node is in the result: its name, and the state with what was answered.
type row [2][2]any

func newRow(node string, state int, answer any) row {
	return row{{rowNormal, node}, {state, answer}}
}

type askArgs struct {
	Command outofband.Command `json:"command"`
	Name    string            `json:"name"` // of the node
	Program string            `json:"program"`
	// Row is that of the result, and Step the place of the step in its work.
	Row  int `json:"row"`
	Step int `json:"step"`
	// Wait is how many seconds pass before, and Timeout how many the program may take.
	Wait    float64 `json:"wait,omitempty"`
	Timeout int64   `json:"timeout"`
}

type recordArgs struct {
	Name    string `json:"name"`
	Row     int    `json:"row"`
	Powered bool   `json:"powered"`
}

var powerVerbs = map[string]verb{
	askController: {act: func(ctx context.Context, env *Env, _ agent.Order, s *work.Step) (any, error) {
		args, err := arguments[askArgs](s)
		if err != nil {
			return nil, err
		}
		rows, err := env.rowsSoFar(args.Row)
		if err != nil {
			return nil, err
		}
		rows[args.Row], err = env.askOnce(ctx, &args)
		return rows, err
	}},
	recordPower: changing(func(env *Env, snap *cluster.Snapshot, s *work.Step, args recordArgs) ([]cluster.Change, any, error) {
		rows, err := env.rowsSoFar(args.Row)
		if err != nil {
			return nil, nil, err
		}
		node := snap.Node(s.Of)
		if state := rows[args.Row][1][0]; state != float64(rowNormal) || node == nil {
			return nil, nil, nil // it was not done, or the node is gone
		}
		next := node.Clone()
		next.Powered = args.Powered
		next.Touch(env.nanos())
		return []cluster.Change{cluster.Put(next)}, nil, nil
	}),
}

// rowsSoFar are those of the result as the steps before have left them.
func (e *Env) rowsSoFar(at int) (rows []row, err error) {
	if err := json.Unmarshal(e.soFar, &rows); err != nil || at >= len(rows) {
		return nil, fault.New(fault.WrongState, "what was answered so far cannot be read: %.200s", e.soFar)
	}
	return rows, nil
}

// askOnce asks a management controller to change something, and returns the row of its node. What cannot be done is in the row, and is told. A node of which
// it is not known whether it was reset is not reset again.
func (e *Env) askOnce(ctx context.Context, args *askArgs) (row, error) {
	if k := e.Kept; k != nil && args.Command == outofband.Cycle && k.Progress.Of(k.Work).Done == args.Step {
		e.Warnf("It is not known whether node %s was reset, for the controller ended meanwhile; it is not reset again", args.Name)
		return newRow(args.Name, rowNoData, nil), nil
	}
	if err := wait(ctx, time.Duration(args.Wait*float64(time.Second))); err != nil {
		return row{}, err
	}
	return e.askController(ctx, args)
}

// wait waits, unless ctx ends before.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fault.New(fault.Canceled, "the wait was interrupted: %w", context.Cause(ctx))
	}
}

// askController asks a management controller, and returns the row of its node.
func (e *Env) askController(ctx context.Context, args *askArgs) (row, error) {
	if e.programs == nil {
		return row{}, noPrograms()
	}
	said, err := e.programs.Run(ctx, args.Program, string(args.Command), args.Name, time.Duration(args.Timeout)*time.Second)
	if ctx.Err() != nil {
		return row{}, fault.New(fault.Canceled, "%s of node %s was interrupted: %w", args.Command, args.Name, context.Cause(ctx))
	}
	if err != nil {
		e.Warnf("Out-of-band RPC failed on node '%s': %v", args.Name, err)
		return newRow(args.Name, rowNoData, nil), nil
	}
	answer, err := outofband.Read(args.Command, said)
	if err != nil {
		e.Warnf("Payload returned by node '%s' is not valid: %v", args.Name, err)
		return newRow(args.Name, rowNoData, nil), nil
	}
	for _, alarm := range answer.Alarms {
		e.Warnf("Item '%s' on node '%s' has status '%s'", alarm[0], args.Name, alarm[1])
	}
	if n := e.snapshot().NodeNamed(args.Name); args.Command == outofband.Status && n != nil && n.Powered != answer.Powered {
		e.Warnf("Recorded power state (%s) of node '%s' does not match actual power state (%s)", pythonBool(n.Powered), args.Name, pythonBool(answer.Powered))
	}
	return newRow(args.Name, rowNormal, answer.Payload), nil
}

func noPrograms() error {
	return fault.New(fault.WrongState, "Out-of-band programs are not enabled").
		WithHint("the setting oob-programs of the controllers names the directories that they are in")
}

// outOfBandNodes are the nodes that OP_OOB_COMMAND names; none for all.
func outOfBandNodes(op *opcode.Opcode, snap *cluster.Snapshot) (nodes []*cluster.Node, err error) {
	for _, name := range op.Strings("node_names") {
		n, err := namedNode(name, snap)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	if len(nodes) > 0 {
		return nodes, nil
	}
	for i, uuid := range op.Strings("node_uuids") {
		n := snap.Node(uuid)
		if n == nil {
			return nil, unknown("Node", uuid).At("node_uuids[" + strconv.Itoa(i) + "]")
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// outOfBandLocks have the nodes alone that are asked about: all, if none is named.
func outOfBandLocks(op *opcode.Opcode, snap *cluster.Snapshot) (request lock.Request, err error) {
	nodes, err := outOfBandNodes(op, snap)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		request = append(request, want(lock.Node, n.UUID, lock.Exclusive))
	}
	if len(nodes) == 0 {
		request = append(request, want(lock.Node, lock.All, lock.Exclusive))
	}
	return request, nil
}

// outOfBand prepares OP_OOB_COMMAND.
func outOfBand(_ context.Context, env *Env) (Plan, error) {
	op, snap := env.Op, env.snapshot()
	if t := op.Int("timeout"); t < 1 || t > longestWait {
		return Plan{}, fault.New(fault.Invalid, "The time-out is to be from 1 to %d seconds, and is %d", longestWait, t).At("timeout")
	}
	if d := op.Float("power_delay"); !(d >= 0 && d <= longestWait) || math.IsNaN(d) {
		return Plan{}, fault.New(fault.Invalid, "The delay between nodes is to be from 0 to %d seconds, and is %v", longestWait, d).At("power_delay")
	}
	named, err := outOfBandNodes(op, snap)
	if err != nil {
		return Plan{}, err
	}
	command := outofband.Command(op.Str("command"))
	targets, err := outofband.Targets(snap, command, named, op.Bool("ignore_status"))
	if err != nil {
		return Plan{}, err
	}
	if err := env.mayRun(targets); err != nil {
		return Plan{}, err
	}
	if !command.Changes() {
		return Plan{Do: func(ctx context.Context) (any, error) { return env.askBeside(ctx, command, targets) }}, nil
	}
	return powerPlan(op, command, targets)
}

// mayRun refuses programs that may not be run.
func (e *Env) mayRun(targets []outofband.Target) error {
	seen := map[string]bool{"": true}
	for _, t := range targets {
		if seen[t.Program] {
			continue
		}
		seen[t.Program] = true
		if e.programs == nil {
			return noPrograms()
		}
		if err := e.programs.Check(t.Program); err != nil {
			return fault.New(fault.CodeOf(err), "The out-of-band program of node %s may not be run: %w", t.Node.Name, err)
		}
	}
	return nil
}

// programs tells of nodes whose management controllers could not be asked, for their programs may not be run.
func (r *report) programs(snap *cluster.Snapshot, nodes []*cluster.Node) {
	for _, n := range nodes {
		if err := r.env.mayRun([]outofband.Target{{Node: n, Program: outofband.Program(snap, n)}}); err != nil {
			r.problemf("ENODEOOBPATH", "node", n.Name, "%v", err)
		}
	}
}

// powerPlan switches nodes one behind the other, and records what each of them is then.
func powerPlan(op *opcode.Opcode, command outofband.Command, targets []outofband.Target) (Plan, error) {
	rows, w, delay := make([]row, len(targets)), &work.Work{}, 0.0
	words := map[outofband.Command]string{outofband.On: "switch node %s on", outofband.Off: "switch node %s off", outofband.Cycle: "reset node %s"}
	for i, t := range targets {
		node := t.Node
		if t.Program == "" {
			rows[i] = newRow(node.Name, rowUnavail, nil)
			continue
		}
		rows[i] = newRow(node.Name, rowNoData, nil)
		ask := onNode(askController, node.UUID, node.UUID, fmt.Sprintf(words[command]+" by %s", node.Name, t.Program), askArgs{
			Command: command, Name: node.Name, Program: t.Program, Row: i, Step: len(w.Steps), Wait: delay, Timeout: op.Int("timeout"),
		})
		ask.Anew = command == outofband.Cycle // it is not to come twice
		w.Steps = append(w.Steps, ask)
		if on := command.Powered(); on != nil {
			w.Steps = append(w.Steps, inInventory(recordPower, node.UUID, "record what "+node.Name+" is then", recordArgs{node.Name, i, *on}))
		}
		if command == outofband.On {
			delay = op.Float("power_delay")
		}
	}
	if len(w.Steps) == 0 {
		return answer(rows), nil
	}
	var err error
	w.Result, err = encodeResult(rows)
	return Plan{Work: w}, err
}

// askBeside asks management controllers beside one another, which changes nothing.
func (e *Env) askBeside(ctx context.Context, command outofband.Command, targets []outofband.Target) (any, error) {
	rows, errs := make([]row, len(targets)), make([]error, len(targets))
	beside(len(targets), fewAtOnce, func(i int) {
		t := targets[i]
		if t.Program == "" {
			rows[i] = newRow(t.Node.Name, rowUnavail, nil)
			return
		}
		rows[i], errs[i] = e.askController(ctx, &askArgs{Command: command, Name: t.Node.Name, Program: t.Program, Timeout: e.Op.Int("timeout")})
	})
	return rows, errors.Join(errs...)
}
