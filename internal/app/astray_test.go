package app

import (
	"net"
	"net/http"
	"testing"
	"time"
)

// TestWhoGaveUpTheLeadMayAnswer: a connection to one that led is ended only after it had the time to answer what it took; one to the leader never is.
func TestWhoGaveUpTheLeadMayAnswer(t *testing.T) {
	l := &leaderClient{http: &http.Transport{}, open: map[*leaderConn]bool{}}
	for _, to := range []string{"former", "present"} {
		here, there := net.Pipe()
		t.Cleanup(func() { _ = there.Close() })
		l.open[&leaderConn{Conn: here, l: l, instance: to}] = true
	}
	for look := range followLooks {
		if n := len(l.connections()); n != 2 {
			t.Fatalf("before look %d there are %d", look, n)
		}
		l.endAstray(l.connections(), "present")
	}
	if open := l.connections(); len(open) != 1 || open[0].instance != "present" {
		t.Errorf("of two %d are open", len(open))
	}
	back := l.connections()[0]
	for range followLooks - 1 {
		l.endAstray(l.connections(), "former")
	}
	l.endAstray(l.connections(), "present")
	l.endAstray(l.connections(), "former")
	if len(l.connections()) != 1 || back.astray != 1 {
		t.Errorf("who leads again is seen astray %d times", back.astray)
	}
	if lasts := time.Duration(followLooks-1) * followEvery; lasts < changesEnd {
		t.Errorf("%d looks are over before the time to answer", followLooks)
	}
}
