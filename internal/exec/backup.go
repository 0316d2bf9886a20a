package exec

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/export"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hooks"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/work"
)

// exported is what an export says of an instance, whose parameters have their defaults filled in as in the reference.
func exported(env *Env, inst *cluster.Instance, id string, form export.Form) export.Export {
	c := env.snapshot().Cluster()
	e := export.Export{
		ID: id, Time: env.Now().Unix(), Source: inst.PrimaryNode, OS: inst.OS, Name: inst.Name, Template: inst.DiskTemplate(), Hypervisor: inst.Hypervisor,
		Tags: inst.Tags, HVParams: paramTexts(c.FillHV(inst)), BEParams: paramTexts(c.FillBE(inst)), OSParams: paramTexts(c.FillOS(inst)),
	}
	for i := range inst.NICs {
		n := &inst.NICs[i]
		e.NICs = append(e.NICs, export.NIC{MAC: n.MAC, IP: n.IP, Name: n.Name, Network: n.Network,
			Mode: c.NICParam(n, "mode"), Link: c.NICParam(n, "link"), VLAN: c.NICParam(n, "vlan")})
	}
	for i := range inst.Disks {
		d := &inst.Disks[i]
		e.Disks = append(e.Disks, export.Disk{Name: d.Name, Size: d.Size, Dump: d.UUID, Form: form})
	}
	return e
}

// paramTexts are parameters as the reference writes them into an export: as Python does.
func paramTexts(p cluster.Params) map[string]string {
	out := make(map[string]string, len(p))
	for name, v := range p {
		switch v := v.(type) {
		case nil:
		case bool:
			out[name] = map[bool]string{true: "True", false: "False"}[v]
		default:
			out[name] = fmt.Sprint(v)
		}
	}
	return out
}

// backupPrepare prepares OP_BACKUP_PREPARE: for an export within the cluster there is nothing to be told before.
func backupPrepare(_ context.Context, env *Env) (Plan, error) {
	if err := withinCluster(env.Op); err != nil {
		return Plan{}, err
	}
	inst, err := findInstance(env.Op, env.snapshot())
	if err == nil {
		_, _, err = env.primary(inst)
	}
	return answer(nil), err
}

// withinCluster refuses to export to another cluster.
func withinCluster(op *opcode.Opcode) error {
	if op.Str("mode") != "remote" {
		return nil
	}
	return fault.New(fault.Unsupported, "Instances can't be exported to other clusters").At("mode").
		WithHint("export to a node (mode local), copy the directory of the export below export/ of a node of the other cluster, and import it there")
}

// exportLocks locks an instance, and shares its nodes and the one that is to keep the export.
func exportLocks(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	request, err := ownInstance(op, snap)
	if err != nil || op.Str("mode") == "remote" {
		return request, err
	}
	further, err := furtherNode(op, "target_node", false, snap)
	return append(request, further...), err
}

// exporting is OP_BACKUP_EXPORT once its checks are done.
type exporting struct {
	env      *Env
	inst     *cluster.Instance
	from, to *cluster.Node
	agent    Node
	// runs says that the instance is to be stopped, and started again if it is to stay.
	runs bool
	form export.Form
	// snapshots says that what is dumped is what the disks had at one moment, while the instance goes on; whole why it cannot be, for people.
	snapshots bool
	whole     string
	// keeps are the templates that the node snapshots.
	keeps []string
	// id is what the export is made under.
	id string
	// old are nodes that have an export of this name, which goes when the new one is there.
	old []*cluster.Node
}

