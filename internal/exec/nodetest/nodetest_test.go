package nodetest_test

import (
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/exec/nodetest"
)

// TestInProcess holds the agent itself to the suite.
func TestInProcess(t *testing.T) {
	nodetest.Run(t, func(_ *testing.T, a *agent.Agent) exec.Node { return a })
}
