package exec

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

// writesInstance chooses the transactions that put an instance.
func writesInstance(tx store.Tx) bool { return len(tx.Put) > 0 && tx.Put[0].Kind == "instance" }

// lost are the ways in which the store can lose its answer to a transaction.
var lost = map[string]faultstore.Effect{"not stored": faultstore.FailBefore, "stored": faultstore.FailAfter}

// An answer of the store that is lost in the midst of an opcode changes nothing about it:
// it succeeds, and node and inventory agree.
func TestLostAnswersChangeNothing(t *testing.T) {
	for _, test := range []struct {
		id   string
		with params
		want string
		name string
		disk int // the size of the first one
		more int // disks besides
	}{
		{"OP_INSTANCE_CREATE", creating(nil), `["node1"]`, "one", 8, 0},
		{"OP_INSTANCE_RENAME", one(params{"new_name": "other"}), `"other"`, "other", 8, 0},
		{"OP_INSTANCE_GROW_DISK", one(params{"disk": 0, "amount": 8}), "null", "one", 16, 0},
		{"OP_INSTANCE_REINSTALL", one(params{"os_type": "noop"}), "null", "one", 8, 0},
		{"OP_INSTANCE_SET_PARAMS", one(params{"disks": []any{[]any{"add", params{"size": 4}}}}), `[["disk/1","add:size=4,mode=rw"]]`, "one", 8, 1},
	} {
		for name, effect := range lost {
			t.Run(test.id+" "+name, func(t *testing.T) {
				r := newRig(t)
				if test.id != "OP_INSTANCE_CREATE" {
					r.create("one", false)
				}
				struck := r.store.Inject(faultstore.Fault{Do: effect, When: writesInstance})
				r.must(test.want, test.id, test.with)
				<-struck
				inst, there := r.instance(test.name), r.onItsNode(test.name)
				if len(inst.Disks) != 1+test.more || inst.Disks[0].Size != int64(test.disk) || len(there.Disks) != len(inst.Disks) || there.Disks[0].Size != test.disk {
					t.Errorf("the inventory has %+v, the node %+v", inst.Disks, there.Disks)
				}
				if os := test.with["os_type"]; os != nil && inst.OS != os {
					t.Errorf("its operating system is %s", inst.OS)
				}
			})
		}
	}
}

func (r *rig) onItsNode(name string) hypervisor.Instance {
	r.Helper()
	inst := r.instance(name)
	a, err := r.fleet.Agent(r.keeper.Snapshot().Node(inst.PrimaryNode).Name)
	if err != nil {
		r.Fatal(err)
	}
	there, err := a.Instance(r.Context(), thingOf(inst))
	if err != nil || there.UUID != inst.UUID || there.Name != name {
		r.Fatalf("the node has %+v, %v", there, err)
	}
	return there
}

// While nobody knows whether a change was made nothing is undone: should it turn out that
// it was, the node has what the inventory says.
func TestNothingIsUndoneUponAGuess(t *testing.T) {
	for _, test := range []struct {
		id   string
		with params
		name string
		warn string
		left string // what the job says of what it leaves, should the change not have been made
	}{
		{"OP_INSTANCE_CREATE", creating(nil), "one", " - WARNING: It is not known whether this was done: add instance one to the inventory; nothing is taken back, what was done before is left as it is",
			" - WARNING: If it was not: Node NODE still has what there is of the instance one (UUID) that was not created; next: drover node clear-orphans NODE UUID"},
		{"OP_INSTANCE_RENAME", one(params{"new_name": "other"}), "other", " - WARNING: It is not known whether this was done: rename instance one to other; nothing is taken back, what was done before is left as it is", ""},
	} {
		r := newRig(t)
		if test.id != "OP_INSTANCE_CREATE" {
			r.create("one", false)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var over atomic.Bool
		r.store.Inject(faultstore.Fault{Do: faultstore.FailAfter, When: writesInstance})
		for range 100 {
			r.store.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: func(tx store.Tx) bool {
				if !writesInstance(tx) && !over.Load() {
					cancel() // the job is ended while the store does not answer
				}
				return !writesInstance(tx) && !over.Load()
			}})
		}
		r.log = nil
		_, err := r.all.Run(ctx, r.env(r.opcode(test.id, test.with)))
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s ends with %v", test.id, err)
		}
		r.logs(test.warn)
		told := r.log
		over.Store(true)
		r.must("null", "OP_TAGS_SET", params{"kind": "cluster", "tags": []string{"works-again"}})
		there := r.onItsNode(test.name)
		if test.left != "" {
			node := r.keeper.Snapshot().Node(r.instance(test.name).PrimaryNode).Name
			r.log = told
			r.logs(strings.NewReplacer("NODE", node, "UUID", there.UUID).Replace(test.left))
		}
	}
}
