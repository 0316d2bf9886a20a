package exec

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/work"
)

// The kinds of objects that hold what opcodes that have begun do.
const (
	// KindWork is the steps of an opcode, written before the first of them begins (Env.Keep).
	KindWork store.Kind = "work"
	// KindStep is how far it came: written with what a step changes in the inventory, in one transaction.
	KindStep store.Kind = "step"
)

// RecordID is the id of both objects of an opcode of a job.
func RecordID(id job.ID, index int) string { return id.String() + "/" + strconv.Itoa(index) }

// Kept is what was found of an opcode that had begun when the controller ended.
type Kept struct {
	// Work is nil for an opcode that is one change of the inventory: then its progress says that it was made.
	Work     *work.Work
	Progress work.Progress
}

// Readable refuses what was kept if this program cannot go on with it.
func (k Kept) Readable() error {
	if k.Work == nil {
		return nil
	}
	for i := range k.Work.Steps {
		for s := &k.Work.Steps[i]; s != nil; s = s.Undo {
			if _, known := verbs[s.Verb]; !known {
				return fault.New(fault.Unsupported, "its step %d, %s, is none that this program knows (%s)", i+1, s.Text, s.Verb)
			}
		}
	}
	return nil
}

// verb is what steps of a kind do: they give an order to a node, or change the inventory, or act on several nodes or none.
type verb struct {
	order  func(ctx context.Context, env *Env, node Node, order agent.Order, step *work.Step) error
	change func(env *Env, snap *cluster.Snapshot, step *work.Step) (changes []cluster.Change, result any, err error)
	act    func(ctx context.Context, env *Env, order agent.Order, step *work.Step) (result any, err error)
}

// engine carries the steps of an opcode out, or goes on with them.
type engine struct {
	env   *Env
	work  *work.Work
	at    work.Progress
	noted int        // how many steps are done by what is durable
	shown []job.Step // nil for a work of one step
	cause error      // why it is taken back
}

func newEngine(env *Env, w *work.Work, at work.Progress) *engine {
	g := &engine{env: env, work: w, at: at, noted: at.Done}
	if len(w.Steps) > 1 {
		g.shown = env.shownSteps(w, at)
		env.show(g.shown)
	}
	return g
}

// shownSteps are the steps of a work as jobs have them.
func (e *Env) shownSteps(w *work.Work, at work.Progress) []job.Step {
	snap := e.snapshot()
	return w.Shown(at, func(uuid string) string { return nodeName(snap, uuid) })
}

// errKilled ends an opcode whose job was being killed when the controller ended.
var errKilled = fault.New(fault.Failed, job.Killed)

// run carries out what is left to do and returns the opcode's result. When a step fails, what was done is taken back, unless it
// has to stay. Where the term of the controller is over, or nobody knows what became of a change, nothing is: the next controller
// goes on, or somebody has to look.
func (g *engine) run(ctx context.Context) (json.RawMessage, error) {
	for {
		s := g.work.Next(g.at)
		if s == nil {
			return g.result(), nil
		}
		err := g.interruption(ctx)
		if err == nil {
			err = g.step(ctx, s)
		}
		switch {
		case err == nil:
		case g.env.over() || fault.Is(err, fault.Fenced):
			return nil, err
		case unsure(err):
			g.env.Warnf("It is not known whether this was done: %s; nothing is taken back, what was done before is left as it is", s.Text)
			g.tellLeft()
			return nil, err
		case g.work.Stays(g.at):
			g.set(g.at.Done, g.failed(s))
			g.tellNotReached()
			return nil, err
		default:
			g.cause = err
			g.takeBack()
			return nil, g.cause
		}
	}
}

// tellLeft tells what the steps that were done leave, should it turn out that the one behind them was not.
func (g *engine) tellLeft() {
	for _, s := range g.work.Steps[:g.at.Done] {
		if s.Undo != nil && s.Undo.Left != "" {
			g.env.Warnf("If it was not: %s", s.Undo.Left)
		}
	}
}

