package app_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/app"
)

// asked is a request of some account, and the statuses of its answers: while the account has all its rights, and after each of them was taken away.
type asked struct {
	method, url, body, token string
	want                     [4]int
}

// TestARightTakenAwayIsGone: on every surface at the next request. What is open meanwhile is tested where it is kept: streams of RAPI in
// rapi.TestWatchEndsWithItsAccount, consoles in remoteconsole.TestWhoMayNoLonger and compute.TestWhoMayStill. Who reaches the socket of LUXI stays an
// operator until its connection ends.
func TestARightTakenAwayIsGone(t *testing.T) {
	dir := t.TempDir()
	users := filepath.Join(dir, "users")
	lists := func(line string) {
		t.Helper()
		if err := os.WriteFile(users, []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lists("op secret read,write")
	c := startCompute(t, app.Options{Data: filepath.Join(dir, "data"), Users: users})
	rapi, identity, compute := c.ready.RAPI+"/2", c.ready.Identity, c.ready.Compute
	bob := c.user("bob", "yard", "admin", "member", "reader")
	token := c.logIn(map[string]any{"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{"user": map[string]any{"id": bob.id, "password": "opensesame"}}},
		"scope": map[string]any{"project": map[string]any{"id": bob.project}}})
	admin := c.token
	c.token = token
	server := c.create()
	var made struct {
		Credential struct{ ID, Secret string } `json:"application_credential"`
	}
	c.request(http.MethodPost, identity+"/users/"+bob.id+"/application_credentials", map[string]any{"application_credential": map[string]any{"name": "ci", "roles": []any{map[string]any{"id": "member"}}}},
		&made, http.StatusCreated)
	narrow := c.logIn(map[string]any{"identity": map[string]any{"methods": []string{"application_credential"}, "application_credential": map[string]any{"id": made.Credential.ID, "secret": made.Credential.Secret}}})
	c.token = admin
	var first struct{ Users []struct{ ID string } }
	c.request(http.MethodGet, identity+"/users?name="+c.ready.OSUsername, nil, &first, http.StatusOK)

	stages := [4]func(){func() {}, func() { c.take(bob, "admin"); lists("op secret read") }, func() { c.take(bob, "member"); lists("op secret") },
		func() { c.take(bob, "reader"); lists("# op secret read,write") }}
	all := []asked{
		{"GET", rapi + "/info", "", "", [4]int{200, 200, 200, 401}},
		{"GET", rapi + "/query/node?fields=name", "", "", [4]int{200, 200, 403, 401}},
		{"GET", rapi + "/query/node/watch?since=never", "", "", [4]int{400, 400, 403, 401}},
		{"PUT", rapi + "/tags?tag=x&dry-run=1", "", "", [4]int{200, 403, 403, 401}},
		{"POST", rapi + "/filters", "{}", "", [4]int{200, 403, 403, 401}},
		{"PUT", rapi + "/environments/prod", `{"nodes":{}}`, "", [4]int{200, 403, 403, 401}},
		{"GET", rapi + "/environments/prod?show-secrets=1", "", "", [4]int{200, 403, 403, 401}},
		{"GET", rapi + "/environments/prod", "", "", [4]int{200, 200, 403, 401}},
		{"PUT", rapi + "/deployments/9/begin", "", "", [4]int{404, 403, 403, 401}},
		{"GET", rapi + "/deployments", "", "", [4]int{200, 200, 403, 401}},

		{"GET", identity + "/auth/projects", "", token, [4]int{200, 200, 200, 401}},
		{"GET", identity + "/users/" + bob.id, "", token, [4]int{200, 200, 200, 401}},
		{"GET", identity + "/users/" + first.Users[0].ID, "", token, [4]int{200, 404, 404, 401}},
		{"POST", identity + "/projects", `{"project":{"name":""}}`, token, [4]int{400, 403, 403, 401}},

		{"GET", compute + "/servers/" + server, "", token, [4]int{200, 200, 200, 401}},
		{"PUT", compute + "/servers/" + server + "/tags/x", "", token, [4]int{201, 204, 403, 401}},
		{"POST", compute + "/servers/" + server + "/remote-consoles", `{"remote_console":{"protocol":"vnc","type":"none"}}`, token, [4]int{400, 400, 403, 401}},
		{"DELETE", compute + "/flavors/nosuch", "", token, [4]int{404, 403, 403, 401}},
		{"PUT", compute + "/os-quota-sets/nosuch", `{"quota_set":{}}`, token, [4]int{400, 403, 403, 401}},
		{"GET", strings.TrimSuffix(compute, "/compute/v2.1") + "/image/v2/images", "", token, [4]int{200, 200, 200, 401}},
		// An application credential has no more than its user, and reads nothing with a role that is gone.
		{"PUT", compute + "/servers/" + server + "/tags/x", "", narrow, [4]int{204, 204, 403, 401}},
		{"GET", compute + "/servers/" + server, "", narrow, [4]int{200, 200, 403, 401}},
	}
	for stage, take := range stages {
		take()
		for _, a := range all {
			if got, text := c.ask(a); got != a.want[stage] {
				t.Errorf("after %d were taken away, %s %s: %d, want %d: %s", stage, a.method, a.url, got, a.want[stage], text)
			}
		}
	}
}

// ask sends a request with a token, or as the account of RAPI.
func (c *compute) ask(a asked) (status int, text string) {
	c.Helper()
	r, err := http.NewRequestWithContext(c.Context(), a.method, a.url, strings.NewReader(a.body))
	if err != nil {
		c.Fatal(err)
	}
	if r.Header.Set("X-Auth-Token", a.token); a.token == "" {
		r.SetBasicAuth("op", "secret")
	}
	if r.Header.Set("Openstack-Api-Version", "compute 2.52"); a.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	client := trusting()
	defer client.CloseIdleConnections()
	answer, err := client.Do(r)
	if err != nil {
		c.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var body bytes.Buffer
	if _, err := body.ReadFrom(answer.Body); err != nil {
		c.Fatal(err)
	}
	return answer.StatusCode, body.String()
}

// person is a user of the Compute API in a project, both by their ids.
type person struct{ id, project string }

// user makes one with a password.
func (c *compute) user(name, project string, roles ...string) person {
	c.Helper()
	var made struct{ User, Project struct{ ID string } }
	c.request(http.MethodPost, c.ready.Identity+"/projects", map[string]any{"project": map[string]any{"name": project}}, &made, http.StatusCreated)
	c.request(http.MethodPost, c.ready.Identity+"/users", map[string]any{"user": map[string]any{"name": name, "password": "opensesame"}}, &made, http.StatusCreated)
	who := person{made.User.ID, made.Project.ID}
	for _, role := range roles {
		c.request(http.MethodPut, c.roleOf(who, role), nil, nil, http.StatusNoContent)
	}
	return who
}

func (c *compute) roleOf(who person, role string) string {
	return c.ready.Identity + "/projects/" + who.project + "/users/" + who.id + "/roles/" + role
}

// take takes a role away.
func (c *compute) take(who person, role string) {
	c.Helper()
	c.request(http.MethodDelete, c.roleOf(who, role), nil, nil, http.StatusNoContent)
}
