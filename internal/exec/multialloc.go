package exec

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/placement"
)

// batch is OP_INSTANCE_MULTI_ALLOC: several instances are placed together, each is made by a job of its own then. What fits nowhere is named in the
// result, and keeps none of the others back.
type batch struct {
	env *Env
	ops []*opcode.Opcode
	// named: the opcodes name their nodes.
	named bool
	// fits are the nodes of each instance, by name; empty for one that fits nowhere. why is why, for people.
	fits [][]string
	why  []string
}

// batchOps reads the opcodes of the instances.
func batchOps(op *opcode.Opcode) ([]*opcode.Opcode, error) {
	list := op.List("instances")
	ops := make([]*opcode.Opcode, len(list))
	for i, raw := range list {
		place := fmt.Sprintf("instances[%d]", i)
		child, err := parseCreation(raw)
		switch {
		case err != nil:
			return nil, fault.New(fault.Invalid, "%s: %w", place, err).At(place)
		case child.ID != "OP_INSTANCE_CREATE":
			return nil, fault.New(fault.Invalid, "%s is of %s, and only OP_INSTANCE_CREATE makes instances", place, child.ID).At(place)
		}
		ops[i] = child
	}
	return ops, nil
}

// parseCreation reads an opcode, which is a creation where it does not say what it is.
func parseCreation(raw any) (*opcode.Opcode, error) {
	m, _ := raw.(map[string]any)
	if _, says := m["OP_ID"]; m != nil && !says {
		m = maps.Clone(m)
		m["OP_ID"] = "OP_INSTANCE_CREATE"
		return parseChild(m)
	}
	return parseChild(raw)
}

// batchLocks share the nodes that the instances go to: all, when those are still to be chosen.
func batchLocks(op *opcode.Opcode, snap *cluster.Snapshot) (request lock.Request, err error) {
	ops, err := batchOps(op)
	if err != nil {
		return nil, err
	}
	if op.Has("iallocator") || !slices.ContainsFunc(ops, func(o *opcode.Opcode) bool { return named(o, "pnode") }) {
		return sharing(lock.All), nil
	}
	var nodes []string
	for _, o := range ops {
		for _, field := range []string{"pnode", "snode"} {
			if !named(o, field) {
				continue
			}
			n, err := findNode(o, field, snap)
			if err != nil {
				return nil, err
			}
			nodes = append(nodes, n.UUID)
		}
	}
	slices.Sort(nodes)
	return sharing(slices.Compact(nodes)...), nil
}

// multiAlloc prepares OP_INSTANCE_MULTI_ALLOC.
func (n Names) multiAlloc(ctx context.Context, env *Env) (Plan, error) {
	b := &batch{env: env}
	var err error
	if b.ops, err = batchOps(env.Op); err != nil {
		return Plan{}, err
	}
	if err := b.check(); err != nil {
		return Plan{}, err
	}
	if b.named {
		b.fits = make([][]string, len(b.ops))
		for i, op := range b.ops {
			b.fits[i] = []string{op.Str("pnode"), op.Str("snode")}
		}
	} else if err := b.place(ctx, n.places); err != nil {
		return Plan{}, err
	}
	return b.plan(), nil
}

// check refuses what contradicts itself.
func (b *batch) check() error {
	op := b.env.Op
	var with, without bool
	seen := map[string]bool{}
	var twice []string
	for _, o := range b.ops {
		if o.Has("iallocator") {
			return fault.New(fault.Invalid, "iallocator are not allowed to be set on instance objects").At("instances")
		}
		with, without = with || named(o, "pnode"), without || !named(o, "pnode")
		if cluster.MirroringOf(o.Str("disk_template")) == cluster.InternalMirror {
			with, without = with || named(o, "snode"), without || !named(o, "snode")
		}
		name := strings.ToLower(o.Str("instance_name"))
		if seen[name] && !slices.Contains(twice, name) {
			twice = append(twice, name)
		}
		seen[name] = true
	}
	b.named = with
	switch {
	case with && without, len(b.ops) == 0: // the reference says the same of none
		return fault.New(fault.Invalid, "There are instance objects providing pnode/snode while others do not").At("instances")
	case with && op.Has("iallocator"):
		return fault.New(fault.Invalid, "Do not specify both, iallocator and node").At("iallocator")
	case !checkAllocator(op.Str("iallocator")):
		return noAllocator(op.Str("iallocator"))
	case op.Bool("opportunistic_locking") && with:
		return fault.New(fault.Invalid, "Opportunistic locking is only available in combination with an instance allocator").At("opportunistic_locking")
	case len(twice) > 0:
		return fault.New(fault.Invalid, "There are duplicate instance names: %s", strings.Join(twice, ", ")).At("instances")
	}
	return nil
}

