package inventory

import (
	"strings"
	"testing"
	"time"
)

// TestWhoSitsIsTold has somebody see one turn after the other.
func TestWhoSitsIsTold(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	free, mine := turn{Number: 1}, turn{Number: 2, Who: "me", Yours: true}
	alice, bob := turn{Number: 3, Who: "alice", From: "10.0.0.1", Since: at}, turn{Number: 4, Who: "bob", Since: at}
	for _, c := range []struct {
		was, is turn
		want    string
	}{
		{free, free, ""}, {free, mine, ""}, {mine, free, ""}, {free, alice, "alice (10.0.0.1) types since 03:04:05, and you look; Ctrl-T takes the keyboard over"},
		{mine, alice, "alice (10.0.0.1) has taken the keyboard over, and you look; Ctrl-T takes it back"}, {alice, mine, "you type now"},
		{alice, bob, "bob types since"}, {alice, free, "alice (10.0.0.1) has left the keyboard: you may type"},
	} {
		s := &seat{turn: c.was}
		if got := s.told(c.is); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%+v behind %+v: %q, want %q", c.is, c.was, got, c.want)
		}
	}
	s := &seat{turn: alice}
	if first, second := s.warning(), s.warning(); !strings.Contains(first, "alice") || second != "" {
		t.Errorf("warned %q, %q", first, second)
	}
	s.sees(bob)
	if s.warning() == "" {
		t.Error("of another one's turn nothing is told")
	}
}
