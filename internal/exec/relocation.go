package exec

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hooks"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/placement"
	"github.com/drover-project/drover/internal/work"
)

// relocation is an instance on its way to another node that has its disks, or reaches them: OP_INSTANCE_FAILOVER, which stops it and starts it
// there, and OP_INSTANCE_MIGRATE, which hands over what runs.
//
// It never runs on two nodes: it is started on its new node when its old one has stopped it, sent it, or is away; and started on its old node again
// when the new one has stopped it for certain.
type relocation struct {
	env      *Env
	inst     *cluster.Instance
	from, to *cluster.Node
	target   Node
	failover bool
	// away is why the node that the instance leaves cannot be told to stop it; empty if it can. runs says whether it runs there.
	away string
	runs bool
	// notes are what is to be said before anything else.
	notes []string
}

// relocationLocks locks an instance, and shares its nodes and the one that it goes to: all, when that is still to be chosen.
func relocationLocks(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	request, err := ownInstance(op, snap)
	if err != nil {
		return nil, err
	}
	inst, err := findInstance(op, snap)
	if err != nil {
		return nil, err
	}
	further, err := furtherNode(op, "target_node", inst.Mirroring() == cluster.ExternalMirror, snap)
	return append(request, further...), err
}

// failover prepares OP_INSTANCE_FAILOVER.
func (n Names) failover(ctx context.Context, env *Env) (Plan, error) {
	if env.Op.Bool("cleanup") {
		return Plan{}, fault.New(fault.Invalid, "A failover that broke off leaves nothing to clean up").At("cleanup").
			WithHint("fail the instance over again; a migration that broke off is cleaned up by a migration with cleanup")
	}
	return n.relocate(ctx, &relocation{env: env, failover: true})
}

// migrate prepares OP_INSTANCE_MIGRATE.
func (n Names) migrate(ctx context.Context, env *Env) (Plan, error) {
	if env.Op.Has("live") && env.Op.Has("mode") {
		return Plan{}, fault.New(fault.Invalid, "Only one of the 'live' and 'mode' parameters are accepted").At("live")
	}
	return n.relocate(ctx, &relocation{env: env})
}

func (n Names) relocate(ctx context.Context, r *relocation) (Plan, error) {
	var err error
	if r.inst, err = findInstance(r.env.Op, r.env.snapshot()); err != nil {
		return Plan{}, err
	}
	if r.from = r.env.snapshot().Node(r.inst.PrimaryNode); r.from == nil {
		return Plan{}, fault.New(fault.WrongState, "Instance '%s' has no primary node", r.inst.Name)
	}
	cleanup := r.env.Op.Bool("cleanup")
	if !cleanup && !r.failover && r.inst.AdminState != cluster.AdminUp && r.env.Op.Bool("allow_failover") {
		r.env.Infof("Instance is marked down or offline, fallback allowed, switching to failover")
		r.failover = true
	}
	if err := r.checkMirroring(); err != nil {
		return Plan{}, err
	}
	if cleanup {
		return r.cleanup(ctx)
	}
	if err := r.choose(ctx, n.places); err != nil {
		return Plan{}, err
	}
	if err := r.checkTarget(ctx); err != nil {
		return Plan{}, err
	}
	if err := r.checkSource(ctx); err != nil {
		return Plan{}, err
	}
	if err := r.checkLeftBehind(ctx); err != nil {
		return Plan{}, err
	}
	if err := r.checkDisks(ctx); err != nil {
		return Plan{}, err
	}
	return Plan{Work: r.plan(), Decided: hooks.Subject{Target: r.to}}, nil
}

