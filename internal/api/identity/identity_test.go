package identity_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/drover-project/drover/internal/api/identity"
	"github.com/drover-project/drover/internal/identity"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/testkit"
)

// rig is the API with two users: an administrator, and a member of a project of
// her own.
type rig struct {
	*testing.T
	api      *api.API
	accounts *identity.Service
	now      time.Time
	log      *strings.Builder
	admin    string // a token
	member   string
	alice    identity.User
	home     identity.Project
	servers  map[string]int // how many a project owns
}

func (r *rig) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func newRig(t *testing.T) *rig {
	t.Helper()
	kept, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	r := &rig{T: t, now: time.Unix(1e9, 0), log: &strings.Builder{}, servers: map[string]int{}}
	r.check(err)
	t.Cleanup(func() { r.check(kept.Close()) })
	log := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	now := func() time.Time { return r.now }
	r.accounts, err = identity.Open(t.Context(), identity.Config{Store: kept, Now: now, NewUUID: testkit.NewUUID, Log: log,
		Servers: func(project string) int { return r.servers[project] }})
	r.check(err)
	r.api = api.New(api.Config{Accounts: r.accounts, Prefix: "/identity", Region: "RegionOne", Now: now, Log: log,
		Catalog: func(*http.Request) []api.Service {
			return []api.Service{{Type: "compute", Name: "drover", URL: "http://here/compute"}}
		}})
	r.user("root", "main", identity.Admin)
	r.alice, r.home = r.user("alice", "home", identity.Member)
	r.admin, r.member = r.logIn("root", "main"), r.logIn("alice", "home")
	return r
}

func (r *rig) user(name, project, role string) (identity.User, identity.Project) {
	r.Helper()
	p, err := r.accounts.AddProject(r.Context(), identity.ProjectEdit{Name: new(project)})
	r.check(err)
	u, err := r.accounts.AddUser(r.Context(), identity.UserEdit{Name: new(name), Password: new("opensesame")})
	r.check(err)
	r.check(r.accounts.SetRole(r.Context(), u.ID, p.ID, role, true))
	return u, p
}

type answer struct {
	status int
	header http.Header
	text   string
}

// ask sends a request. Headers come in pairs.
func (r *rig) ask(token, method, path, body string, headers ...string) answer {
	r.Helper()
	in := httptest.NewRequestWithContext(r.Context(), method, path, strings.NewReader(body))
	if token != "" {
		in.Header.Set("X-Auth-Token", token)
	}
	for i := 0; i < len(headers); i += 2 {
		in.Header.Set(headers[i], headers[i+1])
	}
	out := httptest.NewRecorder()
	r.api.ServeHTTP(out, in)
	return answer{out.Code, out.Header(), out.Body.String()}
}

// passwordLogin is the body of a login.
func passwordLogin(user, password, project string) string {
	scope := ""
	if project != "" {
		scope = `,"scope":{"project":{"name":"` + project + `","domain":{"id":"default"}}}`
	}
	return `{"auth":{"identity":{"methods":["password"],"password":{"user":{"name":"` + user + `","domain":{"name":"Default"},"password":"` + password + `"}}}` + scope + `}}`
}

const tokens = "/identity/v3/auth/tokens"

func (r *rig) logIn(user, project string) string {
	r.Helper()
	a := r.ask("", http.MethodPost, tokens, passwordLogin(user, "opensesame", project))
	token := a.header.Get("X-Subject-Token")
	if a.status != http.StatusCreated || token == "" || !strings.Contains(a.text, `"url":"http://here/compute"`) || strings.Contains(a.text, token) {
		r.Fatalf("logging in: %d %s", a.status, a.text)
	}
	return token
}

// explained fails the test unless an answer has a status and says why.
func (r *rig) explained(what string, a answer, status int) {
	r.Helper()
	var body struct {
		Error struct {
			Code           int
			Title, Message string
		}
	}
	err := json.Unmarshal([]byte(a.text), &body)
	if a.status != status || err != nil || body.Error.Code != status || body.Error.Message == "" || body.Error.Title == "" {
		r.Errorf("%s: %d %s, want %d", what, a.status, a.text, status)
	}
}

