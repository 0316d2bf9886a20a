package keystone

import (
	"crypto/sha256"
	"strconv"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/identity"
)

// TestWhatIsRememberedIsBounded: also while no token is over; and the newest is among what is left.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	k, err := Open(Config{URL: "https://keystone.example/v3", Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	s := &identity.Session{Expires: now.Add(time.Hour)}
	for i := range maxKnown + 100 {
		key := sha256.Sum256([]byte(strconv.Itoa(i)))
		k.remember(key, s)
		if _, newest := k.known[key]; !newest || len(k.known) > maxKnown {
			t.Fatalf("behind %d tokens %d are remembered, the newest: %t", i+1, len(k.known), newest)
		}
	}
}