// place has placement choose nodes for all.
func (b *batch) place(ctx context.Context, p *places) error {
	requests := make([]placement.Request, len(b.ops))
	var asked []*cluster.Node
	for i, op := range b.ops {
		r, err := b.request(op)
		if err != nil {
			return fault.New(fault.CodeOf(err), "%s: %w", op.Str("instance_name"), err).At(fmt.Sprintf("instances[%d]", i))
		}
		requests[i] = r
		for _, n := range placement.Candidates(b.env.snapshot(), r) {
			if !slices.Contains(asked, n) {
				asked = append(asked, n)
			}
		}
	}
	decisions := placement.DecideAll(p.seen(b.env.snapshot(), b.env.reports(ctx, asked)), requests)
	for i := range decisions {
		d := &decisions[i]
		b.why = append(b.why, d.Why)
		switch {
		case d.UUID == "":
			b.fits = append(b.fits, nil)
			b.env.Warnf("Instance %s fits nowhere: %s", b.ops[i].Str("instance_name"), d.Why)
			continue
		case d.Mirror != nil:
			b.fits = append(b.fits, []string{d.Node, d.Mirror.Node})
		default:
			b.fits = append(b.fits, []string{d.Node})
		}
		b.env.Infof("Selected nodes for instance %s: %s (%s)", b.ops[i].Str("instance_name"), strings.Join(b.fits[i], ", "), d.Why)
	}
	return nil
}

// request is what placement is asked for an instance.
func (b *batch) request(op *opcode.Opcode) (r placement.Request, err error) {
	e := b.env
	inst, err := newInstance(&Env{Job: e.Job, Index: e.Index, Format: e.Format, Op: op, Inventory: e.Inventory, Nodes: e.Nodes, Log: e.Log, Now: e.Now, NewUUID: e.NewUUID})
	if err != nil {
		return r, err
	}
	r = placement.Request{Instance: inst, NICs: len(op.List("nics")), IgnorePolicy: op.Bool("ignore_ipolicy")}
	if name := op.Str("group_name"); name != "" {
		group, err := findGroup(name, e.snapshot())
		if err != nil {
			return r, err
		}
		r.Group = group.UUID
	}
	return r, nil
}

// placedIn is where an instance is to go, as a dry run shows it.
type placedIn struct {
	Instance string   `json:"instance"`
	Nodes    []string `json:"nodes"`
	Why      string   `json:"why,omitempty"`
}

// plan submits a job for each instance that fits.
func (b *batch) plan() Plan {
	allocatable, failed, dry := []string{}, []string{}, []placedIn{}
	var jobs [][]*opcode.Opcode
	for i, op := range b.ops {
		name := op.Str("instance_name")
		row := placedIn{Instance: name, Nodes: []string{}}
		if !b.named {
			row.Why = b.why[i]
			op = onNodes(op, b.fits[i])
		}
		if len(b.fits[i]) == 0 {
			failed = append(failed, name)
			dry = append(dry, row)
			continue
		}
		row.Nodes = slices.DeleteFunc(slices.Clone(b.fits[i]), func(n string) bool { return n == "" })
		allocatable, dry, jobs = append(allocatable, name), append(dry, row), append(jobs, []*opcode.Opcode{op})
	}
	result := map[string]any{"allocatable": allocatable, "failed": failed}
	shown := maps.Clone(result)
	shown["jobs"], shown["plan"] = []any{}, dry
	return Plan{Dry: shown, Do: func(ctx context.Context) (any, error) {
		submitted, err := b.env.submitChildren(ctx, jobs)
		result["jobs"] = submitted
		return result, err
	}}
}

// onNodes is the creation of an instance on the nodes that were chosen.
func onNodes(op *opcode.Opcode, nodes []string) *opcode.Opcode {
	out := *op
	out.Params = maps.Clone(op.Params)
	for i, field := range []string{"pnode", "snode"} {
		if i < len(nodes) {
			out.Params[field] = nodes[i]
		}
	}
	return &out
}