// checkLeftBehind refuses to move a machine that is more than pretended and has disks that every node reaches: what it keeps beside them would stay
// behind, and the node that is left would remove them.
func (r *relocation) checkLeftBehind(ctx context.Context) error {
	if len(r.inst.Disks) == 0 || r.inst.Mirroring() != cluster.ExternalMirror {
		return nil
	}
	nodes := []*cluster.Node{r.to}
	if r.away == "" {
		nodes = append(nodes, r.from)
	}
	for _, n := range nodes {
		a, err := r.env.onlineAgent(n)
		if err != nil {
			return err
		}
		info, err := a.Info(ctx)
		if err != nil {
			return fault.New(fault.Environment, "Can't get data from node %s: %w", n.Name, err)
		}
		if info.Hypervisor != "" && !info.StandsIn {
			return fault.New(fault.Unsupported, "Instance %s can't be moved yet: its disks are where other nodes reach them, but what the machine keeps beside them "+
				"(what it is told at its first start, the variables of its firmware, its TPM) is on node %s alone", r.inst.Name, r.from.Name)
		}
	}
	return nil
}

// checkMirroring refuses an instance whose disks are on one node alone.
func (r *relocation) checkMirroring() error {
	what := "migrations"
	if r.failover {
		what = "failovers"
	}
	if r.inst.Mirroring() != cluster.Unmirrored {
		return nil
	}
	var bad []string
	for i := range r.inst.Disks {
		if t := r.inst.Disks[i].Type; cluster.MirroringOf(t) == cluster.Unmirrored && !slices.Contains(bad, t) {
			bad = append(bad, t)
		}
	}
	if len(bad) == 0 {
		return fault.New(fault.WrongState, "Instance mixes internal and external mirroring. This is not currently supported.")
	}
	return fault.New(fault.WrongState, "Instance's disk layout '%s' does not allow %s", strings.Join(bad, ", "), what).
		WithHint("its disks are on %s alone", r.from.Name)
}

// choose finds the node that the instance goes to: the one that has the second copy of its disks; where any node reaches them the one that was asked for,
// or that placement chooses in the group.
func (r *relocation) choose(ctx context.Context, p *places) error {
	op, snap := r.env.Op, r.env.snapshot()
	var asked *cluster.Node
	var err error
	if named(op, "target_node") {
		if asked, err = findNode(op, "target_node", snap); err != nil {
			return err
		}
	}
	if r.inst.Mirroring() == cluster.InternalMirror {
		if r.to = r.env.secondary(r.inst); r.to == nil {
			return fault.New(fault.WrongState, "No secondary node but using %s disk types", r.inst.DiskTemplate())
		}
		if op.Has("iallocator") || asked != nil && asked != r.to {
			what := "migrated"
			if r.failover {
				what = "failed over"
			}
			return fault.New(fault.Invalid, "Instances with disk types %s cannot be %s to arbitrary nodes (neither an iallocator nor a target node can be passed)",
				r.inst.DiskTemplate(), what).At("target_node").WithHint("the second copy of its disks is on %s", r.to.Name)
		}
		return nil
	}
	switch {
	case asked != nil && op.Has("iallocator"):
		return fault.New(fault.Invalid, "Do not specify both, iallocator and node").At("iallocator")
	case !checkAllocator(op.Str("iallocator")):
		return fault.New(fault.Exhausted, "Can't compute nodes using iallocator '%s': it is not there", op.Str("iallocator")).At("iallocator")
	case asked != nil && asked == r.from:
		return fault.New(fault.WrongState, "Cannot migrate instance %s to its primary (%s)", r.inst.Name, r.from.Name).At("target_node")
	case asked != nil:
		r.to = asked
		return nil
	}
	return r.place(ctx, p)
}

// place has placement choose the node.
func (r *relocation) place(ctx context.Context, p *places) error {
	r.env.atEnd(func() { p.release(r.inst.UUID) })
	d := r.env.decide(ctx, p, placement.Request{Instance: r.inst, NICs: len(r.inst.NICs), Group: r.from.Group, Leaves: []string{r.from.UUID},
		IgnorePolicy: r.env.Op.Bool("ignore_ipolicy")})
	if err := d.Err(); err != nil {
		return err
	}
	if r.to = r.env.snapshot().Node(d.UUID); r.to == nil {
		return fault.New(fault.Conflict, "the node %s was removed meanwhile", d.Node)
	}
	r.env.Infof("Selected nodes for instance %s: %s (%s)", r.inst.Name, r.to.Name, d.Why)
	return nil
}

