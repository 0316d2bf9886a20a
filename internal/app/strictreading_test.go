package app_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/drover-project/drover/internal/agentwire"
	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/joining"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit"
)

// surface is one way in for a JSON object that is right as it is, but for the place of one more member: %s. One whose name begins with a star takes no notice of
// keys that it does not know.
type surface struct {
	name, body string
	// key is one that the object has already, with a value that it may have, and place where it is, as answers name it.
	key, value, place string
	send              func(body string) (refused bool, answer string)
}

// TestEverySurfaceReadsStrictly: what one reader takes one way and another another way (a key that is there twice, or in other capitals; what follows the value) is
// refused wherever it comes in, and so is what is nested too deep or too large; the answer names the place.
func TestEverySurfaceReadsStrictly(t *testing.T) {
	dir := t.TempDir()
	users := filepath.Join(dir, "users")
	if err := os.WriteFile(users, []byte("op secret read,write\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := startCompute(t, app.Options{Data: filepath.Join(dir, "data"), Users: users, Web: "127.0.0.1:0", AgentAddress: "127.0.0.1:0"})
	server, session := c.create(), c.signIn(t)
	node, err := agentwire.NewHandler(named{}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	over := func(method, url string) func(string) (bool, string) {
		return func(body string) (bool, string) {
			r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("X-Auth-Token", c.token)
			r.Header.Set("Cookie", session)
			if strings.HasPrefix(url, c.ready.RAPI) {
				r.SetBasicAuth("op", "secret")
			}
			a, err := trusting().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = a.Body.Close() }()
			text, err := io.ReadAll(a.Body)
			if err != nil {
				t.Fatal(err)
			}
			return a.StatusCode >= http.StatusBadRequest, fmt.Sprint(a.StatusCode, " ", html.UnescapeString(string(text)))
		}
	}
	luxi := func(frame string) (bool, string) {
		conn, err := net.Dial("unix", c.ready.LUXI)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_, _ = conn.Write(append([]byte(frame), luxiwire.Terminator)) // who refuses it may not read all of it
		answer, err := bufio.NewReader(conn).ReadString(luxiwire.Terminator)
		return err != nil || strings.Contains(answer, `"success":false`), answer
	}
	// within has what serves agents and controllers refuse by itself, and not for what else is wrong.
	within := func(h http.Handler, path, header string) func(string) (bool, string) {
		server := httptest.NewUnstartedServer(nil)
		server.Config = gate.Peers.Server(h, slog.New(slog.DiscardHandler))
		server.Start()
		t.Cleanup(server.Close)
		return func(body string) (bool, string) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if header != "" {
				r.Body, r.ContentLength = http.NoBody, 0
				r.Header.Set(header, body)
				r.Header.Set("Upgrade", "drover-luxi")
			}
			a, err := http.DefaultClient.Do(r)
			if err != nil {
				return true, err.Error() // it did not read all of it
			}
			defer func() { _ = a.Body.Close() }()
			text, _ := io.ReadAll(a.Body)
			wrong := []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusRequestHeaderFieldsTooLarge}
			return slices.Contains(wrong, a.StatusCode), fmt.Sprint(a.StatusCode, " ", string(text))
		}
	}
	peers := app.PeerRequests(t.Context())
	told := func(read func(body string) error) func(string) (bool, string) {
		return func(body string) (bool, string) {
			err := read(body)
			return err != nil, fmt.Sprint(err)
		}
	}
	for _, s := range []surface{
		{"RAPI, an environment", `{"file":{"path":"e.yaml","text":"nodes: {}"}%s}`, "graphs", `[]`, "graphs", over("PUT", c.ready.RAPI+"/2/environments/strict")},
		{"RAPI, within an object", `{"file":{"path":"e.yaml","text":"nodes: {}"%s}}`, "path", `"e.yaml"`, "path", over("PUT", c.ready.RAPI+"/2/environments/strict")},
		{"RAPI, a rule", `{"action":"ACCEPT"%s}`, "priority", `0`, "priority", over("POST", c.ready.RAPI+"/2/filters?dry-run=1")},
		{"RAPI, a job", `{"group_name":"g"%s}`, "alloc_policy", `"preferred"`, "alloc_policy", over("POST", c.ready.RAPI+"/2/groups?dry-run=1")},
		{"Compute, a name", `{"server":{"description":null%s}}`, "name", `"x"`, "name", over("PUT", c.ready.Compute+"/servers/"+server)},
		{"Compute, an action", `{"reboot":{%s}}`, "type", `"SOFT"`, "type", over("POST", c.ready.Compute+"/servers/"+server+"/action")},
		{"Compute, metadata", `{"metadata":{}%s}`, "metadata", `{}`, "metadata", over("POST", c.ready.Compute+"/servers/"+server+"/metadata")},
		{"Identity, a login", `{"auth":{"identity":{"methods":["password"],"password":{"user":{"name":"x","domain":{"id":"default"}%s}}}}}`, "password", `"x"`, "password", over("POST", c.ready.Identity+"/auth/tokens")},
		{"*Identity, a scope", `{"auth":{"identity":{"methods":["token"],"token":{"id":"` + c.token + `"}},"scope":{%s}}}`, "project", `{"name":"x"}`, "project", over("POST", c.ready.Identity+"/auth/tokens")},
		{"Identity, a project", `{"project":{"description":"strict"%s}}`, "name", `"strict"`, "name", over("POST", c.ready.Identity+"/projects")},
		{"*LUXI, a message", `{"method":"QueryTags","args":["cluster",""]%s}`, "stale", `false`, "stale", luxi},
		{"LUXI, options", `{"method":"Query","args":["node",["name"],null,{%s}]}`, "limit", `1`, "args[3].limit", luxi},
		{"LUXI, a wish", `{"method":"PreviewDeployment","args":[{"environment":"strict"%s}]}`, "only", `[]`, "args[0].only", luxi},
		{"LUXI, a change of a rule", `{"method":"ChangeFilters","args":[[{"do":"put","parts":{}%s}]]}`, "rule", `"x"`, "rule", luxi},
		{"LUXI, a part of a rule", `{"method":"ChangeFilters","args":[[{"do":"put","parts":{"action":"ACCEPT"%s}}]]}`, "priority", `0`, "priority", luxi},
		{"LUXI, an opcode", `{"method":"CheckJob","args":[[{"OP_ID":"OP_TEST_DELAY","duration":0%s}]]}`, "comment", `"x"`, "comment", luxi},
		{"the page, signing in", `{"name":"op"%s}`, "password", `"secret"`, "password", over("POST", c.ready.Web+"/session")},
		{"the page, a job", `{"reason":"strict"%s}`, "priority", `0`, "priority", over("POST", c.ready.Web+"/api/jobs/1/priority")},
		{"the page, a rule", `{"reason":"strict","edit":{"parts":{}%s}}`, "do", `"put"`, "do", over("POST", c.ready.Web+"/api/rules/preview")},
		{"the page, what a tab watches", `{"watch":{}%s}`, "hidden", `false`, "hidden", c.tab(t, session)},
		{"the page, a view of a tab", `{"watch":{"a":{%s}}}`, "view", `"jobs"`, "view", c.tab(t, session)},
		{"*an agent that comes", `{"protocol":1%s}`, "node", `"n"`, "node", c.comes(t)},
		{"an agent, a call", `{"node":"n"%s}`, "args", `{}`, "args", within(node, "/v1/oses", "")},
		{"an agent, an argument", `{"node":"n","args":{%s}}`, "after", `1`, "after", within(node, "/v1/next-state", "")},
		{"a token of an agent", `{"node":"n","secret":"s","authority":"a"%s}`, "addresses", `["a:1"]`, "", told(func(body string) error {
			_, err := joining.ParseToken("drover-token-1-" + base64.RawURLEncoding.EncodeToString([]byte(body)))
			return err
		})},
		{"*a controller, a lease", `{"serial":1%s}`, "holds", `true`, "holds", within(peers, "/peer/readlease", "")},
		{"*a controller, whose connection", `{"surface":"luxi"%s}`, "name", `"x"`, "name", within(peers, "/peer/luxi", "Drover-Account")},
		{"*a controller, how it is", `{"instance":"i"%s}`, "role", `"leader"`, "role", told(func(body string) error { return app.ReadPeerStatus(strings.NewReader(body)) })},
	} {
		s.refuses(t)
	}
}

