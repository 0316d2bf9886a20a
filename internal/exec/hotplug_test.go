package exec

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// plugs is a node whose machines take devices while they run.
type plugs struct {
	anyNode

	had    *[]string // the disks and network cards of each adjustment
	refuse *error
}

func (n plugs) Info(ctx context.Context) (hypervisor.Node, error) {
	info, err := n.anyNode.Info(ctx)
	info.Hotplug = true
	return info, err
}

func (n plugs) Adjust(_ context.Context, _ agent.Order, spec hypervisor.Spec) error {
	*n.had = append(*n.had, fmt.Sprintf("%d disks, %d cards", len(spec.Disks), len(spec.NICs)))
	return *n.refuse
}

// Devices of what runs are pulled out before the inventory forgets them, and plugged in when it knows them; what the guest keeps is kept by all.
func TestHotplug(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	var had []string
	var refuse error
	r.wrap = func(n Node) Node { return plugs{n, &had, &refuse} }
	more := params{"disks": []any{[]any{"add", params{"size": 4}}}, "nics": []any{[]any{"add", params{}}}}
	hot := func(p params) params { p["hotplug"] = true; return one(p) }
	if _, err := r.run("OP_INSTANCE_SET_PARAMS", hot(params{"nics": more["nics"]})); err != nil || len(had) > 0 {
		t.Errorf("what does not run: %v, adjusted %q", err, had)
	}
	r.must("null", "OP_INSTANCE_STARTUP", one(nil))

	if _, err := r.run("OP_INSTANCE_SET_PARAMS", hot(more)); err != nil {
		t.Fatal(err)
	}
	inst := r.instance("one")
	want := fmt.Sprintf("%d disks, %d cards", len(inst.Disks), len(inst.NICs))
	if !slices.Equal(had, []string{want}) || len(inst.Disks) != 2 {
		t.Errorf("the node adjusted %q, and the inventory has %s", had, want)
	}
	r.logged(" - INFO: Trying to hotplug device...", " - INFO: Hotplug done.")

	had, refuse = nil, fault.New(fault.Busy, "the guest does not let go")
	r.refuses("OpExecError", "Could not hotplug device: the guest does not let go", "OP_INSTANCE_SET_PARAMS", hot(params{"disks": []any{[]any{"remove", -1, params{}}}}))
	if len(r.instance("one").Disks) != 2 || !strings.HasPrefix(had[0], "1 disks") {
		t.Errorf("the inventory has %d disks, the node adjusted %q", len(r.instance("one").Disks), had)
	}

	// What cannot be plugged in is there from the next start on.
	r.must(`[["NIC/0","remove"]]`, "OP_INSTANCE_SET_PARAMS", hot(params{"nics": []any{[]any{"remove", 0, params{}}}}))
	if !slices.Contains(r.log, "Warning: Could not hotplug device: the guest does not let go") {
		t.Errorf("the log is %q", r.log)
	}

	// What was pulled out is plugged in again when the rest fails.
	had, refuse = nil, nil
	r.failOn("node1", "prepare", false)
	r.refuses("OpExecError", "Could not create the disks of instance one: the driver is broken on purpose", "OP_INSTANCE_SET_PARAMS",
		hot(params{"disks": []any{[]any{"remove", -1, params{}}, []any{"add", params{"size": 4}}}}))
	if len(had) != 2 || !strings.HasPrefix(had[0], "1 disks") || !strings.HasPrefix(had[1], "2 disks") || len(r.instance("one").Disks) != 2 {
		t.Errorf("the node adjusted %q", had)
	}
	r.failOn("node1", "", false)

	had = nil
	if _, err := r.run("OP_INSTANCE_SET_PARAMS", hot(params{"disks": []any{[]any{"remove", -1, params{}}}})); err != nil {
		t.Fatal(err)
	}
	if len(r.instance("one").Disks) != 1 || len(had) != 2 || !strings.HasPrefix(had[0], "1 disks") {
		t.Errorf("the inventory has %d disks, the node adjusted %q", len(r.instance("one").Disks), had)
	}
}