// tellNotReached tells what the steps that will not be begun would have taken away, behind one upon which everything stays.
func (g *engine) tellNotReached() {
	if !slices.ContainsFunc(g.work.Steps[:g.at.Done], func(s work.Step) bool { return s.Keeps }) {
		return // nothing came about
	}
	for _, s := range g.work.Steps[min(g.at.Done+1, len(g.work.Steps)):] {
		if s.Left != "" {
			g.env.Warnf("%s", s.Left)
		}
	}
}

// interruption is why the next step is not to begin, if it is not.
func (g *engine) interruption(ctx context.Context) error {
	if g.env.Undo {
		return errKilled
	}
	if ctx.Err() != nil {
		return fault.New(fault.Canceled, "the job was ended before its step %d, %s: %w", g.at.Done+1, g.work.Next(g.at).Text, context.Cause(ctx))
	}
	return nil
}

func (g *engine) result() json.RawMessage {
	switch {
	case g.at.Result != nil:
		return g.at.Result
	case g.work.Result != nil:
		return g.work.Result
	}
	return json.RawMessage("null")
}

// step carries one step out.
func (g *engine) step(ctx context.Context, s *work.Step) error {
	// A change of the inventory takes its note along: if it is not made nothing behind the step before has begun.
	if g.records() && verbs[s.Verb].change == nil && g.work.Sealed(g.at, g.noted) {
		if err := g.note(ctx); err != nil {
			return err
		}
	}
	for _, line := range s.Says {
		g.env.Logf("%s", line)
	}
	g.set(g.at.Done, job.StepRunning)
	err := g.do(ctx, s)
	if err != nil && s.Tolerated && !g.env.over() && !unsure(err) && !fault.Is(err, fault.Fenced) && ctx.Err() == nil {
		g.env.Logf("Warning: %s: %v", s.Fails, err)
		if s.Left != "" {
			g.env.Warnf("%s", s.Left)
		}
		g.set(g.at.Done, g.failed(s))
		g.at.Done++
		return nil
	}
	if err != nil {
		return err
	}
	for _, line := range s.Ends {
		g.env.Logf("%s", line)
	}
	g.set(g.at.Done, job.StepDone)
	g.at.Done++
	return nil
}

// do does what a step says: it acts, gives an order, or changes the inventory, and notes with the change how far the work came.
func (g *engine) do(ctx context.Context, s *work.Step) error {
	v, known := verbs[s.Verb]
	g.env.soFar = g.result()
	switch {
	case !known:
		return fault.New(fault.Internal, "there is no step %q", s.Verb)
	case v.act != nil:
		result, err := v.act(ctx, g.env, g.numbered(g.at.Done, false), s)
		if err == nil && result != nil {
			g.at.Result, err = encodeResult(result)
		}
		return err
	case v.order != nil:
		err := g.order(ctx, v, s, g.at.Done, false)
		if err != nil && !s.Tolerated && s.Fails != "" {
			return failed(err, "%s", s.Fails)
		}
		return err
	}
	next := g.at
	next.Done++
	err := g.env.changeNoted(ctx, g.records(), func(snap *cluster.Snapshot) ([]cluster.Change, work.Progress, error) {
		changes, result, err := v.change(g.env, snap, s)
		if err == nil && result != nil {
			next.Result, err = encodeResult(result)
		}
		return changes, next, err
	})
	if err == nil {
		g.at.Result, g.noted = next.Result, next.Done
	}
	return err
}

// order gives the order of a step, or the one that takes it back, to the step's node. Its name is the same whoever gives it.
func (g *engine) order(ctx context.Context, v verb, s *work.Step, index int, undo bool) error {
	node, err := g.env.nodeByUUID(s.Node)
	if err != nil {
		return err
	}
	if most := node.Away(); most > 0 {
		g.env.Warnf("Node %s is away: \"%s\" waits for it, for %s at most", node.Node(), s.Text, most)
	}
	return v.order(ctx, g.env, node, g.numbered(index, undo), s)
}

