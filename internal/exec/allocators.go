package exec

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/drover-project/drover/internal/allocator"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/placement"
)

// program is the name of the program that chooses nodes where an opcode names it, or the cluster does; empty where placement does. The name of the
// reference's own allocator means placement where there is no such program.
func (n Names) program(name string) string {
	if name == "" || n.Allocators == nil || !n.Allocators.Has(name) {
		return ""
	}
	return name
}

// checkAllocator refuses an allocator that is neither placement nor a program that is there.
func (n Names) checkAllocator(name string) bool { return checkAllocator(name) || n.program(name) != "" }

// noAllocator is the error of an allocator that is not there.
func noAllocator(name string) *fault.Error {
	return fault.New(fault.Failed, "Failure while running the iallocator script: iallocator module '%s' not found in the search path", name).At("iallocator")
}

// told is what the nodes have told, for programs. One that does not tell counts as offline, with a warning.
func (e *Env) told(ctx context.Context) map[string]allocator.Node {
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	var mu sync.Mutex
	var all sync.WaitGroup
	out := map[string]allocator.Node{}
	for node := range e.snapshot().Nodes() {
		if node.Offline || !node.VMCapable {
			continue
		}
		all.Go(func() {
			t, err := e.toldBy(ctx, node)
			if err != nil {
				e.Warnf("Node %s counts as offline: %v", node.Name, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out[node.UUID] = t
		})
	}
	all.Wait()
	return out
}

func (e *Env) toldBy(ctx context.Context, node *cluster.Node) (t allocator.Node, err error) {
	a, err := e.agent(node)
	if err != nil {
		return t, err
	}
	state, err := a.State(ctx, false)
	if err == nil {
		err = state.Err
	}
	i := state.Node
	t = allocator.Node{Memory: int64(i.MemoryTotal), MemoryReserved: int64(i.MemoryNode), MemoryFree: int64(i.MemoryFree), Disk: int64(i.DiskTotal),
		DiskFree: int64(i.DiskFree), CPUs: int64(i.CPUs), CPUsReserved: int64(i.CPUReserved), Used: map[string]int64{}}
	for k := range state.Instances {
		t.Used[state.Instances[k].UUID] = int64(state.Instances[k].Memory)
	}
	return t, err
}

// document is what a program is asked.
func (e *Env) document(ctx context.Context, request map[string]any) ([]byte, error) {
	text, err := json.Marshal(allocator.Document(e.snapshot(), e.told(ctx), request))
	if err != nil {
		return nil, fault.New(fault.Internal, "the question for the allocator cannot be encoded: %w", err)
	}
	return text, nil
}

// allocatorOptions are the cluster's parameters of allocators as options of a program.
func (e *Env) allocatorOptions() (options []string) {
	params := e.snapshot().Cluster().IAllocatorParams
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if params[name] == nil {
			options = append(options, "--"+name)
		} else {
			options = append(options, fmt.Sprintf("--%s=%v", name, params[name]))
		}
	}
	return options
}

// ask asks a program.
func (n Names) ask(ctx context.Context, env *Env, name string, request map[string]any) ([]byte, error) {
	input, err := env.document(ctx, request)
	if err != nil {
		return nil, err
	}
	said, err := n.Allocators.Run(ctx, name, env.allocatorOptions(), input)
	if err != nil {
		return nil, fault.New(fault.CodeOf(err), "Failure while running the iallocator script: %w", err).At("iallocator")
	}
	return said, nil
}

// allocate has a program choose the nodes of a new instance, which placement then looks at as at nodes that were named.
func (n Names) allocate(ctx context.Context, env *Env, name string, r placement.Request, group string) (nodes []*cluster.Node, info string, err error) {
	snap := env.snapshot()
	nics, err := nicsOf(snap, env.Op.List("nics"))
	if err != nil {
		return nil, "", err
	}
	question := allocator.New{Instance: r.Instance, NICs: nics, Template: r.Instance.DiskTemplate(), Group: group}
	said, err := n.ask(ctx, env, name, allocator.ToAllocate(snap.Cluster(), question))
	if err != nil {
		return nil, "", err
	}
	answer, err := allocator.Read(said)
	if err != nil {
		return nil, "", err
	}
	if !answer.Success {
		return nil, "", fault.New(fault.Exhausted, "Can't compute nodes using iallocator '%s': %s", name, fault.Clip(answer.Info, 500)).At("iallocator")
	}
	names, err := answer.Nodes(question.RequiredNodes(), func(name string) bool { return snap.NodeNamed(name) != nil })
	if err != nil {
		return nil, "", err
	}
	for _, node := range names {
		nodes = append(nodes, snap.NodeNamed(node))
	}
	return nodes, fault.Clip(answer.Info, 500), nil
}

// nicsOf are interfaces of an opcode as documents have them: their networks by UUID.
func nicsOf(snap *cluster.Snapshot, list []any) ([]any, error) {
	out := make([]any, len(list))
	for i, item := range list {
		m, _ := item.(map[string]any)
		nic := map[string]any{"mac": m["mac"], "ip": m["ip"]}
		for _, name := range []string{"mode", "link", "bridge"} {
			if v, has := m[name]; has {
				nic[name] = v
			}
		}
		if name, _ := m["network"].(string); name != "" && name != none {
			network, err := findNetwork(name, snap)
			if err != nil {
				return nil, err
			}
			nic["network"] = network.UUID
		}
		out[i] = nic
	}
	return out, nil
}

// modifyCluster prepares OP_CLUSTER_SET_PARAMS. A default allocator that is not there is refused.
func (n Names) modifyCluster(ctx context.Context, env *Env) (Plan, error) {
	if name := env.Op.Str("default_iallocator"); !n.checkAllocator(name) {
		return Plan{}, fault.New(fault.Invalid, "Invalid default iallocator script '%s' specified", name).At("default_iallocator").
			WithHint("%s, which is placement, is there; and the programs in the directories of the setting iallocators", builtinAllocator)
	}
	return clusterModify(ctx, env)
}

// testAllocator prepares OP_TEST_ALLOCATOR: what a program would be asked, or what it says.
func (n Names) testAllocator(ctx context.Context, env *Env) (Plan, error) {
	op := env.Op
	request, err := testRequest(env)
	if err != nil {
		return Plan{}, err
	}
	if op.Str("direction") == "in" {
		text, err := env.document(ctx, request)
		return answer(string(text)), err
	}
	name := op.Str("iallocator")
	switch {
	case name == "":
		return Plan{}, fault.New(fault.Invalid, "Missing allocator name").At("iallocator")
	case n.program(name) == "":
		return Plan{}, noAllocator(name).WithHint("the setting iallocators says where programs are")
	}
	return Plan{Do: func(ctx context.Context) (any, error) {
		said, err := n.ask(ctx, env, name, request)
		return string(said), err
	}}, nil
}

// mostAsked is how many instances an allocator is asked about in a test: all of them are made in memory first.
const mostAsked = 10_000

// testRequest is the request of OP_TEST_ALLOCATOR.
func testRequest(env *Env) (map[string]any, error) {
	op, snap := env.Op, env.snapshot()
	switch mode := op.Str("mode"); mode {
	case allocator.Allocate, allocator.MultiAllocate:
		one, err := testInstance(env)
		if err != nil {
			return nil, err
		}
		if mode == allocator.Allocate {
			return allocator.ToAllocate(snap.Cluster(), one), nil
		}
		if op.Int("count") > mostAsked {
			return nil, fault.New(fault.Invalid, "an allocator is asked about %d instances at most", mostAsked).At("count")
		}
		var all []allocator.New
		for i := range op.Int("count") {
			next := one
			next.Instance = one.Instance.Clone()
			next.Instance.Name = fmt.Sprint(op.Str("name"), i)
			all = append(all, next)
		}
		return allocator.ToMultiAllocate(snap.Cluster(), all), nil
	case allocator.Relocate:
		inst, err := snap.FindInstance(op.Str("name"))
		if err != nil {
			return nil, err
		}
		if inst.Mirroring() == cluster.Unmirrored {
			return nil, fault.New(fault.Invalid, "Can't relocate non-mirrored instances").At("name")
		}
		var from []string
		for _, uuid := range inst.SecondaryNodes() {
			from = append(from, nodeName(snap, uuid))
		}
		return allocator.ToRelocate(inst, from), nil
	case allocator.NodeEvacuate, allocator.ChangeGroup:
		var names []string
		for _, name := range op.Strings("instances") {
			inst, err := snap.FindInstance(name)
			if err != nil {
				return nil, err
			}
			names = append(names, inst.Name)
		}
		if len(names) == 0 {
			return nil, fault.New(fault.Invalid, "Missing instances").At("instances")
		}
		if mode == allocator.NodeEvacuate {
			return allocator.ToEvacuate(names, op.Str("evac_mode")), nil
		}
		groups, err := targetGroups(op, snap)
		uuids := make([]string, len(groups))
		for i, g := range groups {
			uuids[i] = g.UUID
		}
		return allocator.ToChangeGroup(names, uuids), err
	default:
		return nil, fault.New(fault.Invalid, "Invalid test allocator mode '%s'", mode).At("mode")
	}
}

// testInstance is the instance that OP_TEST_ALLOCATOR describes.
func testInstance(env *Env) (n allocator.New, err error) {
	op, c := env.Op, env.snapshot().Cluster()
	name := op.Str("name")
	if err := freeInstanceName(name, env.snapshot()); err != nil {
		return n, err
	}
	inst := &cluster.Instance{Meta: cluster.NewMeta(env.NewUUID(), env.nanos()), Name: strings.ToLower(name), OS: op.Str("os"), Hypervisor: c.Hypervisor(),
		BEParams: cluster.Params{"maxmem": op.Int("memory"), "vcpus": op.Int("vcpus"), "spindle_use": op.Int("spindle_use")}}
	inst.Tags = op.Strings("tags")
	if op.Has("hypervisor") {
		inst.Hypervisor = op.Str("hypervisor")
	}
	n = allocator.New{Instance: inst, Template: op.Str("disk_template"), Group: op.Str("group_name")}
	if n.NICs, err = nicsOf(env.snapshot(), op.List("nics")); err != nil {
		return n, err
	}
	for i, item := range op.List("disks") {
		m, _ := item.(map[string]any)
		size, isSize := m["size"].(int64)
		mode, _ := m["mode"].(string)
		if !isSize || mode != "rw" && mode != "ro" {
			return n, fault.New(fault.Invalid, "Invalid contents of the 'disks' parameter").At(fmt.Sprintf("disks[%d]", i))
		}
		inst.Disks = append(inst.Disks, cluster.Disk{Type: n.Template, Size: size, Mode: mode})
	}
	return n, nil
}
