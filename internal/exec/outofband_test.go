package exec

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/lock"
)

// controllers are the management controllers of a rig's nodes, whose program is /oob.
type controllers struct {
	mu    sync.Mutex
	asked []string
	// says is what is answered in place of nothing, by command and node; one that begins with "error " fails.
	says map[string]string
	// called is told when one has done what it was asked.
	called func() error
}

func (c *controllers) Check(program string) error {
	if program != "/oob" {
		return fault.New(fault.WrongState, "%s is in none of the directories that are allowed", program)
	}
	return nil
}

func (c *controllers) Run(_ context.Context, program, command, node string, most time.Duration) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, fmt.Sprint(program, " ", command, " ", node, " ", most))
	if err := c.called(); err != nil {
		return nil, err
	}
	said := c.says[command+" "+node]
	if why, fails := strings.CutPrefix(said, "error "); fails {
		return nil, fault.New(fault.Failed, "%s", why)
	}
	return []byte(said), nil
}

// controlled is a rig of which some nodes have management controllers.
func controlled(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, "node1", "node2", "node3", "node10")
	for _, name := range []string{"node1", "node2", "node10"} {
		r.setNode(name, func(n *cluster.Node) { n.NDParams = cluster.Params{"oob_program": "/oob"} })
	}
	r.oob.says = map[string]string{}
	return r
}

// asked are the questions since it was called last.
func (r *rig) asked() []string {
	out := r.oob.asked
	r.oob.asked = nil
	return out
}

func (r *rig) on(name string) bool { return r.keeper.Snapshot().NodeNamed(name).Powered }

// Nodes are switched one behind the other, and what each of them is then is recorded where it was done.
func TestPowerOfNodes(t *testing.T) {
	r := controlled(t)
	r.oob.says["power-off node2"] = "error it does not hear"
	r.must(`[[[0,"node2"],[2,null]],[[0,"node3"],[3,null]],[[0,"node10"],[0,null]]]`, "OP_OOB_COMMAND",
		params{"command": "power-off", "node_names": []any{"node10", "node3", "node2"}, "ignore_status": true, "timeout": 7})
	r.logged(" - WARNING: Out-of-band RPC failed on node 'node2': it does not hear")
	if got, want := r.asked(), []string{"/oob power-off node2 7s", "/oob power-off node10 7s"}; !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
	if !r.on("node2") || r.on("node10") || !r.on("node3") {
		t.Errorf("recorded: node2 %v, node10 %v, node3 %v", r.on("node2"), r.on("node10"), r.on("node3"))
	}
	r.oob.says["power-on node10"] = "it hums"
	r.must(`[[[0,"node10"],[2,null]]]`, "OP_OOB_COMMAND", params{"command": "power-on", "node_names": []any{"node10"}})
	r.logged(` - WARNING: Payload returned by node 'node10' is not valid: power-on is expected to say nothing, and said "it hums"`)
	if r.on("node10") {
		t.Error("it is recorded as on")
	}
	delete(r.oob.says, "power-on node10")
	r.must(`[[[0,"node1"],[0,null]],[[0,"node2"],[0,null]],[[0,"node3"],[3,null]],[[0,"node10"],[0,null]]]`, "OP_OOB_COMMAND", params{"command": "power-on", "power_delay": 0})
	if !r.on("node10") {
		t.Error("it is not recorded as on")
	}
	r.asked()
	r.must(`[[[0,"node2"],[0,null]],[[0,"node3"],[3,null]],[[0,"node10"],[0,null]]]`, "OP_OOB_COMMAND", params{"command": "power-cycle"})
	if got, want := r.asked(), []string{"/oob power-cycle node2 1m0s", "/oob power-cycle node10 1m0s"}; !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
	if _, err := r.run("OP_OOB_COMMAND", params{"command": "power-off", "node_names": []any{"node2"}, "ignore_status": true, "dry_run": true}); err != nil || len(r.asked()) > 0 || !r.on("node2") {
		t.Errorf("a dry run: %v", err)
	}
}

