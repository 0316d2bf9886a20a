package backoff_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/backoff"
)

func TestPausesDouble(t *testing.T) {
	p := backoff.Pauses{First: 100 * time.Millisecond, Longest: time.Second}
	for failures, want := range map[int]time.Duration{
		0: 100 * time.Millisecond, 1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 3: 400 * time.Millisecond, 4: 800 * time.Millisecond,
		5: time.Second, 6: time.Second, 64: time.Second, math.MaxInt: time.Second,
	} {
		if got := p.After(failures); got != want {
			t.Errorf("after %d failures: %v, want %v", failures, got, want)
		}
	}
}

func TestPausesGrowToABound(t *testing.T) {
	length := rapid.Int64Range(1, math.MaxInt64)
	rapid.Check(t, func(t *rapid.T) {
		p := backoff.Pauses{First: time.Duration(length.Draw(t, "first")), Longest: time.Duration(length.Draw(t, "longest"))}
		failures := rapid.IntRange(-1, 100).Draw(t, "failures")
		before, after := p.After(failures), p.After(failures+1)
		switch {
		case before <= 0 || after < before || after > p.Longest:
			t.Fatalf("%+v: %v after %d failures, then %v", p, before, failures, after)
		case p.After(64) != p.Longest:
			t.Fatalf("%+v: %v after many failures", p, p.After(64))
		}
	})
}
