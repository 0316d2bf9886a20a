package readlease

import (
	"testing"
	"testing/synctest"
	"time"
)

// pair is a leader and a controller that stands by, in a bubble with a clock of its own.
type pair struct {
	*Lessor
	*Lessee

	published int
}

func newPair() *pair {
	p := &pair{Lessee: NewLessee("a")}
	p.Lessor = NewLessor(func() time.Time { return time.Now().Add(time.Hour) }, func() { p.published++ })
	return p
}

// exchange has the standby ask and take the answer.
func (p *pair) exchange(t *testing.T) {
	sent := time.Now()
	p.Take(p.Answer(t.Context(), p.Request(sent)), sent)
}

// batch commits something.
func (p *pair) batch(revision int64, known bool) (took time.Duration) {
	begun := time.Now()
	p.Begin()
	p.Await()
	took = time.Since(begun)
	p.End(revision, known)
	return took
}

func TestALeaseIsGrantedAndRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair()
		p.exchange(t)
		if p.Covers(100) {
			t.Error("a lease before it is known what the store holds")
		}
		p.batch(7, true)
		for range 10 {
			p.exchange(t)
			if p.published == 0 || !p.Covers(7) || !p.Covers(8) || p.Covers(6) {
				t.Fatalf("published %d times, covers 6, 7, 8: %t, %t, %t", p.published, p.Covers(6), p.Covers(7), p.Covers(8))
			}
		}
		<-time.After(Time)
		if p.Covers(7) {
			t.Error("a lease that has ended covers something")
		}
	})
}

// TestABatchWaitsForThoseWhoHold: until a holder has said that it dropped its lease, or
// the lease has ended.
func TestABatchWaitsForThoseWhoHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair()
		p.batch(1, true)
		p.exchange(t)
		if took := p.batch(2, true); took != Time {
			t.Errorf("a batch waited %v for a holder that is gone", took)
		}
		p.exchange(t) // it is called off
		p.exchange(t)
		if !p.Covers(2) {
			t.Fatal("no lease was granted")
		}
		done := make(chan time.Duration)
		go func() { done <- p.batch(3, true) }()
		go p.exchange(t)
		synctest.Wait()
		if p.Covers(3) {
			t.Fatal("a lease was not called off")
		}
		go p.exchange(t)
		if took := <-done; took != 0 {
			t.Errorf("a batch waited %v for a holder that said that it has nothing", took)
		}
		synctest.Wait()
		<-time.After(quiet)
		synctest.Wait()
		last, held := p.Last(time.Now())
		if p.Answer(t.Context(), last); !held || p.Covers(3) {
			t.Errorf("held %t, covers %t after it was given up", held, p.Covers(3))
		}
		if took := p.batch(4, true); took != 0 {
			t.Errorf("a batch waited %v for a lease that was given up", took)
		}
	})
}

// TestNothingIsGrantedInDoubt: when nobody can tell what a batch came to, and when
// the term is over.
func TestNothingIsGrantedInDoubt(t *testing.T) {
	for name, end := range map[string]func(*pair){
		"an outcome that is not known": func(p *pair) { p.batch(2, false); p.batch(3, true) },
		"the end of the term":          func(p *pair) { p.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair()
				p.batch(1, true)
				end(p)
				p.exchange(t)
				if p.Covers(100) {
					t.Error("a lease was granted")
				}
			})
		})
	}
}

// TestTheEndOfATermCallsOff: whoever waits with a lease for the next one is told at once that the term is over, and not when the lease was to be renewed:
// from then on another leader may commit.
func TestTheEndOfATermCallsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair()
		p.batch(1, true)
		p.exchange(t)
		go p.exchange(t)
		synctest.Wait()
		if !p.Covers(1) {
			t.Fatal("who waits for the next lease has none meanwhile")
		}
		p.Close()
		synctest.Wait()
		if p.Covers(1) {
			t.Error("a lease of a term that is over was not called off")
		}
	})
}