// checkTarget refuses a node that cannot take the instance.
func (r *relocation) checkTarget(ctx context.Context) error {
	err := r.env.checkOtherGroup(r.inst, r.from, r.to)
	if err != nil {
		return err
	}
	if r.to.Drained {
		return fault.New(fault.WrongState, "Can't use drained node: %s", r.to.Name)
	}
	if r.target, err = r.env.onlineAgent(r.to); err != nil {
		return err
	}
	there, err := active(ctx, r.target, r.inst)
	if err != nil {
		return err
	}
	if there {
		return fault.New(fault.WrongState, "Instance %s runs on node %s, which is not its primary node (%s)", r.inst.Name, r.to.Name, r.from.Name).
			WithHint("drover instance migrate --cleanup %s finds out where it is to run, and has it run there alone", r.inst.Name)
	}
	if r.failover && r.inst.AdminState != cluster.AdminUp {
		r.env.Infof("Not checking memory on the secondary node as instance will not be started")
		return nil
	}
	spec := specOf(r.env.snapshot().Cluster(), r.inst, nil, nil)
	need := spec.MinMemory
	if !r.failover && !r.env.Op.Bool("allow_runtime_changes") {
		need = spec.Memory
	}
	return roomFor(ctx, r.target, "migrating instance "+r.inst.Name, need)
}

// checkSource asks the node that the instance leaves whether it runs there, and decides what can be done if that does not answer.
func (r *relocation) checkSource(ctx context.Context) error {
	if !r.failover && r.env.snapshot().Cluster().FillBE(r.inst)["always_failover"] == true {
		r.env.Infof("Instance configured to always failover; fallback to failover")
		r.failover = true
	}
	a, err := r.env.onlineAgent(r.from)
	if err == nil {
		r.runs, err = active(ctx, a, r.inst)
	}
	switch {
	case r.failover && err == nil:
		return nil
	case r.failover:
		return r.leaving(err)
	}
	if err == nil {
		err = r.migratable(ctx, a)
	}
	if err == nil {
		return nil
	}
	if !r.env.Op.Bool("allow_failover") {
		return fault.New(fault.WrongState, "Can't migrate, please use failover: %w", err).
			WithHint("drover instance failover %s", r.inst.Name)
	}
	r.env.Infof("Can't migrate, instance offline, fallback to failover")
	r.failover = true
	return r.checkSource(ctx)
}

// migratable refuses what is not running, or is run by what cannot hand it over.
func (r *relocation) migratable(ctx context.Context, source Node) error {
	if !r.runs {
		return fault.New(fault.WrongState, "Instance %s is not running", r.inst.Name)
	}
	from, err := source.Info(ctx)
	if err != nil {
		return err
	}
	to, err := r.target.Info(ctx)
	if err != nil {
		return err
	}
	switch {
	case !from.Migrates || !to.Migrates:
		return hypervisor.NoMigration(r.inst.Name)
	case from.Version != to.Version && !r.env.Op.Bool("ignore_hvversions"):
		return fault.New(fault.WrongState, "Unsupported migration between hypervisor versions (%s to %s)", from.Version, to.Version).At("ignore_hvversions")
	}
	return nil
}

// leaving decides about a node that does not tell whether the instance runs there: it is left if it is marked offline, or if the operator answers for it.
func (r *relocation) leaving(why error) error {
	if !r.from.Offline && !r.env.Op.Bool("ignore_consistency") {
		return fault.New(fault.Environment, "Could not shutdown instance %s on node %s: %w", r.inst.Name, r.from.Name, why).
			WithHint("if the node is down for certain, mark it: drover node offline %s; then fail over again. "+
				"With --ignore-consistency it is failed over at once: it is then for you to see that nothing runs there", r.from.Name)
	}
	r.away = why.Error()
	if r.from.Offline {
		r.away = "Node is marked offline"
	}
	return nil
}

