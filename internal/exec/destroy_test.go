package exec

import (
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/lock"
)

// sayingSo names the cluster of the rig.
var sayingSo = params{"name": "cluster.example"}

// A cluster is destroyed by its name, and when nothing is in it but the master.
func TestWhatIsNotDestroyed(t *testing.T) {
	r := newRig(t, "node1", "node2", "node3")
	refuses := func(want string, p params) {
		t.Helper()
		r.refusesLike("OpPrereqError", want, "OP_CLUSTER_DESTROY", p)
		r.did()
	}
	refuses("The name of the cluster that is to be destroyed has to be said (drover cluster destroy cluster.example)", nil)
	refuses(`This is the cluster cluster.example, and not "cluster"`, params{"name": "cluster"})
	r.create("one", false)
	refuses("There are still 2 node(s) in this cluster.", sayingSo)
	r.must("null", "OP_NODE_REMOVE", params{"node_name": "node2"})
	r.must("null", "OP_NODE_REMOVE", params{"node_name": "node3"})
	refuses("There are still 1 instance(s) in this cluster.", sayingSo)
	r.must(`[["disk/1","add:size=4,mode=rw"]]`, "OP_INSTANCE_SET_PARAMS", ofDisks("one", []any{"add", 1, params{"size": 4, "name": "spare"}}))
	r.must(`[["disk/1","detach"]]`, "OP_INSTANCE_SET_PARAMS", ofDisks("one", []any{"detach", 1, params{}}))
	r.must("null", "OP_INSTANCE_REMOVE", params{"instance_name": "one"})
	refuses("There are still 1 disk(s) that no instance has in this cluster.", sayingSo)
	r.must("null", "OP_DISK_REMOVE", params{"disk": "spare"})
	before := r.dump()
	if _, _, err := r.all.Check(t.Context(), r.env(r.opcode("OP_CLUSTER_DESTROY", sayingSo))); err != nil {
		t.Errorf("what is empty is refused: %v", err)
	}
	r.must(`"`+r.keeper.Snapshot().Cluster().MasterNode+`"`, "OP_CLUSTER_DESTROY", params{"name": "cluster.example", "dry_run": true})
	r.did()
	if r.dump() != before {
		t.Error("a dry run changes something")
	}
	if request, err := r.all.Locks(r.opcode("OP_CLUSTER_DESTROY", sayingSo), r.keeper.Snapshot()); err != nil || !slices.Contains(request, lock.Want{Name: bgl, Mode: lock.Exclusive}) {
		t.Errorf("it has %v, %v", request, err)
	}
}

// Behind it nothing is done any more, whatever it would be.
func TestADestroyedCluster(t *testing.T) {
	r := newRig(t)
	r.machine.err = fault.New(fault.Failed, "the program fails")
	master := r.keeper.Snapshot().Cluster().MasterNode
	r.must(`"`+master+`"`, "OP_CLUSTER_DESTROY", sayingSo)
	r.did("127.0.0.254 false")
	if text := strings.Join(r.log, "; "); !strings.Contains(text, "Error disabling the master IP address") || !strings.Contains(text, "The cluster is out of service") {
		t.Errorf("it says %s", text)
	}
	if at := r.keeper.Snapshot().Cluster().Destroyed; at == 0 {
		t.Error("it is not noted when")
	}
	for id, p := range samples {
		if _, err := r.run(id, p); !fault.Is(err, fault.WrongState) && !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "was destroyed at") {
			t.Errorf("%s: %v", id, err)
		}
		if _, _, err := r.all.Check(t.Context(), r.env(r.opcode(id, p))); err == nil || !strings.Contains(err.Error(), "was destroyed at") {
			t.Errorf("check of %s: %v", id, err)
		}
	}
	r.did()
}

// A controller that is killed, whenever that is, leaves what the next one brings to its end.
func TestADestructionGoesOn(t *testing.T) {
	for until, killed := 1, true; killed; until++ {
		r := newRig(t)
		op := r.opcode("OP_CLUSTER_DESTROY", sayingSo)
		got := r.live(op, 1, false, until)
		if killed = got.dead; killed {
			got = r.live(op, 2, true, 1000)
		}
		if c := r.keeper.Snapshot().Cluster(); got.err != nil || c.Destroyed == 0 || !strings.Contains(got.result, c.MasterNode) {
			t.Errorf("killed at %d it comes to %+v", until, got)
		}
	}
}

func TestPostInit(t *testing.T) {
	r := newRig(t)
	r.must("true", "OP_CLUSTER_POST_INIT", nil)
	r.setNode("node1", func(n *cluster.Node) { n.NDParams = cluster.Params{"ovs": true} })
	r.refuses("OpPrereqError", "The Open vSwitch of node node1 can't be set up from here (set it up on the node, and say so: drover node modify node1 --ndparams ovs=false)", "OP_CLUSTER_POST_INIT", nil)
}
