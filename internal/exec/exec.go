// Package exec holds what each opcode does: one entry per opcode in a table,
// with the locks it needs and what it plans; the verbs that plans are made of; and the engine that
// carries plans out, takes back what failed and goes on behind a restart.
//
// Invariants:
//   - Locks is a function of the opcode and the inventory alone. Nothing is done
//     without them: an opcode of which they could not be told asks again.
//   - Prepare changes nothing. What it refuses is a failed prerequisite; what
//     goes wrong later is a failed execution, whatever its cause.
//   - A dry run is Prepare without the work that it returns, and the steps that it shows are those that are carried out
//     (TestStepsThatAreShownAreCarriedOut).
//   - Only the engine and its verbs give orders to nodes, change the inventory and take something back (TestExecutorsGiveNoOrders).
//   - An opcode whose controller was killed, whenever that was, comes to what it comes to undisturbed under the next one, and nothing
//     that may not be done twice is (TestKilledAnywhere).
//   - What an order does that may be repeated it does not do twice: run again, also by another leader, it leaves what once leaves
//     (TestStepsRunTwiceLeaveWhatOnceLeaves).
//   - That a step is done is stored in the transaction of what it changes (TestNotesGoWithTheirChange in package inventory).
//   - The inventory tells of a change on a node after the node has made it, and
//     forgets a thing after the node has removed it; it forgets a disk of an instance before.
//   - What is ordered of an instance is ordered by its UUID, and nothing is done to anything else that a node has under
//     its name. A creation goes on beside what an earlier one left there, and clears nothing away (TestStrangers*, TestCreate*).
//   - A change of the inventory of which the store cannot say what became of it is
//     looked up (inventory.Keeper.Update); as long as that is not known nothing is undone.
//   - Opcodes that a program of before began say whether they may be run again, and why (Resumable).
package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hooks"
	"github.com/drover-project/drover/internal/inventory"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/work"
)

// Executor is one opcode's entry in the catalogue.
type Executor struct {
	// Locks tells what the opcode needs to hold before Prepare. Every opcode
	// shares the cluster lock besides, unless it asks for it itself.
	Locks func(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error)
	// Asks says that the opcode has nodes do something, or tell: those whose locks it asks for. Others change the inventory alone.
	Asks bool
	// Prepare checks everything that can be known before and returns the work.
	Prepare func(ctx context.Context, env *Env) (Plan, error)
	// Programs are those that it runs on the machine of the controller; nil for none.
	Programs Programs
	// Machine is that of the controller, if it does something there; nil if not.
	Machine Machine
	// Resumable opcodes may be run again from the beginning after the
	// controller died while they ran. It counts for those of which nothing was kept: programs of before began them.
	Resumable bool
	// Why says why it is resumable or not, for people.
	Why string
}

// Plan is what Prepare decided: steps, one change of the inventory, or something else that is done.
type Plan struct {
	// Work are the steps of an opcode that does several things; of which not all are known to have been done, another controller goes
	// on with it.
	Work *work.Work
	// Again is asked when all that was done of the work was taken back: whether another one is to be planned.
	Again func(cause error) bool
	// Change is the change of the inventory that the opcode is, with its result.
	Change func(*cluster.Snapshot) (changes []cluster.Change, result any, err error)
	// Do does what is neither: it answers, waits or submits.
	Do func(ctx context.Context) (any, error)
	// Dry is the result of a dry run.
	Dry any
	// Decided is what hooks are told of what was decided, as far as the opcode does not name it.
	Decided hooks.Subject
	// Heed is told which scripts behind the opcode failed, and returns the opcode's result if that says so; nil if it makes no difference.
	Heed func(failed []hooks.Refusal) any
	// First is the step of the scripts that may refuse the opcode, which a dry run runs, too; nil for none.
	First *work.Step
}

// Submitted says what became of a job that a job submitted.
type Submitted struct {
	ID  job.ID
	Err error
}

