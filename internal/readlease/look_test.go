package readlease

import (
	"testing"
	"time"
)

// TestALeaseIsLookedAtBeforeTheClock: between the two a controller may be paused for long. A lease that is looked at
// later would be another one, held against a clock of before.
func TestALeaseIsLookedAtBeforeTheClock(t *testing.T) {
	sent := time.Unix(1000, 0)
	l := NewLessee("a")
	l.Take(Answer{Revision: 7, For: Time}, sent)
	later := func() time.Time { // it is called off, and another granted, while the clock is read
		l.Take(Answer{Revision: 9, For: Time}, sent.Add(time.Hour))
		return sent.Add(2 * Time)
	}
	if l.covers(9, later) {
		t.Error("a lease of later covers what was read before it")
	}
}

// TestNoLeaseOutlastsTheRight of the leader to answer from its own picture.
func TestNoLeaseOutlastsTheRight(t *testing.T) {
	now := time.Unix(1000, 0)
	for left, want := range map[time.Duration]time.Duration{Time / 4: Time / 4, Time: Time, time.Hour: Time} {
		b := &book{holders: map[string]*holder{}, revision: 7, since: now.Add(-time.Second)}
		r := Request{Holder: "a", Serial: 1}
		b.ask(r)
		a, _, done := b.answer(r, now, now, now.Add(left))
		if !done || a.For != want || a.Revision != 7 {
			t.Errorf("with a right of %v it is granted for %v (%v), want %v", left, a.For, done, want)
		}
		if until, out := b.out(now); !out || until.After(now.Add(left)) {
			t.Errorf("with a right of %v it is awaited until %v", left, until.Sub(now))
		}
	}
	b := &book{holders: map[string]*holder{}, revision: 7, since: now.Add(-time.Second)}
	r := Request{Holder: "a", Serial: 1}
	b.ask(r)
	if a, again, done := b.answer(r, now, now, now); done || a.For > 0 || !again.After(now) {
		t.Errorf("without a right it is granted for %v", a.For)
	}
}
