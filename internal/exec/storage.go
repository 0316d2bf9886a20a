package exec

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/storage"
	"github.com/drover-project/drover/internal/work"
)

// storagePatience is how long one node may take to tell of its storage.
const storagePatience = time.Minute

// storageKinds are the kinds of units that disks of templates are kept in.
var storageKinds = map[string]storage.Kind{
	cluster.DiskPlain: storage.VolumeGroups, cluster.DiskDRBD: storage.VolumeGroups, cluster.DiskFile: storage.Files, cluster.DiskSharedFile: storage.SharedFiles,
	"gluster": "gluster", "rbd": "rados", "ext": "ext", "blockdev": "blockdev", "diskless": "diskless",
}

// The fields of rows about volumes and storage units.
const (
	fieldNode = "node"
	fieldName = "name"
	fieldSize = "size"
)

// storageNodes are the nodes that an opcode asks about their storage, each once: all, if it names none.
func storageNodes(op *opcode.Opcode, snap *cluster.Snapshot) (nodes []*cluster.Node, err error) {
	listed, err := listedNodes(op, snap)
	if err != nil {
		return nil, err
	}
	if len(listed) == 0 {
		listed = slices.Collect(snap.Nodes())
	}
	nodes = eachOnce(listed)
	slices.SortStableFunc(nodes, func(a, b *cluster.Node) int { return cluster.CompareNames(a.Name, b.Name) })
	return nodes, nil
}

// storageLocks share the nodes that are asked: what is being changed on them is waited for.
func storageLocks(op *opcode.Opcode, snap *cluster.Snapshot) (request lock.Request, err error) {
	nodes, err := listedNodes(op, snap)
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return lock.Request{want(lock.Node, lock.All, lock.Shared)}, nil
	}
	for _, n := range nodes {
		request = append(request, want(lock.Node, n.UUID, lock.Shared))
	}
	return request, nil
}

// toldBy is what a node told.
type toldBy[T any] struct {
	node *cluster.Node
	told T
}

// askEach asks nodes beside one another that are in service. Of one that tells nothing there is a warning, which begins with what cannot be had, and no answer.
func askEach[T any](ctx context.Context, e *Env, nodes []*cluster.Node, cannot string, ask func(ctx context.Context, n Node) (T, error)) (answers []toldBy[T], err error) {
	told, errs := make([]T, len(nodes)), make([]error, len(nodes))
	beside(len(nodes), fewAtOnce, func(i int) {
		if n := nodes[i]; !n.Offline {
			told[i], errs[i] = askOne(ctx, e, n, ask)
		}
	})
	if ctx.Err() != nil {
		return nil, fault.New(fault.Canceled, "asking the nodes was interrupted: %w", context.Cause(ctx))
	}
	for i, n := range nodes {
		switch {
		case n.Offline:
		case errs[i] != nil:
			e.Warnf(cannot+" %s: %v", n.Name, errs[i])
		default:
			answers = append(answers, toldBy[T]{n, told[i]})
		}
	}
	return answers, nil
}

// askOne asks one node. One that is away is not waited for.
func askOne[T any](ctx context.Context, e *Env, n *cluster.Node, ask func(ctx context.Context, n Node) (T, error)) (told T, err error) {
	ctx, cancel := context.WithTimeout(ctx, storagePatience)
	defer cancel()
	node, err := e.nearAgent(n)
	if err != nil {
		return told, err
	}
	return ask(ctx, node)
}

// checkOutput refuses fields that rows do not have.
func checkOutput[V any](op *opcode.Opcode, has map[string]V) error {
	unknown := slices.DeleteFunc(slices.Clone(op.Strings("output_fields")), func(f string) bool { _, known := has[f]; return known })
	if len(unknown) > 0 {
		return fault.New(fault.Invalid, "Unknown output fields selected: %s", strings.Join(unknown, ",")).At("output_fields").
			WithHint("there are: %s", strings.Join(slices.Sorted(maps.Keys(has)), ", "))
	}
	return nil
}

// volumeRow is a logical volume of a node, with the instance that it is for.
type volumeRow struct {
	node, instance string
	storage.LogicalVolume
}

// volumeFields are those of rows of OP_NODE_QUERYVOLS, which are texts.
var volumeFields = map[string]func(v *volumeRow) string{
	fieldNode:  func(v *volumeRow) string { return v.node },
	"phys":     func(v *volumeRow) string { return v.Device },
	"vg":       func(v *volumeRow) string { return v.Group },
	fieldName:  func(v *volumeRow) string { return v.Name },
	fieldSize:  func(v *volumeRow) string { return strconv.Itoa(v.Size) },
	"instance": func(v *volumeRow) string { return v.instance },
}