// Env is what an opcode finds when it runs.
type Env struct {
	Job   job.ID
	Index int
	// Resumed says that the opcode had begun when another controller, or this one
	// before, ended: nothing that is wrong with it now means that nothing was done.
	Resumed bool
	// Began is when it had begun to run then; zero if it had not, or nobody knows.
	Began time.Time
	// Kept is what the controller before kept of the opcode; nil if it kept nothing.
	Kept *Kept
	// Undo says that the opcode was being killed then: what it did is taken back.
	Undo bool
	// Stepwise says that what the opcode does is kept: its steps by Keep, which returns when that is durable, and how far it came in the
	// transactions of the inventory.
	Stepwise bool
	Keep     func(ctx context.Context, w *work.Work) error
	// Format is the present one of the store.
	Format int
	// Locks are those that the opcode holds.
	Locks lock.Request
	// Show is told how far the opcode came, whenever that changes; nil for nobody.
	Show func(steps []job.Step)
	// LeftBehind is told what could not be taken back, and why; nil for nobody.
	LeftBehind func(what string, err error)
	// Placed is told how the node of a new instance was chosen, or that none was, as package placement keeps it; nil for nobody.
	Placed func(decision json.RawMessage)
	// Term ends when the controller's does; nil is for never. The context of an opcode ends also when its job is ended.
	Term context.Context
	// Unlocked says that the opcode holds no locks, for nobody could tell which it
	// needs: what it names was not there.
	Unlocked bool
	// Epoch is that of the leader's lease, under which nodes are given orders.
	Epoch int64
	// Life is that of the store: things on nodes that were made under it say by which job of this queue.
	Life      string
	Op        *opcode.Opcode
	Inventory *inventory.Keeper
	Nodes     Nodes
	// Uploads are the files of images that users brought; nil where there are none.
	Uploads Uploads
	// Log leaves an entry of a type in the opcode's log; payload must encode
	// to JSON.
	Log func(kind string, payload any)
	// Release gives locks back early.
	Release func(names ...lock.Name)
	// Submit submits jobs, each a list of opcodes, which inherit what children
	// inherit: the trail, the urgency, and a comment that names the parent.
	Submit  func(ctx context.Context, jobs [][]*opcode.Opcode) ([]Submitted, error)
	Now     func() time.Time
	NewUUID func() string

	steps atomic.Int64 // orders given outside of steps
	noted atomic.Bool  // something is kept of what the opcode does
	try   int          // of the work
	// full are the nodes that had no room for what was to be created after all, by UUID, with why.
	full map[string]string
	// places are those that creations have chosen; nil for one that goes on behind a restart.
	places *places
	// found is the image that a node fetched, as it is.
	found *agent.Image
	// placement is what was decided last, as Placed is told it.
	placement json.RawMessage
	// change and do are those of a plan that has become a step, and heed is the plan's.
	change func(*cluster.Snapshot) (changes []cluster.Change, result any, err error)
	do     func(ctx context.Context) (any, error)
	heed   func(failed []hooks.Refusal) any
	// programs and machine are the executor's, and soFar is the result that the steps have left before the one that is carried out.
	programs Programs
	machine  Machine
	// renewed is what became of certificates of agents that were to be renewed; nil before.
	renewed *renewals
	soFar   json.RawMessage

	mu      sync.Mutex
	visited []string // names of nodes
	ends    []func()
}

// passOver has a node not chosen again, and remembers why.
func (e *Env) passOver(node string, why error) {
	if e.full == nil {
		e.full = map[string]string{}
	}
	e.full[node] = why.Error()
}

// Noted reports whether something is kept of what the opcode does, which is to be removed with its end.
func (e *Env) Noted() bool { return e.noted.Load() || e.Kept != nil }

// atEnd has something done when the opcode is over, however it ends.
func (e *Env) atEnd(f func()) { e.ends = append(e.ends, f) }

// end does what is to be done when the opcode is over.
func (e *Env) end() {
	for _, f := range e.ends {
		f()
	}
}

// Logf leaves a message in the opcode's log.
func (e *Env) Logf(format string, args ...any) {
	e.Log(job.LogMessage, fmt.Sprintf(format, args...))
}

// Infof leaves a message that clients show as information.
func (e *Env) Infof(format string, args ...any) { e.Logf(" - INFO: "+format, args...) }

// firstf is Infof, but for a work that is planned again: it was said then.
func (e *Env) firstf(format string, args ...any) {
	if e.try == 0 {
		e.Infof(format, args...)
	}
}

// firstWarnf is Warnf, likewise.
func (e *Env) firstWarnf(format string, args ...any) {
	if e.try == 0 {
		e.Warnf(format, args...)
	}
}