// checkDisks refuses to use copies that are not up to date.
func (r *relocation) checkDisks(ctx context.Context) error {
	if r.failover && !r.inst.DisksActive && !r.runs && r.inst.StaleOn(r.to.UUID) < 0 {
		r.notes = append(r.notes, "* not checking disk consistency as instance is not running")
		return nil
	}
	r.notes = append(r.notes, "* checking disk consistency between source and target")
	i, why, err := r.env.degraded(ctx, r.inst, r.target, r.to.UUID, allDisks(r.inst))
	switch {
	case err != nil:
		return err
	case i < 0:
		return nil
	case !r.failover:
		return fault.New(fault.WrongState, "Disk %d is degraded or not fully synchronized on target node, aborting migration: %s", i, why).
			WithHint("%s", r.mend())
	case r.from.Offline && r.inst.StaleOn(r.to.UUID) < 0:
		r.notes = append(r.notes, fmt.Sprintf("Node %s is offline, ignoring degraded disk %d on target node %s (%s)", r.from.Name, i, r.to.Name, why))
	case !r.env.Op.Bool("ignore_consistency"):
		return fault.New(fault.WrongState, "Disk %d is degraded on target node, aborting failover: %s", i, why).WithHint("%s", r.mend())
	default:
		r.notes = append(r.notes, fmt.Sprintf(" - WARNING: Disk %d is degraded on target node %s (%s); what was not copied is lost", i, r.to.Name, why))
	}
	return nil
}

// mend says how copies come to be up to date.
func (r *relocation) mend() string {
	return "drover instance replace-disks --mode replace_on_secondary " + r.inst.Name + " copies its disks anew; a copy that is under way is waited for by drover instance info " + r.inst.Name
}

// The verb that makes another node the primary one of an instance.
const movePrimary = "move-primary"

type movePrimaryArgs struct {
	To string `json:"to"` // UUID
	// Away: the node that it was until now could not be told, so what it has is out of date.
	Away bool `json:"away,omitempty"`
}

// plan are the steps of the relocation.
func (r *relocation) plan() *work.Work {
	w := &work.Work{}
	if r.inst.Mirroring() == cluster.ExternalMirror {
		w.Steps = append(w.Steps, r.attaching())
	}
	switch {
	case r.failover && r.away != "":
		w.Steps = append(w.Steps, r.fromTheDead()...)
	case r.failover:
		w.Steps = append(w.Steps, r.fromTheLiving()...)
	default:
		w.Steps = append(w.Steps, r.handing()...)
	}
	first := &w.Steps[0]
	what := "Migrating instance "
	if r.failover {
		what = "Failover instance "
	}
	first.Says = append(append([]string{what + r.inst.Name}, r.notes...), first.Says...)
	if r.inst.Mirroring() == cluster.ExternalMirror && r.away == "" {
		w.Steps = append(w.Steps, r.letGo())
	}
	return w
}

// attaching has the new node know the disks, which it reaches.
func (r *relocation) attaching() work.Step {
	s := onNode(prepareDisks, r.to.UUID, r.inst.UUID, "attach the disks of instance "+r.inst.Name, prepareArgs{r.inst.Name, disksOf(r.inst)})
	s.Fails = "Can't activate the instance's disks"
	back := onNode(removeFromNode, "", "", "detach the disks of instance "+r.inst.Name, meant{r.inst.Name})
	back.Fails = "Could not detach the disks of instance " + r.inst.Name + " from node " + r.to.Name
	s.Undo = &back
	return s
}

// letGo has the old node forget the disks, which it reaches no less.
func (r *relocation) letGo() work.Step {
	s := onNode(removeFromNode, r.from.UUID, r.inst.UUID, "detach the disks of instance "+r.inst.Name, meant{r.inst.Name})
	s.Fails, s.Tolerated = "Could not detach the disks of instance "+r.inst.Name+" from node "+r.from.Name, true
	s.Left = "Node " + r.from.Name + " still knows instance " + r.inst.Name + " (" + r.inst.UUID + "), which is stopped there"
	return s
}

// starting starts the instance on its new node. It is stopped there before anything else is taken back.
func (r *relocation) starting() work.Step {
	s := onNode(startInstance, r.to.UUID, r.inst.UUID, "start instance "+r.inst.Name, startArgs{})
	s.Fails = "Could not start instance " + r.inst.Name + " on node " + r.to.Name
	s.Undo = r.stopping()
	return s
}