// queryVolumes prepares OP_NODE_QUERYVOLS.
func queryVolumes(ctx context.Context, env *Env) (Plan, error) {
	op, snap := env.Op, env.snapshot()
	if err := checkOutput(op, volumeFields); err != nil {
		return Plan{}, err
	}
	nodes, err := storageNodes(op, snap)
	if err != nil {
		return Plan{}, err
	}
	answers, err := askEach(ctx, env, nodes, "Can't compute volume data on node", func(ctx context.Context, n Node) ([]storage.LogicalVolume, error) { return n.LogicalVolumes(ctx) })
	if err != nil {
		return Plan{}, err
	}
	owners, rows := diskOwners(snap), [][]string{}
	for _, a := range answers {
		for _, v := range a.told {
			row := volumeRow{a.node.Name, "-", v}
			if inst := owners[v.Disk]; inst != nil && slices.Contains(instanceNodes(inst), a.node.UUID) {
				row.instance = inst.Name
			}
			cells := make([]string, 0, len(volumeFields))
			for _, f := range op.Strings("output_fields") {
				cells = append(cells, volumeFields[f](&row))
			}
			rows = append(rows, cells)
		}
	}
	return answer(rows), nil
}

// diskOwners are the instances, by the UUIDs of their disks.
func diskOwners(snap *cluster.Snapshot) map[string]*cluster.Instance {
	owners := map[string]*cluster.Instance{}
	for inst := range snap.Instances() {
		for i := range inst.Disks {
			owners[inst.Disks[i].UUID] = inst
		}
	}
	return owners
}

// unitRow is a storage unit of a node.
type unitRow struct {
	node string
	kind storage.Kind
	storage.Unit
}

// unitFields are those of rows of OP_NODE_QUERY_STORAGE.
var unitFields = map[string]func(u *unitRow) any{
	fieldNode:     func(u *unitRow) any { return u.node },
	"type":        func(u *unitRow) any { return u.kind },
	fieldName:     func(u *unitRow) any { return u.Name },
	fieldSize:     func(u *unitRow) any { return u.Size },
	"used":        func(u *unitRow) any { return u.Used },
	"free":        func(u *unitRow) any { return u.Free },
	"allocatable": func(u *unitRow) any { return u.Allocatable },
}

// queryStorage prepares OP_NODE_QUERY_STORAGE.
func queryStorage(ctx context.Context, env *Env) (Plan, error) {
	op, snap := env.Op, env.snapshot()
	if err := checkOutput(op, unitFields); err != nil {
		return Plan{}, err
	}
	nodes, err := storageNodes(op, snap)
	if err != nil {
		return Plan{}, err
	}
	kind, err := askedKind(op, snap.Cluster())
	if err != nil {
		return Plan{}, err
	}
	answers, err := askEach(ctx, env, nodes, "Can't get storage data from node", func(ctx context.Context, n Node) ([]storage.Unit, error) {
		return namedUnits(ctx, n, kind, op.Str("name"))
	})
	if err != nil {
		return Plan{}, err
	}
	rows := [][]any{}
	for _, a := range answers {
		for _, u := range a.told {
			row, cells := unitRow{a.node.Name, kind, u}, []any{}
			for _, f := range op.Strings("output_fields") {
				cells = append(cells, unitFields[f](&row))
			}
			rows = append(rows, cells)
		}
	}
	return answer(rows), nil
}

// namedUnits are the units of a node, or the one of a name.
func namedUnits(ctx context.Context, n Node, kind storage.Kind, name string) ([]storage.Unit, error) {
	units, err := n.StorageUnits(ctx, kind)
	if err != nil || name == "" {
		return units, err
	}
	units = slices.DeleteFunc(units, func(u storage.Unit) bool { return u.Name != name })
	if len(units) == 0 {
		return nil, fault.New(fault.NotFound, "it has no storage unit %.200s of type '%s'", name, kind).At("name")
	}
	return units, nil
}

// askedKind is the kind of units that is asked for: that of the cluster's first disk template whose disks are in any, where none is.
func askedKind(op *opcode.Opcode, c *cluster.Cluster) (kind storage.Kind, err error) {
	first := slices.IndexFunc(c.EnabledDiskTemplates, func(t string) bool { return isReported(storageKinds[t]) })
	kind = storageKinds[c.EnabledDiskTemplates[max(first, 0)]]
	if op.Has("storage_type") {
		kind = storage.Kind(op.Str("storage_type"))
		if err := checkKind(kind, c); err != nil {
			return "", err
		}
	}
	if !isReported(kind) {
		return "", fault.New(fault.Invalid, "Storage reporting for storage type '%s' is not supported", kind).At("storage_type").
			WithHint("nodes tell of the types: %s", strings.Join(opcode.ReportedStorage, ", "))
	}
	return kind, nil
}

func isReported(kind storage.Kind) bool { return slices.Contains(opcode.ReportedStorage, string(kind)) }

// checkKind refuses a kind of units that no disk template of the cluster uses.
func checkKind(kind storage.Kind, c *cluster.Cluster) error {
	of := kind
	if kind == storage.PhysicalDisks {
		of = storage.VolumeGroups
	}
	if slices.ContainsFunc(c.EnabledDiskTemplates, func(t string) bool { return storageKinds[t] == of }) {
		return nil
	}
	return fault.New(fault.Invalid, "No disk template of storage type '%s' is enabled in this cluster. Enabled disk templates are: %s", of, strings.Join(c.EnabledDiskTemplates, ",")).
		At("storage_type")
}

// fieldAllocatable is what can be changed of a unit.
const fieldAllocatable = "allocatable"