func TestBadLogins(t *testing.T) {
	r := newRig(t)
	for what, c := range map[string]struct {
		body   string
		status int
	}{
		"wrong password":   {passwordLogin("alice", "opensesam", "home"), 401},
		"unknown user":     {passwordLogin("mallory", "opensesame", "home"), 401},
		"another project":  {passwordLogin("alice", "opensesame", "main"), 401},
		"no such project":  {passwordLogin("alice", "opensesame", "nosuch"), 401},
		"another domain":   {strings.Replace(passwordLogin("alice", "opensesame", "home"), "Default", "Other", 1), 401},
		"wrong token":      {`{"auth":{"identity":{"methods":["token"],"token":{"id":"x"}}}}`, 404}, // as Keystone does
		"wrong credential": {`{"auth":{"identity":{"methods":["application_credential"],"application_credential":{"id":"x","secret":"y"}}}}`, 401},
		"no method":        {`{"auth":{"identity":{"methods":[]}}}`, 400},
		"unknown method":   {`{"auth":{"identity":{"methods":["totp"]}}}`, 400},
		"nothing":          {``, 400},
		"null":             {`null`, 400},
		"a list":           {`[]`, 400},
		"wrong types":      {`{"auth":{"identity":{"methods":"password"}}}`, 400},
		"a number":         {`{"auth":{"identity":{"methods":["password"],"password":{"user":{"name":1,"password":2}}}}}`, 400},
		"no UTF-8":         {passwordLogin("al\xffice", "opensesame", "home"), 400},
		"half a letter":    {passwordLogin(`al\ud800ice`, "opensesame", "home"), 400},
		"NUL":              {passwordLogin(`alice\u0000`, "opensesame", "home"), 401},
		"a huge password":  {passwordLogin("alice", strings.Repeat("x", 60_000), "home"), 401},
		"10 MB":            {passwordLogin("alice", strings.Repeat("x", 10<<20), "home"), 413},
		"many values":      {`{"auth":[` + strings.Repeat("1,", 20_000) + `1]}`, 413},
	} {
		r.now = r.now.Add(time.Hour) // or they would be slowed down
		a := r.ask("", http.MethodPost, tokens, c.body)
		r.explained(what, a, c.status)
		if a.header.Get("X-Subject-Token") != "" {
			t.Errorf("%s: there is a token", what)
		}
	}
	for _, secret := range []string{"opensesam", r.admin, r.member} {
		if strings.Contains(r.log.String(), secret) {
			t.Errorf("a password or token is in the log: %s", r.log)
		}
	}
}

func TestTokens(t *testing.T) {
	r := newRig(t)
	show := func(by, subject string) answer {
		return r.ask(by, http.MethodGet, tokens, "", "X-Subject-Token", subject)
	}
	if a := show(r.member, r.member); a.status != http.StatusOK || !strings.Contains(a.text, `"name":"alice"`) || strings.Contains(a.text, r.member) {
		t.Errorf("one's own: %d %s", a.status, a.text)
	}
	if a := show(r.admin, r.member); a.status != http.StatusOK {
		t.Errorf("by an administrator: %d %s", a.status, a.text)
	}
	r.explained("another's", show(r.member, r.admin), http.StatusNotFound)
	r.explained("no token", show("", r.member), http.StatusUnauthorized)
	r.explained("revoking another's", r.ask(r.member, http.MethodDelete, tokens, "", "X-Subject-Token", r.admin), http.StatusNotFound)
	second := r.logIn("alice", "home")
	if a := r.ask(second, http.MethodDelete, tokens, "", "X-Subject-Token", second); a.status != http.StatusNoContent {
		t.Errorf("revoking: %d %s", a.status, a.text)
	}
	r.explained("revoked", show(second, second), http.StatusUnauthorized)
	r.now = r.now.Add(identity.TokenLife)
	r.explained("over", show(r.member, r.member), http.StatusUnauthorized)
}