// Questions change nothing; what is amiss is told.
func TestHealthAndPowerStatus(t *testing.T) {
	r := controlled(t)
	r.oob.says = map[string]string{
		"health node1": `[["Fan", "OK"], ["Ambient", "WARNING"]]`, "health node2": `[["Fan", "SICK"]]`, "health node10": `[]`,
		"power-status node1": `{"powered": true}`, "power-status node2": `{"powered": false}`, "power-status node10": `rubbish`,
	}
	before := r.dump()
	r.must(`[[[0,"node1"],[0,[["Fan","OK"],["Ambient","WARNING"]]]],[[0,"node2"],[2,null]],[[0,"node3"],[3,null]],[[0,"node10"],[0,[]]]]`, "OP_OOB_COMMAND", params{"command": "health"})
	slices.Sort(r.log)
	r.logged(" - WARNING: Item 'Ambient' on node 'node1' has status 'WARNING'", " - WARNING: Payload returned by node 'node2' is not valid: health item 'Fan' has invalid status 'SICK'")
	r.must(`[[[0,"node1"],[0,{"powered":true}]],[[0,"node2"],[0,{"powered":false}]],[[0,"node3"],[3,null]],[[0,"node10"],[2,null]]]`, "OP_OOB_COMMAND", params{"command": "power-status"})
	if text := strings.Join(r.log, "\n"); !strings.Contains(text, "Recorded power state (True) of node 'node2' does not match actual power state (False)") {
		t.Errorf("it tells %s", text)
	}
	if r.dump() != before {
		t.Error("they changed something")
	}
	if got := len(r.asked()); got != 6 {
		t.Errorf("%d were asked", got)
	}
}

func TestPowerRefusals(t *testing.T) {
	r := controlled(t)
	r.setNode("node3", func(n *cluster.Node) { n.NDParams = cluster.Params{"oob_program": "/bin/sh"} })
	for _, c := range []struct {
		text string
		p    params
	}{
		{"Node 'nosuch' not known", params{"command": "health", "node_names": []any{"nosuch"}}},
		{"Node 'nosuch' not known", params{"command": "health", "node_uuids": []any{"nosuch"}}},
		{"The time-out is to be from 1 to 3600 seconds, and is 0", params{"command": "health", "timeout": 0}},
		{"The time-out is to be from 1 to 3600 seconds, and is 3601", params{"command": "health", "timeout": 3601}},
		{"The delay between nodes is to be from 0 to 3600 seconds, and is -1", params{"command": "power-on", "power_delay": -1}},
		{"Operating on the master node node1 is not allowed for power-off; run '/oob power-off node1' if you want to operate on the master regardless",
			params{"command": "power-off", "node_names": []any{"node1"}, "ignore_status": true}},
		{"Cannot power off node node2 because it is not marked offline (drover node offline node2 marks it; --ignore-status switches it off in spite of what runs there)",
			params{"command": "power-off", "node_names": []any{"node2"}}},
		{"The out-of-band program of node node3 may not be run: /bin/sh is in none of the directories that are allowed", params{"command": "health", "node_names": []any{"node3"}}},
	} {
		r.refuses("OpPrereqError", c.text, "OP_OOB_COMMAND", c.p)
	}
	r.all = All(r.source, Names{})
	r.refuses("OpPrereqError", "Out-of-band programs are not enabled (the setting oob-programs of the controllers names the directories that they are in)",
		"OP_OOB_COMMAND", params{"command": "health"})
	if got := r.asked(); len(got) > 0 {
		t.Errorf("asked %q", got)
	}
}

func TestLocksOfPower(t *testing.T) {
	r := controlled(t)
	uuid := r.keeper.Snapshot().NodeNamed("node2").UUID
	for item, p := range map[string]params{uuid: {"command": "power-on", "node_names": []any{"node2"}}, lock.All: {"command": "power-status"}} {
		request, err := outOfBandLocks(r.opcode("OP_OOB_COMMAND", p), r.keeper.Snapshot())
		if want := (lock.Request{{Name: lock.Name{Level: lock.Node, Item: item}, Mode: lock.Exclusive}}); err != nil || !request.Equal(want) {
			t.Errorf("%v: %v, %v", p, request, err)
		}
	}
}

