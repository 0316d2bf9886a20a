package work

import (
	"testing"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/opcode"
)

func TestModificationsOfNothing(t *testing.T) {
	for id, nothing := range map[string]bool{"OP_CLUSTER_SET_PARAMS": true, "OP_NODE_SET_PARAMS": true, "OP_GROUP_SET_PARAMS": true, "OP_INSTANCE_STARTUP": false} {
		def, _ := opcode.Lookup(id)
		if got := shell.NothingToChange(def, map[string]any{"force": true}); got != nothing {
			t.Errorf("%s with force alone: %v, want %v", id, got, nothing)
		}
	}
	def, _ := opcode.Lookup("OP_CLUSTER_SET_PARAMS")
	if shell.NothingToChange(def, map[string]any{"mac_prefix": "aa:00:01"}) {
		t.Error("a new prefix is nothing to change")
	}
}
