package app

import (
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent"
)

// TestAnOldStateIsNotShown asks for the last state of a node: before there is one, and when something was changed since, or time has passed. An older answer that
// comes late takes the place of none.
func TestAnOldStateIsNotShown(t *testing.T) {
	var l lastState
	shown := func(what string, changes uint64, want bool) {
		t.Helper()
		if _, usable, newest := l.at(changes); usable != want || newest {
			t.Errorf("%s it may be shown: %t", what, usable)
		}
	}
	shown("before there is one", 0, false)
	now := time.Now()
	l.put(agent.State{At: now}, 3, false)
	shown("unchanged", 3, true)
	shown("behind a change", 4, false)
	l.put(agent.State{At: now.Add(-time.Second)}, 4, false)
	shown("when one of before comes late,", 4, false)
	l.came = now.Add(-stateAge)
	shown("when time has passed", 3, false)
}
