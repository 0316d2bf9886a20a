package events

import (
	"encoding/json"
	"slices"
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

// TestAMessageHasRoomInTheProtocol: whatever names and results there are, for a broker refuses one that has not however often it comes.
func TestAMessageHasRoomInTheProtocol(t *testing.T) {
	long, huge := strings.Repeat("a", 300), strings.Repeat("a", maxBody+1)
	with := func(id string, params map[string]any, result string) job.Op {
		return job.Op{Input: &opcode.Opcode{ID: id, Params: params}, Status: job.Error, End: 1, Result: json.RawMessage(result)}
	}
	for _, c := range []struct {
		what, cluster string
		op            job.Op
		machine       *Machine
		key           string
		leftOut       []string
	}{
		{"the longest prefix", "c", with("OP_INSTANCE_STARTUP", map[string]any{"instance_name": strings.Repeat("a", 239) + "-1"}, `1`), nil, "ganeti." + strings.Repeat("a", 239) + ".event.op", nil},
		{"a longer prefix", "c", with("OP_INSTANCE_STARTUP", map[string]any{"instance_name": strings.Repeat("a", 240) + "-1"}, `1`), nil, "ganeti.event.op", nil},
		{"a long name of a network", "c", with("OP_NETWORK_REMOVE", map[string]any{"network_name": long}, `1`), nil, "ganeti.event.network", nil},
		{"tags of an instance with a long name", "c", with("OP_TAGS_SET", map[string]any{"kind": "instance", "name": long}, `1`), nil, "ganeti.event.op", nil},
		{"a long name of the cluster", long, with("OP_TEST_DELAY", nil, `1`), nil, "ganeti.event.op", nil},
		{"a result", "c", with("OP_TEST_DELAY", nil, `"`+huge+`"`), nil, "ganeti.event.op", []string{"result"}},
		{"a result that is no JSON", "c", with("OP_TEST_DELAY", nil, `{`), nil, "ganeti.event.op", []string{"result"}},
		{"parameters", "c", with("OP_INSTANCE_CREATE", map[string]any{"instance_name": "x", "osparams": huge}, `1`), nil, "ganeti.x.event.op", []string{"result", "job_fields"}},
		{"everything", "c", with("OP_INSTANCE_CREATE", map[string]any{"instance_name": huge, "tags": []any{huge}, "nics": huge}, `1`),
			&Machine{NICs: []NIC{{Name: huge}}, Disks: []Disk{{Name: huge}}, HVParams: map[string]any{"x": huge}}, "ganeti.event.op",
			[]string{"result", "job_fields", "logmsg", "tags", "instance_hvparams", "instance_nics", "instance_disks", "instance"}},
		{"a huge name of a network", "c", with("OP_NETWORK_REMOVE", map[string]any{"network_name": huge}, `1`), nil, "ganeti.event.network",
			[]string{"result", "job_fields", "logmsg", "tags", "instance_hvparams", "instance_nics", "instance_disks", "instance", "network"}},
	} {
		c.op.Log = []job.LogEntry{{Type: job.LogMessage, Payload: json.RawMessage(`"said"`)}}
		m, ended := Of(c.cluster, &job.Job{ID: 1, Ops: []job.Op{c.op}}, 0, c.machine)
		if !ended || m.Key != c.key || len(m.ID) > MaxText || !strings.HasSuffix(m.ID, ":1:0:error") || len(m.Body) > maxBody {
			t.Errorf("%s: %v, under %s, with the id %s, %d bytes", c.what, ended, m.Key, m.ID, len(m.Body))
		}
		if e, err := Parse(m.Body); err != nil || e.Job != 1 || !slices.Equal(e.LeftOut, c.leftOut) {
			t.Errorf("%s: left out is %v: %v", c.what, e.LeftOut, err)
		}
	}
}

// TestClustersWithLongNamesHaveIDsOfTheirOwn: also if the names differ at their ends alone.
func TestClustersWithLongNamesHaveIDsOfTheirOwn(t *testing.T) {
	long := strings.Repeat("a", 300)
	if one, other := idOf(long+"1", 7, 0, job.Success), idOf(long+"2", 7, 0, job.Success); one == other || one != idOf(long+"1", 7, 0, job.Success) {
		t.Errorf("the ids are %s and %s", one, other)
	}
}
