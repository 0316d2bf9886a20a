package compute_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
)

// TestConsoles: addresses of consoles in both of Nova's ways, for whoever may act on a server.
func TestConsoles(t *testing.T) {
	r := newRig(t)
	s := r.create("web1")
	const version = "X-Openstack-Nova-Api-Version"
	for _, c := range []struct {
		minor, path, body string
		status            int
		want              string
	}{
		{"2.6", "/remote-consoles", `{"remote_console":{"protocol":"vnc","type":"novnc"}}`, 200, `{"remote_console":{"protocol":"vnc","type":"novnc","url":"ws://example.com/console/novnc/` + s.ID + `?token=of-alice"}}`},
		{"2.52", "/remote-consoles", `{"remote_console":{"protocol":"serial","type":"serial"}}`, 200, `/console/serial/` + s.ID},
		{"2.52", "/remote-consoles", `{"remote_console":{"protocol":"spice","type":"spice-html5"}}`, 400, "Unavailable console type spice-html5."},
		{"2.52", "/remote-consoles", `{"remote_console":{"protocol":"vnc","type":"serial"}}`, 400, "no console of protocol"},
		{"2.52", "/remote-consoles", `{"remote_console":{"protocol":"vnc"}}`, 400, "no console of protocol"},
		{"2.52", "/remote-consoles", `{"remote_console":null}`, 400, "remote_console"},
		{"2.52", "/remote-consoles", `{"remote_console":{"protocol":"vnc","type":"novnc","width":80}}`, 400, "width"},
		{"2.5", "/remote-consoles", `{"remote_console":{"protocol":"vnc","type":"novnc"}}`, 404, "could not be found"},
		{"2.5", "/action", `{"os-getVNCConsole":{"type":"novnc"}}`, 200, `{"console":{"type":"novnc","url":"ws://example.com/console/novnc/` + s.ID + `?token=of-alice"}}`},
		{"2.1", "/action", `{"os-getSerialConsole":{"type":"serial"}}`, 200, `/console/serial/` + s.ID},
		{"2.1", "/action", `{"os-getVNCConsole":{"type":"xvpvnc"}}`, 400, "Unavailable console type xvpvnc."},
		{"2.1", "/action", `{"os-getVNCConsole":{"type":"novnc","protocol":"serial"}}`, 400, "protocol"},
		{"2.1", "/action", `{"os-getVNCConsole":null}`, 400, "type"},
		{"2.6", "/action", `{"os-getVNCConsole":{"type":"novnc"}}`, 400, "no such action"},
	} {
		a := r.ask(http.MethodPost, at(nova, s)+c.path, c.body, version, c.minor)
		if a.status != c.status || !strings.Contains(a.text, c.want) {
			t.Errorf("%s %s in %s: %d %s", c.path, c.body, c.minor, a.status, a.text)
		}
	}
	const vnc = `{"remote_console":{"protocol":"vnc","type":"novnc"}}`
	ask := func(headers ...string) answer {
		return r.ask(http.MethodPost, at(nova, s)+"/remote-consoles", vnc, append(headers, version, "2.6")...)
	}
	_, other := r.join("bob", "lab", "member")
	if a := ask("X-Auth-Token", other); a.status != http.StatusNotFound {
		t.Errorf("of another project: %d %s", a.status, a.text)
	}
	for why, status := range map[error]int{
		fault.New(fault.Unsupported, "its machine is pretended"): 400, fault.New(fault.WrongState, "it does not run"): 409, fault.New(fault.Busy, "too many"): 503,
		fault.New(fault.Environment, "its node is away"): 503, fault.New(fault.Unavailable, "its node is away"): 503,
	} {
		r.consoles = why
		if a := ask(); a.status != status || !strings.Contains(a.text, strings.SplitN(why.Error(), ":", 2)[0]) {
			t.Errorf("%v: %d %s", why, a.status, a.text)
		}
	}
	r.consoles = nil
	if a := r.ask(http.MethodPost, at(nova, s)+"/action", `{"os-stop":null}`); a.status != http.StatusAccepted {
		t.Fatal(a)
	}
	r.settled(s.ID)
	if a := ask(); a.status != http.StatusConflict || !strings.Contains(a.text, "not ready") {
		t.Errorf("of one that is stopped: %d %s", a.status, a.text)
	}
}
