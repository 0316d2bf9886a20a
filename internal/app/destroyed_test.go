package app_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/fault"
)

// TestADestroyedClusterIsNotServedAgain: who leads answers on, and no controller starts on the store any more, which the service manager does not try again.
func TestADestroyedClusterIsNotServedAgain(t *testing.T) {
	dir := t.TempDir()
	c := start(t, dir, false)
	for _, op := range []map[string]any{{"OP_ID": "OP_NODE_REMOVE", "node_name": "node2"}, {"OP_ID": "OP_CLUSTER_DESTROY", "name": "dev.drover.example"}} {
		if status, result := c.jobEnds(t, op); status != "success" {
			t.Fatalf("%s: %s, %v", op["OP_ID"], status, result)
		}
	}
	if status, result := c.jobEnds(t, map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0.1}); status != "error" {
		t.Errorf("a job behind it comes to %s, %v", status, result)
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	served, end := context.WithTimeout(t.Context(), patience) // one that starts again would serve for ever
	defer end()
	err := app.Run(served, app.Options{Data: dir, RAPI: "127.0.0.1:0", Nodes: 1, Out: io.Discard, Log: slog.New(slog.DiscardHandler)})
	status, ok := errors.AsType[interface {
		error
		ExitStatus() int
	}](err)
	if !fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), "was destroyed at") || !ok || status.ExitStatus() != 2 {
		t.Errorf("it starts again, or ends with %v", err)
	}
}