// modifyStorage prepares OP_NODE_MODIFY_STORAGE.
func modifyStorage(_ context.Context, env *Env) (Plan, error) {
	op, snap := env.Op, env.snapshot()
	node, err := findNode(op, fieldNode, snap)
	if err != nil {
		return Plan{}, err
	}
	kind, changes := storage.Kind(op.Str("storage_type")), op.Map("changes")
	if kind != storage.PhysicalDisks {
		return Plan{}, fault.New(fault.Invalid, "Storage units of type '%s' can not be modified", kind).At("storage_type").WithHint("those of type %s can", storage.PhysicalDisks)
	}
	if others := slices.DeleteFunc(slices.Sorted(maps.Keys(changes)), func(name string) bool { return name == fieldAllocatable }); len(others) > 0 {
		return Plan{}, fault.New(fault.Invalid, "The following fields can not be modified for storage units of type '%s': ['%s']", kind, strings.Join(others, "', '")).
			At("changes").WithHint("%s can", fieldAllocatable)
	}
	may, is := changes[fieldAllocatable].(bool)
	switch {
	case len(changes) == 0:
		return Plan{}, fault.New(fault.Invalid, "No changes were requested for the storage unit").At("changes").WithHint("%s, true or false, is what can be changed", fieldAllocatable)
	case !is:
		return Plan{}, fault.New(fault.Invalid, "%s is to be true or false, and is %v", fieldAllocatable, changes[fieldAllocatable]).At("changes." + fieldAllocatable)
	}
	text := map[bool]string{true: "have %s of node %s give out room", false: "have %s of node %s give out no more room"}[may]
	return env.storageStep(node, kind, setAllocatable, text, storageArgs{Name: op.Str(fieldName), May: may})
}

// storageStep is the plan of one step that changes a storage unit of a node.
func (e *Env) storageStep(node *cluster.Node, kind storage.Kind, verb, text string, args storageArgs) (Plan, error) {
	if err := checkKind(kind, e.snapshot().Cluster()); err != nil {
		return Plan{}, err
	}
	if args.Name == "" {
		return Plan{}, fault.New(fault.Invalid, "The name of the storage unit is missing").At(fieldName).WithHint("drover node list-storage -t %s shows which there are", kind)
	}
	if _, err := e.onlineAgent(node); err != nil {
		return Plan{}, err
	}
	step := onNode(verb, node.UUID, "", fmt.Sprintf(text, args.Name, node.Name), args)
	return Plan{Work: &work.Work{Steps: []work.Step{step}}}, nil
}

// repairStorage prepares OP_REPAIR_NODE_STORAGE.
func repairStorage(ctx context.Context, env *Env) (Plan, error) {
	op, snap := env.Op, env.snapshot()
	node, err := findNode(op, fieldNode, snap)
	if err != nil {
		return Plan{}, err
	}
	kind := storage.Kind(op.Str("storage_type"))
	if kind != storage.VolumeGroups {
		return Plan{}, fault.New(fault.Invalid, "Storage units of type '%s' can not be repaired", kind).At("storage_type").WithHint("those of type %s can", storage.VolumeGroups)
	}
	plan, err := env.storageStep(node, kind, repairUnit, "have the volume group %s of node %s do without what is gone of it", storageArgs{Name: op.Str(fieldName)})
	if err != nil {
		return Plan{}, err
	}
	return plan, env.otherCopies(ctx, node)
}

// otherCopies refuses to repair a node whose instances have copies of disks elsewhere that are not up to date: those on the node may be the last.
func (e *Env) otherCopies(ctx context.Context, node *cluster.Node) error {
	snap := e.snapshot()
	for _, inst := range slices.Concat(slices.Collect(snap.PrimariesOn(node.UUID)), slices.Collect(snap.SecondariesOn(node.UUID))) {
		if !inst.DisksActive {
			continue
		}
		for _, uuid := range instanceNodes(inst) {
			other := snap.Node(uuid)
			if uuid == node.UUID || other == nil {
				continue
			}
			why, err := e.faultyCopy(ctx, inst, other)
			if err != nil || why == "" {
				if err != nil {
					return err
				}
				continue
			}
			refusal := fault.New(fault.WrongState, "Instance '%s' has faulty disks on node '%s'", inst.Name, other.Name).
				WithHint("%s; ignore_consistency goes on all the same", why)
			if !e.Op.Bool("ignore_consistency") {
				return refusal
			}
			e.Warnf("%s (%s)", refusal.Message, why)
		}
	}
	return nil
}

// faultyCopy says why the copy on a node of a disk of an instance is not up to date; empty if all are.
func (e *Env) faultyCopy(ctx context.Context, inst *cluster.Instance, other *cluster.Node) (why string, err error) {
	agent, err := e.onlineAgent(other)
	if err != nil {
		return err.Error(), nil //nolint:nilerr // that it cannot be asked is what is wrong with it
	}
	i, why, err := e.degraded(ctx, inst, agent, other.UUID, allDisks(inst))
	if err != nil || i < 0 {
		return "", err
	}
	return fmt.Sprintf("disk %d: %s", i, why), nil
}
