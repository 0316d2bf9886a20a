// Package exec holds what each opcode does: one entry per opcode in a table,
// with the locks it needs, the checks before it begins, and its work.
//
// Invariants:
//   - Locks is a function of the opcode and the inventory alone. Nothing is done
//     without them: an opcode of which they could not be told asks again.
//   - Prepare changes nothing. What it refuses is a failed prerequisite; what
//     goes wrong later is a failed execution, whatever its cause.
//   - A dry run is Prepare without the work that it returns.
//   - The inventory tells of a change on a node after the node has made it, and
//     forgets a thing after the node has removed it.
//   - Nothing is cleared from a node that somebody may miss: what a creation that
//     died half way left there says so itself (hypervisor.Instance.Blank), and the
//     next one under the same name clears it away. Any other stranger is refused.
//   - A change of the inventory of which the store cannot say what became of it is
//     looked up (inventory.Keeper.Update); as long as that is not known nothing is undone.
//   - Opcodes that may be run again after a crash say so and why (Resumable).
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

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/inventory"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
)

// Executor is one opcode's entry in the catalogue.
type Executor struct {
	// Locks tells what the opcode needs to hold before Prepare. Every opcode
	// shares the cluster lock besides, unless it asks for it itself.
	Locks func(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error)
	// Prepare checks everything that can be known before and returns the work.
	Prepare func(ctx context.Context, env *Env) (Plan, error)
	// Resumable opcodes may be run again from the beginning after the
	// controller died while they ran.
	Resumable bool
	// Why says why it is resumable or not, for people.
	Why string
}

// Plan is what Prepare decided.
type Plan struct {
	// Do carries the work out and returns the opcode's result.
	Do func(ctx context.Context) (any, error)
	// Dry is the result of a dry run.
	Dry any
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
	// Unlocked says that the opcode holds no locks, for nobody could tell which it
	// needs: what it names was not there.
	Unlocked bool
	// Epoch is that of the leader's lease, under which nodes are given orders.
	Epoch     int64
	Op        *opcode.Opcode
	Inventory *inventory.Keeper
	Nodes     Nodes
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

	steps atomic.Int64 // orders given

	mu      sync.Mutex
	visited []string // names of nodes
	ends    []func()
}

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
	if err != nil && env.Resumed {
		return nil, begun(err)
	}
	return result, err
}

// Check tells what an opcode would come to, and changes nothing: the result of its dry
// run, which is the answer of one that only asks. It needs no job and holds no locks, so
// what it tells may be different when the opcode runs.
func (c Catalogue) Check(ctx context.Context, env *Env) (json.RawMessage, error) {
	x, known := c[env.Op.ID]
	if !known {
		return nil, opcode.Unsupported(env.Op.ID)
	}
	defer env.end()
	plan, err := x.Prepare(ctx, env)
	if err != nil {
		return nil, err
	}
	return encodeResult(plan.Dry)
}

func (c Catalogue) run(ctx context.Context, env *Env) (json.RawMessage, error) {
	x, known := c[env.Op.ID]
	if !known {
		return nil, opcode.Unsupported(env.Op.ID)
	}
	if name := env.Op.LostSecret(); name != "" {
		return nil, fault.New(fault.WrongState, "the parameter %s of %s was lost when the controller ended: secrets are not stored", name, env.Op.ID).
			At(name).WithHint("submit the job again")
	}
	defer env.end()
	op := env.Op // Prepare may put another in its place
	if env.Unlocked && errors.Is(c.unlocked(op, env), ErrAskAgain) {
		return nil, ErrAskAgain
	}
	plan, err := x.Prepare(ctx, env)
	if err != nil {
		return nil, err
	}
	if env.Unlocked {
		return nil, c.unlocked(op, env)
	}
	if env.Op.DryRun {
		env.Infof("dry-run mode requested, not actually executing the operation")
		return encodeResult(plan.Dry)
	}
	result, err := plan.Do(ctx)
	if err != nil {
		return nil, begun(err)
	}
	return encodeResult(result)
}

// ErrAskAgain is how Run ends for an opcode without locks (Env.Unlocked) that needs
// some by now: what it names has come while it was to begin. Nothing was done. It is
// not for clients: whoever runs opcodes gets the locks and runs it again.
var ErrAskAgain = fault.New(fault.Conflict, "the opcode needs locks that could not be told when it began")

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
