package effect

import (
	"testing"

	"pgregory.net/rapid"
)

// TestOrdersAreRememberedWithinBounds gives orders for more instances than are remembered.
func TestOrdersAreRememberedWithinBounds(t *testing.T) {
	l := &orders{latest: map[string]carried{}}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching("[a-z]{4}").Draw(t, "instance")
		for i := range maxLatest / 10 {
			o := Order{Epoch: 1, Job: 1, Step: i + 1}
			l.repeated(o, name+string(rune('A'+i)))
			l.enter(o, name+string(rune('A'+i)))
		}
		if len(l.latest) > maxLatest || len(l.latest) != len(l.names) {
			t.Fatalf("%d instances, %d names", len(l.latest), len(l.names))
		}
	})
	if len(l.latest) != maxLatest {
		t.Fatalf("only %d instances are remembered", len(l.latest))
	}
}
