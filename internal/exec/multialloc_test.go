package exec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// batchOf are creations of diskless instances with so much memory each, in MiB.
func batchOf(memory ...int) (list []any) {
	for i, m := range memory {
		list = append(list, params{"OP_ID": "OP_INSTANCE_CREATE", "instance_name": fmt.Sprint("b", i), "mode": "create", "disks": []any{}, "nics": []any{},
			"os_type": "noop+default", "beparams": params{"memory": m}})
	}
	return list
}

// with are they with further parameters.
func with(list []any, more params) []any {
	for _, item := range list {
		maps.Copy(item.(params), more)
	}
	return list
}

// made carries out the jobs of a batch, and returns where the instances are.
func (r *rig) made() (at []string) {
	r.Helper()
	jobs := r.submitted
	r.submitted = nil
	for _, ops := range jobs {
		p := ops[0].Params
		if _, err := r.run(ops[0].ID, p); err != nil {
			r.Fatalf("%v: %v", p, err)
		}
		at = append(at, ops[0].Str("instance_name")+" "+r.at(ops[0].Str("instance_name")))
	}
	return at
}

// Several instances are placed together: each counts those before it, and what fits nowhere keeps none of the others back.
func TestBatch(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.must(`{"allocatable":["b0","b1","b3"],"failed":["b2"],"jobs":[[true,101],[true,102],[true,103]]}`, "OP_INSTANCE_MULTI_ALLOC",
		params{"instances": batchOf(5000, 5000, 5000, 2000), "iallocator": "hail"})
	if len(r.log) != 4 || !strings.HasPrefix(r.log[2], " - WARNING: Instance b2 fits nowhere: of 2 candidates 2 with too little memory") {
		t.Errorf("said is %q", r.log)
	}
	if got := r.made(); !slices.Equal(got, []string{"b0 node1", "b1 node2", "b3 node1"}) {
		t.Errorf("made are %q", got)
	}
	named := with(batchOf(128), params{"instance_name": "named", "pnode": "node2"})
	r.must(`{"allocatable":["named"],"failed":[],"jobs":[[true,101]]}`, "OP_INSTANCE_MULTI_ALLOC", params{"instances": named})
	if got := r.made(); !slices.Equal(got, []string{"named node2"}) {
		t.Errorf("made are %q", got)
	}
	pair := with(batchOf(128), params{"instance_name": "pair", "disk_template": "drbd", "disks": []any{params{"size": 8}}})
	delete(pair[0].(params), "OP_ID")
	r.must(`{"allocatable":["pair"],"failed":[],"jobs":[[true,101]]}`, "OP_INSTANCE_MULTI_ALLOC", params{"instances": pair})
	if got := r.made(); !slices.Equal(got, []string{"pair node2 node1"}) && !slices.Equal(got, []string{"pair node1 node2"}) {
		t.Errorf("made are %q", got)
	}
}

func TestBatchesThatAreRefused(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.create("there", false)
	for text, p := range map[string]params{
		"iallocator are not allowed to be set on instance objects":                                           {"instances": with(batchOf(1), params{"iallocator": "hail"})},
		"There are instance objects providing pnode/snode while others do not":                               {"instances": append(batchOf(1, 1)[1:], with(batchOf(1), params{"pnode": "node1"})...)},
		"Do not specify both, iallocator and node":                                                           {"instances": with(batchOf(1), params{"pnode": "node1"}), "iallocator": "hail"},
		"Failure while running the iallocator script: iallocator module 'dice' not found in the search path": {"instances": batchOf(1), "iallocator": "dice"},
		"Opportunistic locking is only available in combination with an instance allocator":                  {"instances": with(batchOf(1), params{"pnode": "node1"}), "opportunistic_locking": true},
		"There are duplicate instance names: b0":                                                             {"instances": append(batchOf(1), batchOf(1)...)},
		"there: Instance 'there' is already in the cluster":                                                  {"instances": with(batchOf(1), params{"instance_name": "there"})},
		"b0: Node group 'nosuch' not found":                                                                  {"instances": with(batchOf(1), params{"group_name": "nosuch"})},
		"instances[0] is of OP_TEST_DELAY, and only OP_INSTANCE_CREATE makes instances":                      {"instances": []any{params{"OP_ID": "OP_TEST_DELAY", "duration": 1}}},
		"instances[0]: OP_INSTANCE_CREATE needs the parameter \"disks\"":                                     {"instances": []any{params{"instance_name": "x"}}},
		"instances[0]: OP_INSTANCE_CREATE has no parameter \"nosuch\"":                                       {"instances": with(batchOf(1), params{"nosuch": 1})},
		"objects providing pnode/snode while others do not":                                                  {"instances": []any{}},
	} {
		if _, err := r.run("OP_INSTANCE_MULTI_ALLOC", p); err == nil || !strings.Contains(err.Error(), text) || len(r.submitted) > 0 {
			t.Errorf("%v comes to %v, want %s", p, err, text)
		}
	}
}

// Of any batch on any cluster the dry run tells what comes of it: what is said to fit is made on the nodes that it names, and no node has promised more
// than it has.
func TestBatchesComeToWhatWasPlanned(t *testing.T) {
	nodes := []string{"node1", "node2", "node3"}
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, nodes...)
		r.populate(rt, nodes)
		list := batchOf(rapid.SliceOfN(rapid.SampledFrom([]int{128, 2048, 4096, 8192}), 1, 5).Draw(rt, "memory")...)
		for _, item := range list {
			if rapid.Bool().Draw(rt, "mirrored") {
				with([]any{item}, params{"disk_template": "drbd", "disks": []any{params{"size": 8}}})
			}
		}
		p := params{"instances": list}
		text, _, err := r.all.Check(r.Context(), r.env(r.opcode("OP_INSTANCE_MULTI_ALLOC", p)))
		if err != nil {
			rt.Fatal(err)
		}
		var told struct {
			Allocatable, Failed []string
			Plan                []placedIn
		}
		if err := json.Unmarshal(text, &told); err != nil {
			rt.Fatal(err)
		}
		if len(told.Allocatable)+len(told.Failed) != len(list) {
			rt.Fatalf("of %d told is %s", len(list), text)
		}
		if _, err := r.run("OP_INSTANCE_MULTI_ALLOC", p); err != nil {
			rt.Fatal(err)
		}
		var want []string
		for _, row := range told.Plan {
			if len(row.Nodes) > 0 {
				want = append(want, row.Instance+" "+strings.Join(row.Nodes, " "))
			}
		}
		if got := r.made(); !slices.Equal(got, want) {
			rt.Fatalf("told is %q, made %q", want, got)
		}
	})
}
