package machine_test

import (
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/queue/machine"
)

func TestDistinctValuesStayInOrder(t *testing.T) {
	var d machine.Distinct[int]
	var got, want []int
	for i := range 100 {
		if n := i * i % 37; !slices.Contains(want, n) {
			want = append(want, n)
		}
		got = d.Append(got, i*i%37)
		if !slices.Equal(got, want) {
			t.Fatalf("after %d values %v, want %v", i+1, got, want)
		}
	}
}
