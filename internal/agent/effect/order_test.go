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

// TestAnOrderOfNobodyIsNoRepetition: what is ordered on nobody's behalf is done each time, however often, beside orders that are somebody's.
func TestAnOrderOfNobodyIsNoRepetition(t *testing.T) {
	l := &orders{latest: map[string]carried{}}
	for _, o := range []Order{{}, {}, {Epoch: 1}, {Epoch: 1}, {Step: 1}, {Step: 1}} {
		if l.repeated(o, "one") {
			t.Errorf("%+v is taken for a repetition", o)
		}
		l.enter(o, "one")
	}
	somebodys := Order{Epoch: 1, Job: 7, Step: 1}
	if l.repeated(somebodys, "one") {
		t.Error("a first order is taken for a repetition")
	}
	if l.enter(somebodys, "one"); !l.repeated(somebodys, "one") {
		t.Error("an order that was carried out is none")
	}
}

// TestWhatEndsLateIsNoneOfTheNextOpcodes: an order that ends when another opcode has ordered something of its thing is not taken for one
// of that opcode, whose step of the same number is still to be done.
func TestWhatEndsLateIsNoneOfTheNextOpcodes(t *testing.T) {
	l := &orders{latest: map[string]carried{}}
	late, next := Order{Epoch: 1, Job: 7, Step: 2}, Order{Epoch: 1, Job: 8, Step: 1}
	l.repeated(late, "one")
	l.repeated(next, "one")
	l.enter(late, "one")
	next.Step = late.Step
	if l.repeated(next, "one") {
		t.Error("a step that nobody has begun is taken for done")
	}
}
