package identity_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	api "github.com/drover-project/drover/internal/api/identity"
	"github.com/drover-project/drover/internal/identity"
)

// wish asks for something by one key of a body.
type wish struct {
	value string // as JSON
	// shown is what the answer shows under that key then; empty for what is refused.
	shown string
}

// wishes ask for something by each key that Keystone's schemas have.
var wishes = map[string]map[string]wish{
	"project": {
		"name": {`"disp"`, `"disp"`}, "description": {`"d"`, `"d"`}, "enabled": {`false`, `false`}, "domain_id": {`"nope"`, ""}, "parent_id": {`"x"`, ""},
		"is_domain": {`true`, ""}, "tags": {`["a"]`, ""}, "options": {`{"immutable":true}`, ""}, "extra": {`"x"`, ""}, "Enabled": {`false`, ""},
	},
	"user": {
		"name": {`"u2"`, `"u2"`}, "description": {`"d"`, `"d"`}, "email": {`"a@b.c"`, `"a@b.c"`}, "enabled": {`false`, `false`}, "default_project_id": {`"p"`, `"p"`},
		"password": {`"opensesame"`, "null"}, "domain_id": {`"nope"`, ""}, "options": {`{"lock_password":true}`, ""}, "federated": {`[{"idp_id":"x"}]`, ""}, "extra": {`"x"`, ""},
	},
	"application_credential": {
		"name": {`"ci"`, `"ci"`}, "description": {`"d"`, `"d"`}, "secret": {`"hidden"`, `"hidden"`}, "unrestricted": {`true`, ""}, "access_rules": {`[{"path":"/x"}]`, ""},
		"expires_at": {`"2027-01-01T00:00:00+01:00"`, `"2026-12-31T23:00:00.000000"`}, "project_id": {`"other"`, ""},
		"roles": {`[{"name":"member"}]`, `[{"domain_id":null,"id":"member","links":{},"name":"member","options":{}}]`},
	},
}

// TestDoneOrRefused: whatever a request asks for by whatever key is done, when things
// are made and when they are changed, or else refused.
func TestDoneOrRefused(t *testing.T) {
	r := newRig(t)
	for outer, table := range api.Bodies {
		for key := range table[outer].In {
			if _, known := wishes[outer][key]; !known {
				t.Errorf("no test asks by the key %s of a %s", key, outer)
			}
		}
	}
	bob, elsewhere := r.user("bob", "elsewhere", identity.Member)
	places := map[string]string{"project": "projects", "user": "users", "application_credential": "users/" + r.alice.ID + "/application_credentials"}
	for outer, keys := range wishes {
		token := map[bool]string{true: r.member, false: r.admin}[outer == "application_credential"]
		for key, w := range keys {
			path := "/identity/v3/" + places[outer]
			name := `"name":"new ` + key + `",`
			if key == "name" {
				name = ""
			}
			made := r.ask(token, http.MethodPost, path, `{"`+outer+`":{`+name+`"`+key+`":`+w.value+`}}`)
			r.doneOrRefused(outer+"."+key, made, http.StatusCreated, outer, key, w)
			if outer == "application_credential" || key == "name" {
				continue
			}
			thing := map[string]string{"project": elsewhere.ID, "user": bob.ID}[outer]
			r.doneOrRefused(key, r.ask(token, http.MethodPatch, path+"/"+thing, `{"`+outer+`":{"`+key+`":`+w.value+`}}`), http.StatusOK, outer, key, w)
		}
	}
}

func (r *rig) doneOrRefused(what string, a answer, status int, outer, key string, w wish) {
	r.Helper()
	if w.shown == "" {
		if r.explained(what, a, http.StatusBadRequest); !strings.Contains(a.text, key) {
			r.Errorf("%s: the answer does not name it: %s", what, a.text)
		}
		return
	}
	var body map[string]map[string]any
	err := json.Unmarshal([]byte(a.text), &body)
	shown, _ := json.Marshal(body[outer][key]) //nolint:errchkjson // it was read before
	if a.status != status || err != nil || string(shown) != w.shown {
		r.Errorf("%s: %d %s", what, a.status, a.text)
	}
}

// TestWhatIsSoAnyway may be said.
func TestWhatIsSoAnyway(t *testing.T) {
	r := newRig(t)
	for body, path := range map[string]string{
		`{"project":{"name":"a","domain_id":"default","parent_id":"default","is_domain":false,"tags":[],"options":{}}}`: "projects",
		`{"project":{"name":"b","domain_id":null,"parent_id":null}}`:                                                    "projects",
		`{"user":{"name":"a","domain_id":"default","password":null,"options":{}}}`:                                      "users",
	} {
		if a := r.ask(r.admin, http.MethodPost, "/identity/v3/"+path, body); a.status != http.StatusCreated {
			t.Errorf("%s: %d %s", body, a.status, a.text)
		}
	}
}

