package server_test

import (
	"testing"

	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

// TestWhatIsMadeOfAServerIsNotShared: two that follow from one tell each what was done to it, however much room is behind what they had in common.
func TestWhatIsMadeOfAServerIsNotShared(t *testing.T) {
	before := &server.Server{Done: make([]server.Act, 1, 4)}
	made := map[string]*server.Server{}
	for _, user := range []string{"alice", "bob"} {
		next, err := before.Locked(server.Lock{Asked: servertag.Asked{User: user}})
		if err != nil {
			t.Fatal(err)
		}
		made[user] = next
	}
	for user, s := range made {
		if len(s.Done) != 2 || s.Done[1].Asked.User != user {
			t.Errorf("what %s did is told as %+v", user, s.Done)
		}
	}
}
