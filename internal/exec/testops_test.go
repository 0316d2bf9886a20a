package exec

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
)

func TestDelayRefusals(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.setNode("node2", func(n *cluster.Node) { n.Offline = true })
	cases := []struct {
		text string
		p    params
	}{
		{"Duration must be greater than zero", params{"duration": 0}},
		{"Duration must be greater than zero", params{"duration": -1.5}},
		{"Duration must be at most 4611686018 seconds", params{"duration": 1e300}},
		{"Node 'nosuch' not known", params{"duration": 1, "on_nodes": []any{"nosuch"}}},
		{"Can't use offline node: node2", params{"duration": 1, "on_nodes": []any{"node2"}}},
		{"A delay can't be interrupted through a socket (cancel the job instead)", params{"duration": 1, "interruptible": true}},
	}
	for _, c := range cases {
		r.refuses("OpPrereqError", c.text, "OP_TEST_DELAY", c.p)
	}
}

func TestDelayRepeats(t *testing.T) {
	r := newRig(t)
	r.must("null", "OP_TEST_DELAY", params{"duration": 0.0001, "repeat": 2, "on_nodes": []any{"node1"}})
	r.logged(" - INFO: Test delay iteration 0/1", " - INFO: Test delay iteration 1/1")
}

// The master waits first, then all nodes at once.
func TestDelayTime(t *testing.T) {
	r := newRig(t, "node1", "node2")
	plan := func(p params) Plan {
		plan, err := testDelay(t.Context(), r.env(r.opcode("OP_TEST_DELAY", p)))
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	both := plan(params{"duration": 2, "on_nodes": []any{"node1", "node2"}})
	nobody := plan(params{"duration": 2, "on_master": false})
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if _, err := both.Do(t.Context()); err != nil || time.Since(begin) != 4*time.Second {
			t.Errorf("took %v, %v", time.Since(begin), err)
		}
		begin = time.Now()
		if _, err := nobody.Do(t.Context()); err != nil || time.Since(begin) != 0 {
			t.Errorf("with nobody to wait it took %v, %v", time.Since(begin), err)
		}
	})
}

// Behind a restart it waits for what is left of its time, and does not begin anew.
func TestDelayGoesOnUntilItsTime(t *testing.T) {
	r := newRig(t, "node1", "node2")
	for _, c := range []struct {
		p      params
		passed time.Duration
		left   time.Duration
		logged []string
	}{
		{params{"duration": 2, "on_nodes": []any{"node1", "node2"}}, time.Second, 3 * time.Second, nil},
		{params{"duration": 2, "on_nodes": []any{"node1", "node2"}}, 3 * time.Second, time.Second, nil},
		{params{"duration": 2, "on_nodes": []any{"node1", "node2"}}, time.Hour, 0, nil},
		{params{"duration": 2, "on_nodes": []any{"node1", "node2"}}, -time.Hour, 4 * time.Second, nil}, // clocks differ
		{params{"duration": 2, "repeat": 3}, 3 * time.Second, 3 * time.Second, []string{" - INFO: Test delay iteration 1/2", " - INFO: Test delay iteration 2/2"}},
		{params{"duration": 2, "on_master": false}, time.Second, 0, nil},
	} {
		env := r.env(r.opcode("OP_TEST_DELAY", c.p))
		env.Began = env.Now().Add(-c.passed)
		plan, err := testDelay(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		r.log = nil
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			if _, err := plan.Do(t.Context()); err != nil || time.Since(begin) != c.left {
				t.Errorf("%v, of which %v passed: took %v, %v", c.p, c.passed, time.Since(begin), err)
			}
		})
		r.logged(c.logged...)
	}
}

