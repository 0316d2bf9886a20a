package main

import (
	"strings"
	"testing"
)

// TestADrainedCandidateIsReplaced: in a cluster of more nodes than are master candidates, nodes are taken out
// by the everyday verbs without a thought of that.
func TestADrainedCandidateIsReplaced(t *testing.T) {
	t.Parallel()
	run := clusterCommands(t, 14)
	for _, line := range []string{"node drain node2", "node offline node3", "node list --no-headers -o name --filter master_candidate"} {
		out, err := run(strings.Fields(line)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		if n := strings.Count(string(out), "\n"); strings.Contains(line, "list") && n != 10 {
			t.Errorf("%d candidates are left, want 10:\n%s", n, out)
		}
	}
}