// TestMembersSeeThemselves: who does not administer sees no others, and changes
// nothing.
func TestMembersSeeThemselves(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		path, key        string
		byMember, byRoot []string // whose names are in the list
	}{
		{"users", "users", []string{"alice"}, []string{"alice", "root"}},
		{"projects", "projects", []string{"home"}, []string{"home", "main"}},
		{"auth/projects", "projects", []string{"home"}, []string{"main"}},
		{"role_assignments", "role_assignments", []string{"alice"}, []string{"alice", "root"}},
		{"users/" + r.alice.ID + "/projects", "projects", []string{"home"}, []string{"home"}},
	} {
		path := "/identity/v3/" + c.path
		if got := r.names(path, r.member, c.key); !slices.Equal(got, c.byMember) {
			t.Errorf("%s by a member: %v, want %v", path, got, c.byMember)
		}
		if got := r.names(path, r.admin, c.key); !slices.Equal(got, c.byRoot) {
			t.Errorf("%s by an administrator: %v, want %v", path, got, c.byRoot)
		}
		r.explained("without a token", r.ask("", http.MethodGet, path, ""), http.StatusUnauthorized)
	}
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/identity/v3/users", `{"user":{"name":"eve","password":"x"}}`},
		{"PATCH", "/identity/v3/users/" + r.alice.ID, `{"user":{"password":"x"}}`},
		{"DELETE", "/identity/v3/users/" + r.alice.ID, ""},
		{"POST", "/identity/v3/projects", `{"project":{"name":"x"}}`},
		{"DELETE", "/identity/v3/projects/" + r.home.ID, ""},
		{"PUT", "/identity/v3/projects/" + r.home.ID + "/users/" + r.alice.ID + "/roles/admin", ""},
		{"DELETE", "/identity/v3/projects/" + r.home.ID + "/users/" + r.alice.ID + "/roles/member", ""},
	} {
		r.explained(c.method+" "+c.path, r.ask(r.member, c.method, c.path, c.body), http.StatusForbidden)
	}
	if s, err := r.accounts.Session(r.member); err != nil || s.Account().May(rights.Administer, rights.Of{}) == rights.Allowed || len(r.accounts.Users()) != 2 {
		t.Errorf("something was changed: %v", err)
	}
}

// names are those of the things in a list, or of the users of a list of roles; nil
// for an answer that is none.
func (r *rig) names(path, token, key string) []string {
	r.Helper()
	var body map[string]json.RawMessage
	var things []struct {
		Name string
		User struct{ Name string }
	}
	a := r.ask(token, http.MethodGet, path, "")
	if a.status != http.StatusOK || json.Unmarshal([]byte(a.text), &body) != nil || json.Unmarshal(body[key], &things) != nil {
		return nil
	}
	out := []string{}
	for _, t := range things {
		out = append(out, t.Name+t.User.Name)
	}
	return out
}

// TestCredentialsHaveTheRolesThatWereAsked: and make no others, remove none, and make no
// tokens with more.
func TestCredentialsHaveTheRolesThatWereAsked(t *testing.T) {
	r := newRig(t)
	r.check(r.accounts.SetRole(t.Context(), r.alice.ID, r.home.ID, identity.Admin, true))
	own := "/identity/v3/users/" + r.alice.ID + "/application_credentials"
	a := r.ask(r.member, http.MethodPost, own, `{"application_credential":{"name":"ci","roles":[{"name":"member"}]}}`)
	var made struct {
		Credential struct{ ID, Secret string } `json:"application_credential"`
	}
	if err := json.Unmarshal([]byte(a.text), &made); err != nil || a.status != http.StatusCreated {
		t.Fatalf("making it: %d %s", a.status, a.text)
	}
	in := r.ask("", http.MethodPost, tokens, `{"auth":{"identity":{"methods":["application_credential"],"application_credential":{"id":"`+
		made.Credential.ID+`","secret":"`+made.Credential.Secret+`"}}}}`)
	token := in.header.Get("X-Subject-Token")
	again := r.ask("", http.MethodPost, tokens, `{"auth":{"identity":{"methods":["token"],"token":{"id":"`+token+`"}}}}`).header.Get("X-Subject-Token")
	for _, token := range []string{token, again} {
		if s, err := r.accounts.Session(token); err != nil || s.Account().May(rights.Administer, rights.Of{}) == rights.Allowed || s.Project.ID != r.home.ID {
			t.Errorf("the session is %+v, %v", s, err)
		}
		r.explained("administering", r.ask(token, http.MethodPost, "/identity/v3/projects", `{"project":{"name":"x"}}`), http.StatusForbidden)
		r.explained("another", r.ask(token, http.MethodPost, own, `{"application_credential":{"name":"more"}}`), http.StatusForbidden)
		r.explained("removing one", r.ask(token, http.MethodDelete, own+"/"+made.Credential.ID, ""), http.StatusForbidden)
	}
	r.explained("a role that she has not", r.ask(r.member, http.MethodPost, own, `{"application_credential":{"name":"b","roles":[{"name":"reader"}]}}`), 400)
	r.explained("another's", r.ask(r.admin, http.MethodGet, own, ""), http.StatusNotFound)
	if a := r.ask(r.member, http.MethodDelete, own+"/"+made.Credential.ID, ""); a.status != http.StatusNoContent {
		t.Errorf("removing it: %d %s", a.status, a.text)
	}
	for _, token := range []string{token, again} {
		if _, err := r.accounts.Session(token); err == nil {
			t.Error("its session goes on")
		}
	}
}