// TestNobodyHasARoleElsewhere: a scope that is no project is not taken for none.
func TestNobodyHasARoleElsewhere(t *testing.T) {
	r := newRig(t)
	body := func(scope string) string {
		return strings.Replace(passwordLogin("alice", "opensesame", "home"), `"scope":{"project":{"name":"home","domain":{"id":"default"}}}`, `"scope":`+scope, 1)
	}
	for _, scope := range []string{`{"domain":{"id":"default"}}`, `{"system":{"all":true}}`, `{"OS-TRUST:trust":{"id":"x"}}`} {
		r.explained(scope, r.ask("", http.MethodPost, tokens, body(scope)), http.StatusUnauthorized)
	}
	for _, scope := range []string{`null`, `{}`, `"unscoped"`} {
		if a := r.ask("", http.MethodPost, tokens, body(scope)); a.status != http.StatusCreated {
			t.Errorf("%s: %d %s", scope, a.status, a.text)
		}
	}
	for what, bad := range map[string]string{
		"a second factor": strings.Replace(body("{}"), `["password"]`, `["password","totp"]`, 1), "unknown": strings.Replace(body("{}"), `"methods"`, `"otp":"1","methods"`, 1),
	} {
		r.explained(what, r.ask("", http.MethodPost, tokens, bad), http.StatusBadRequest)
	}
}

// TestUsersChangeTheirPasswords: with the old one, which nobody else knows.
func TestUsersChangeTheirPasswords(t *testing.T) {
	r := newRig(t)
	path := "/identity/v3/users/" + r.alice.ID + "/password"
	body := func(old, password string) string {
		return `{"user":{"original_password":"` + old + `","password":"` + password + `"}}`
	}
	r.explained("a wrong one", r.ask(r.member, http.MethodPost, path, body("opensesam", "new")), http.StatusUnauthorized)
	r.explained("an administrator's own", r.ask(r.admin, http.MethodPost, path, body("opensesam", "new")), http.StatusUnauthorized)
	r.explained("nobody's", r.ask("", http.MethodPost, strings.Replace(path, r.alice.ID, "nosuch", 1), body("opensesame", "new")), http.StatusUnauthorized)
	r.explained("something more", r.ask(r.member, http.MethodPost, path, strings.Replace(body("opensesame", "new"), `"password"`, `"email":"x","password"`, 1)), http.StatusBadRequest)
	r.explained("no new one", r.ask(r.member, http.MethodPost, path, body("opensesame", "")), http.StatusBadRequest)
	if r.logIn("alice", "home") == "" {
		t.Fatal("the password was changed")
	}
	if a := r.ask(r.member, http.MethodPost, path, body("opensesame", "new")); a.status != http.StatusNoContent {
		t.Fatalf("changing it: %d %s", a.status, a.text)
	}
	r.explained("the session", r.ask(r.member, http.MethodGet, "/identity/v3/users", ""), http.StatusUnauthorized)
	r.explained("the old one", r.ask("", http.MethodPost, tokens, passwordLogin("alice", "opensesame", "home")), http.StatusUnauthorized)
	if a := r.ask("", http.MethodPost, tokens, passwordLogin("alice", "new", "home")); a.status != http.StatusCreated {
		t.Errorf("the new one: %d %s", a.status, a.text)
	}
	if a := r.ask("", http.MethodPost, path, body("new", "opensesame")); a.status != http.StatusNoContent || r.logIn("alice", "home") == "" {
		t.Errorf("without a token: %d %s", a.status, a.text)
	}
}

// TestCredentialsAreShown: each to its user, and without its secret.
func TestCredentialsAreShown(t *testing.T) {
	r := newRig(t)
	bob, elsewhere := r.user("bob", "elsewhere", identity.Member)
	c, secret, err := r.accounts.AddCredential(t.Context(), identity.Credential{Name: "ci", User: r.alice.ID, Project: r.home.ID}, "")
	r.check(err)
	theirs, _, err := r.accounts.AddCredential(t.Context(), identity.Credential{Name: "cd", User: bob.ID, Project: elsewhere.ID}, "")
	r.check(err)
	own, others := "/identity/v3/users/"+r.alice.ID+"/application_credentials/", "/identity/v3/users/"+bob.ID+"/application_credentials/"
	a := r.ask(r.member, http.MethodGet, own+c.ID, "")
	if a.status != http.StatusOK || !strings.Contains(a.text, `"name":"ci"`) || strings.Contains(a.text, "secret") || strings.Contains(a.text, secret) {
		t.Errorf("%d %s", a.status, a.text)
	}
	for _, path := range []string{own + theirs.ID, others + theirs.ID, others + c.ID, own + "nosuch"} {
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			r.explained(method+" "+path, r.ask(r.member, method, path, ""), http.StatusNotFound)
		}
	}
	if len(r.accounts.Credentials(bob.ID)) != 1 || len(r.accounts.Credentials(r.alice.ID)) != 1 {
		t.Error("a credential was removed")
	}
}

