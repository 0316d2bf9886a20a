package app

import (
	"maps"
	"testing"

	"github.com/drover-project/drover/internal/lock"
)

// TestInstancesIn: a lock of a node is none of the instance of that name.
func TestInstancesIn(t *testing.T) {
	got := instancesIn([]lock.State{{Name: lock.Name{Level: lock.Instance, Item: "web"}}, {Name: lock.Name{Level: lock.Node, Item: "db"}}})
	if !maps.Equal(got, map[string]bool{"web": true}) {
		t.Error(got)
	}
}