// backupExport prepares OP_BACKUP_EXPORT: the disks are dumped on the instance's own node, and the dumps go to the node that is to keep them. An instance
// that runs goes on meanwhile where its disks can be snapshotted; where they cannot it is stopped until they are dumped.
func backupExport(ctx context.Context, env *Env) (Plan, error) {
	if err := refuseExport(env); err != nil {
		return Plan{}, err
	}
	x := &exporting{env: env, id: env.NewUUID()}
	var err error
	if x.inst, err = findInstance(env.Op, env.snapshot()); err != nil {
		return Plan{}, err
	}
	if x.from, x.agent, err = env.primary(x.inst); err != nil {
		return Plan{}, err
	}
	if err := x.checkTarget(); err != nil {
		return Plan{}, err
	}
	if err := x.chooseForm(ctx); err != nil {
		return Plan{}, err
	}
	if err := x.checkSource(ctx); err != nil {
		return Plan{}, err
	}
	says := exported(env, x.inst, x.id, x.form)
	if _, err := says.Encode(); err != nil {
		return Plan{}, err
	}
	x.old = env.nodesWithExport(ctx, x.inst.Name, x.to)
	x.tellLeftOut()
	w := x.plan()
	return Plan{Work: w, Dry: x.result(), Decided: hooks.Subject{Target: x.to}}, nil
}

// refuseExport refuses what exports cannot do.
func refuseExport(env *Env) error {
	op := env.Op
	if err := withinCluster(op); err != nil {
		return err
	}
	if _, named := op.Params["target_node"].(string); !named {
		return fault.New(fault.Invalid, "A local export needs the name of the node that keeps it").At("target_node")
	}
	for _, param := range []string{"zero_free_space", "x509_key_name", "destination_x509_ca", "zeroing_timeout_fixed", "zeroing_timeout_per_mib"} {
		if op.Bool(param) || op.Has(param) && param != "zero_free_space" {
			return fault.New(fault.Unsupported, "An export with %s is not supported", param).At(param).
				WithHint("leave it out; dumps have holes where the disk has zeros, and nothing is compressed, so there is nothing to be zeroed")
		}
	}
	if op.Bool("long_sleep") && !op.Bool("shutdown") {
		return fault.New(fault.Invalid, "The long sleep option only makes sense when the instance can be shut down.").At("long_sleep")
	}
	return uncompressed(op)
}

// uncompressed refuses to compress dumps on their way.
func uncompressed(op *opcode.Opcode) error {
	if tool := op.Str("compress"); tool != none {
		return fault.New(fault.Unsupported, "Dumps are not compressed on their way, and %.50q was asked for", tool).At("compress").WithHint("leave it out, or say none")
	}
	return nil
}

func (x *exporting) checkTarget() error {
	var err error
	if x.to, err = findNode(x.env.Op, "target_node", x.env.snapshot()); err != nil {
		return err
	}
	if x.to.Drained {
		return fault.New(fault.WrongState, "Can't use drained node: %s", x.to.Name)
	}
	_, err = x.env.onlineAgent(x.to)
	return err
}

// checkSource looks whether the instance runs, and refuses to dump disks while it does that cannot be snapshotted.
func (x *exporting) checkSource(ctx context.Context) error {
	op := x.env.Op
	var err error
	if x.runs, err = active(ctx, x.agent, x.inst); err != nil {
		return err
	}
	if err := hasSomething(ctx, x.agent, x.inst); err != nil && len(x.inst.Disks) > 0 {
		return err
	}
	remove, shutdown := op.Bool("remove_instance"), op.Bool("shutdown")
	x.whole = x.cannotSnapshot()
	switch {
	case !x.runs:
		return nil
	case remove && !shutdown:
		return fault.New(fault.WrongState, "Can not remove instance without shutting it down before")
	case remove || len(x.inst.Disks) == 0:
		return nil
	case x.whole == "":
		x.snapshots = true
		return nil
	case !shutdown:
		return fault.New(fault.WrongState, "Not all disks could be snapshotted, and you requested a live export; aborting").At("shutdown").
			WithHint("%s: let the instance be stopped, and allow that with long_sleep (--long-sleep)", x.whole)
	case !op.Bool("long_sleep"):
		return fault.New(fault.WrongState, "Not all disks could be snapshotted, and you did not allow the instance to remain offline for a longer time through the --long-sleep option; aborting").
			At("long_sleep").WithHint("%s; with --long-sleep the instance stands still until its disks are dumped on its own node, and is started again then", x.whole)
	}
	return nil
}