// TestNullTakesAway what can be without a value; a password cannot.
func TestNullTakesAway(t *testing.T) {
	r := newRig(t)
	user, project := "/identity/v3/users/"+r.alice.ID, "/identity/v3/projects/"+r.home.ID
	for _, c := range []struct{ path, body, lacks string }{
		{user, `{"user":{"description":"d","default_project_id":"` + r.home.ID + `"}}`, ""},
		{user, `{"user":{"description":null}}`, `"description"`},
		{user, `{"user":{"default_project_id":null,"name":null,"enabled":null,"email":null}}`, `"default_project_id"`},
		{project, `{"project":{"description":"d"}}`, `"description":""`},
		{project, `{"project":{"description":null}}`, `"description":"d"`},
	} {
		if a := r.ask(r.admin, http.MethodPatch, c.path, c.body); a.status != http.StatusOK || c.lacks != "" && strings.Contains(a.text, c.lacks) {
			t.Errorf("%s: %d %s", c.body, a.status, a.text)
		}
	}
	r.explained("a password", r.ask(r.admin, http.MethodPatch, user, `{"user":{"password":null}}`), http.StatusBadRequest)
	if r.logIn("alice", "home") == "" {
		t.Error("alice cannot log in any more")
	}
}

// TestIDsStayTheSame: who changes something may send back the id that it has.
func TestIDsStayTheSame(t *testing.T) {
	r := newRig(t)
	for path, outer := range map[string]string{"users/" + r.alice.ID: "user", "projects/" + r.home.ID: "project"} {
		_, id, _ := strings.Cut(path, "/")
		for said, status := range map[string]int{id: http.StatusOK, "another": http.StatusBadRequest} {
			a := r.ask(r.admin, http.MethodPatch, "/identity/v3/"+path, `{"`+outer+`":{"id":"`+said+`","description":"`+said+`"}}`)
			if a.status != status || !strings.Contains(a.text, `"id":"`+id+`"`) && status == http.StatusOK {
				t.Errorf("%s said to be %s: %d %s", outer, said, a.status, a.text)
			}
		}
		r.explained("a new "+outer, r.ask(r.admin, http.MethodPost, "/identity/v3/"+outer+"s", `{"`+outer+`":{"id":"`+id+`","name":"x"}}`), http.StatusBadRequest)
	}
}

// TestListsAreFiltered: by what they know, and by nothing else in silence. Roles in a
// disabled project are shown, for enabling it gives them back.
func TestListsAreFiltered(t *testing.T) {
	r := newRig(t)
	_, err := r.accounts.EditProject(t.Context(), r.home.ID, identity.ProjectEdit{Enabled: new(false)})
	r.check(err)
	for path, want := range map[string][]string{
		"users?name=alice": {"alice"}, "users?domain_id=default": {"alice", "root"}, "users?domain_id=nope": {}, "users?enabled=0": {}, "users?enabled=True&name=root": {"root"},
		"projects?enabled=false": {"home"}, "projects?is_domain=true": {}, "projects?parent_id=" + r.home.ID: {}, "projects?name=": {},
		"roles?name=reader": {"reader"}, "role_assignments?role.id=admin": {"root"}, "role_assignments?role.id=reader": {}, "role_assignments?user.id=" + r.alice.ID: {"alice"},
		"role_assignments?include_names=True": {"alice", "root"}, "role_assignments?scope.system=all": {}, "auth/domains": {}, "domains?enabled=true": {"Default"},
	} {
		key, _, _ := strings.Cut(strings.TrimPrefix(path, "auth/"), "?")
		if got := r.names("/identity/v3/"+path, r.admin, key); !slices.Equal(got, want) || got == nil {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	for _, path := range []string{"users?name__contains=a", "projects?tags=a", "roles?x=1"} {
		r.explained(path, r.ask(r.admin, http.MethodGet, "/identity/v3/"+path, ""), http.StatusBadRequest)
	}
}
