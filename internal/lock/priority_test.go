package lock_test

import (
	"math"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/lock"
)

// A change of priority can bring somebody to the head whom the holders admit.
// Nobody else tells the queue of it: who is not named here would wait for ever.
func TestSetPriorityNamesWhomItServes(t *testing.T) {
	const (
		holder, writer, reader, other lock.Owner = 1, 2, 3, 4
	)
	for _, tc := range []struct {
		name     string
		owner    lock.Owner
		priority int
		want     []lock.Owner
	}{
		{"a reader goes before the writer that kept it", reader, -5, []lock.Owner{reader}},
		{"the writer goes behind all readers", writer, 5, []lock.Owner{reader, other}},
		{"the order stays as it was", writer, -5, nil},
		{"a holder waits for nothing", holder, -5, nil},
		{"a stranger", 9, -5, nil},
	} {
		tab := lock.NewTable()
		tab.Acquire(holder, 0, lock.Request{inst("web1", lock.Shared)})
		tab.Acquire(writer, 0, lock.Request{inst("web1", lock.Exclusive)})
		tab.Acquire(reader, 0, lock.Request{inst("web1", lock.Shared)})
		tab.Acquire(other, 0, lock.Request{inst("web1", lock.Shared)})
		got := tab.SetPriority(tc.owner, tc.priority)
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: served %v, want %v", tc.name, got, tc.want)
		}
		for _, o := range tc.want {
			if wait, waits := tab.Waiting(o, math.MaxInt); waits {
				t.Errorf("%s: %d is named and waits for %v", tc.name, o, wait.Name)
			}
		}
	}
}
