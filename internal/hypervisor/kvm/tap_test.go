package kvm

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/testkit"
)

// inNamespace says that the test is the process in a namespace of its own.
const inNamespace = "DROVER_IN_NAMESPACE"

// TestBridges joins a machine to a bridge, in a network namespace that ends with the test.
func TestBridges(t *testing.T) {
	needQEMU(t)
	if os.Getenv(inNamespace) != "" {
		bridges(t)
		return
	}
	if _, err := exec.LookPath("ip"); err != nil || os.Geteuid() != 0 {
		testkit.Missingf(t, "bridges take root, and ip of iproute2: %v", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run", "^TestBridges$", "-test.v")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func ip(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// ports are those of a bridge.
func ports(t *testing.T, bridge string) (names []string) {
	t.Helper()
	var list []struct {
		Name    string `json:"ifname"`
		Address string `json:"address"`
	}
	if err := json.Unmarshal([]byte(ip(t, "-json", "link", "show", "master", bridge)), &list); err != nil {
		t.Fatal(err)
	}
	for _, port := range list {
		names = append(names, port.Name+" "+port.Address)
	}
	return names
}

func bridges(t *testing.T) {
	ip(t, "link", "add", "br0", "type", "bridge")
	ip(t, "link", "set", "br0", "up")
	n := newNode(t)
	n.bridges = true
	d := n.open()
	spec := n.guest(d)
	spec.NICs = []hypervisor.NIC{{UUID: "0a1b2c3d-4e5f-4000-8000-000000000001", MAC: "aa:00:00:12:34:56", Mode: "bridged", Link: "br0"}}
	n.start(d, spec)
	n.look(d).await("GUEST-UP")
	want := "dr0a1b2c3d4e5f fe:00:00:12:34:56"
	if got := ports(t, "br0"); len(got) != 1 || got[0] != want {
		t.Errorf("the bridge has the ports %q, want %q", got, want)
	}
	d = n.open() // the machine has it, and nobody else
	if got := ports(t, "br0"); len(got) != 1 {
		t.Errorf("behind the driver's end the bridge has the ports %q", got)
	}
	if _, err := d.Stop(t.Context(), one, hypervisor.Stop{}); err != nil {
		t.Fatal(err)
	}
	if got := ports(t, "br0"); len(got) != 0 {
		t.Errorf("behind the machine's end the bridge has the ports %q", got)
	}
	for _, c := range []struct {
		mode, link, vlan string
		code             fault.Code
	}{
		{"bridged", "br9", "", fault.Environment}, {"routed", "br0", "", fault.Unsupported}, {"bridged", "br0", ".5", fault.Unsupported}, {"bridged", "br0 mtu 100", "", fault.Invalid}, {"bridged", "", "", fault.Invalid},
	} {
		nic := &spec.NICs[0]
		nic.Mode, nic.Link, nic.VLAN = c.mode, c.link, c.vlan
		if _, err := d.Start(t.Context(), spec); !fault.Is(err, c.code) || !strings.Contains(err.Error(), "network card 0") {
			t.Errorf("%+v: %v", c, err)
		}
		n.is(d, hypervisor.Stopped)
	}
	if links := ip(t, "link", "show"); strings.Contains(links, "dr0a1b2c3d4e5f") {
		t.Errorf("it leaves\n%s", links)
	}
}
