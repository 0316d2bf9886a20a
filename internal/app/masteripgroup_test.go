package app_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// TestTheAddressGoesWithTheLead: the one that led has taken it away before the other brings it up.
func TestTheAddressGoesWithTheLead(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t, false)
	calls, names := filepath.Join(t.TempDir(), "calls"), []string{"c1", "c2"}
	all := groupWith(t, slices.Repeat([]string{server.URL("address")}, 2), func(o *app.Options) {
		o.MasterIPSetup = filepath.Join(o.Data, "setup")
		text := "#!/bin/sh\necho " + o.Name + " $1 $MASTER_IP >> " + calls + "\n"
		if err := os.WriteFile(o.MasterIPSetup, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	})
	await := func(want ...string) {
		t.Helper()
		until(t, strings.Join(want, ", "), func() bool {
			text, _ := os.ReadFile(calls) // it may not be there yet
			return string(text) == strings.Join(want, "\n")+"\n"
		})
	}
	const initial = "127.0.0.254"
	lines := []string{names[0] + " start " + initial}
	await(lines...)
	all[1].call(t, "MasterFailover", new(any))
	all[0].awaitLeader(t, names[1])
	lines = append(lines, names[0]+" stop "+initial, names[1]+" start "+initial)
	await(lines...)
	all[0].jobEnds(t, map[string]any{"OP_ID": "OP_CLUSTER_SET_PARAMS", "master_ip": "192.0.2.9"})
	lines = append(lines, names[1]+" stop "+initial, names[1]+" start 192.0.2.9")
	await(lines...)
	all[0].jobEnds(t, map[string]any{"OP_ID": "OP_CLUSTER_DEACTIVATE_MASTER_IP"})
	lines = append(lines, names[1]+" stop 192.0.2.9")
	await(lines...)
	all[0].jobEnds(t, map[string]any{"OP_ID": "OP_CLUSTER_ACTIVATE_MASTER_IP"})
	lines = append(lines, names[1]+" start 192.0.2.9")
	await(lines...)
	for _, c := range all {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
	lines = append(lines, names[1]+" stop 192.0.2.9")
	text, err := os.ReadFile(calls)
	if err != nil || !strings.HasPrefix(string(text), strings.Join(lines[:len(lines)-1], "\n")) || !strings.Contains(string(text), names[1]+" stop 192.0.2.9\n") {
		t.Errorf("it went as %s, %v", text, err)
	}
}
