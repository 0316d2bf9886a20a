package flavor_test

import (
	"context"
	"testing"
)

// TestWhoLeavesEndsNoChange: what is stored is offered, whether or not who asked for it waited.
func TestWhoLeavesEndsNoChange(t *testing.T) {
	r := newRig(t)
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := r.Add(left, big, ask); err != nil {
		t.Fatal(err)
	}
	r.has("added by one who has left", "m1.tiny", "m1.small", "big")
	if _, err := r.Remove(left, big.ID, ask); err != nil {
		t.Fatal(err)
	}
	r.has("removed by one who has left", "m1.tiny", "m1.small")
}
