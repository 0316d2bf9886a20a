package app_test

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/luxiwire"
)

// surface is one way in for a JSON object that is right as it is, but for the place of one more member: %s.
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
	c := startCompute(t, app.Options{Data: filepath.Join(dir, "data"), Users: users})
	server := c.create()
	over := func(method, url string) func(string) (bool, string) {
		return func(body string) (bool, string) {
			r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("X-Auth-Token", c.token)
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
	for _, s := range []surface{
		{"RAPI, an environment", `{"file":{"path":"e.yaml","text":"nodes: {}"}%s}`, "graphs", `[]`, "graphs", over("PUT", c.ready.RAPI+"/2/environments/strict")},
		{"RAPI, within an object", `{"file":{"path":"e.yaml","text":"nodes: {}"%s}}`, "path", `"e.yaml"`, "path", over("PUT", c.ready.RAPI+"/2/environments/strict")},
		{"RAPI, a rule", `{"action":"ACCEPT"%s}`, "priority", `0`, "priority", over("POST", c.ready.RAPI+"/2/filters?dry-run=1")},
		{"RAPI, a job", `{"group_name":"g"%s}`, "alloc_policy", `"preferred"`, "alloc_policy", over("POST", c.ready.RAPI+"/2/groups?dry-run=1")},
		{"Compute, a name", `{"server":{"description":null%s}}`, "name", `"x"`, "name", over("PUT", c.ready.Compute+"/servers/"+server)},
		{"Compute, an action", `{"reboot":{%s}}`, "type", `"SOFT"`, "type", over("POST", c.ready.Compute+"/servers/"+server+"/action")},
		{"Compute, metadata", `{"metadata":{}%s}`, "metadata", `{}`, "metadata", over("POST", c.ready.Compute+"/servers/"+server+"/metadata")},
		{"Identity, a login", `{"auth":{"identity":{"methods":["password"],"password":{"user":{"name":"x","domain":{"id":"default"}%s}}}}}`, "password", `"x"`, "password", over("POST", c.ready.Identity+"/auth/tokens")},
		{"Identity, a scope", `{"auth":{"identity":{"methods":["token"],"token":{"id":"` + c.token + `"}},"scope":{%s}}}`, "project", `{"name":"x"}`, "project", over("POST", c.ready.Identity+"/auth/tokens")},
		{"Identity, a project", `{"project":{"description":"strict"%s}}`, "name", `"strict"`, "name", over("POST", c.ready.Identity+"/projects")},
		{"LUXI, a message", `{"method":"QueryTags","args":["cluster",""]%s}`, "stale", `false`, "stale", luxi},
		{"LUXI, options", `{"method":"Query","args":["node",["name"],null,{%s}]}`, "limit", `1`, "args[3].limit", luxi},
		{"LUXI, a wish", `{"method":"PreviewDeployment","args":[{"environment":"strict"%s}]}`, "only", `[]`, "args[0].only", luxi},
		{"LUXI, a change of a rule", `{"method":"ChangeFilters","args":[[{"do":"put","parts":{}%s}]]}`, "rule", `"x"`, "rule", luxi},
		{"LUXI, a part of a rule", `{"method":"ChangeFilters","args":[[{"do":"put","parts":{"action":"ACCEPT"%s}}]]}`, "priority", `0`, "priority", luxi},
		{"LUXI, an opcode", `{"method":"CheckJob","args":[[{"OP_ID":"OP_TEST_DELAY","duration":0%s}]]}`, "comment", `"x"`, "comment", luxi},
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
		{"what is nested too deep", s.with(member, `"x":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)), ""},
		{"what follows the value", s.with(member) + "{}", ""},
		{"what is too large", s.with(member, `"x":"`+strings.Repeat("x", 20<<20)+`"`), ""},
		{"what is no text", s.with(member, `"x":"\ud800"`), ""},
	} {
		refused, answer := s.send(bad.body)
		if !refused || !strings.Contains(answer, bad.place) || strings.HasPrefix(answer, "5") {
			t.Errorf("%s: %s is answered with %.300s", s.name, bad.what, answer)
		}
	}
}