// Warnf leaves a message that clients show as a warning.
func (e *Env) Warnf(format string, args ...any) { e.Logf(" - WARNING: "+format, args...) }

// Visited returns the nodes that the opcode has worked with, in the order in
// which it turned to them first.
func (e *Env) Visited() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.visited)
}

// visit takes note that the opcode turns to a node.
func (e *Env) visit(node string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Contains(e.visited, node) {
		e.visited = append(e.visited, node)
	}
}

// snapshot returns the newest inventory.
func (e *Env) snapshot() *cluster.Snapshot { return e.Inventory.Snapshot() }

// nanos returns the time for inventory objects.
func (e *Env) nanos() int64 { return e.Now().UnixNano() }

// Catalogue maps OP_IDs to their executors.
type Catalogue map[string]Executor

// Locks returns what an opcode needs to hold. An opcode without an executor
// needs nothing: it will be refused when it runs.
func (c Catalogue) Locks(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	x, known := c[op.ID]
	if !known {
		return nil, nil
	}
	if x.Locks == nil {
		return shareCluster, nil
	}
	request, err := x.Locks(op, snap)
	if err != nil {
		return nil, err
	}
	return append(request, shareCluster...), nil
}

// Nodes returns with which nodes an opcode works, by UUID, as far as that can be told before it begins: those that it has do something, and
// whose locks it asks for by name. One that is marked offline is told nothing, and not waited for.
func (c Catalogue) Nodes(op *opcode.Opcode, snap *cluster.Snapshot) (uuids []string) {
	x := c[op.ID]
	if !x.Asks || x.Locks == nil {
		return nil
	}
	request, err := x.Locks(op, snap)
	if err != nil {
		return nil // it will be told
	}
	for _, w := range request {
		n := snap.Node(w.Name.Item)
		if w.Name.Level == lock.Node && w.Name.Item != lock.All && (n == nil || !n.Offline) {
			uuids = append(uuids, w.Name.Item)
		}
	}
	return uuids
}

// Resumable reports whether an opcode may be run again after the controller
// died while it ran, and why or why not.
func (c Catalogue) Resumable(id string) (resumable bool, why string) {
	x, known := c[id]
	if !known {
		return true, "it is refused anyway: it has no executor"
	}
	return x.Resumable, x.Why
}

// Run carries an opcode out and returns its result. An error of one of the
// prerequisite codes means that nothing was begun; Failed, that work was begun
// and did not succeed; Canceled, Unavailable and Fenced, that it was
// interrupted.
func (c Catalogue) Run(ctx context.Context, env *Env) (json.RawMessage, error) {
	result, err := c.run(ctx, env)
	if err != nil && env.Resumed && (!env.Stepwise || env.Kept != nil || c[env.Op.ID].Resumable) {
		return nil, begun(err)
	}
	return result, err
}

// Check tells what an opcode would come to, and changes nothing: the result of its dry
// run, which is the answer of one that only asks. It needs no job and holds no locks, so
// what it tells may be different when the opcode runs. With it come the steps of one that does several things.
func (c Catalogue) Check(ctx context.Context, env *Env) (json.RawMessage, []job.Step, error) {
	x, known := c[env.Op.ID]
	if !known {
		return nil, nil, opcode.Unsupported(env.Op.ID)
	}
	env.programs, env.machine = x.Programs, x.Machine
	defer env.end()
	if err := env.destroyed(); err != nil {
		return nil, nil, err
	}
	plan, err := x.Prepare(ctx, env)
	if err != nil {
		return nil, nil, err
	}
	plan = env.hooked(ctx, plan)
	result, err := encodeResult(plan.Dry)
	if plan.Work == nil || err != nil {
		return result, nil, err
	}
	if _, err := plan.Work.Encode(); err != nil { // it is beyond the bounds
		return nil, nil, err
	}
	return result, env.shownSteps(plan.Work, work.Progress{}), nil
}