// with is the body with further members.
func (s surface) with(members ...string) string {
	text := strings.Join(members, ",")
	if text != "" && !strings.Contains(s.body, "{%s}") {
		text = "," + text
	}
	return fmt.Sprintf(s.body, text)
}

func (s surface) refuses(t *testing.T) {
	t.Helper()
	member := fmt.Sprintf("%q:%s", s.key, s.value)
	escaped := fmt.Sprintf(`"\u%04x%s":%s`, s.key[0], s.key[1:], s.value)
	for _, bad := range []struct{ what, body, place string }{
		{"a key that is there twice", s.with(member, member), s.place},
		{"a key that is there twice, once with an escape", s.with(member, escaped), s.place},
		{"a key in other capitals", s.with(strings.Replace(member, s.key, strings.ToUpper(s.key), 1)), strings.Replace(s.place, s.key, strings.ToUpper(s.key), 1)},
		{"a key that means nothing", s.with(`"nonsense":1`), strings.Repeat("nonsense", min(1, len(s.place)))}, // a token tells no place
		{"what is nested too deep", s.with(member, `"x":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)), ""},
		{"what follows the value", s.with(member) + "{}", ""},
		{"what follows far behind", s.with(member) + strings.Repeat(" ", 20<<20) + "{}", ""},
		{"what is too large", s.with(member, `"x":"`+strings.Repeat("x", 20<<20)+`"`), ""},
		{"what is no text", s.with(member, `"x":"\ud800"`), ""},
	} {
		if bad.what == "a key that means nothing" && strings.HasPrefix(s.name, "*") {
			continue
		}
		refused, answer := s.send(bad.body)
		if !refused || !strings.Contains(answer, bad.place) || strings.HasPrefix(answer, "5") {
			t.Errorf("%s: %s is answered with %.300s", s.name, bad.what, answer)
		}
	}
}

// named is a node that says its name.
type named struct{ agentwire.Served }

func (named) Node() string { return "n" }

// tab says something over a new stream of the page, and tells with what that ends.
func (c *compute) tab(t *testing.T, session string) func(string) (bool, string) {
	return func(body string) (bool, string) {
		conn, _, err := websocket.Dial(t.Context(), c.ready.Web+"/stream", &websocket.DialOptions{HTTPHeader: http.Header{"Cookie": {session}, "Origin": {c.ready.Web}}}) //nolint:bodyclose // it has none
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.CloseNow() }()
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience())
		defer cancel()
		_ = conn.Write(ctx, websocket.MessageText, []byte(body)) // who refuses it may not read all of it
		for err == nil {
			_, _, err = conn.Read(ctx)
		}
		return ctx.Err() == nil, err.Error()
	}
}

// comes has an agent come, which shows no certificate, and says something.
func (c *compute) comes(t *testing.T) func(string) (bool, string) {
	return func(body string) (bool, string) {
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
		conn, err := dialer.DialContext(t.Context(), "tcp", c.ready.AgentAddress)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_, _ = conn.Write([]byte(body + "\n")) // who refuses it may not read all of it
		answer, err := bufio.NewReader(conn).ReadString('\n')
		return err != nil || strings.Contains(answer, `"code":"invalid"`), answer
	}
}
