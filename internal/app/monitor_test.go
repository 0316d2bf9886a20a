package app

import (
	"net"
	"testing"

	"github.com/drover-project/drover/internal/gate"
)

// at is a listener at a port, at which nobody listens.
type at struct {
	net.Listener

	port int
}

func (l at) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: l.port} }

// TestAMonitorTakesThePortThatANodeLeft, and not that of a node which is still there.
func TestAMonitorTakesThePortThatANodeLeft(t *testing.T) {
	m := &monitors{port: 1815, serving: map[string]*gate.Listener{}}
	for node, port := range map[string]int{"node1": 1815, "node2": 1816, "node3": 1817} {
		m.serving[node] = &gate.Listener{Listener: at{port: port}}
	}
	delete(m.serving, "node2")
	if got := m.freePort(); got != 1816 {
		t.Errorf("the next node is at %d", got)
	}
	m.port = 0
	if got := m.freePort(); got != 0 {
		t.Errorf("any port is %d", got)
	}
}
