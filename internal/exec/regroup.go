package exec

import (
	"context"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/evacuation"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
)

// regrouping is OP_INSTANCE_CHANGE_GROUP or OP_GROUP_EVACUATE: instances come to other groups of nodes.
type regrouping struct {
	departure
	evacuation.GroupRequest
}

// changeGroupLocks share an instance and all that it may come to.
func changeGroupLocks(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	inst, err := findInstance(op, snap)
	if err != nil {
		return nil, err
	}
	return regroupingLocks(op, snap, []*cluster.Instance{inst}, evacuation.GroupsOf(snap, inst))
}

// groupEvacuationLocks share a group, what is there, and all that it may come to.
func groupEvacuationLocks(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	group, err := findGroup(op.Str("group_name"), snap)
	if err != nil {
		return nil, err
	}
	instances := evacuation.InstancesOf(snap, group.UUID)
	used := []string{group.UUID}
	for _, inst := range instances {
		used = append(used, evacuation.GroupsOf(snap, inst)...)
	}
	return regroupingLocks(op, snap, instances, used)
}

// regroupingLocks share instances, groups and their nodes: all, where the target groups are not named.
func regroupingLocks(op *opcode.Opcode, snap *cluster.Snapshot, instances []*cluster.Instance, groups []string) (request lock.Request, err error) {
	for _, inst := range instances {
		request = append(request, want(lock.Instance, inst.Name, lock.Shared))
	}
	if len(op.Strings("target_groups")) == 0 {
		return append(append(request, want(lock.NodeGroup, lock.All, lock.Shared)), sharing(lock.All)...), nil
	}
	targets, err := targetGroups(op, snap)
	if err != nil {
		return nil, err
	}
	for _, g := range targets {
		groups = append(groups, g.UUID)
	}
	slices.Sort(groups)
	for _, g := range slices.Compact(groups) {
		request = append(request, want(lock.NodeGroup, g, lock.Shared))
		for n := range snap.NodesIn(g) {
			request = append(request, sharing(n.UUID)...)
		}
	}
	return request, nil
}

// targetGroups are the groups that an opcode names, each once.
func targetGroups(op *opcode.Opcode, snap *cluster.Snapshot) (groups []*cluster.Group, err error) {
	for _, name := range op.Strings("target_groups") {
		g, err := findGroup(name, snap)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	return groups, nil
}

// changeGroup prepares OP_INSTANCE_CHANGE_GROUP.
func (n Names) changeGroup(ctx context.Context, env *Env) (Plan, error) {
	snap := env.snapshot()
	inst, err := findInstance(env.Op, snap)
	if err != nil {
		return Plan{}, err
	}
	r := &regrouping{departure: departure{env: env}}
	r.Instances = []*cluster.Instance{inst}
	used := evacuation.GroupsOf(snap, inst)
	if err := r.choose(used, "changing group of instance '"+inst.Name+"'"); err != nil {
		return Plan{}, err
	}
	var conflicts []string
	for _, g := range r.Targets {
		if slices.Contains(used, g.UUID) {
			conflicts = append(conflicts, g.Name)
		}
	}
	if len(conflicts) > 0 {
		return Plan{}, fault.New(fault.Invalid, "Can't use group(s) '%s' as targets, they are used by the instance '%s'", strings.Join(conflicts, ", "), inst.Name).At("target_groups")
	}
	return r.prepare(ctx, n.places)
}

// evacuateGroup prepares OP_GROUP_EVACUATE.
func (n Names) evacuateGroup(ctx context.Context, env *Env) (Plan, error) {
	snap := env.snapshot()
	group, err := findGroup(env.Op.Str("group_name"), snap)
	if err != nil {
		return Plan{}, err
	}
	r := &regrouping{departure: departure{env: env, failover: env.Op.Bool("force_failover"), sequential: env.Op.Bool("sequential")}}
	r.Instances = evacuation.InstancesOf(snap, group.UUID)
	if err := r.choose([]string{group.UUID}, "evacuating group '"+group.Name+"'"); err != nil {
		return Plan{}, err
	}
	if slices.Contains(r.Targets, group) {
		names := make([]string, len(r.Targets))
		for i, g := range r.Targets {
			names[i] = g.Name
		}
		return Plan{}, fault.New(fault.Invalid, "Group to be evacuated (%s) can not be used as a target group (targets are %s)", group.Name, strings.Join(names, ", ")).At("target_groups")
	}
	if len(r.Instances) == 0 {
		env.Infof("No instances to evacuate from group '%s'", group.Name)
	}
	return r.prepare(ctx, n.places)
}

// choose finds the groups that instances may go to: those that are named, or all but some.
func (r *regrouping) choose(but []string, doing string) (err error) {
	op, snap := r.env.Op, r.env.snapshot()
	if !checkAllocator(op.Str("iallocator")) {
		return fault.New(fault.Exhausted, "Can't compute solution for %s using iallocator '%s': it is not there", doing, op.Str("iallocator")).At("iallocator")
	}
	if r.Asked = len(op.Strings("target_groups")) > 0; r.Asked {
		r.Targets, err = targetGroups(op, snap)
		return err
	}
	for g := range snap.Groups() {
		if !slices.Contains(but, g.UUID) {
			r.Targets = append(r.Targets, g)
		}
	}
	if len(r.Targets) == 0 {
		return fault.New(fault.Invalid, "There are no possible target groups").At("target_groups")
	}
	return nil
}

// prepare has the plan made upon what the nodes of the target groups told last. If anything cannot go, nothing does.
func (r *regrouping) prepare(ctx context.Context, p *places) (Plan, error) {
	snap := r.env.snapshot()
	var asked []*cluster.Node
	for _, g := range r.Targets {
		for n := range snap.NodesIn(g.UUID) {
			if !n.Offline {
				asked = append(asked, n)
			}
		}
	}
	for _, inst := range r.Instances { // what is handed over within a group that is left, or outside of it
		for _, uuid := range inst.SecondaryNodes() {
			if n := snap.Node(uuid); n != nil && !n.Offline && !slices.Contains(asked, n) {
				asked = append(asked, n)
			}
		}
	}
	r.courses = evacuation.PlanGroups(p.seen(snap, r.env.reports(ctx, asked)), r.GroupRequest)
	r.tellCourses()
	if err := r.stuck(); err != nil {
		return Plan{}, err
	}
	plan, err := r.plan()
	for _, g := range r.Targets {
		plan.Decided.Groups = append(plan.Decided.Groups, g.UUID)
	}
	return plan, err
}