func (c Catalogue) run(ctx context.Context, env *Env) (json.RawMessage, error) {
	x, known := c[env.Op.ID]
	if !known {
		return nil, opcode.Unsupported(env.Op.ID)
	}
	env.programs, env.machine = x.Programs, x.Machine
	defer env.end()
	if env.Kept != nil {
		if err := env.replanned(ctx, &x); err != nil {
			return nil, begun(err)
		}
		result, err := env.goOn(ctx, env.Kept)
		switch {
		case err == nil:
			return result, nil
		case !env.elsewhere(err):
			return nil, begun(err)
		}
		env.try++
	}
	if err := env.destroyed(); err != nil {
		return nil, err
	}
	if err := lostSecret(env.Op); err != nil {
		return nil, err
	}
	op := env.Op // Prepare may put another in its place
	if env.Unlocked && errors.Is(c.unlocked(op, env), ErrAskAgain) {
		return nil, ErrAskAgain
	}
	for {
		plan, err := x.Prepare(ctx, env)
		switch {
		case err != nil && env.try > 0:
			return nil, begun(err)
		case err != nil:
			return nil, err
		case env.Unlocked:
			return nil, c.unlocked(op, env)
		case env.try == 0 && c.meansOthers(op, env):
			return nil, ErrAskAgain
		}
		plan = env.hooked(ctx, plan)
		if env.Op.DryRun {
			return env.dryRun(ctx, &plan)
		}
		result, err := env.carryOut(ctx, &plan)
		switch {
		case err == nil:
			return result, nil
		case plan.Again == nil || !plan.Again(err):
			return nil, begun(err)
		}
		env.try++
	}
}

// dryRun is what an opcode comes to that is not to be carried out: scripts may refuse it, as in the reference.
func (e *Env) dryRun(ctx context.Context, plan *Plan) (json.RawMessage, error) {
	if plan.First != nil {
		if _, err := newEngine(e, &work.Work{Steps: []work.Step{*plan.First}, Replanned: true}, work.Progress{}).run(ctx); err != nil {
			return nil, begun(err)
		}
	}
	e.Infof("dry-run mode requested, not actually executing the operation")
	return encodeResult(plan.Dry)
}

// lostSecret refuses an opcode whose secret was lost.
func lostSecret(op *opcode.Opcode) error {
	name := op.LostSecret()
	if name == "" {
		return nil
	}
	return fault.New(fault.WrongState, "the parameter %s of %s was lost when the controller ended: secrets are not stored", name, op.ID).
		At(name).WithHint("submit the job again")
}

// ErrAskAgain is how Run ends for an opcode that needs other locks than it has: what it
// names came while it was to begin without any (Env.Unlocked), or is something else by
// now, say the only instance that is left of those that a short name could mean. Nothing
// was done. It is not for clients: whoever runs opcodes gets the locks and runs it again.
var ErrAskAgain = fault.New(fault.Conflict, "the opcode needs other locks than could be told when it began")

// meansOthers reports whether an opcode needs other locks than it has, now that what it will
// do is planned: a plan is carried out under the locks of what it is about.
func (c Catalogue) meansOthers(op *opcode.Opcode, env *Env) bool {
	if env.Locks == nil || c[op.ID].Locks == nil {
		return false
	}
	request, err := c.Locks(op, env.snapshot())
	return err == nil && !request.Equal(env.Locks)
}

// unlocked is why an opcode without locks does not go on: ErrAskAgain, or that they
// cannot be told now either.
func (c Catalogue) unlocked(op *opcode.Opcode, env *Env) error {
	if _, err := c.Locks(op, env.snapshot()); err != nil {
		return err
	}
	return ErrAskAgain
}

// begun turns an error that came up during the work into one that says so.
// Interruptions keep their code: the queue needs to tell them apart.
func begun(err error) error {
	switch fault.CodeOf(err) {
	case fault.Failed, fault.Canceled, fault.Fenced, fault.Unavailable:
		return err
	}
	return fault.New(fault.Failed, "%w", err)
}

// unsure tells an error of a change of the inventory after which nobody knows whether
// it was made: nothing is undone upon it.
func unsure(err error) bool { return fault.Is(err, fault.Unavailable) }

// failed returns the error of work on a node that did not succeed.
func failed(err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if code := fault.CodeOf(err); code == fault.Canceled || code == fault.Fenced {
		return fault.New(code, "%s: %w", what, err)
	}
	return fault.New(fault.Failed, "%s: %w", what, err)
}

func encodeResult(result any) (json.RawMessage, error) {
	if result == nil { // most opcodes have none, and an encoder needs a stack that their goroutines have not
		return json.RawMessage("null"), nil
	}
	out, err := json.Marshal(result)
	if err != nil {
		return nil, fault.New(fault.Internal, "the opcode's result cannot be encoded: %w", err)
	}
	return out, nil
}
