package groupcommit

import (
	"errors"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// decided is what requests come to that are in one batch, over leases.
func decided(leases *Leases, requests ...*Request) (answers []error) {
	Decide(requests, 7, leases, func(store.Key) (store.Revision, error) { return 0, nil })
	for _, r := range requests {
		answers = append(answers, r.err)
	}
	return answers
}

// operation is what Front hands over when f does something to a lease.
func operation(t *testing.T, f func(*Front) error) *Request {
	t.Helper()
	front := NewFront(0, nil)
	done := make(chan error, 1)
	go func() { done <- f(front) }()
	requests, more := front.Take(nil)
	if !more || len(requests) != 1 {
		t.Fatalf("%d requests", len(requests))
	}
	t.Cleanup(func() {
		requests[0].Answer()
		if err := <-done; err != nil {
			t.Log("it ended with", err) // some are refused
		}
		front.CloseQueue()
	})
	return requests[0]
}

// TestATakeOverFencesWhatIsBehindItInItsBatch: what the old leader wrote before it counts, and what it wrote after it does not.
func TestATakeOverFencesWhatIsBehindItInItsBatch(t *testing.T) {
	now := time.Unix(1000, 0)
	leases := NewLeases([]store.Lease{{Name: "leader", Holder: "a", Epoch: 1, Expires: now.Add(-time.Second)}}, func() time.Time { return now })
	takes := operation(t, func(f *Front) error {
		_, err := f.AcquireLease(t.Context(), "leader", "b", time.Minute)
		return err
	})
	answers := decided(leases, &Request{tx: store.Tx{Epoch: 1}}, takes, &Request{tx: store.Tx{Epoch: 1}}, &Request{tx: store.Tx{Epoch: 2}})
	for i, want := range []fault.Code{"", "", fault.Fenced, ""} {
		if fault.CodeOf(answers[i]) != want {
			t.Errorf("request %d is answered with %v, want %q", i, answers[i], want)
		}
	}
}

// TestASeizureIsOfOneEpoch: a lease that another took meanwhile stays with that one.
func TestASeizureIsOfOneEpoch(t *testing.T) {
	now := time.Unix(1000, 0)
	for epoch, want := range map[int64]fault.Code{3: fault.Busy, 4: "", 5: fault.Busy} {
		leases := NewLeases([]store.Lease{{Name: "leader", Holder: "b", Epoch: 4, Expires: now.Add(time.Minute)}}, func() time.Time { return now })
		seizes := operation(t, func(f *Front) error {
			_, err := f.SeizeLease(t.Context(), "leader", "c", time.Minute, epoch)
			return err
		})
		answers := decided(leases, seizes, &Request{tx: store.Tx{Epoch: 4}})
		if err := answers[0]; fault.CodeOf(err) != want {
			t.Errorf("a seizure from epoch %d: %v, want %q", epoch, err, want)
		}
		if kept := answers[1] == nil; kept != (want == fault.Busy) {
			t.Errorf("after a seizure from epoch %d the holder of 4 is answered with %v", epoch, errors.Join(answers[1]))
		}
	}
}

// TestALeaseThatExpiredIsLingeredOn: whoever takes it has it no sooner than its former holder, who may live, has stopped to
// answer by it.
func TestALeaseThatExpiredIsLingeredOn(t *testing.T) {
	begun := time.Now()
	const linger = 50 * time.Millisecond
	s := &forgetful{f: NewFront(0, nil), held: store.Lease{Name: "leader", Holder: "a", Epoch: 1, Expires: begun.Add(-time.Second)}}
	go func() {
		for {
			requests, more := s.f.Take(nil)
			if !more {
				return
			}
			Decide(requests, 0, NewLeases([]store.Lease{s.held}, time.Now), nil)
			for _, r := range requests {
				r.Answer()
			}
		}
	}()
	defer s.f.CloseQueue()
	for holder, want := range map[string]time.Duration{"b": linger, "a": 0} { // whose own it is need not
		begun = time.Now()
		l, err := s.f.AwaitSeat(t.Context(), s, "leader", holder, time.Minute, linger, SettleTime)
		if err != nil || l.Holder != holder {
			t.Fatalf("the lease is %+v, %v", l, err)
		}
		if took := time.Since(begun); took < want {
			t.Errorf("%s has it after %v", holder, took)
		}
	}
}

// TestAHandOverIsOfOneEpoch: whoever has lost a lease hands nothing over, and who has it keeps it.
func TestAHandOverIsOfOneEpoch(t *testing.T) {
	now := time.Unix(1000, 0)
	for epoch, want := range map[int64]fault.Code{3: fault.Fenced, 4: "", 5: fault.Fenced} {
		leases := NewLeases([]store.Lease{{Name: "leader", Holder: "b", Epoch: 4, Expires: now.Add(time.Minute)}}, func() time.Time { return now })
		hands := operation(t, func(f *Front) error {
			return f.HandLease(t.Context(), store.Lease{Name: "leader", Epoch: epoch}, "c", time.Minute)
		})
		answers := decided(leases, hands, &Request{tx: store.Tx{Epoch: 4}})
		if err := answers[0]; fault.CodeOf(err) != want {
			t.Errorf("a hand-over by epoch %d: %v, want %q", epoch, err, want)
		}
		if kept := answers[1] == nil; kept != (want == fault.Fenced) {
			t.Errorf("after a hand-over by epoch %d the holder of 4 is answered with %v", epoch, errors.Join(answers[1]))
		}
	}
}

// TestWhatIsKnownIsNotReadAgain: to hear of one's own commit once more costs those who follow nothing.
func TestWhatIsKnownIsNotReadAgain(t *testing.T) {
	f := newFeed(9)
	f.publish(Span{first: 10, last: 10, changes: []store.Change{{Revision: 10}}})
	f.advance(10)
	if p, err := f.after(9); err != nil || p.stored || p.last != 10 || len(p.changes) != 1 {
		t.Errorf("after 9: %+v, %v; want it from memory", p, err)
	}
}
