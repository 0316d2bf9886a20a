package hypervisor

import (
	"testing"

	"github.com/drover-project/drover/internal/fault"
)

// TestStartMemory: an instance has all of its memory where that is free, else what there is, and never less than it can do with.
func TestStartMemory(t *testing.T) {
	for _, c := range []struct{ least, most, free, want int }{
		{0, 64, 64, 64}, {0, 64, 63, 0}, {32, 64, 100, 64}, {32, 64, 63, 63}, {32, 64, 32, 32}, {32, 64, 31, 0}, {128, 64, 64, 64},
	} {
		s := Spec{Memory: c.most, MinMemory: c.least}
		got, err := s.StartMemory(c.free)
		if got != c.want || (err != nil) != (c.want == 0) || err != nil && !fault.Is(err, fault.Exhausted) {
			t.Errorf("%+v: %d, %v", c, got, err)
		}
	}
}
