package identity_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit"
)

// field is one of a request schema, as this API takes it.
type field testkit.Field

// samples are values that ask for something, by type.
var samples = testkit.FieldSamples()

// put puts a value into a body at a path, in place of what is there.
func put(body any, path string, value any) any {
	if path == "" {
		return value
	}
	if rest, ok := strings.CutPrefix(path, "[]"); ok {
		return []any{put(nil, strings.TrimPrefix(rest, "."), value)}
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	out, _ := body.(map[string]any)
	if out == nil {
		out = map[string]any{}
	}
	out[path[:end]] = put(out[path[:end]], strings.TrimPrefix(path[end:], "."), value)
	return out
}

func (r *rig) text(body any) string {
	r.Helper()
	text, err := json.Marshal(body)
	r.check(err)
	return string(text)
}

// TestFieldsOfTheSchemas: each field of each request of Keystone's is done or refused,
// as the table says; none is taken and passed over.
func TestFieldsOfTheSchemas(t *testing.T) {
	r := newRig(t)
	bob, elsewhere := r.user("bob", "elsewhere", "member")
	fields := testkit.Fields(t, "identity")
	for i := range fields {
		f := (*field)(&fields[i])
		t.Run(f.Resource+" "+f.Action+" "+f.Field, func(t *testing.T) {
			if f.Resource == "auth" || f.Action == "password" {
				r.now = r.now.Add(time.Hour) // or who logs in wrongly would be held up
			}
			whole := r.T
			defer func() { r.T = whole }()
			r.T = t
			switch {
			case f.Resource == "auth":
				r.login(f)
			case f.Action == "password":
				r.password(f)
			default:
				r.account(f, map[string]string{"users": bob.ID, "projects": elsewhere.ID}[f.Resource])
			}
		})
	}
	const least = 100
	if len(fields) < least {
		t.Errorf("only %d fields were tried", len(fields))
	}
}

// sample is a value that asks for something, of the field's type.
func (f *field) sample() any {
	for _, kind := range f.Types {
		if value, known := samples[kind]; known {
			return value
		}
	}
	return true
}

// account makes or changes a user, a project or a credential by one field.
func (r *rig) account(f *field, id string) {
	outer := map[string]string{"users": "user", "projects": "project", "application_credentials": "application_credential"}[f.Resource]
	method, path, token, status := http.MethodPost, "/identity/v3/"+f.Resource, r.admin, http.StatusCreated
	if outer == "application_credential" {
		path, token = "/identity/v3/users/"+r.alice.ID+"/"+f.Resource, r.logIn("alice", "home")
	}
	body := map[string]any{}
	if f.Action == "update" {
		method, path, status = http.MethodPatch, path+"/"+id, http.StatusOK
	} else {
		body["name"] = "new " + f.Action + " " + f.Field
	}
	key, _, _ := strings.Cut(strings.ReplaceAll(f.Field, "[", "."), ".")
	if f.Verdict == "refused" {
		a := r.ask(token, method, path, r.text(map[string]any{outer: put(body, f.Field, f.sample())}))
		if r.explained(f.Field, a, http.StatusBadRequest); !strings.Contains(a.text, key) || f.Note == "" {
			r.Errorf("the answer does not name it, or the table does not say why: %s", a.text)
		}
		return
	}
	w, known := wishes[outer][key]
	if !known || w.shown == "" {
		r.Fatal("nothing shows that it is done")
	}
	var value any
	r.check(json.Unmarshal([]byte(w.value), &value))
	if key == "name" {
		value = "renamed " + f.Action
		w.shown = r.text(value)
	}
	body[key] = value
	if name, ok := strings.CutPrefix(f.Field, "roles[]."); ok {
		body[key] = []any{map[string]any{name: "member"}}
	}
	r.doneOrRefused(f.Field, r.ask(token, method, path, r.text(map[string]any{outer: body})), status, outer, key, w)
}

// password changes one by each of two fields: without either, and with a wrong one,
// nothing is changed.
func (r *rig) password(f *field) {
	path := "/identity/v3/users/" + r.alice.ID + "/password"
	body := map[string]any{"original_password": "opensesame", "password": "opensesame"}
	if a := r.ask("", http.MethodPost, path, r.text(map[string]any{"user": body})); a.status != http.StatusNoContent {
		r.Errorf("%d %s", a.status, a.text)
	}
	body[f.Field] = ""
	if a := r.ask("", http.MethodPost, path, r.text(map[string]any{"user": body})); a.status < http.StatusBadRequest {
		r.Errorf("without %s: %d %s", f.Field, a.status, a.text)
	}
}

// login logs in by one field: with the right value it is let in, with another it is not.
func (r *rig) login(f *field) {
	right := map[string]any{
		"identity.methods": []any{"password"}, "identity.methods[]": "password",
		"identity.password.user.id": r.alice.ID, "identity.password.user.name": "alice", "identity.password.user.password": "opensesame",
		"identity.password.user.domain.id": "default", "identity.password.user.domain.name": "Default",
		"scope.project.id": r.home.ID, "scope.project.name": "home", "scope.project.domain.id": "default", "scope.project.domain.name": "Default",
	}
	var body any = map[string]any{}
	for path, value := range map[string]any{"identity.methods[]": "password", "identity.password.user.password": "opensesame"} {
		body = put(body, path, value)
	}
	if !strings.HasSuffix(f.Field, "user.id") {
		body = put(body, "identity.password.user.name", "alice")
		body = put(body, "identity.password.user.domain.id", "default")
	}
	switch {
	case strings.HasPrefix(f.Field, "identity.token"):
		body = put(map[string]any{}, "identity.methods[]", "token")
		right["identity.token.id"] = r.logIn("alice", "home")
	case f.Field == "identity.password.user.domain.name", f.Field == "identity.password.user.domain":
		body = put(body, "identity.password.user.domain", map[string]any{})
	case strings.HasPrefix(f.Field, "scope.project.domain"):
		body = put(body, "scope.project.name", "home")
	case f.Field == "scope.project.name":
		body = put(body, "scope.project.domain.id", "default")
	}
	ask := func(value any) answer {
		return r.ask("", http.MethodPost, tokens, r.text(map[string]any{"auth": put(body, f.Field, value)}))
	}
	if f.Verdict == "refused" {
		if r.explained(f.Field, ask(f.sample()), http.StatusUnauthorized); f.Note == "" {
			r.Error("the table does not say why")
		}
		return
	}
	if value, leaf := right[f.Field]; leaf {
		if a := ask(value); a.status != http.StatusCreated {
			r.Errorf("with the right value: %d %s", a.status, a.text)
		}
	} else if slices.Equal(f.Types, []string{"string"}) {
		r.Error("nothing shows that it is done")
	}
	var wrong any = 7 // of what has fields of its own
	if slices.Contains(f.Types, "string") && f.Field != "scope" {
		wrong = "wrong"
	}
	if a := ask(wrong); a.status < http.StatusBadRequest || a.status >= http.StatusInternalServerError {
		r.Errorf("with a wrong value: %d %s", a.status, a.text)
	}
}