func TestDelayIsInterrupted(t *testing.T) {
	r := newRig(t)
	for _, p := range []params{{"duration": 1e6}, {"duration": 1e6, "on_master": false, "on_nodes": []any{"node1"}}} {
		plan, err := testDelay(t.Context(), r.env(r.opcode("OP_TEST_DELAY", p)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := plan.Do(ctx); !fault.Is(err, fault.Canceled) {
			t.Errorf("%v: %v", p, err)
		}
	}
}

func TestDelayLocks(t *testing.T) {
	r := newRig(t, "node1", "node2")
	snap := r.keeper.Snapshot()
	one, two := snap.NodeNamed("node1").UUID, snap.NodeNamed("node2").UUID
	cases := []struct {
		p    params
		want []string
	}{
		{params{}, nil},
		{params{"no_locks": false}, []string{one}},
		{params{"no_locks": false, "on_master": false}, nil},
		{params{"no_locks": false, "on_master": false, "on_nodes": []any{"node2"}}, []string{two}},
		{params{"no_locks": false, "on_master": false, "on_node_uuids": []any{two}}, []string{two}},
	}
	for _, c := range cases {
		c.p["duration"] = 1
		request, err := r.all.Locks(r.opcode("OP_TEST_DELAY", c.p), snap)
		if err != nil || len(request) != len(c.want)+1 {
			t.Errorf("%v: %v, %v", c.p, request, err)
			continue
		}
		for i, uuid := range c.want {
			if got := request[i].Name.String(); got != "node/"+uuid {
				t.Errorf("%v: lock %d is %s", c.p, i, got)
			}
		}
	}
}

func dummy(changes params) params {
	p := params{"result": nil, "messages": nil, "fail": false, "submit_jobs": nil}
	maps.Copy(p, changes)
	return p
}

func TestDummyDoesAsItIsTold(t *testing.T) {
	r := newRig(t)
	r.must(`{"a":[1,null]}`, "OP_TEST_DUMMY", dummy(params{"result": params{"a": []any{1, nil}}, "messages": []any{"hällo", "100%s"}}))
	r.logged("hällo", "100%s")
	r.must("null", "OP_TEST_DUMMY", dummy(params{"messages": "one text"}))
	r.logged("one text")
	r.refuses("OpExecError", "Opcode failed as it was told to", "OP_TEST_DUMMY", dummy(params{"fail": true, "messages": []any{"before"}}))
	r.logged("before")
	r.refuses("OpPrereqError", "parameter 'messages' must be a list of texts", "OP_TEST_DUMMY", dummy(params{"messages": []any{1}}))
	r.refuses("OpPrereqError", "parameter 'fail' must be true or false", "OP_TEST_DUMMY", dummy(params{"fail": "yes"}))
	r.refuses("OpPrereqError", "parameter 'submit_jobs' must be a list of jobs", "OP_TEST_DUMMY", dummy(params{"submit_jobs": 1}))
}

func TestDummySubmitsJobs(t *testing.T) {
	r := newRig(t)
	delay := params{"OP_ID": "OP_TEST_DELAY", "duration": 1, "reason": []any{[]any{"mine", "", 1}}}
	commented := params{"OP_ID": "OP_TEST_DELAY", "duration": 1, "comment": "mine"}
	r.must(`{"jobs":[[true,101],[false,"an empty job"]],"result":"done"}`, "OP_TEST_DUMMY",
		dummy(params{"result": "done", "submit_jobs": []any{[]any{delay, commented}, []any{}}}))
	if len(r.submitted) != 2 || len(r.submitted[0]) != 2 {
		t.Fatalf("submitted %v", r.submitted)
	}
	r.refuses("OpPrereqError", "submit_jobs[0][0]: unknown opcode \"OP_NOSUCH\"", "OP_TEST_DUMMY",
		dummy(params{"submit_jobs": []any{[]any{params{"OP_ID": "OP_NOSUCH"}}}}))
}

func TestDummysJobsAreFromOutside(t *testing.T) {
	r := newRig(t)
	child := params{"OP_ID": "OP_TEST_DELAY", "duration": 1, "reason": []any{[]any{"gnt:opcode:create", "", 1}}}
	r.refuses("OpPrereqError", `submit_jobs[0][0]: reason entry 0 has the reserved source "gnt:opcode:create": sources that begin with "gnt:", and "luxid", belong to the system (use a source of your own, for example "user")`, "OP_TEST_DUMMY", dummy(params{"submit_jobs": []any{[]any{child}}}))
	if len(r.submitted) != 0 {
		t.Errorf("submitted %v", r.submitted)
	}
}

func TestJobQueueOpcode(t *testing.T) {
	r := newRig(t)
	r.must("true", "OP_TEST_JQUEUE", params{"notify_exec": true, "log_messages": []any{"hello"}})
	r.logged("jqueue-test[/socket exec <nil>]", " - INFO: Executing", "jqueue-test[/socket startmsg 1]", " - INFO: Sending log message 1", "TESTMSG=hello", "jqueue-test[/socket logmsg 1]")
	r.did("meet", "meet", "meet")
	r.must("true", "OP_TEST_JQUEUE", params{"log_messages": []any{"hello", ""}})
	r.logged(" - INFO: Executing", " - INFO: Sending log message 1", "TESTMSG=hello", " - INFO: Sending log message 2", "TESTMSG=")
	r.did()
	if request, err := r.all.Locks(r.opcode("OP_TEST_JQUEUE", nil), r.keeper.Snapshot()); err != nil || !slices.Contains(request, want(lock.Node, r.keeper.Snapshot().Cluster().MasterNode, lock.Exclusive)) {
		t.Errorf("it waits for %v, %v", request, err)
	}
	r.machine.err = fault.New(fault.Failed, "Client didn't connect in time")
	r.refuses("OpExecError", "Client didn't connect in time", "OP_TEST_JQUEUE", params{"notify_exec": true})
	r.refuses("OpExecError", "Opcode failure was requested", "OP_TEST_JQUEUE", params{"fail": true})
}

func TestOpcodeWithoutExecutor(t *testing.T) {
	r := newRig(t)
	delete(r.all, "OP_TEST_DELAY")
	r.refuses("OpPrereqError", "Opcode OP_TEST_DELAY can't be executed yet (it is known, but has no executor in this version)",
		"OP_TEST_DELAY", params{"duration": 1})
}

// The catalogue of opcodes knows which of them nothing carries out; a package of
// its own carries out tasks of deployments, and a token needs to know where agents are taken in.
func TestUnsupportedOpcodesAreThoseWithoutExecutors(t *testing.T) {
	executors := All(nil, Names{})
	executors["OP_NODE_TOKEN"] = NodeToken(nil)
	for _, d := range opcode.All() {
		if _, carried := executors[d.ID]; carried == d.Unsupported && d.ID != "OP_DEPLOY_TASK" {
			t.Errorf("%s: has an executor: %v, is called unsupported: %v", d.ID, carried, d.Unsupported)
		}
	}
}

// Every entry of the catalogue is an opcode, says whether it may be run again,
// and a result that its own dry run gives encodes.
func TestCatalogueIsComplete(t *testing.T) {
	for id, x := range All(nil, Names{}) {
		if _, known := opcode.Lookup(id); !known {
			t.Errorf("%s is no opcode", id)
		}
		if x.Prepare == nil || x.Why == "" {
			t.Errorf("%s: no work, or no word on running it again", id)
		}
	}
	if _, err := encodeResult(func() {}); !fault.Is(err, fault.Internal) {
		t.Errorf("a result that cannot be encoded: %v", err)
	}
	if out, err := encodeResult(json.RawMessage("1")); err != nil || string(out) != "1" {
		t.Errorf("got %s, %v", out, err)
	}
}
