package fault_test

import (
	"testing"

	"github.com/drover-project/drover/internal/fault"
)

func TestNearest(t *testing.T) {
	candidates := []string{"instance_name", "instance_uuid", "timeout", "force"}
	for _, tc := range []struct {
		word, want string
		ok         bool
	}{
		{"instance_nam", "instance_name", true},
		{"instance_uid", "instance_uuid", true},
		{"timout", "timeout", true},
		{"forc", "force", true},
		{"x", "", false},
		{"", "", false},
		{"shutdown_timeout", "", false},
	} {
		if got, ok := fault.Nearest(tc.word, candidates); got != tc.want || ok != tc.ok {
			t.Errorf("Nearest(%q) = %q, %v, want %q, %v", tc.word, got, ok, tc.want, tc.ok)
		}
	}
}
