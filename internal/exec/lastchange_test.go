package exec

import (
	"maps"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/reason"
)

// TestLastChangeIsTheLastRealOne: settings and what an instance does; no-ops,
// dry runs and the removal of a namesake leave it as it was.
func TestLastChangeIsTheLastRealOne(t *testing.T) {
	r := newRig(t)
	why := func(text string) params {
		return params{"instance_name": "one", "reason": []any{[]any{"user", text, int64(5)}}}
	}
	last := func(want string) {
		t.Helper()
		l := r.instance("one").Last
		if got := l.Trail[0].Reason; got != want || l.At == 0 || l.Job == 0 {
			t.Fatalf("last changed by job %d for %q, want %q", l.Job, got, want)
		}
	}
	with := func(p params, more params) params {
		maps.Copy(p, more)
		return p
	}
	r.create("one", true)
	last("testing OP_INSTANCE_CREATE")
	r.must("null", "OP_INSTANCE_SHUTDOWN", why("stop"))
	last("stop")
	by := r.instance("one").Last.Job
	r.must("null", "OP_INSTANCE_SHUTDOWN", why("stop again"))
	r.must("null", "OP_INSTANCE_STARTUP", with(why("only a look"), params{"dry_run": true}))
	last("stop")
	if got := r.instance("one").Last.Job; got != by {
		t.Errorf("job %d, want %d", got, by)
	}
	r.must("null", "OP_INSTANCE_STARTUP", with(why("for once"), params{"no_remember": true}))
	last("for once")
	r.must("null", "OP_INSTANCE_STARTUP", why("to stay")) // it runs, but now it is meant to
	last("to stay")
	serial := r.instance("one").Serial
	r.must("null", "OP_INSTANCE_REBOOT", with(why("new kernel"), params{"reboot_type": "hard"}))
	last("new kernel")
	if got := r.instance("one").Serial; got != serial {
		t.Errorf("a reboot counts as a change of settings: %d, %d", serial, got)
	}
	r.must("null", "OP_TAGS_SET", params{"kind": "instance", "name": "one", "tags": []any{"a"}})
	last("testing OP_TAGS_SET")
	r.must("null", "OP_TAGS_SET", params{"kind": "instance", "name": "one", "tags": []any{"a"}, "reason": []any{[]any{"user", "again", int64(5)}}})
	last("testing OP_TAGS_SET")
	r.must("null", "OP_INSTANCE_SHUTDOWN", one(nil))
	r.must(`"two"`, "OP_INSTANCE_RENAME", with(why("better name"), params{"new_name": "two", "name_check": false, "ip_check": false}))
	if got := r.instance("two").Last.Trail[0].Reason; got != "better name" {
		t.Errorf("renamed for %q", got)
	}
	r.create("one", false)
	last("testing OP_INSTANCE_CREATE")
}

func TestLastChangeOfNodes(t *testing.T) {
	r := newRig(t, "node1", "node2")
	if l := r.keeper.Snapshot().NodeNamed("node2").Last; l != nil {
		t.Fatalf("changed by nobody: %+v", l)
	}
	change := params{"node_name": "node2", "drained": true}
	r.must(`[["master_candidate","False"],["drained","True"]]`, "OP_NODE_SET_PARAMS", change)
	if l := r.keeper.Snapshot().NodeNamed("node2").Last; l == nil || l.Trail[0].Reason != "testing OP_NODE_SET_PARAMS" {
		t.Errorf("drained: %+v", l)
	}
}

func TestLongTrailsOfChangesAreCutAndSaySo(t *testing.T) {
	r := newRig(t)
	op := r.opcode("OP_INSTANCE_STARTUP", one(nil))
	for range 100 {
		op.Reason = op.Reason.Append(reason.Entry{Source: "s", Reason: strings.Repeat("ü", 1000), Time: 1})
	}
	l := r.env(op).lastChange()
	size := 0
	for _, hop := range l.Trail {
		size += len(hop.Reason)
	}
	if len(l.Trail) != keptHops || size > keptHops*(keptReason+64) || !strings.Contains(l.Trail[1].Reason, "more bytes") || !strings.Contains(l.Trail[keptHops/2-1].Reason, "hops are left out") {
		t.Errorf("%d hops of %d bytes", len(l.Trail), size)
	}
}