// stopping takes back whatever the new node was told to do with the instance.
func (r *relocation) stopping() *work.Step {
	back := onNode(stopInstance, "", "", "stop instance "+r.inst.Name, stopArgs{Name: r.inst.Name})
	back.Fails, back.Needed = "Could not stop instance "+r.inst.Name+" on node "+r.to.Name, true
	back.Left = "It may run there, so it is not started on node " + r.from.Name + " again; next: drover instance migrate --cleanup " + r.inst.Name
	return &back
}

// backAgain takes back that the old node has stopped or sent the instance.
func (r *relocation) backAgain() *work.Step {
	back := onNode(startInstance, "", "", "start instance "+r.inst.Name+" again", startArgs{})
	back.Fails = "Could not start instance " + r.inst.Name + " on node " + r.from.Name + " again"
	back.Left = "It runs nowhere now; next: drover instance start " + r.inst.Name
	return &back
}

func (r *relocation) moving() work.Step {
	s := inInventory(movePrimary, r.inst.UUID, "have node "+r.to.Name+" be the primary node of instance "+r.inst.Name, movePrimaryArgs{To: r.to.UUID, Away: r.away != "" || r.from.Offline})
	s.Keeps = true
	return s
}

// fromTheLiving are the steps of a failover from a node that answers.
func (r *relocation) fromTheLiving() []work.Step {
	timeout := int64(defaultShutdown)
	if r.env.Op.ID == "OP_INSTANCE_FAILOVER" { // and no migration that cannot be one
		timeout = r.env.Op.Int("shutdown_timeout")
	}
	stop := onNode(stopInstance, r.from.UUID, r.inst.UUID, "stop instance "+r.inst.Name, stopArgs{r.inst.Name, timeout})
	stop.Says, stop.Ends = []string{"* shutting down instance on source node"}, []string{"* deactivating the instance's disks on source node"}
	stop.Fails = "Could not shutdown instance " + r.inst.Name + " on node " + r.from.Name
	if r.runs {
		stop.Undo = r.backAgain()
	}
	steps := []work.Step{stop}
	if r.inst.AdminState == cluster.AdminUp {
		start := r.starting()
		start.Says = r.startingSays()
		steps = append(steps, start)
	}
	return append(steps, r.moving())
}

// defaultShutdown is how many seconds a guest may take to end where the opcode has no parameter for it.
const defaultShutdown = 120

func (r *relocation) startingSays() []string {
	return []string{"* activating the instance's disks on target node " + r.to.Name, "* starting the instance on the target node " + r.to.Name}
}

// fromTheDead are the steps of a failover from a node that cannot be told anything. The inventory comes first: whatever fails then, the instance is on a
// node where it can be started.
func (r *relocation) fromTheDead() []work.Step {
	move := r.moving()
	move.Says = []string{"* shutting down instance on source node",
		fmt.Sprintf(" - WARNING: Could not shutdown instance %s on node %s, proceeding anyway; please make sure node %s is down; error details: %s",
			r.inst.Name, r.from.Name, r.from.Name, r.away)}
	steps := []work.Step{move}
	if r.inst.AdminState == cluster.AdminUp {
		start := r.starting()
		start.Says, start.Undo = r.startingSays(), nil
		steps = append(steps, start)
	}
	last := &steps[len(steps)-1]
	last.Ends = append(last.Ends, " - INFO: When node "+r.from.Name+" is back: "+r.whenBack())
	return steps
}

// whenBack says what is to be done when a node is back that was left without being told.
func (r *relocation) whenBack() string {
	if r.inst.Mirroring() == cluster.InternalMirror {
		return "drover instance replace-disks --mode replace_on_secondary " + r.inst.Name + " stops what runs of the instance there, and copies its disks anew"
	}
	return "drover instance migrate --cleanup " + r.inst.Name + " stops what runs of the instance there"
}

