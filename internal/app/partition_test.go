package app_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/hypervisor/fake"
	"github.com/drover-project/drover/internal/testkit"
)

// way is one to a controller, which can be cut.
type way struct {
	net.Listener

	to   string
	mu   sync.Mutex
	open []net.Conn
	cut  bool
	all  sync.WaitGroup
}

func newWay(t *testing.T, to string) *way {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{Listener: l, to: to}
	w.all.Go(w.serve)
	t.Cleanup(func() {
		_ = l.Close()
		w.lies(true)
		w.all.Wait()
	})
	return w
}

func (w *way) serve() {
	for {
		here, err := w.Accept()
		if err != nil {
			return
		}
		there, err := net.Dial("tcp", w.to)
		if err != nil {
			_ = here.Close()
			continue
		}
		w.mu.Lock()
		if w.cut {
			_, _ = here.Close(), there.Close()
		}
		w.open = append(w.open, here, there)
		w.mu.Unlock()
		for _, c := range [][2]net.Conn{{here, there}, {there, here}} {
			w.all.Go(func() {
				_, _ = io.Copy(c[0], c[1])
				_, _ = c[0].Close(), c[1].Close()
			})
		}
	}
}

// lies has the way be cut, or whole again.
func (w *way) lies(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut = cut; !cut {
		return
	}
	for _, c := range w.open {
		_ = c.Close()
	}
	w.open = nil
}

// TestANodeIsCutOff cuts one node of three off amidst an order. That order is told to be unknown in time, what else is to be done there waits and fails with words that
// name the node, others are not held up though more waits than may run, and when the way is whole again nothing was done twice.
func TestANodeIsCutOff(t *testing.T) {
	const patience = 4 * time.Second
	c := startWith(t, app.Options{Data: t.TempDir(), AgentAddress: "127.0.0.1:0"}.WithAgentPatience(patience))
	names := []string{"node7.example.com", "node8.example.com", "node9.example.com"}
	machines := map[string]*guests{}
	var w *way
	for _, name := range names {
		dir := t.TempDir()
		token := c.token(t, name)
		machines[name] = newGuests(t, dir)
		at := token.Addresses
		if name == names[0] {
			w = newWay(t, at[0])
			at = []string{w.Addr().String()}
		}
		joins(t, token, dir, machines[name]).run(t, at)
		c.job(t, create("on-"+name[:5], name))
	}
	reboot := func(node string) map[string]any {
		return map[string]any{"OP_ID": "OP_INSTANCE_REBOOT", "instance_name": "on-" + node[:5], "reboot_type": "soft"}
	}

	off := machines[names[0]]
	begun, goOn := make(chan struct{}, 1), make(chan struct{})
	off.mu.Lock()
	off.called = func(call fake.Call) error {
		if call.Method == "reboot" && !call.After {
			begun <- struct{}{}
			<-goOn
		}
		return nil
	}
	off.mu.Unlock()
	amid := c.submit(t, reboot(names[0]))
	select {
	case <-begun:
	case <-time.After(testkit.Patience()):
		t.Fatal("the reboot never begins")
	}
	w.lies(true)
	until(t, "that the queue knows that the node is away", func() bool {
		x := c.explains(t, amid)
		return x.Away != nil || x.Step == "ended"
	})
	var waiting []int
	for range 25 {
		waiting = append(waiting, c.submit(t, reboot(names[0])))
	}
	for _, name := range names[1:] {
		for range 5 {
			c.job(t, reboot(name))
		}
	}
	if n := machines[names[1]].reboots["on-node8"]; n != 5 {
		t.Errorf("a node that is there rebooted %d times", n)
	}
	c.ends(t, amid, "error")
	if _, why := c.result(t, amid); !strings.Contains(why, "it is not known whether node "+names[0]+" carried reboot-soft out") {
		t.Errorf("the order that was cut: %s", why)
	}
	for _, id := range waiting {
		c.ends(t, id, "error")
		if _, why := c.result(t, id); !strings.Contains(why, names[0]+" is away") {
			t.Errorf("what waited: %s", why)
		}
	}

	close(goOn)
	w.lies(false)
	until(t, "that the node is there again", func() bool { return strings.Contains(c.seen(t, "node", names[0], "mtotal"), "131072") })
	c.job(t, reboot(names[0]))
	off.mu.Lock()
	defer off.mu.Unlock()
	if n := off.reboots["on-node7"]; n != 2 {
		t.Errorf("an order whose answer was lost and one behind it rebooted %d times", n)
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}

// result is what a job came to.
func (c cluster) result(t *testing.T, id int) (status, result string) {
	t.Helper()
	var rows [][]any
	c.call(t, "QueryJobs", &rows, []int{id}, []string{"status", "opresult"})
	return fmt.Sprint(rows[0][0]), fmt.Sprint(rows[0][1])
}
