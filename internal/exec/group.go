package exec

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
)

// groupAdd prepares OP_GROUP_ADD.
func groupAdd(_ context.Context, env *Env) (Plan, error) {
	apply := func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		name := env.Op.Str("group_name")
		if err := freeGroupName(snap, name, "Desired group name '%s' already exists as a node group (UUID: %s)"); err != nil {
			return nil, err
		}
		group := cluster.NewGroup(env.NewUUID(), name, env.nanos())
		if _, err := setGroup(env.Op, snap.Cluster(), group); err != nil {
			return nil, err
		}
		return []cluster.Change{cluster.Put(group)}, nil
	}
	return updatePlan(env, nil, apply)
}

// updatePlan is the plan of an opcode that is one change of the inventory: it
// is tried first, and made when its turn comes.
func updatePlan(env *Env, result any, apply func(*cluster.Snapshot) ([]cluster.Change, error)) (Plan, error) {
	if _, err := apply(env.snapshot()); err != nil {
		return Plan{}, err
	}
	return Plan{Dry: result, Change: func(snap *cluster.Snapshot) ([]cluster.Change, any, error) {
		changes, err := apply(snap)
		return changes, result, err
	}}, nil
}

func freeGroupName(snap *cluster.Snapshot, name, refusal string) error {
	if strings.TrimSpace(name) == "" {
		return fault.New(fault.Invalid, "The name of a node group can't be empty").At("group_name")
	}
	if err := checkItemName("node group", name); err != nil {
		return err
	}
	if other := snap.GroupNamed(name); other != nil {
		return fault.New(fault.Exists, refusal, other.Name, other.UUID)
	}
	return nil
}

// itemName is what a path of RAPI can name.
var itemName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// checkItemName refuses names of groups and networks by which nobody could reach
// them.
func checkItemName(what, name string) error {
	if itemName.MatchString(name) {
		return nil
	}
	return fault.New(fault.Invalid, "Invalid name '%s' of a %s", name, what).WithHint("letters a-z and A-Z, digits, dot, dash, underscore")
}

// setGroup sets what the opcode says about a group, and returns what it set: of
// empty parameters, which clients send, nothing.
func setGroup(op *opcode.Opcode, c *cluster.Cluster, group *cluster.Group) ([]pair, error) {
	result := []pair{}
	if len(op.Map("hv_state")) > 0 || len(op.Map("disk_state")) > 0 { // clients send empty ones
		return nil, fault.New(fault.Invalid, "Parameters 'hv_state' and 'disk_state' can't be changed yet")
	}
	nd, err := cluster.CheckParams(op.Map("ndparams"), cluster.NDTypes(), true)
	if err != nil {
		return nil, err
	}
	if len(nd) > 0 {
		group.NDParams = cluster.SetParams(group.NDParams, nd)
		result = append(result, pair{"ndparams", group.NDParams})
	}
	if given := op.Map("diskparams"); len(given) > 0 {
		if err := changeDiskParams(group.DiskParams, given); err != nil {
			return nil, err
		}
		result = append(result, pair{"diskparams", group.DiskParams})
	}
	if op.Has("alloc_policy") {
		group.AllocPolicy = op.Str("alloc_policy")
		result = append(result, pair{"alloc_policy", group.AllocPolicy})
	}
	if len(op.Map("ipolicy")) > 0 {
		group.IPolicy = cluster.SetParams(group.IPolicy, op.Map("ipolicy"))
		if err := cluster.CheckGroupPolicy(group.IPolicy, c.IPolicy); err != nil {
			return nil, err
		}
		result = append(result, pair{"ipolicy", group.IPolicy})
	}
	return result, nil
}

// groupSettings are the parameters that OP_GROUP_SET_PARAMS changes a group by.
var groupSettings = []string{"ndparams", "diskparams", "alloc_policy", "ipolicy", "hv_state", "disk_state"}

// groupModify prepares OP_GROUP_SET_PARAMS.
func groupModify(_ context.Context, env *Env) (Plan, error) {
	group, err := findGroup(env.Op.Str("group_name"), env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	result, err := setGroup(env.Op, env.snapshot().Cluster(), group.Clone())
	if err != nil {
		return Plan{}, err
	}
	if !slices.ContainsFunc(groupSettings, env.Op.Has) {
		return Plan{}, fault.New(fault.Invalid, "Please pass at least one modification")
	}
	return updatePlan(env, result, changeGroup(env, group.UUID, func(snap *cluster.Snapshot, g *cluster.Group) error {
		_, err := setGroup(env.Op, snap.Cluster(), g)
		return err
	}))
}

// changeGroup returns an update that alters a copy of a group.
func changeGroup(env *Env, uuid string, alter func(*cluster.Snapshot, *cluster.Group) error) func(*cluster.Snapshot) ([]cluster.Change, error) {
	return func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		old := snap.Group(uuid)
		if old == nil {
			return nil, fault.New(fault.Conflict, "the node group with UUID %s was removed meanwhile", uuid)
		}
		group := old.Clone()
		if err := alter(snap, group); err != nil {
			return nil, err
		}
		group.Touch(env.nanos())
		return []cluster.Change{cluster.Put(group)}, nil
	}
}

