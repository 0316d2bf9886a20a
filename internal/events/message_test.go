package events

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
)

func opOf(t *testing.T, id, params string) *opcode.Opcode {
	t.Helper()
	op, err := opcode.Parse([]byte(`{"OP_ID": "`+id+`", "reason": [], `+params+`}`), opcode.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return op
}

// TestAMessageHoldsNoSecret: one about a creation that failed repeats the parameters, of which some are nobody's business.
func TestAMessageHoldsNoSecret(t *testing.T) {
	op := opOf(t, "OP_INSTANCE_CREATE", `"instance_name": "snf-1", "mode": "create", "disk_template": "plain", "disks": [], "nics": [], "os_type": "noop",
		"osparams": {"dhcp": "yes"}, "osparams_private": {"key": "a-planted-secret"}, "osparams_secret": {"pin": "a-planted-secret"}`)
	m, ended := Of("c", &job.Job{ID: 1, Ops: []job.Op{{Input: op, Status: job.Error, End: 1}}}, 0, nil)
	if text := string(m.Body); !ended || !strings.Contains(text, "dhcp") || strings.Contains(text, "a-planted-secret") {
		t.Errorf("it says %s", text)
	}
}

// TestRoutingKeys: by what a message is about, as docs/server-tags.md has it.
func TestRoutingKeys(t *testing.T) {
	for _, c := range []struct{ id, params, key, kind string }{
		{"OP_INSTANCE_STARTUP", `"instance_name": "snf-1"`, "ganeti.snf.event.op", "ganeti-op-status"},
		{"OP_INSTANCE_STARTUP", `"instance_name": "web.example-1"`, "ganeti.web.example.event.op", "ganeti-op-status"},
		{"OP_INSTANCE_STARTUP", `"instance_name": "alone"`, "ganeti.alone.event.op", "ganeti-op-status"},
		{"OP_TAGS_SET", `"kind": "instance", "name": "snf-1", "tags": ["a"]`, "ganeti.snf.event.op", "ganeti-op-status"},
		{"OP_TAGS_SET", `"kind": "node", "name": "node-1", "tags": ["a"]`, "ganeti.event.op", "ganeti-op-status"},
		{"OP_NETWORK_REMOVE", `"network_name": "snf-net-7"`, "ganeti.snf.event.network", "ganeti-network-status"},
		{"OP_CLUSTER_RENAME", `"name": "c-2.example"`, "ganeti.event.cluster", "ganeti-cluster-status"},
		{"OP_TEST_DELAY", `"duration": 0`, "ganeti.event.op", "ganeti-op-status"},
	} {
		m, _ := Of("c", &job.Job{ID: 1, Ops: []job.Op{{Input: opOf(t, c.id, c.params), Status: job.Success, End: 1}}}, 0, nil)
		if e, err := Parse(m.Body); err != nil || m.Key != c.key || e.Type != c.kind {
			t.Errorf("%s of %s goes under %s: %s, %v", c.id, c.params, m.Key, m.Body, err)
		}
	}
}

// TestWhichMessagesTellOfTheMachine: those about one that was made or started, and is there.
func TestWhichMessagesTellOfTheMachine(t *testing.T) {
	const create = `"instance_name": "snf-1", "mode": "create", "disk_template": "plain", "disks": [], "nics": [], "os_type": "noop"`
	for _, c := range []struct {
		id, params string
		status     job.Status
		want       bool
	}{
		{"OP_INSTANCE_CREATE", create, job.Success, true},
		{"OP_INSTANCE_CREATE", create, job.Error, false},
		{"OP_INSTANCE_STARTUP", `"instance_name": "snf-1"`, job.Success, true},
		{"OP_INSTANCE_STARTUP", `"instance_name": "snf-1"`, job.Canceled, false},
		{"OP_INSTANCE_SHUTDOWN", `"instance_name": "snf-1"`, job.Success, false},
	} {
		if name, tells := tellsMachine(&job.Op{Input: opOf(t, c.id, c.params), Status: c.status}); tells != c.want || name != "snf-1" {
			t.Errorf("%s, %s: of %s: %v", c.id, c.status, name, tells)
		}
	}
}
