package app_test

import (
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/drover-project/drover/internal/app"
)

// relay is a way to somewhere that can fall silent: what is on it stays there until it is let go on.
type relay struct {
	address string

	mu sync.Mutex
	// held is closed when what is on the way goes on; nil while nothing is held.
	held chan struct{}
	all  sync.WaitGroup
	ends []net.Conn
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{address: l.Addr().String()}
	r.all.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			there, err := net.Dial("tcp", to)
			if err != nil {
				_ = from.Close()
				continue
			}
			r.mu.Lock()
			r.ends = append(r.ends, from, there)
			r.mu.Unlock()
			r.all.Go(func() { r.carry(there, from) })
			r.all.Go(func() { r.carry(from, there) })
		}
	})
	t.Cleanup(func() {
		r.goOn()
		_ = l.Close()
		r.mu.Lock()
		for _, c := range r.ends {
			_ = c.Close()
		}
		r.mu.Unlock()
		r.all.Wait()
	})
	return r
}

func (r *relay) carry(to, from net.Conn) {
	defer to.Close() //nolint:errcheck // whoever is at its end notices
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		r.mu.Lock()
		held := r.held
		r.mu.Unlock()
		if held != nil {
			<-held
		}
		if err == nil {
			_, err = to.Write(piece[:n])
		}
		if err != nil {
			return
		}
	}
}

func (r *relay) fallSilent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = make(chan struct{})
}

func (r *relay) goOn() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held != nil {
		close(r.held)
		r.held = nil
	}
}

// TestASilentNodeHoldsUpNobodyElse: while an order to a node that says nothing is not answered, those to other nodes are, and what is asked about
// them; and it is carried out when the node is heard again.
func TestASilentNodeHoldsUpNobodyElse(t *testing.T) {
	dir := t.TempDir()
	c := startWith(t, app.Options{Data: dir, AgentAddress: "127.0.0.1:0"})
	at := c.ready.AgentAddress
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	way := newRelay(t, at)
	c = startWith(t, app.Options{Data: dir, AgentAddress: at, AgentAdvertise: way.address}) // the agent is told of the way alone
	log, _ := runAgent(t, c.token(t, away))
	until(t, "the agent", func() bool { return log.has("linked to the controller that leads") })
	c.job(t, create("there", away))
	way.fallSilent()
	var id int
	op := about("OP_INSTANCE_REBOOT", "there")
	op["reason"] = [][]any{{"user", "a test", 1}}
	c.call(t, "SubmitJob", &id, []any{op})
	status := func() string {
		var rows [][]any
		c.call(t, "QueryJobs", &rows, []int{id}, []string{"status"})
		return fmt.Sprint(rows[0][0])
	}
	until(t, "that the order is on its way", func() bool { return status() == "running" })
	for i := range 3 {
		c.job(t, create(fmt.Sprintf("here%d", i), "node1.drover.example"))
		c.job(t, about("OP_INSTANCE_REBOOT", fmt.Sprintf("here%d", i)))
	}
	if got := c.seen(t, "instance", "here2", "oper_ram"); got != "[0 128]" {
		t.Errorf("of a node that answers it is told %s", got)
	}
	if got := status(); got != "running" {
		t.Fatalf("the order to the node that is silent ended as %s before those that came later", got)
	}
	way.goOn()
	until(t, "the end of the order", func() bool { return status() != "running" })
	if got := status(); got != "success" {
		t.Errorf("it ended as %s", got)
	}
}
