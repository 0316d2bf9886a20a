package readlease

import (
	"testing"
	"time"
)

// granting is a book that has rested, with the answer to one's first request in it.
func granting(t *testing.T, now time.Time, right time.Duration) (*book, Request) {
	t.Helper()
	b := &book{holders: map[string]*holder{}, revision: 7, since: now.Add(-time.Second)}
	r := Request{Holder: "a", Serial: 1}
	if !b.ask(r) {
		t.Fatal("the first request is not taken in")
	}
	if a, _, done := b.answer(r, now, now, now.Add(right)); !done || a.For <= 0 {
		t.Fatalf("it is answered %+v, %v", a, done)
	}
	return b, r
}

// TestARequestThatComesTwiceGivesNothingBack: it says that nothing is held, which was true before the first of the two was answered.
func TestARequestThatComesTwiceGivesNothingBack(t *testing.T) {
	now := time.Unix(1000, 0)
	b, r := granting(t, now, time.Hour)
	if b.ask(r) {
		t.Error("it is taken in again")
	}
	if until, out := b.out(now); !out || !until.Equal(now.Add(Time)) {
		t.Errorf("the lease is awaited until %v (%v)", until.Sub(now), out)
	}
}

// TestALeaseIsAwaitedUntilItsSuccessorIsTakenIn: one that ends earlier than the one before it may not have come yet.
func TestALeaseIsAwaitedUntilItsSuccessorIsTakenIn(t *testing.T) {
	now := time.Unix(1000, 0)
	b, _ := granting(t, now, time.Hour)
	later := now.Add(Time / 2)
	r := Request{Holder: "a", Serial: 2, Holds: true}
	if !b.ask(r) {
		t.Fatal("the second request is not taken in")
	}
	const left = Time / 10
	if a, _, done := b.answer(r, later.Add(-quiet), later, later.Add(left)); !done || a.For != left+quiet {
		t.Fatalf("it is answered %+v, %v", a, done)
	}
	if until, out := b.out(later); !out || !until.Equal(now.Add(Time)) {
		t.Errorf("the first lease is awaited until %v (%v)", until.Sub(now), out)
	}
}

// TestWhileMuchIsWrittenNothingIsGranted: each lease would only be called off, and hold up the batch behind it.
func TestWhileMuchIsWrittenNothingIsGranted(t *testing.T) {
	now := time.Unix(1000, 0)
	b := &book{holders: map[string]*holder{}}
	b.begin(now.Add(-time.Second))
	b.end(now, 7, true)
	r := Request{Holder: "a", Serial: 1}
	b.ask(r)
	right := now.Add(time.Hour)
	if a, again, done := b.answer(r, now, now, right); done || a.For > 0 || !again.Equal(now.Add(quiet)) {
		t.Errorf("at once it is answered %+v (%v), and looked at after %v", a, done, again.Sub(now))
	}
	if a, _, done := b.answer(r, now, now.Add(quiet), right); !done || a.For != Time+quiet || a.Revision != 7 {
		t.Errorf("after a while it is answered %+v (%v)", a, done)
	}
}
