package compute_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/identity"
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

// TestWhatAServerPrinted: its users read the end of it, as text.
func TestWhatAServerPrinted(t *testing.T) {
	r := newRig(t)
	s := r.create("web1")
	path := at(nova, s) + "/action"
	r.printed = "\x95\xbd\x1b[31mboot\x1b[0m\r\nκερνελ \xff\ta<b\r\nlogin: \x00\x07\u009b"
	const all = "[31mboot[0m\nκερνελ \uFFFD\ta<b\nlogin: "
	for _, c := range []struct {
		argument, want string
	}{
		{`{}`, all}, {`null`, all}, {`{"length":null}`, all}, {`{"length":-1}`, all}, {`{"length":"-1"}`, all}, {`{"length":10}`, all}, {`{"length":1}`, "login: "},
		{`{"length":"2"}`, "κερνελ \uFFFD\ta<b\nlogin: "}, {`{"length":0}`, ""},
	} {
		a := r.ask(http.MethodPost, path, `{"os-getConsoleOutput":`+c.argument+`}`)
		if a.status != http.StatusOK || a.read(r)["output"] != c.want {
			t.Errorf("%s: %d %q, want %q", c.argument, a.status, a.read(r)["output"], c.want)
		}
	}
	r.printed = "one\ntwo\n"
	if a := r.ask(http.MethodPost, path, `{"os-getConsoleOutput":{"length":1}}`); a.read(r)["output"] != "two\n" {
		t.Errorf("the last line is %s", a.text)
	}
	for _, bad := range []string{`{"length":"x"}`, `{"length":-2}`, `{"length":1.5}`, `{"length":[]}`, `{"lines":1}`, `{"length":1,"length":2}`} {
		r.explained(bad, r.ask(http.MethodPost, path, `{"os-getConsoleOutput":`+bad+`}`), http.StatusBadRequest)
	}
	_, other := r.join("bob", "lab", identity.Member)
	r.explained("of another project", r.ask(http.MethodPost, path, `{"os-getConsoleOutput":{}}`, "X-Auth-Token", other), http.StatusNotFound)
	if a := r.ask(http.MethodPost, path, `{"os-zzz":{}}`); a.status != http.StatusBadRequest || !strings.Contains(a.text, "os-getConsoleOutput") || !strings.Contains(a.text, "os-start") || !strings.Contains(a.text, "unlock") {
		t.Errorf("of an action that there is not: %d, %s", a.status, a.text)
	}
	r.explained("in Cyclades' words", r.ask(http.MethodPost, at(cyclades, s)+"/action", `{"os-getConsoleOutput":{}}`), http.StatusBadRequest)
	for why, status := range map[error]int{
		fault.New(fault.Unsupported, "its machine is pretended"): 501, fault.New(fault.Environment, "its node is away"): 503, fault.New(fault.Unavailable, "its node is away"): 503,
	} {
		r.consoles = why
		if a := r.ask(http.MethodPost, path, `{"os-getConsoleOutput":{}}`); a.status != status || !strings.Contains(a.text, why.Error()) {
			t.Errorf("%v: %d %s", why, a.status, a.text)
		}
	}
	r.consoles = context.Canceled // who asks has gone: nothing is wrong here
	given, leave := context.WithCancel(t.Context())
	leave()
	in := httptest.NewRequestWithContext(given, http.MethodPost, path, strings.NewReader(`{"os-getConsoleOutput":{}}`))
	in.Header.Set("X-Auth-Token", r.token)
	out := httptest.NewRecorder()
	if r.api.ServeHTTP(out, in); out.Code != http.StatusServiceUnavailable || strings.Contains(r.log.String(), "ERROR") {
		t.Errorf("given up: %d, and the log is %s", out.Code, r.log)
	}
	r.consoles = nil
	far := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"availability_zone": "far"})).read(r)["server"].(map[string]any)["id"].(string)
	r.settled(far)
	r.explained("on another cluster", r.ask(http.MethodPost, nova+"/servers/"+far+"/action", `{"os-getConsoleOutput":{}}`), http.StatusNotImplemented)
}

// TestWhoMayStill: a console that was granted is as good as the token that it was asked for with.
func TestWhoMayStill(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*rig) error
		want   fault.Code
	}{
		"nothing": {func(*rig) error { return nil }, ""},
		"another project": {func(r *rig) error {
			_, err := r.accounts.EditProject(t.Context(), r.home.ID, identity.ProjectEdit{Name: new("yard")})
			return err
		}, ""},
		"the project": {func(r *rig) error {
			_, err := r.accounts.EditProject(t.Context(), r.home.ID, identity.ProjectEdit{Enabled: new(false)})
			return err
		}, fault.Denied},
		"the user": {func(r *rig) error {
			_, err := r.accounts.EditUser(t.Context(), "alice", identity.UserEdit{Enabled: new(false)})
			return err
		}, fault.Denied},
		"the password": {func(r *rig) error {
			_, err := r.accounts.EditUser(t.Context(), "alice", identity.UserEdit{Password: new("sesameopen")})
			return err
		}, fault.Denied},
		"the token": {func(r *rig) error { return r.accounts.Revoke(t.Context(), r.token) }, fault.Denied},
		"all roles": {func(r *rig) error { return r.accounts.SetRole(t.Context(), "alice", "home", identity.Member, false) }, fault.Denied},
		"all roles but the reader's": {func(r *rig) error {
			if err := r.accounts.SetRole(t.Context(), "alice", "home", identity.Reader, true); err != nil {
				return err
			}
			return r.accounts.SetRole(t.Context(), "alice", "home", identity.Member, false)
		}, fault.Denied},
		"who can tell": {func(r *rig) error { r.away = true; return nil }, fault.Unavailable},
		"who can tell, to the end": {func(r *rig) error {
			session, err := r.accounts.Session(r.token)
			r.check(err)
			r.away, r.clock.stands = true, session.Expires
			return nil
		}, fault.Denied},
		"who can tell, for too long": {func(r *rig) error { r.away, r.clock.ahead = true, identity.TokenLife; return nil }, fault.Denied},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t)
			s := r.create("web1")
			if a := r.ask(http.MethodPost, at(nova, s)+"/remote-consoles", `{"remote_console":{"protocol":"vnc","type":"novnc"}}`, "X-Openstack-Nova-Api-Version", "2.6"); a.status != http.StatusOK {
				t.Fatal(a)
			}
			r.check(c.change(r))
			if err := r.granted.Still(t.Context()); fault.CodeOf(err) != c.want && (err != nil || c.want != "") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