// cannotSnapshot says for people why the disks cannot be dumped as they were at one moment while the instance goes on; empty when they can.
func (x *exporting) cannotSnapshot() string {
	if x.form == export.Script {
		return "the export script of its OS reads the disks themselves, and no snapshots"
	}
	if len(x.keeps) == 0 {
		return "node " + x.from.Name + " makes no snapshots of disks"
	}
	for i := range x.inst.Disks {
		if template := x.inst.Disks[i].Type; !slices.Contains(x.keeps, template) {
			return "node " + x.from.Name + " makes no snapshots of disks of the template " + template
		}
	}
	return ""
}

// chooseForm decides how the disks are dumped: by the operating system's own script, if it has one.
func (x *exporting) chooseForm(ctx context.Context) error {
	os, _, err := x.env.findOS(ctx, x.agent, x.inst.OS, true)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	info, err := x.agent.Info(ctx)
	if err != nil {
		return fault.New(fault.Environment, "Can't get data from node %s: %w", x.from.Name, err)
	}
	x.keeps = info.Snapshots
	switch {
	case slices.Contains(os.Scripts, "export"):
		x.form = export.Script
	case info.StandsIn:
		x.form = export.Pretended
	default:
		x.form = export.Raw
	}
	return nil
}

// tellLeftOut says what of the instance is in no export.
func (x *exporting) tellLeftOut() {
	if names := paramNames(x.inst.OSParamsPrivate); len(names) > 0 {
		x.env.Warnf("The private OS parameters (%s) are not in the export; who imports it gives them again", strings.Join(names, ", "))
	}
	if x.form == export.Pretended {
		return
	}
	filled := x.env.snapshot().Cluster().FillHV(x.inst)
	if firmware, _ := filled["firmware"].(string); firmware != "" && firmware != "bios" {
		x.env.Warnf("The variables of the firmware of %s are not in the export: an imported instance starts with new ones", x.inst.Name)
	}
	if tpm, _ := filled["tpm"].(string); tpm != "" && tpm != none {
		x.env.Warnf("What the TPM of %s keeps is not in the export: a disk that is sealed by it cannot be opened by an imported instance", x.inst.Name)
	}
}

