package testkit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Dev is a controller as a process of its own: `drover dev`, or `drover serve`.
type Dev struct {
	Cmd *exec.Cmd
	// Ready is what the process says about itself when everything listens.
	Ready struct {
		RAPI     string `json:"rapi"`
		User     string `json:"rapi_user"`
		Password string `json:"rapi_password"`
		LUXI     string `json:"luxi"`
		Peer     string `json:"peer"`
		Web      string `json:"web"`
		// AgentAddress is where agents of nodes are taken in.
		AgentAddress string `json:"agent_address"`
		// Agents are the processes of nodes, by name.
		Agents map[string]int `json:"agents"`
		// Where servers are made, with an account for that.
		Compute         string `json:"compute"`
		Identity        string `json:"identity"`
		ComputeUser     string `json:"os_username"`
		ComputePassword string `json:"os_password"`
		ComputeProject  string `json:"os_project"`
	}
}

// StartDev starts the program at bin on a data directory, without a demo and
// with further arguments, and waits until it is ready. It ends with the test.
func StartDev(t testing.TB, bin, data string, args ...string) *Dev {
	t.Helper()
	return StartDevOfBefore(t, bin, data, append([]string{"--watch-every", "0"}, args...)...)
}

// StartDevOfBefore is StartDev of a program that knows of no watcher, which might do what a test does not expect.
func StartDevOfBefore(t testing.TB, bin, data string, args ...string) *Dev {
	t.Helper()
	all := []string{"dev", "--data", data, "--rapi", "127.0.0.1:0", "--nodes", "2", "--demo=false"}
	cmd := exec.CommandContext(t.Context(), bin, append(all, args...)...)
	cmd.Stderr = t.Output()
	return Start(t, cmd, data)
}

// readyTime is how long a controller may take to be ready, and goneTime to end, on a
// machine that has much to do.
const (
	readyTime = 5 * time.Minute
	goneTime  = 3 * time.Minute
)

// Start starts a controller that was given a data directory, and waits until it is
// ready.
func Start(t testing.TB, cmd *exec.Cmd, data string) *Dev {
	t.Helper()
	d := &Dev{Cmd: cmd}
	out, err := d.Cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	// A test that ends by its time limit ends without its cleanups.
	d.Cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := d.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(readyTime, d.Kill)
	defer late.Stop()
	in := bufio.NewReader(out)
	for line := ""; !strings.Contains(line, "is ready"); {
		if line, err = in.ReadString('\n'); err != nil {
			t.Fatalf("drover ended, or was ended after %v, before it was ready: %v", readyTime, err)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, in) }() // until it ends
	text, err := os.ReadFile(filepath.Join(data, "ready.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d.Ready); err != nil {
		t.Fatal(err)
	}
	return d
}

// Kill ends the process as a power failure would, as far as it can tell.
func (d *Dev) Kill() { _ = d.Cmd.Process.Kill() }

// Terminate asks the process to end in good order.
func (d *Dev) Terminate() { _ = d.Cmd.Process.Signal(syscall.SIGTERM) }

// Ended tells whether the process has ended; Gone waits for that.
func (d *Dev) Ended() bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.Cmd.Process.Pid))
	return err != nil || strings.HasPrefix(string(text[bytes.LastIndexByte(text, ')')+1:]), " Z")
}

// Gone waits for the end of a process that was killed or told to end, and
// returns what is wrong with it.
func (d *Dev) Gone() error {
	late := time.AfterFunc(goneTime, d.Kill)
	err := d.Cmd.Wait()
	if !late.Stop() {
		return fmt.Errorf("it did not end within %v: %w", goneTime, err)
	}
	return err
}
