package machines

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/drover-project/drover/internal/hypervisor/kvm"
	"github.com/drover-project/drover/internal/openstack"
	"github.com/drover-project/drover/internal/testkit"
)

// TestTheScreenOfAServer has a user of the Compute API see the screen of a server whose node is elsewhere: the greeting, and a piece of the picture.
func TestTheScreenOfAServer(t *testing.T) {
	t.Parallel()
	s := newSite(t, "--agents", "--compute", "127.0.0.1:0")
	s.drover("node", "list")
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience())
	defer cancel()
	lookAtAServer(ctx, t, s.dev.Ready.Identity, s.dev.Ready.ComputePassword)
}

// lookAtAServer has the first user of a cluster make a server and see its screen, by way of the controller whose Identity API that is.
func lookAtAServer(ctx context.Context, t *testing.T, identity, password string) {
	t.Helper()
	cloud, err := openstack.LogIn(ctx, &openstack.Cloud{AuthURL: identity, Username: "demo", Password: password, Project: "demo", UserDomain: "Default", ProjectDomain: "Default"})
	if err != nil {
		t.Fatal(err)
	}
	id, err := cloud.Create(ctx, &openstack.Wish{Name: "web1", Flavor: "m1.diskless", Image: "noop"})
	if err != nil {
		t.Fatal(err)
	}
	for is := ""; is != "ACTIVE"; time.Sleep(100 * time.Millisecond) { // nothing tells of it
		server, err := cloud.Server(ctx, id)
		if is = server.Status; err != nil || is == "ERROR" {
			t.Fatal(is, err)
		}
	}
	var asked struct {
		Console struct{ URL string } `json:"remote_console"`
	}
	if _, err := cloud.Do(ctx, http.MethodPost, "compute", []string{"servers", id, "remote-consoles"}, nil, json.RawMessage(`{"remote_console":{"protocol":"vnc","type":"novnc"}}`), &asked); err != nil {
		t.Fatal(err)
	}
	conn, answer, err := websocket.Dial(ctx, asked.Console.URL, &websocket.DialOptions{Subprotocols: []string{"binary"}}) //nolint:bodyclose // it has none
	if err != nil {
		t.Fatal(answer, err)
	}
	defer func() { _ = conn.CloseNow() }()
	screen := websocket.NetConn(ctx, conn, websocket.MessageBinary)
	const name = len("QEMU (snf-1)")
	for _, step := range []struct {
		says, begins string
		length       int
	}{
		{"", "RFB 003.008\n", 12}, {"RFB 003.008\n", "\x01\x01", 2}, {"\x01\x00", "\x00\x00\x00\x00", 4 + 24 + name},
		{"\x03\x00\x00\x00\x00\x00\x00\x08\x00\x08", "\x00\x00\x00", 4 + 12}, // one piece of the picture, and where it is
	} {
		seen := make([]byte, step.length)
		_, err := io.WriteString(screen, step.says)
		if err == nil {
			_, err = io.ReadFull(screen, seen)
		}
		if err != nil || !strings.HasPrefix(string(seen), step.begins) {
			t.Fatalf("behind %q the screen says %q, %v; want %q", step.says, seen, err, step.begins)
		}
	}
}

// TestWhatAServerPrinted has a user of the Compute API read what a server printed that is made of an image, in a size of the operator's, on a node that
// is elsewhere; and read it still when the server does not run any more.
func TestWhatAServerPrinted(t *testing.T) {
	t.Parallel()
	s := newSite(t, "--agents", "--compute", "127.0.0.1:0")
	disk := filepath.Join(testkit.OpenDir(t), "tiny.raw")
	if err := os.WriteFile(disk, kvm.TinyDisk(), 0o644); err != nil {
		t.Fatal(err)
	}
	s.drover("image", "add", "tiny", disk)
	s.drover("manage", "flavor", "add", "small", "--vcpus", "1", "--ram", "64", "--disk", "1")
	s.drover("server", "create", "web1", "--flavor", "small", "--image", "tiny", "--wait")
	s.await("snf-1", "GUEST-UP", 0)
	if text := s.drover("server", "log", "web1"); !strings.Contains(text, "GUEST-UP") {
		t.Errorf("it printed %q", text)
	}
	s.drover("server", "stop", "web1", "--wait")
	if text := s.drover("server", "log", "web1", "--output", "json"); !strings.Contains(text, "GUEST-UP") {
		t.Errorf("stopped, it has printed %q", text)
	}
	if text := s.drover("server", "log", "web1", "--lines", "1"); strings.Count(text, "\n") > 1 {
		t.Errorf("its last line is %q", text)
	}
}