func paramNames(p cluster.Params) []string {
	names := make([]string, 0, len(p))
	for name := range p {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// nodesWithExport are the nodes but one that have an export of a name, as far as they can be asked.
func (e *Env) nodesWithExport(ctx context.Context, name string, but *cluster.Node) (out []*cluster.Node) {
	for node := range e.snapshot().Nodes() {
		if node == but {
			continue
		}
		a, err := e.onlineAgent(node)
		var there []string
		if err == nil {
			there, err = a.Exports(ctx)
		}
		if err != nil {
			e.Warnf("Failed to query node %s (continuing): %v", node.Name, err)
			continue
		}
		if slices.Contains(there, name) {
			out = append(out, node)
		}
	}
	return out
}

func (x *exporting) result() []any {
	disks := make([]bool, len(x.inst.Disks))
	for i := range disks {
		disks[i] = true
	}
	return []any{true, disks}
}

// plan are the steps of the export. Until the new one is in place all can be taken back, and the one before is there.
func (x *exporting) plan() *work.Work {
	op, inst := x.env.Op, x.inst
	w := &work.Work{Result: encodeArgs(x.result())}
	stops := x.runs && op.Bool("shutdown")
	if stops {
		w.Steps = append(w.Steps, x.stopping())
	}
	if x.snapshots {
		w.Steps = append(w.Steps, x.snapshotting(stops))
	}
	for i := range inst.Disks {
		w.Steps = append(w.Steps, x.dumping(i))
	}
	switch {
	case x.snapshots:
		w.Steps = append(w.Steps, x.releasing())
	case stops && !op.Bool("remove_instance"):
		w.Steps = append(w.Steps, x.starting(startArgs{}))
	}
	if x.to != x.from && len(inst.Disks) > 0 {
		w.Steps = append(w.Steps, x.copying(), x.discarding(x.from))
	}
	finish := onNode(finishExport, x.to.UUID, inst.UUID, "put the export of instance "+inst.Name+" in place", finishArgs{x.id, x.form})
	finish.Says, finish.Keeps = []string{"Finalizing export on " + x.to.Name}, true
	finish.Fails = "Could not finalize export for instance " + inst.Name + " on node " + x.to.Name
	w.Steps = append(w.Steps, finish)
	for _, node := range x.old {
		s := onNode(removeExport, node.UUID, "", "remove the older export of instance "+inst.Name, exportArgs{inst.Name})
		s.Says, s.Tolerated = []string{"Removing old exports for instance " + inst.Name}, true
		s.Fails = "Could not remove older export for instance " + inst.Name + " on node " + node.Name
		w.Steps = append(w.Steps, s)
	}
	if op.Bool("remove_instance") {
		w.Steps = append(w.Steps, x.removing()...)
	}
	return w
}

func (x *exporting) stopping() work.Step {
	stop := onNode(stopInstance, x.from.UUID, x.inst.UUID, "stop instance "+x.inst.Name, stopArgs{x.inst.Name, x.env.Op.Int("shutdown_timeout")})
	stop.Says = []string{"Shutting down instance " + x.inst.Name}
	if x.whole != "" && !x.env.Op.Bool("remove_instance") && len(x.inst.Disks) > 0 {
		stop.Says = append(stop.Says, "It is started again when its disks are dumped: "+x.whole)
	}
	stop.Fails = "Could not shutdown instance " + x.inst.Name + " on node " + x.from.Name
	start := onNode(startInstance, "", "", "start instance "+x.inst.Name+" again", startArgs{})
	start.Fails = "Could not start instance " + x.inst.Name + " again"
	start.Left = "Instance " + x.inst.Name + " was stopped for its export and does not run; next: drover instance start " + x.inst.Name
	stop.Undo = &start
	return stop
}

func (x *exporting) starting(a startArgs) work.Step {
	start := onNode(startInstance, x.from.UUID, x.inst.UUID, "start instance "+x.inst.Name, a)
	start.Says, start.Fails = []string{"Starting instance " + x.inst.Name}, "Could not start instance"
	return start
}

// snapshotting is the step that has what the disks have at one moment be kept: before the instance is started again, if it was stopped for that.
func (x *exporting) snapshotting(stopped bool) work.Step {
	var s work.Step
	if stopped {
		s = x.starting(startArgs{Snapshot: x.id})
	} else {
		s = onNode(snapshotDisks, x.from.UUID, x.inst.UUID, "snapshot the disks of instance "+x.inst.Name, snapshotArgs{x.inst.Name, x.id})
		s.Fails = "Could not snapshot the disks of instance " + x.inst.Name + " on node " + x.from.Name
	}
	s.Says = slices.Concat(x.ofDisks("Creating a snapshot of"), s.Says)
	undo := x.releasing()
	undo.Node, undo.Of, undo.Says, undo.Tolerated = "", "", nil, false
	s.Undo = &undo
	return s
}

// releasing is the step that ends the snapshot.
func (x *exporting) releasing() work.Step {
	s := onNode(releaseDisks, x.from.UUID, x.inst.UUID, "let go of the snapshot of the disks of instance "+x.inst.Name, snapshotArgs{x.inst.Name, x.id})
	s.Says, s.Tolerated = x.ofDisks("Removing snapshot of"), true
	s.Fails = "Could not let go of the snapshot of the disks of instance " + x.inst.Name + " on node " + x.from.Name
	s.Left = "Node " + x.from.Name + " goes on putting aside what instance " + x.inst.Name + " overwrites of its disks, until it is stopped or exported again"
	return s
}

// ofDisks says something of each disk.
func (x *exporting) ofDisks(what string) (lines []string) {
	for i := range x.inst.Disks {
		lines = append(lines, fmt.Sprintf("%s disk/%d on node %s", what, i, x.from.Name))
	}
	return lines
}

func (x *exporting) dumping(i int) work.Step {
	disk := &x.inst.Disks[i]
	s := onNode(dumpDisk, x.from.UUID, x.inst.UUID, fmt.Sprintf("dump disk %d of instance %s", i, x.inst.Name), dumpArgs{Disk: i, Form: x.form, ID: x.id, File: disk.UUID, Snapshot: x.snapshots})
	s.Says, s.Anew = []string{fmt.Sprintf("Exporting disk/%d from %s to %s", i, x.from.Name, x.to.Name)}, true
	s.Fails = fmt.Sprintf("Could not dump disk %d of instance %s on node %s", i, x.inst.Name, x.from.Name)
	if i == 0 {
		s.Undo = x.discard(x.from)
	}
	return s
}

func (x *exporting) copying() work.Step {
	a := fetchedArgs{From: x.from.UUID, ID: x.id}
	for i := range x.inst.Disks {
		a.Files = append(a.Files, x.inst.Disks[i].UUID)
	}
	s := onNode(copyDumps, x.to.UUID, "", "copy the dumps of instance "+x.inst.Name+" from "+x.from.Name, a)
	s.Fails = "Could not copy the dumps of instance " + x.inst.Name + " from " + x.from.Name + " to " + x.to.Name
	s.Undo, s.Anew = x.discard(x.to), true // they are gone from the first node behind it
	return s
}

// discard takes back what was made of the export on a node.
func (x *exporting) discard(node *cluster.Node) *work.Step {
	s := onNode(discardExport, "", "", "discard what there is of the export", exportArgs{x.id})
	s.Fails, s.Left = leftOfExport(node, x.inst.Name, x.id)
	return &s
}

func (x *exporting) discarding(node *cluster.Node) work.Step {
	s := onNode(discardExport, node.UUID, "", "discard the dumps of instance "+x.inst.Name+" that were copied", exportArgs{x.id})
	s.Tolerated = true
	s.Fails, s.Left = leftOfExport(node, x.inst.Name, x.id)
	return s
}

// leftOfExport says what is left on a node where dumps could not be discarded.
func leftOfExport(node *cluster.Node, name, id string) (fails, left string) {
	return "Could not discard the dumps of instance " + name + " on node " + node.Name,
		"Node " + node.Name + " still has dumps of instance " + name + " in export/.staged/" + id + " of its agent's directory; next: drover node clear-orphans " + node.Name + " " + id
}

func (x *exporting) removing() []work.Step {
	ignore := x.env.Op.Bool("ignore_remove_failures")
	steps := clearing(x.inst, x.from, x.env.Op.Int("shutdown_timeout"), ignore)
	steps[0].Says = []string{"Removing instance " + x.inst.Name}
	if second := x.env.secondary(x.inst); second != nil {
		steps = append(steps, x.env.clearingSecond(x.inst, second, ignore)...)
	}
	return append(steps, inInventory(forgetInstance, x.inst.UUID, "forget instance "+x.inst.Name, nil))
}

// exportOwnerLocks locks the name of the instance whose exports are removed, which there may be no more.
func exportOwnerLocks(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	request := typed(lock.Instance, exportOwner(op, snap), lock.Exclusive)
	return append(request, sharing(lock.All)...), nil
}

// exportOwner is the full name of the instance, as far as it is known.
func exportOwner(op *opcode.Opcode, snap *cluster.Snapshot) string {
	if inst, err := findInstance(op, snap); err == nil {
		return inst.Name
	}
	return strings.ToLower(op.Str("instance_name"))
}

// backupRemove prepares OP_BACKUP_REMOVE: the exports of an instance go from all nodes, also if the instance is no more,
// unless the opcode says by its UUID which it is to be: an export knows none.
func backupRemove(ctx context.Context, env *Env) (Plan, error) {
	if env.Op.Str("instance_uuid") != "" { // or the exports of another one that has the name would go
		if _, err := findInstance(env.Op, env.snapshot()); err != nil {
			return Plan{}, err
		}
	}
	name := exportOwner(env.Op, env.snapshot())
	var steps []work.Step
	for _, node := range env.nodesWithExport(ctx, name, nil) {
		s := onNode(removeExport, node.UUID, "", "remove the export of instance "+name, exportArgs{name})
		s.Fails = "Could not remove export for instance " + name + " on node " + node.Name
		steps = append(steps, s)
	}
	if len(steps) > 0 {
		return again(steps...), nil
	}
	if env.snapshot().InstanceNamed(name) == nil {
		env.Logf("Export not found. If trying to remove an export belonging to a deleted instance please use its Fully Qualified Domain Name.")
	}
	return answer(nil), nil
}
