package exec

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/work"
)

// destroyCluster notes that the cluster is out of service, for good.
const destroyCluster = "destroy-cluster"

var destroyVerbs = map[string]verb{
	destroyCluster: changing(func(env *Env, snap *cluster.Snapshot, _ *work.Step, _ struct{}) ([]cluster.Change, any, error) {
		if err := empty(snap); err != nil {
			return nil, nil, err
		}
		c := snap.Cluster().Clone()
		c.Destroyed = env.nanos()
		c.Touch(c.Destroyed)
		return []cluster.Change{cluster.Put(c)}, c.MasterNode, nil
	}),
}

// empty refuses a cluster that has more than its master.
func empty(snap *cluster.Snapshot) error {
	nodes, instances, disks := 0, 0, 0
	for n := range snap.Nodes() {
		if n.UUID != snap.Cluster().MasterNode {
			nodes++
		}
	}
	for range snap.Instances() {
		instances++
	}
	for range snap.Disks() {
		disks++
	}
	for _, left := range []struct {
		number     int
		what, hint string
	}{
		{nodes, "node(s)", "drover node remove takes one out"}, {instances, "instance(s)", "drover instance remove removes one"},
		{disks, "disk(s) that no instance has", "drover disk remove removes one"},
	} {
		if left.number > 0 {
			return fault.New(fault.Invalid, "There are still %d %s in this cluster.", left.number, left.what).WithHint("%s", left.hint)
		}
	}
	return nil
}

// clusterDestroy prepares OP_CLUSTER_DESTROY. What is stored stays: it is what a backup is compared with, and where the history of the cluster is read.
func clusterDestroy(_ context.Context, env *Env) (Plan, error) {
	snap := env.snapshot()
	c := snap.Cluster()
	switch name := env.Op.Str("name"); {
	case name == "":
		return Plan{}, fault.New(fault.Invalid, "The name of the cluster that is to be destroyed has to be said").At("name").WithHint("drover cluster destroy %s", c.Name)
	case name != c.Name:
		return Plan{}, fault.New(fault.Invalid, "This is the cluster %s, and not %.200q", c.Name, name).At("name").WithHint("see whose controller is asked")
	}
	if err := empty(snap); err != nil {
		return Plan{}, err
	}
	var steps []work.Step
	if env.machine != nil && env.machine.KeepsAddress() == nil {
		down := addressStep(false)
		down.Tolerated, down.Fails = true, "Error disabling the master IP address"
		steps = append(steps, down)
	}
	gone := inInventory(destroyCluster, c.UUID, "take the cluster "+c.Name+" out of service, for good", nil)
	gone.Ends = []string{"The cluster is out of service: nothing more is done in it. Its controllers can be stopped, and do not start again on this store."}
	return Plan{Work: &work.Work{Steps: append(steps, gone)}, Dry: c.MasterNode}, nil
}

// destroyed refuses whatever is to begin in a cluster that is out of service.
func (e *Env) destroyed() error { return Destroyed(e.snapshot().Cluster()) }

// Destroyed refuses a cluster that was destroyed.
func Destroyed(c *cluster.Cluster) error {
	if c == nil || c.Destroyed == 0 {
		return nil
	}
	return fault.New(fault.WrongState, "The cluster %s was destroyed at %s", c.Name, time.Unix(0, c.Destroyed).UTC().Format(time.RFC3339)).
		WithHint("a new one is made in another data directory, or database; a backup of before is restored by drover backup restore")
}

// clusterPostInit prepares OP_CLUSTER_POST_INIT: what is done behind the making of a cluster are its hooks. There is nothing else that a controller would not
// have done by itself.
func clusterPostInit(_ context.Context, env *Env) (Plan, error) {
	snap := env.snapshot()
	master := snap.Node(snap.Cluster().MasterNode)
	if master == nil {
		return answer(true), nil
	}
	if nd := snap.Cluster().FillND(snap.Group(master.Group), master); nd["ovs"] == true {
		return Plan{}, fault.New(fault.Unsupported, "The Open vSwitch of node %s can't be set up from here", master.Name).
			WithHint("set it up on the node, and say so: drover node modify %s --ndparams ovs=false", master.Name)
	}
	return answer(true), nil
}
