package intake

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

func TestDelaysGrowAndAreForgotten(t *testing.T) {
	b := NewBrake()
	here, there := Origin("192.0.2.1:1000"), Origin("192.0.2.2:1000")
	now := time.Unix(1e9, 0)
	last := time.Duration(-1)
	for i := 1; i <= 40; i++ {
		count, wait := b.Wrong(here, now)
		switch {
		case count != i, i <= FreeTries && wait != 0, wait < last, wait > longestDelay, i > FreeTries && i <= FreeTries+6 && wait <= last:
			t.Errorf("wrong password %d: counted as %d, waits for %v after %v", i, count, wait, last)
		}
		last = wait
	}
	if last != longestDelay {
		t.Errorf("the longest delay is %v", last)
	}
	if _, wait := b.Wrong(there, now); wait != 0 {
		t.Errorf("another address waits for %v", wait)
	}
	if count, wait := b.Wrong(here, now.Add(tryMemory+1)); count != 1 || wait != 0 {
		t.Errorf("after a long time: %d, %v", count, wait)
	}
	for i := range 3 * maxTried {
		b.Wrong(Origin(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255)), now)
	}
	if len(b.tries) > maxTried {
		t.Errorf("%d addresses are remembered", len(b.tries))
	}
}

func TestOrigin(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1/32", "[::ffff:192.0.2.1]:80": "192.0.2.1/32", "[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64",
	} {
		if got := Origin(address); got != netip.MustParsePrefix(want) {
			t.Errorf("%s: %v", address, got)
		}
	}
}

// TestWhoGuessesOnNeverBeginsAnew: an address has to be quiet for that, not just to have begun long ago.
func TestWhoGuessesOnNeverBeginsAnew(t *testing.T) {
	b, here, now := NewBrake(), Origin("192.0.2.1:1000"), time.Unix(1e9, 0)
	for i := 1; i <= 20; i++ {
		now = now.Add(tryMemory / 2)
		if count, wait := b.Wrong(here, now); count != i || (i > FreeTries) != (wait > 0) {
			t.Errorf("wrong password %d: counted as %d, waits for %v", i, count, wait)
		}
	}
}