// TestRolesCanBeAskedFor: clients (openstacksdk) give and take none before they did.
func TestRolesCanBeAskedFor(t *testing.T) {
	r := newRig(t)
	roles := "/identity/v3/projects/" + r.home.ID + "/users/" + r.alice.ID + "/roles"
	for _, c := range []struct {
		path   string
		status int
	}{
		{roles + "/member", 204},
		{roles + "/admin", 404},
		{roles + "/nosuch", 404},
		{strings.Replace(roles, r.alice.ID, "nobody", 1) + "/member", 404},
		{strings.Replace(roles, r.home.ID, "nowhere", 1) + "/member", 404},
		{roles, 200},
	} {
		for _, method := range []string{http.MethodHead, http.MethodGet} {
			if a := r.ask(r.admin, method, c.path, ""); a.status != c.status {
				t.Errorf("%s %s: %d %s, want %d", method, c.path, a.status, a.text, c.status)
			}
		}
		r.explained("a member asks", r.ask(r.member, http.MethodGet, c.path, ""), http.StatusForbidden)
	}
	if got := r.names(roles, r.admin, "roles"); !slices.Equal(got, []string{"member"}) {
		t.Errorf("they are %q", got)
	}
	if a := r.ask(r.admin, http.MethodDelete, roles+"/member", ""); a.status != http.StatusNoContent {
		t.Errorf("taking it: %d %s", a.status, a.text)
	}
	r.explained("when it is taken", r.ask(r.admin, http.MethodGet, roles+"/member", ""), http.StatusNotFound)
}

// TestPathsTakeNoNames: one that stands where an id belongs reaches nothing.
func TestPathsTakeNoNames(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/users/alice", ""},
		{"GET", "/users/alice/projects", ""},
		{"PATCH", "/users/alice", `{"user":{"enabled":false}}`},
		{"DELETE", "/users/alice", ""},
		{"PATCH", "/projects/home", `{"project":{"enabled":false}}`},
		{"DELETE", "/projects/home", ""},
		{"PUT", "/projects/home/users/" + r.alice.ID + "/roles/admin", ""},
		{"DELETE", "/projects/" + r.home.ID + "/users/alice/roles/member", ""},
	} {
		r.explained(c.method+" "+c.path, r.ask(r.admin, c.method, "/identity/v3"+c.path, c.body), http.StatusNotFound)
	}
	r.explained("changing a password", r.ask("", http.MethodPost, "/identity/v3/users/alice/password",
		`{"user":{"original_password":"opensesame","password":"another"}}`), http.StatusUnauthorized)
	if s, err := r.accounts.Session(r.member); err != nil || !slices.Equal(s.Roles, []string{"member"}) {
		t.Errorf("something was changed: %+v, %v", s, err)
	}
}

func TestPathsAreTakenAsSent(t *testing.T) {
	r := newRig(t)
	for _, path := range []string{"/users/..", "/users/" + r.alice.ID + "/..", "/users/%2E%2E", "/users//" + r.alice.ID, "/users/" + r.alice.ID + "/",
		"/users/" + r.alice.ID + ".json", "/projects/../users/" + r.alice.ID, "/users%2F" + r.alice.ID, "/nonsense", "/users/%00"} {
		for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPatch} {
			a := r.ask(r.admin, method, "/identity/v3"+path, `{"user":{"enabled":false}}`)
			if a.status != http.StatusNotFound && a.status != http.StatusBadRequest || a.header.Get("Location") != "" {
				t.Errorf("%s %s: %d %s", method, path, a.status, a.text)
			}
		}
	}
	if u, err := r.accounts.FindUser("alice"); err != nil || !u.Enabled {
		t.Error("the user was changed")
	}
}

