package bench_test

import (
	"os"
	"os/exec"
	"testing"
)

func TestAdhocServer(t *testing.T) {
	ready := startDev(t)
	cmd := exec.Command(os.Getenv("CLIENT"), "-test.run", "TestAdhoc$", "-test.v")
	cmd.Env = append(os.Environ(), "READY="+ready)
	out, err := cmd.CombinedOutput()
	t.Log(string(out), err)
}
