package agentd

import (
	"testing"

	"github.com/drover-project/drover/internal/hypervisor"
)

// TestFiguresOfOneName: a series is there once, though a node may have two things of one name; else none would be shown.
func TestFiguresOfOneName(t *testing.T) {
	got := byName([]hypervisor.Instance{
		{Name: "web1", Memory: 512, State: hypervisor.Running}, {Name: "web1", Memory: 256}, {Name: "db1", Memory: 64},
	})
	if len(got) != 2 || got["web1"] != (figure{true, 768}) || got["db1"] != (figure{false, 64}) {
		t.Errorf("shown is %+v", got)
	}
}