// TestGuessingIsSlowed: whatever is guessed, the fourth wrong one and those after
// it are answered ever later, and right ones at once.
func TestGuessingIsSlowed(t *testing.T) {
	for what, guess := range map[string]func(*rig) answer{
		"passwords": func(r *rig) answer {
			return r.ask("", http.MethodPost, tokens, passwordLogin("alice", "guess", "home"))
		},
		"secrets": func(r *rig) answer {
			return r.ask("", http.MethodPost, tokens, `{"auth":{"identity":{"methods":["application_credential"],"application_credential":{"id":"x","secret":"y"}}}}`)
		},
		"tokens to log in with": func(r *rig) answer {
			return r.ask("", http.MethodPost, tokens, `{"auth":{"identity":{"methods":["token"],"token":{"id":"guess"}}}}`)
		},
		"passwords to change": func(r *rig) answer {
			return r.ask("", http.MethodPost, "/identity/v3/users/"+r.alice.ID+"/password", `{"user":{"original_password":"guess","password":"x"}}`)
		},
		"tokens": func(r *rig) answer { return r.ask("guess", http.MethodGet, "/identity/v3/projects", "") },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				for i, want := range []time.Duration{0, 0, 0, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond} {
					begun := time.Now()
					status := http.StatusUnauthorized
					if what == "tokens to log in with" {
						status = http.StatusNotFound
					}
					r.explained("guessing", guess(r), status)
					if took := time.Since(begun); took != want {
						t.Errorf("wrong guess %d is answered after %v, want %v", i+1, took, want)
					}
				}
				begun := time.Now()
				if r.logIn("alice", "home") == "" || r.ask(r.member, http.MethodGet, "/identity/v3/projects", "").status != http.StatusOK || time.Since(begun) != 0 {
					t.Error("who is right is refused, or held up")
				}
			})
		})
	}
}

// TestWhoOwnsTheMachineAdministers: without a token, and what administrators may.
func TestWhoOwnsTheMachineAdministers(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/v3/users", "", 200},
		{"POST", "/v3/users", `{"user":{"name":"bob","password":"opensesame"}}`, 201},
		{"POST", "/v3/users", `{"user":{"name":"bob"}}`, 409},
		{"POST", "/v3/users", `{"user":{"name":` + strings.Repeat(" ", 70_000) + `"eve"}}`, 413},
		{"PATCH", "/v3/users/" + r.alice.ID + "?x=y", `{"user":{"description":"at the door"}}`, 200},
		{"DELETE", "/v3/users/nosuch", "", 404},
		{"PUT", "/v3/users", "", 405},
		{"POST", "/v3/auth/tokens", passwordLogin("alice", "opensesame", "home"), 404}, // a session would be nobody's
		{"GET", "/v3/auth/tokens", "", 404},
		{"POST", "/v3/users/" + r.alice.ID + "/application_credentials", `{"application_credential":{"name":"x"}}`, 404},
		{"GET", "", "", 404},
		{"GET", "/../compute", "", 404},
		{"G T", "/v3/users", "", 400},
		{"GET", "/v3/%zz", "", 400},
	} {
		if status, answer := r.api.Operate(t.Context(), c.method, c.path, []byte(c.body)); status != c.status {
			t.Errorf("%s %s: %d %v, want %d", c.method, c.path, status, answer, c.status)
		}
	}
	if u, err := r.accounts.FindUser("alice"); err != nil || u.Description != "at the door" {
		t.Errorf("she was not changed: %+v, %v", u, err)
	}
	if !strings.Contains(r.log.String(), "administered over the controller's socket") || strings.Contains(r.log.String(), "opensesame") {
		t.Errorf("the log: %s", r.log)
	}
}

// TestMethodsThatAreNotThere: say which there are.
func TestMethodsThatAreNotThere(t *testing.T) {
	r := newRig(t)
	a := r.ask(r.admin, http.MethodPost, "/identity/v3/domains", `{"domain":{"name":"x"}}`)
	r.explained("making a domain", a, http.StatusMethodNotAllowed)
	if a.header.Get("Allow") != http.MethodGet {
		t.Errorf("allowed: %q", a.header.Get("Allow"))
	}
}
