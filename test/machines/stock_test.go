package machines

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/testkit"
)

// TestTheStockClientOfRAPI has Debian's client live through the life of a machine, and the guest say what it notices.
func TestTheStockClientOfRAPI(t *testing.T) {
	t.Parallel()
	testkit.NeedPython(t, "ganeti.rapi.client", "python3-ganeti-rapi")
	s := newSite(t)
	s.drover("node", "list")
	s.offer()
	cmd := exec.CommandContext(t.Context(), testkit.Python, "stock_client.py", filepath.Join(s.data, "ready.json"))
	cmd.Stderr = t.Output()
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	at := uint64(0)
	lines := bufio.NewScanner(out)
	for _, c := range []struct{ step, says string }{
		{"created", "GUEST-UP"}, {"rebooted", "GUEST-UP"}, {"grown", ""}, {"stopped", "BUTTON\r\nBYE"}, {"started", "GUEST-UP"}, {"removed", ""},
	} {
		if !lines.Scan() || lines.Text() != c.step {
			t.Fatalf("the client says %q, want %q: %v, %v", lines.Text(), c.step, lines.Err(), cmd.Wait())
		}
		if c.says != "" {
			at = s.await("stock.example", c.says, at)
		}
		if _, err := io.WriteString(in, "\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if left := s.guests(); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}

// TestStockGntInstance has Ganeti's own gnt-instance do the same.
func TestStockGntInstance(t *testing.T) {
	t.Parallel()
	cache := filepath.Join(testkit.Root(t), ".cache", "ganeti")
	if _, err := os.Stat(filepath.Join(cache, "complete")); err != nil {
		t.Skip("Ganeti's tools are not here; make stock-tools fetches them")
	}
	root := filepath.Join(cache, "root")
	python := append(os.Environ(), "PYTHONPATH="+filepath.Join(root, "usr/lib/python3/dist-packages")+":"+filepath.Join(root, "usr/share/ganeti/3.0"))
	can := exec.CommandContext(t.Context(), testkit.Python, "-c", "import ganeti.cli, ganeti.client.gnt_instance")
	can.Env = python
	if said, err := can.CombinedOutput(); err != nil {
		t.Skipf("Ganeti's tools cannot be loaded here: %v\n%s", err, said)
	}
	s := newSite(t)
	s.drover("node", "list")
	s.offer()
	cmd := exec.CommandContext(t.Context(), testkit.Python, filepath.Join(testkit.Root(t), "test", "luxi", "stock_tool.py"), filepath.Join(s.data, "luxi.sock"))
	cmd.Env, cmd.Stderr = python, t.Output()
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	ask, answers := json.NewEncoder(in), json.NewDecoder(out)
	at := uint64(0)
	for _, c := range []struct{ line, says string }{
		{"add -t file --disk 0:size=1M -o tiny -H kvm -B memory=64 --no-name-check --no-ip-check stock.example", "GUEST-UP"},
		{"list --no-headers -o name,status,oper_ram", ""},
		{"reboot --type=hard stock.example", "GUEST-UP"},
		{"grow-disk stock.example 0 4m", ""},
		{"modify --hotplug --disk add:size=1M --net add stock.example", ""},
		{"shutdown stock.example", "BUTTON\r\nBYE"},
		{"startup stock.example", "GUEST-UP"},
		{"console stock.example", ""},
		{"remove -f stock.example", ""},
	} {
		var told struct {
			Stdout, Stderr string
			Status         int
		}
		if err := errors.Join(ask.Encode(append([]string{"gnt-instance"}, strings.Fields(c.line)...)), answers.Decode(&told)); err != nil || told.Status != 0 {
			t.Fatalf("gnt-instance %s: %v, %+v", c.line, err, told)
		}
		if verb, _, _ := strings.Cut(c.line, " "); verb == "list" && !strings.Contains(told.Stdout, "running") ||
			verb == "modify" && !strings.Contains(told.Stdout+told.Stderr, "Hotplug done.") || verb == "console" && !strings.Contains(told.Stdout+told.Stderr, "drover instance console stock.example") {
			t.Errorf("gnt-instance %s says %+v", c.line, told)
		}
		if c.says != "" {
			at = s.await("stock.example", c.says, at)
		}
	}
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Error(err)
	}
}
