package intake

import (
	"math/bits"
	"net/netip"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/backoff"
)

// Brake slows down whoever tries passwords: each wrong one from an address is
// answered later than the one before. Right ones are answered at once, also
// from the same address, so nobody can lock others out.
type Brake struct {
	mu    sync.Mutex
	tries map[netip.Prefix]tries
}

type tries struct {
	wrong int
	last  time.Time
}

// What a brake does, and remembers.
const (
	// FreeTries are not slowed down: people mistype.
	FreeTries    = 3
	firstDelay   = 100 * time.Millisecond
	longestDelay = 10 * time.Second
	// tryMemory is how long an address has to be quiet to begin anew.
	tryMemory = 15 * time.Minute
	// maxTried is how many addresses are remembered at once.
	maxTried = 10_000
)

// NewBrake returns a brake that has seen nobody.
func NewBrake() *Brake { return &Brake{tries: map[netip.Prefix]tries{}} }

// Wrong counts a wrong password and tells which one from this address it is,
// and how long its answer has to wait.
func (b *Brake) Wrong(from netip.Prefix, now time.Time) (count int, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tries[from]
	if now.Sub(t.last) > tryMemory {
		t = tries{}
	}
	t = tries{wrong: t.wrong + 1, last: now}
	if len(b.tries) >= maxTried {
		b.forget(now)
	}
	b.tries[from] = t
	return t.wrong, delayAfter(t.wrong)
}

// delayAfter grows with each wrong password, but for the first few.
func delayAfter(wrong int) time.Duration {
	if wrong <= FreeTries {
		return 0
	}
	return backoff.Pauses{First: firstDelay, Longest: longestDelay}.After(wrong - FreeTries)
}

// forget makes room: it drops the addresses that have been quiet for long, or
// else half of all.
func (b *Brake) forget(now time.Time) {
	for from, t := range b.tries {
		if now.Sub(t.last) > tryMemory {
			delete(b.tries, from)
		}
	}
	for from := range b.tries {
		if len(b.tries) <= maxTried/2 {
			return
		}
		delete(b.tries, from)
	}
}

// WorthLogging picks the wrong passwords to log: all of the first, then ever
// fewer, so that a flood of them does not become one of the log.
func WorthLogging(count int) bool { return count <= 10 || bits.OnesCount(uint(count)) == 1 }

// Origin is what counts as one address: an IPv4 address, or the network of an
// IPv6 one, of which a host has as many as it likes.
func Origin(address string) netip.Prefix {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.Prefix{}
	}
	ip := at.Addr().Unmap()
	length := 64
	if ip.Is4() {
		length = 32
	}
	prefix, err := ip.Prefix(length)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}
