package server_test

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

// TestImagesOfServers are made of those that run or stand still, and of which nothing is being done; what became of each is noted once.
func TestImagesOfServers(t *testing.T) {
	fresh := asked(t)
	built := fresh.Settle(policy, fresh.Own(seen("u1", servertag.Outcome{OK: true, Began: 40, Ended: 60})))
	gone := *built
	gone.Deleted = 90
	for what, c := range map[string]struct {
		server *server.Server
		why    string // empty where an image is made
	}{
		"being made": {fresh, "while it is being changed: create by"}, "made": {built, ""}, "being started": {begin(t, built, server.Start, alice), "while it is being changed: start by"}, "gone": {&gone, "vm_state"},
	} {
		err := c.server.MayBeCaptured(server.Capture)
		if c.why == "" && err != nil || c.why != "" && (!fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%s: %v, want %q", what, err, c.why)
		}
	}
	by := servertag.Asked{User: "alice", Request: "req-1", Time: 70}
	once := built.Captured(server.Capture, by, 80, "no room")
	if again := once.Captured(server.Capture, by, 90, "no room"); again != once {
		t.Errorf("it is noted again: %+v", again.Done)
	}
	by.Request = "req-2"
	acts := once.Captured(server.Capture, by, 90, "").Acts()
	if n := len(acts); n != len(built.Acts())+2 || acts[n-2].Failed != "no room" || acts[n-2].Ended != 80 || acts[n-1].Do != server.Capture || acts[n-1].Failed != "" || acts[n-1].Asked != by {
		t.Errorf("what was done is %+v", acts)
	}
	if once.Status() != built.Status() || once.Fault != nil {
		t.Errorf("it is %s, %+v", once.Status(), once.Fault)
	}
}