// A node whose powered state is recorded as off comes into service when it is on again.
func TestANodeThatIsOffStaysOffline(t *testing.T) {
	r := controlled(t)
	r.setNode("node2", func(n *cluster.Node) { n.Offline, n.Powered, n.MasterCandidate = true, false, false })
	r.refuses("OpPrereqError", "Node node2 needs to be turned on before its offline status can be reset (drover node power on node2 does that; --powered records that it is on)",
		"OP_NODE_SET_PARAMS", params{"node_name": "node2", "offline": false})
	r.must(`[[[0,"node2"],[0,null]]]`, "OP_OOB_COMMAND", params{"command": "power-on", "node_names": []any{"node2"}})
	r.must(`[["master_candidate","True"],["offline","False"]]`, "OP_NODE_SET_PARAMS", params{"node_name": "node2", "offline": false})
}

// A node that may have been reset when its controller ended is not reset again, nor is one that was; the others are.
func TestResetsDoNotComeTwice(t *testing.T) {
	for until, want := range map[int]string{
		2: `[[[0,"node2"],[2,null]],[[0,"node10"],[0,null]]]`, // it dies while the first is reset
		3: `[[[0,"node2"],[0,null]],[[0,"node10"],[2,null]]]`, // while the second is
	} {
		r := controlled(t)
		op := r.opcode("OP_OOB_COMMAND", params{"command": "power-cycle", "node_names": []any{"node2", "node10"}})
		if got := r.live(op, 1, false, until); !got.dead {
			t.Errorf("%d: it lives, and comes to %+v", until, got)
		}
		first := r.asked()
		if got := r.live(op, 2, true, 1000); got.err != nil || got.result != want {
			t.Errorf("%d: it goes on to %+v", until, got)
		}
		if all := append(first, r.asked()...); !slices.Equal(all, []string{"/oob power-cycle node2 1m0s", "/oob power-cycle node10 1m0s"}) {
			t.Errorf("%d: asked %q", until, all)
		}
	}
}

// A verification tells of programs that may not be run.
func TestVerifyTellsOfPrograms(t *testing.T) {
	r := controlled(t)
	r.must("true", "OP_CLUSTER_VERIFY_GROUP", params{"group_name": "default"})
	r.setNode("node3", func(n *cluster.Node) { n.NDParams = cluster.Params{"oob_program": "/bin/sh"} })
	r.must("false", "OP_CLUSTER_VERIFY_GROUP", params{"group_name": "default", "error_codes": true})
	want := "  - ERROR:ENODEOOBPATH:node:node3:The out-of-band program of node node3 may not be run: /bin/sh is in none of the directories that are allowed"
	if !slices.Contains(r.log, want) {
		t.Errorf("it tells %q", r.log)
	}
	if got := r.asked(); len(got) > 0 {
		t.Errorf("asked %q", got)
	}
}

// Between nodes that are switched on there is a pause, and nowhere else.
func TestPausesBetweenNodes(t *testing.T) {
	r := controlled(t)
	for command, want := range map[string][]float64{"power-on": {0, 3, 3}, "power-cycle": {0, 0}} {
		env := r.env(r.opcode("OP_OOB_COMMAND", params{"command": command, "power_delay": 3}))
		env.programs = &r.oob
		plan, err := outOfBand(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		var waits []float64
		for _, s := range plan.Work.Steps {
			if s.Verb == askController {
				args, err := arguments[askArgs](&s)
				if err != nil {
					t.Fatal(err)
				}
				waits = append(waits, args.Wait)
			}
		}
		if !slices.Equal(waits, want) {
			t.Errorf("%s: the pauses are %v, want %v", command, waits, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if err := wait(t.Context(), 3*time.Second); err != nil || time.Since(begin) != 3*time.Second {
			t.Errorf("it took %v, %v", time.Since(begin), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := wait(ctx, time.Hour); !fault.Is(err, fault.Canceled) || time.Since(begin) != 4*time.Second {
			t.Errorf("interrupted, it took %v, %v", time.Since(begin), err)
		}
	})
}
