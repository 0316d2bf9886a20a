package exec

import (
	"context"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/hooks"
	"github.com/drover-project/drover/internal/work"
)

// hooked is a plan with the steps that run the hooks of its opcode, if nodes have told of any: those of the pre phase before everything else, so that a script
// refuses what was not begun, and those of the post phase behind it. What has no steps is one then. Without hooks the plan stays as it is.
func (e *Env) hooked(ctx context.Context, plan Plan) Plan {
	h := hooks.Of(e.Op.ID)
	if h == nil {
		return plan
	}
	m := &hooks.Moment{Op: e.Op, Snap: e.snapshot(), Subject: e.subject(plan.Decided)}
	pre, post := e.haveHooks(ctx, h, m, hooks.Pre), e.haveHooks(ctx, h, m, hooks.Post)
	if plan.Heed != nil && len(post) == 0 {
		plan.Do = heeding(plan)
	}
	if len(pre) == 0 && len(post) == 0 {
		return plan
	}
	w := e.asWork(&plan)
	told := h.Told(m)
	steps := w.Steps
	if len(pre) > 0 {
		first := e.hookStep(h, hookArgs{Phase: hooks.Pre, Nodes: pre, Told: told})
		first.Anew = true
		plan.First = &first
		steps = append([]work.Step{first}, steps...)
	}
	if len(post) > 0 && len(w.Steps) > 0 {
		steps = slices.Clone(steps)
		steps[len(steps)-1].Keeps = true
		args := hookArgs{Phase: hooks.Post, Nodes: post, Told: told}
		if !h.Same {
			args.About = aboutOf(&m.Subject)
		}
		steps = append(steps, e.hookStep(h, args))
	}
	w.Steps = steps
	return Plan{Work: w, Again: plan.Again, Dry: plan.Dry, First: plan.First}
}

// asWork is a plan as steps. Those that establish a state are kept, too, so that scripts do not run again behind those that act.
func (e *Env) asWork(plan *Plan) *work.Work {
	switch {
	case plan.Work != nil:
		w := *plan.Work
		w.Replanned = false
		return &w
	case plan.Change != nil:
		e.change = plan.Change
		return &work.Work{Steps: []work.Step{inInventory(makeChange, "", "change the inventory", nil)}}
	}
	e.do, e.heed = plan.Do, plan.Heed
	return &work.Work{Steps: []work.Step{inInventory(carryOut, "", "carry the opcode out", nil)}, Replanned: true}
}

// heeding is what a plan does that heeds its hooks, where no node has any.
func heeding(plan Plan) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) {
		result, err := plan.Do(ctx)
		if err == nil {
			plan.Heed(nil)
		}
		return result, err
	}
}

// haveHooks are the nodes that are to run the scripts of a phase, and told that they have some, by UUID.
func (e *Env) haveHooks(ctx context.Context, h *hooks.Hooks, m *hooks.Moment, phase hooks.Phase) (uuids []string) {
	dir := hooks.Dir(h.Path, phase)
	for _, uuid := range h.Nodes(m, phase) {
		node, err := e.Nodes(m.Snap.Node(uuid).Name)
		if err != nil {
			continue // it never told of any
		}
		if dirs, err := node.HookDirs(ctx); err == nil && slices.Contains(dirs, dir) {
			uuids = append(uuids, uuid)
		}
	}
	return uuids
}

// hookStep is the step of a phase.
func (e *Env) hookStep(h *hooks.Hooks, args hookArgs) work.Step {
	var names []string
	for _, uuid := range args.Nodes {
		names = append(names, nodeName(e.snapshot(), uuid))
	}
	const shown = 3
	where := strings.Join(names[:min(shown, len(names))], ", ")
	if len(names) > shown {
		where += ", ..."
	}
	return onNode(runHooks, args.Nodes[0], "", "run the hooks "+hooks.Dir(h.Path, args.Phase)+" on "+where, args) // it is shown with the first of them
}

// subject is what the opcode is about: what was decided, else what it names.
func (e *Env) subject(decided hooks.Subject) hooks.Subject {
	op, snap, s := e.Op, e.snapshot(), decided
	if s.Instance == nil && (op.Str("instance_name") != "" || op.Str("instance_uuid") != "") {
		s.Instance, _ = findInstance(op, snap) // one that is not found was refused, or is about to be made
	}
	if s.Node == nil && (op.Str("node_name") != "" || op.Str("node_uuid") != "") {
		s.Node, _ = findNode(op, "node", snap)
	}
	if s.Target == nil && named(op, "target_node") {
		s.Target, _ = findNode(op, "target_node", snap)
	}
	if s.Group == nil && op.Str("group_name") != "" {
		s.Group, _ = findGroup(op.Str("group_name"), snap)
	}
	if s.Network == nil && op.Str("network_name") != "" {
		s.Network, _ = findNetwork(op.Str("network_name"), snap)
	}
	return s
}

// aboutOf is a subject as it is kept.
func aboutOf(s *hooks.Subject) about {
	a := about{Groups: s.Groups}
	if s.Instance != nil {
		a.Instance = s.Instance.UUID
	}
	if s.Node != nil {
		a.Node = s.Node.UUID
	}
	if s.Target != nil {
		a.Target = s.Target.UUID
	}
	if s.Group != nil {
		a.Group = s.Group.UUID
	}
	if s.Network != nil {
		a.Network = s.Network.UUID
	}
	return a
}

// lacks reports whether something is gone of what it was about.
func (a about) lacks(was *about) bool {
	return a.Instance != was.Instance || a.Node != was.Node || a.Target != was.Target || a.Group != was.Group || a.Network != was.Network
}

// replanned has the change at hand that a kept work has yet to make: the change that the opcode is now, for nothing of it was made.
func (e *Env) replanned(ctx context.Context, x *Executor) error {
	if e.Undo || e.Kept.Work == nil {
		return nil
	}
	at := e.Kept.Progress.Of(e.Kept.Work)
	if !slices.ContainsFunc(e.Kept.Work.Steps[min(at.Done, len(e.Kept.Work.Steps)):], func(s work.Step) bool { return s.Verb == makeChange }) {
		return nil
	}
	plan, err := x.Prepare(ctx, e)
	if err != nil {
		return err
	}
	e.change = plan.Change
	if e.change == nil {
		e.change = func(*cluster.Snapshot) ([]cluster.Change, any, error) { return nil, plan.Dry, nil }
	}
	return nil
}