// numbered is the order of a step, or of the one that takes it back.
func (g *engine) numbered(index int, undo bool) agent.Order {
	number := 2 * g.work.Try
	if undo {
		number++
	}
	return g.env.orderNumber(number*work.MaxSteps + index + 1)
}

// records reports whether it is kept how far the work came.
func (g *engine) records() bool { return g.env.Stepwise && !g.work.Replanned }

// note makes durable how far the work came.
func (g *engine) note(ctx context.Context) error {
	err := g.env.changeNoted(ctx, true, func(*cluster.Snapshot) ([]cluster.Change, work.Progress, error) { return nil, g.at, nil })
	if err == nil {
		g.noted = g.at.Done
	}
	return err
}

// takeBack takes back what was done, the newest step first and the failed one among them. The end of the job does not end it, the
// end of the controller's term does. What cannot be taken back is told, with what to do about it.
func (g *engine) takeBack() {
	ctx := g.env.term()
	g.set(g.at.Done, g.failed(g.work.Next(g.at)))
	for g.at = g.at.Fail(); ; {
		s := g.work.Next(g.at)
		if s == nil {
			return
		}
		i := g.work.Index(s)
		err := g.reverse(ctx, s, i)
		if g.env.over() {
			return // whoever leads next goes on with it
		}
		switch {
		case err != nil:
			g.env.Warnf("%s: %v", s.Undo.Fails, err)
			if g.env.LeftBehind != nil {
				g.env.LeftBehind(s.Undo.Fails, err)
			}
			if s.Undo.Left != "" {
				g.env.Warnf("%s", s.Undo.Left)
			}
			g.set(i, job.StepLeft)
			if s.Undo.Needed {
				return
			}
		default:
			g.set(i, job.StepUndone)
		}
		g.at = g.at.Undone(i)
	}
}

// failed is what a step that failed came to: an order may have been carried out by half, and a change of the inventory is made or not.
func (g *engine) failed(s *work.Step) job.StepState {
	if verbs[s.Verb].order == nil {
		return job.StepUndone
	}
	return job.StepLeft
}

// reverse takes one step back.
func (g *engine) reverse(ctx context.Context, s *work.Step, i int) error {
	back := *s.Undo
	back.Node, back.Of = s.Node, s.Of
	err := g.order(ctx, verbs[back.Verb], &back, i, true)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Exists) {
		return nil // nothing of it is there, though perhaps something else under its name
	}
	return err
}

// set shows that a step came to a state.
func (g *engine) set(i int, state job.StepState) {
	if g.shown == nil {
		return
	}
	steps := make([]job.Step, len(g.shown))
	copy(steps, g.shown)
	now := job.At(g.env.Now())
	if state == job.StepRunning {
		steps[i].From = now
	} else {
		steps[i].To = now
	}
	steps[i].State = state
	g.shown = steps
	g.env.show(steps)
}

// noted is a change of the inventory, and how far the opcode came with it.
type noted func(*cluster.Snapshot) ([]cluster.Change, work.Progress, error)

// changeNoted changes the inventory, and notes with it how far the opcode came if that is kept. Instances and nodes of which a
// change is counted remember by which job it was made, and why.
func (e *Env) changeNoted(ctx context.Context, keeps bool, change noted) error {
	return e.Inventory.UpdateNoted(ctx, func(snap *cluster.Snapshot) ([]cluster.Change, []store.Put, error) {
		changes, at, err := change(snap)
		if err != nil {
			return nil, nil, err
		}
		e.remember(snap, changes)
		if !keeps {
			return changes, nil, nil
		}
		e.noted.Store(true)
		text, err := json.Marshal(at)
		if err != nil {
			return nil, nil, fault.New(fault.Internal, "how far the opcode came cannot be written: %w", err)
		}
		return changes, []store.Put{{Key: store.Key{Kind: KindStep, ID: RecordID(e.Job, e.Index)}, Value: text}}, nil
	})
}