// groupRename prepares OP_GROUP_RENAME.
func groupRename(_ context.Context, env *Env) (Plan, error) {
	group, err := findGroup(env.Op.Str("group_name"), env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	name := env.Op.Str("new_name")
	return updatePlan(env, name, changeGroup(env, group.UUID, func(snap *cluster.Snapshot, g *cluster.Group) error {
		g.Name = name
		return freeGroupName(snap, name, "Desired new name '%s' clashes with existing node group (UUID: %s)")
	}))
}

// groupRemove prepares OP_GROUP_REMOVE.
func groupRemove(_ context.Context, env *Env) (Plan, error) {
	group, err := findGroup(env.Op.Str("group_name"), env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	return updatePlan(env, nil, func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		var members []string
		for n := range snap.NodesIn(group.UUID) {
			members = append(members, n.Name)
		}
		switch {
		case len(members) > 0:
			return nil, fault.New(fault.WrongState, "Group '%s' not empty, has the following nodes: %s", group.Name, strings.Join(members, ", "))
		case snap.GroupCount() == 1:
			return nil, fault.New(fault.WrongState, "Group '%s' is the only group, cannot be removed", group.Name)
		}
		return []cluster.Change{cluster.Delete(cluster.KindGroup, group.UUID)}, nil
	})
}

// assignedNodes returns the nodes that OP_GROUP_ASSIGN_NODES moves.
func assignedNodes(op *opcode.Opcode, snap *cluster.Snapshot) ([]*cluster.Node, error) {
	keys := op.Strings("node_uuids")
	if len(keys) == 0 {
		keys = op.Strings("nodes")
	}
	nodes := make([]*cluster.Node, len(keys))
	for i, key := range keys {
		var err error
		if nodes[i], err = namedNode(key, snap); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// assignLocks locks the nodes that move and the group they move to.
func assignLocks(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	request, err := ownGroup(op, snap)
	if err != nil {
		return nil, err
	}
	nodes, err := assignedNodes(op, snap)
	for _, n := range nodes {
		if n != nil {
			request = append(request, want(lock.Node, n.UUID, lock.Exclusive))
		}
	}
	return request, err
}

// groupAssign prepares OP_GROUP_ASSIGN_NODES. Without force it refuses to tear
// an instance with disks on two nodes over two groups.
func groupAssign(_ context.Context, env *Env) (Plan, error) {
	group, err := findGroup(env.Op.Str("group_name"), env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	return updatePlan(env, nil, func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		nodes, err := assignedNodes(env.Op, snap)
		if err != nil {
			return nil, err
		}
		var changes []cluster.Change
		for _, n := range nodes {
			if n.Group == group.UUID {
				continue
			}
			next := n.Clone()
			next.Group = group.UUID
			next.Touch(env.nanos())
			changes = append(changes, cluster.Put(next))
		}
		if torn := tornInstances(snap, snap.With(changes...), nodes); len(torn) > 0 && !env.Op.Bool("force") {
			return nil, fault.New(fault.WrongState, "The following instances get split by this change and --force was not given: %s", strings.Join(torn, ", "))
		}
		return changes, nil
	})
}

// tornInstances returns the names of instances on the nodes whose nodes are in
// one group before and in several after.
func tornInstances(before, after *cluster.Snapshot, nodes []*cluster.Node) []string {
	var torn []string
	check := func(inst *cluster.Instance) {
		if !slices.Contains(torn, inst.Name) && !split(before, inst) && split(after, inst) {
			torn = append(torn, inst.Name)
		}
	}
	for _, n := range nodes {
		for inst := range before.PrimariesOn(n.UUID) {
			check(inst)
		}
		for inst := range before.SecondariesOn(n.UUID) {
			check(inst)
		}
	}
	return torn
}

func split(snap *cluster.Snapshot, inst *cluster.Instance) bool {
	groups := map[string]bool{}
	for _, uuid := range instanceNodes(inst) {
		if n := snap.Node(uuid); n != nil {
			groups[n.Group] = true
		}
	}
	return len(groups) > 1
}
