package web

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// groupOf starts so many controllers with the page over one database; the first of them leads.
func groupOf(t *testing.T, n int) []*cluster {
	t.Helper()
	bin, store, shared := testkit.Build(t), pgserver.Start(t, false).URL("page"), t.TempDir()
	users := filepath.Join(shared, "users")
	if err := os.WriteFile(users, []byte("ada secret read,write\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var all []*cluster
	for i := range n {
		data, err := os.MkdirTemp("", "drvw") //nolint:usetesting // sockets need short paths
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(data) })
		cmd := exec.CommandContext(t.Context(), bin, "serve", "--name", fmt.Sprintf("c%d", i+1), "--data", data, "--luxi", filepath.Join(data, "luxi.sock"), "--ready-file", filepath.Join(data, "ready.json"),
			"--store", store, "--peer", "127.0.0.1:0", "--rapi", "127.0.0.1:0", "--rapi-users", users, "--web", "127.0.0.1:0", "--node-data", filepath.Join(shared, "nodes"), "--watch-every", "0", "--log-level", "error")
		cmd.Stderr = t.Output()
		all = append(all, &cluster{t, testkit.Start(t, cmd, data), bin})
	}
	for _, c := range all {
		c.until("it has the key, which it learns from the one that leads, and without which it could not lead", func() bool {
			_, err := os.Stat(filepath.Join(filepath.Dir(c.Ready.LUXI), "key"))
			return err == nil
		})
	}
	return all
}

// until waits until something holds of a controller.
func (c *cluster) until(what string, holds func() bool) {
	c.Helper()
	for limit := time.Now().Add(testkit.Patience()); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			c.Fatalf("this never came about: %s", what)
		}
	}
}

// frontOf is an address of all controllers, as a balancer has it: who connects is led to the first of them that takes connections.
func frontOf(t *testing.T, all []*cluster) string {
	t.Helper()
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = front.Close() })
	go func() {
		for {
			in, err := front.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = in.Close() }()
				for _, c := range all {
					out, err := net.Dial("tcp", strings.TrimPrefix(c.Ready.Web, "http://"))
					if err != nil {
						continue
					}
					go func() {
						_, _ = io.Copy(out, in)
						_ = out.Close()
					}()
					_, _ = io.Copy(in, out)
					return
				}
			}()
		}
	}()
	return "http://" + front.Addr().String()
}

// TestAnotherControllerTakesOver: of three controllers the one that leads is killed. Who looks at the page of one that stands by, and who has it behind an
// address of all, are told that the connection is lost, sign in again where they are, and see what the new one does.
func TestAnotherControllerTakesOver(t *testing.T) {
	all := groupOf(t, 3)
	all[0].drover("filter", "add", "--action", "PAUSE", "--name", "backup", "--reason", "the disks are copied", "--when", `opcode: OP_ID == "OP_TEST_DELAY"`)
	all[0].drover("job", "submit", "OP_TEST_DELAY", "duration=0.001", "--submit", "--reason", "OPS-70: behind it")
	var tabs []*tab
	signIn := func(tab *tab) {
		tab.types("input[name=name]", "ada")
		tab.types("input[name=password]", "secret\r")
		tab.shows("paused by filter rule backup")
		tab.until("it is live", `document.querySelector(".l-live")`)
	}
	for _, base := range []string{all[2].Ready.Web, frontOf(t, all)} {
		p := sitDown(t, base)
		p.allow("/session", "/stream", "ERR_CONNECTION")
		tab := p.tab()
		tab.open("/jobs/1")
		signIn(tab)
		eval[int](tab, `(new MutationObserver(() => { window.said ||= document.querySelector(".bar.lost")?.innerText; }).observe(document.body, {subtree: true, childList: true}), 1)`)
		tabs = append(tabs, tab)
	}
	all[0].Kill()
	for _, tab := range tabs {
		tab.until("it says that the connection is lost", `window.said?.startsWith("The connection is lost. What is shown is")`)
	}
	for _, tab := range tabs {
		tab.shows("Sign in with an account") // sessions are those of the controller that led
		signIn(tab)
		if at := eval[string](tab, `location.pathname`); at != "/jobs/1" {
			t.Errorf("it has gone on to %s", at)
		}
	}
	all[1].drover("filter", "delete", "backup", "--yes", "--reason", "OPS-71: go on")
	for _, tab := range tabs {
		tab.until("the job ends before their eyes", `document.querySelector("h1")?.innerText.includes("success")`)
	}
}