// carryOut does what Prepare planned, or goes on with what was kept of it, and returns the opcode's result.
func (e *Env) carryOut(ctx context.Context, plan *Plan) (json.RawMessage, error) {
	switch {
	case plan.Work != nil:
		plan.Work.Try = e.try
		return e.begin(ctx, plan.Work)
	case plan.Change != nil:
		return e.changeOnce(ctx, plan)
	}
	result, err := plan.Do(ctx)
	if err != nil {
		return nil, err
	}
	return encodeResult(result)
}

// begin keeps the steps of an opcode, and carries them out.
func (e *Env) begin(ctx context.Context, w *work.Work) (json.RawMessage, error) {
	if e.Stepwise && !w.Replanned {
		w.Locks, w.Placement = e.Locks, e.placement
		e.noted.Store(true)
		if err := e.Keep(ctx, w); err != nil {
			return nil, err
		}
	}
	return newEngine(e, w, work.Progress{Try: w.Try}).run(ctx)
}

// changeOnce makes the one change that an opcode is.
func (e *Env) changeOnce(ctx context.Context, plan *Plan) (json.RawMessage, error) {
	var result json.RawMessage
	err := e.changeNoted(ctx, e.Stepwise, func(snap *cluster.Snapshot) ([]cluster.Change, work.Progress, error) {
		changes, answer, err := plan.Change(snap)
		if err == nil {
			result, err = encodeResult(answer)
		}
		return changes, work.Progress{Done: 1, Result: result}, err
	})
	return result, err
}

// goOn goes on with what was kept of an opcode.
func (e *Env) goOn(ctx context.Context, kept *Kept) (json.RawMessage, error) {
	if kept.Work == nil {
		e.Infof("what it changes was changed before the controller ended")
		if kept.Progress.Result == nil {
			return json.RawMessage("null"), nil
		}
		return kept.Progress.Result, nil
	}
	e.try = kept.Work.Try
	return newEngine(e, kept.Work, kept.Progress.Of(kept.Work)).run(ctx)
}

// show hands over how far the opcode came.
func (e *Env) show(steps []job.Step) {
	if e.Show != nil {
		e.Show(steps)
	}
}

// over reports whether the controller's term is over: whatever is left half done is for the next one.
func (e *Env) over() bool { return e.term().Err() != nil }

func (e *Env) term() context.Context {
	if e.Term == nil {
		return context.Background()
	}
	return e.Term
}

// nodeByUUID returns the agent of a node.
func (e *Env) nodeByUUID(uuid string) (Node, error) {
	node := e.snapshot().Node(uuid)
	if node == nil {
		return nil, fault.New(fault.NotFound, "the node with UUID %s is not in the cluster any more", uuid)
	}
	return e.agent(node)
}

// ordering is a verb that gives an order to a node, with its arguments.
func ordering[A any](f func(ctx context.Context, env *Env, node Node, order agent.Order, step *work.Step, args A) error) verb {
	return verb{order: func(ctx context.Context, env *Env, node Node, order agent.Order, step *work.Step) error {
		args, err := arguments[A](step)
		if err != nil {
			return err
		}
		return f(ctx, env, node, order, step, args)
	}}
}

// changing is a verb that changes the inventory, with its arguments.
func changing[A any](f func(env *Env, snap *cluster.Snapshot, step *work.Step, args A) ([]cluster.Change, any, error)) verb {
	return verb{change: func(env *Env, snap *cluster.Snapshot, step *work.Step) ([]cluster.Change, any, error) {
		args, err := arguments[A](step)
		if err != nil {
			return nil, nil, err
		}
		return f(env, snap, step, args)
	}}
}

func arguments[A any](step *work.Step) (args A, err error) {
	if len(step.Args) > 0 {
		if err = json.Unmarshal(step.Args, &args); err != nil {
			err = fault.New(fault.WrongState, "the arguments of the step %s cannot be read: %w", step.Text, err)
		}
	}
	return args, err
}

// encodeArgs are the arguments of a step as they are kept.
func encodeArgs(args any) json.RawMessage {
	text, err := json.Marshal(args)
	if err != nil {
		panic(fmt.Sprintf("exec: arguments of a step that cannot be written: %v", err))
	}
	return text
}