// handing are the steps of a migration.
func (r *relocation) handing() []work.Step {
	name := r.inst.Name
	receive := onNode(receiveInstance, r.to.UUID, r.inst.UUID, "have node "+r.to.Name+" wait for instance "+name, nil)
	receive.Says, receive.Fails = []string{"* preparing " + r.to.Name + " to accept the instance"}, "Could not pre-migrate instance "+name
	receive.Undo = r.stopping()
	send := onNode(sendInstance, r.from.UUID, r.inst.UUID, "hand instance "+name+" over to node "+r.to.Name, meant{name})
	send.Says, send.Ends = []string{"* migrating instance to " + r.to.Name, "* starting memory transfer"}, []string{"* memory transfer complete"}
	send.Fails, send.Undo = "Could not migrate instance "+name, r.backAgain()
	start := r.starting()
	start.Text, start.Fails = "let instance "+name+" go on", "Could not finalize instance migration"
	move := r.moving()
	move.Ends = []string{"* done"}
	return []work.Step{receive, send, start, move}
}

// cleanup prepares a migration with cleanup: it finds out where the instance runs, and has the inventory and the nodes agree.
func (r *relocation) cleanup(ctx context.Context) (Plan, error) {
	snap := r.env.snapshot()
	nodes := []*cluster.Node{r.from, r.env.secondary(r.inst)}
	if r.inst.Mirroring() == cluster.ExternalMirror {
		nodes = slices.Collect(snap.Nodes())
	}
	var runs []*cluster.Node
	var names []string
	var waits *cluster.Node
	for _, n := range nodes {
		if n == nil || n.Offline {
			continue
		}
		a, err := r.env.agent(n)
		if err != nil {
			return Plan{}, err
		}
		live, err := a.Instance(ctx, thingOf(r.inst))
		switch {
		case fault.Is(err, fault.NotFound) || fault.Is(err, fault.Exists):
		case err != nil:
			return Plan{}, fault.New(fault.Environment, "Can't contact node %s: %w", n.Name, err)
		case live.Active():
			runs, names = append(runs, n), append(names, n.Name)
		case live.State == hypervisor.Incoming:
			waits = n
		}
	}
	r.notes = []string{"* instance running on: " + strings.Join(names, ",")}
	if len(runs) == 0 {
		return Plan{}, fault.New(fault.WrongState, "Instance does not seem to be running at all; in this case it's safer to repair by running 'gnt-instance stop' to ensure disk shutdown, and then restarting it")
	}
	w := &work.Work{Steps: r.cleaning(runs, waits)}
	first, last := &w.Steps[0], &w.Steps[len(w.Steps)-1]
	first.Says = append(append([]string{"Migrating instance " + r.inst.Name}, r.notes...), first.Says...)
	last.Ends = append(last.Ends, "* done")
	return Plan{Work: w}, nil
}

// cleaning are the steps of a cleanup. Where the instance runs on its primary node it runs there alone afterwards; else where it runs is its primary node.
func (r *relocation) cleaning(runs []*cluster.Node, waits *cluster.Node) (steps []work.Step) {
	stop := func(n *cluster.Node, text string) {
		s := onNode(stopInstance, n.UUID, r.inst.UUID, text, stopArgs{Name: r.inst.Name})
		s.Fails = "Could not stop instance " + r.inst.Name + " on node " + n.Name
		steps = append(steps, s)
	}
	if waits != nil {
		stop(waits, "have node "+waits.Name+" wait for instance "+r.inst.Name+" no more")
	}
	if !slices.Contains(runs, r.from) {
		r.to = runs[0]
		r.notes = append(r.notes, fmt.Sprintf("* instance running on secondary node (%s), updating config", r.to.Name))
		for _, n := range runs[1:] {
			stop(n, "stop instance "+r.inst.Name)
		}
		return append(steps, r.moving())
	}
	r.notes = append(r.notes, fmt.Sprintf("* instance confirmed to be running on its primary node (%s)", r.from.Name))
	for _, n := range runs {
		if n != r.from {
			stop(n, "stop instance "+r.inst.Name)
		}
	}
	confirm := inInventory(markInstance, r.inst.UUID, "note what was done to instance "+r.inst.Name, markArgs{Forget: true, Did: len(steps) > 0})
	return append(steps, confirm)
}
