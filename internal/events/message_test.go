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
