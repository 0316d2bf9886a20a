package identity_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/identity"
	"github.com/drover-project/drover/internal/store"
)

// over fails the test unless a token is good for nothing any more.
func (r *rig) over(t *testing.T, what, token string) {
	t.Helper()
	if _, err := r.Session(token); !fault.Is(err, fault.Denied) {
		t.Errorf("%s: the session goes on: %v", what, err)
	}
}

// TestATokenEndsWithTheOneThatItWasMadeFrom: however often it is renewed.
func TestATokenEndsWithTheOneThatItWasMadeFrom(t *testing.T) {
	r := newRig(t)
	begun := r.now
	token := r.log(t, alice)
	const renewals = 50
	for range renewals {
		r.now = r.now.Add(identity.TokenLife / (renewals + 1))
		s, next, err := r.Log(t.Context(), identity.Login{Token: token})
		check(t, err)
		if !s.Expires.Equal(begun.Add(identity.TokenLife)) {
			t.Fatalf("at %v it is good until %v", r.now.Sub(begun), s.Expires.Sub(begun))
		}
		if !slices.Equal(s.Methods, []string{"token", "password"}) {
			t.Fatalf("the methods are %q", s.Methods)
		}
		token = next
	}
	r.now = begun.Add(identity.TokenLife)
	r.over(t, "12 hours after the password", token)
}

// TestACredentialIsForOneProject: whatever project its sessions ask for, and also
// when they ask for none.
func TestACredentialIsForOneProject(t *testing.T) {
	r := newRig(t)
	second, err := r.AddProject(t.Context(), identity.ProjectEdit{Name: new("second")})
	check(t, err)
	check(t, r.SetRole(t.Context(), "alice", second.ID, identity.Admin, true))
	cred, secret, err := r.AddCredential(t.Context(), identity.Credential{Name: "ci", User: r.user.ID, Project: r.home.ID}, "")
	check(t, err)
	for what, ask := range map[string]identity.Login{"nothing": {}, "the other project": {Project: "second"}, "no project": {Unscoped: true}} {
		byCredential := ask
		byCredential.Credential, byCredential.Secret = cred.ID, secret
		token := r.log(t, byCredential)
		byToken := ask
		byToken.Token = token
		for _, token := range []string{token, r.log(t, byToken)} {
			s, err := r.Session(token)
			check(t, err)
			if s.Project == nil || s.Project.ID != r.home.ID || !slices.Equal(s.Roles, []string{identity.Member}) {
				t.Errorf("who asks for %s gets %+v with %v", what, s.Project, s.Roles)
			}
		}
	}
}

// TestTheFirstProjectIsOnesOwn: who names none works where the first role was given, and
// a role elsewhere changes nothing of that.
func TestTheFirstProjectIsOnesOwn(t *testing.T) {
	r := newRig(t)
	second, err := r.AddProject(t.Context(), identity.ProjectEdit{Name: new("second")})
	check(t, err)
	check(t, r.SetRole(t.Context(), "alice", "second", identity.Admin, true))
	unnamed := identity.Login{User: "alice", Password: "opensesame"}
	if s, err := r.Session(r.log(t, unnamed)); err != nil || s.Project == nil || s.Project.ID != r.home.ID {
		t.Errorf("with roles in both the session is for %+v, %v", s.Project, err)
	}
	check(t, r.SetRole(t.Context(), "alice", "home", identity.Member, false))
	if s, err := r.Session(r.log(t, unnamed)); err != nil || s.Project != nil {
		t.Errorf("without one there it is for %+v, %v", s.Project, err)
	}
	unnamed.Project = second.ID
	if s, err := r.Session(r.log(t, unnamed)); err != nil || s.Project == nil || s.Project.ID != second.ID {
		t.Errorf("who names the second gets %+v, %v", s.Project, err)
	}
}

// TestSessionsOfACredentialEndWithIt: they tell so from the start.
func TestSessionsOfACredentialEndWithIt(t *testing.T) {
	r := newRig(t)
	end := r.now.Add(time.Hour)
	cred, secret, err := r.AddCredential(t.Context(), identity.Credential{Name: "ci", User: r.user.ID, Project: r.home.ID, Expires: end}, "")
	check(t, err)
	token := r.log(t, identity.Login{Credential: cred.ID, Secret: secret})
	again := r.log(t, identity.Login{Token: token})
	r.now = end.Add(-time.Microsecond)
	for what, token := range map[string]string{"of the secret": token, "of a token": again} {
		if s, err := r.Session(token); err != nil || !s.Expires.Equal(end) {
			t.Errorf("%s, before its end: %+v, %v", what, s, err)
		}
	}
	r.now = end
	r.over(t, "of the secret", token)
	r.over(t, "of a token", again)
	before := r.tokens(t)
	if _, _, err := r.Log(t.Context(), identity.Login{Credential: cred.ID, Secret: secret}); !fault.Is(err, fault.Denied) {
		t.Errorf("it logs in after its end: %v", err)
	}
	if after := r.tokens(t); after != before {
		t.Errorf("a login that was denied left %d tokens where there were %d", after, before)
	}
}

// tokens counts the stored sessions.
func (r *rig) tokens(t *testing.T) (n int) {
	t.Helper()
	for _, err := range r.store.List(t.Context(), identity.KindToken, store.Options{}) {
		check(t, err)
		n++
	}
	return n
}

// TestASessionOfACredentialTakesNothingFromItsUser: that it has fewer roles is its own affair.
func TestASessionOfACredentialTakesNothingFromItsUser(t *testing.T) {
	r := newRig(t)
	check(t, r.SetRole(t.Context(), "alice", "home", identity.Admin, true))
	cred, secret, err := r.AddCredential(t.Context(), identity.Credential{Name: "ci", User: r.user.ID, Project: r.home.ID, Roles: []string{identity.Member}}, "")
	check(t, err)
	r.log(t, identity.Login{Credential: cred.ID, Secret: secret})
	if s, err := r.Session(r.log(t, alice)); err != nil || !slices.Equal(s.Roles, []string{identity.Admin, identity.Member}) {
		t.Errorf("its user has the roles %q, %v", s.Roles, err)
	}
}

// TestACredentialHasNoMoreThanItsUser: its sessions have its roles as far as the user has them still, from the next request on.
func TestACredentialHasNoMoreThanItsUser(t *testing.T) {
	r := newRig(t)
	check(t, r.SetRole(t.Context(), "alice", "home", identity.Reader, true))
	cred, secret, err := r.AddCredential(t.Context(), identity.Credential{Name: "ci", User: r.user.ID, Project: r.home.ID, Roles: []string{identity.Member}}, "")
	check(t, err)
	token := r.log(t, identity.Login{Credential: cred.ID, Secret: secret})
	for what, want := range map[string][]string{"as it was made": {identity.Member}, "without its user's role": {}} {
		check(t, r.SetRole(t.Context(), "alice", "home", identity.Member, len(want) > 0))
		if s, err := r.Session(token); err != nil || !slices.Equal(s.Roles, want) {
			t.Errorf("%s it has the roles %q, want %q, %v", what, s.Roles, want, err)
		}
	}
}

// TestATokenOfACredentialsTokenIsOfTheCredential: it has the roles of that alone, and ends with it.
func TestATokenOfACredentialsTokenIsOfTheCredential(t *testing.T) {
	r := newRig(t)
	check(t, r.SetRole(t.Context(), "alice", "home", identity.Admin, true))
	cred, secret, err := r.AddCredential(t.Context(), identity.Credential{Name: "ci", User: r.user.ID, Project: r.home.ID, Roles: []string{identity.Member}}, "")
	check(t, err)
	again := r.log(t, identity.Login{Token: r.log(t, identity.Login{Token: r.log(t, identity.Login{Credential: cred.ID, Secret: secret})})})
	if s, err := r.Session(again); err != nil || !slices.Equal(s.Roles, []string{identity.Member}) {
		t.Errorf("it has the roles %q, %v", s.Roles, err)
	}
	check(t, r.RemoveCredential(t.Context(), r.user.ID, cred.ID))
	r.over(t, "of a token of a credential that is removed", again)
}

// TestAUserHasSoManySessions: the oldest make room, those of others do not.
func TestAUserHasSoManySessions(t *testing.T) {
	r := newRig(t)
	_, err := r.AddUser(t.Context(), identity.UserEdit{Name: new("bob"), Password: new("opensesame")})
	check(t, err)
	others := r.log(t, identity.Login{User: "bob", Password: "opensesame"})
	const many, kept = 500, 250
	tokens := []string{r.log(t, alice)}
	for len(tokens) < many {
		r.now = r.now.Add(time.Second)
		tokens = append(tokens, r.log(t, identity.Login{Token: tokens[0]}))
	}
	if _, err := r.Session(tokens[0]); err != nil {
		t.Errorf("one ends although there is room: %v", err)
	}
	r.now = r.now.Add(time.Second)
	last := r.log(t, alice)
	for i, token := range slices.Backward(tokens) {
		_, err := r.Session(token)
		switch age := len(tokens) - i; {
		case age <= kept && err != nil:
			t.Fatalf("number %d from the newest is over: %v", age, err)
		case age > kept && err == nil:
			t.Fatalf("number %d from the newest goes on", age)
		}
	}
	for what, token := range map[string]string{"the newest": last, "another user's": others} {
		if _, err := r.Session(token); err != nil {
			t.Errorf("%s is over: %v", what, err)
		}
	}
}

// TestWrongLoginsTakeAsLongAsOneAnother: so nobody learns by the time which users
// and credentials there are.
func TestWrongLoginsTakeAsLongAsOneAnother(t *testing.T) {
	r := newRig(t)
	cred, _, err := r.AddCredential(t.Context(), identity.Credential{Name: "ci", User: r.user.ID, Project: r.home.ID}, "")
	check(t, err)
	disabled, err := r.AddUser(t.Context(), identity.UserEdit{Name: new("carol"), Password: new("opensesame")})
	check(t, err)
	no := false
	_, err = r.EditUser(t.Context(), disabled.ID, identity.UserEdit{Enabled: &no})
	check(t, err)
	r.spoil(t, "dave", func(string) string { return "no hash at all" })
	r.spoil(t, "erin", func(hash string) string { return hash[:strings.LastIndexByte(hash, '$')+1] + "!" })
	quickest := func(l identity.Login) time.Duration {
		least := time.Hour
		for range 3 {
			begun := time.Now()
			if _, _, err := r.Log(t.Context(), l); !fault.Is(err, fault.Denied) {
				t.Fatalf("%s logs in: %v", l.User, err)
			}
			least = min(least, time.Since(begun))
		}
		return least
	}
	wrong := quickest(identity.Login{User: "alice", Password: "guess"})
	const far = 100 // a hash costs ten thousand times what everything else does
	for what, l := range map[string]identity.Login{
		"an unknown user":          {User: "mallory", Password: "guess"},
		"a disabled user":          {User: "carol", Password: "guess"},
		"a user without a hash":    {User: "dave", Password: "guess"},
		"a user with half a hash":  {User: "erin", Password: "guess"},
		"a wrong secret":           {Credential: cred.ID, Secret: "guess"},
		"an unknown credential":    {Credential: "nosuch", Secret: "guess"},
		"a credential of a nobody": {User: "mallory", Credential: "ci", Secret: "guess"},
	} {
		if took := quickest(l); took < wrong/far {
			t.Errorf("%s is found out in %v, a wrong password in %v", what, took, wrong)
		}
	}
}

// spoil makes a user whose stored password is no hash.
func (r *rig) spoil(t *testing.T, name string, how func(string) string) {
	t.Helper()
	u, err := r.AddUser(t.Context(), identity.UserEdit{Name: new(name), Password: new("opensesame")})
	check(t, err)
	key := store.Key{Kind: identity.KindUser, ID: u.ID}
	o, err := r.store.Get(t.Context(), key)
	check(t, err)
	value := strings.Replace(string(o.Value), u.Password, how(u.Password), 1)
	_, err = store.Commit(t.Context(), r.store, store.Tx{Put: []store.Put{{Key: key, Value: []byte(value)}}})
	check(t, err)
	r.open(t)
}

// TestPasswordsOfAnotherCost: what a password cost when it was kept is beside it, and who changes the cost locks nobody out; one that would take all memory is none.
func TestPasswordsOfAnotherCost(t *testing.T) {
	r := newRig(t)
	kept := func(memory, passes uint32, lanes uint8, text string) func(string) string {
		salt := []byte("0123456789abcdef")
		b64 := base64.RawStdEncoding.EncodeToString
		return func(string) string {
			return fmt.Sprintf("$argon2id$v=19$%s$%s$%s", text, b64(salt), b64(argon2.IDKey([]byte("opensesame"), salt, passes, memory, lanes, 32)))
		}
	}
	r.spoil(t, "cheap", kept(64, 1, 1, "m=64,t=1,p=1"))
	r.spoil(t, "wide", kept(1024, 3, 4, "m=1024,t=3,p=4"))
	r.spoil(t, "huge", kept(64, 1, 1, "m=4194304,t=1,p=1"))
	r.spoil(t, "none", kept(64, 1, 1, "m=64,t=0,p=1"))
	for name, want := range map[string]bool{"cheap": true, "wide": true, "huge": false, "none": false} {
		_, _, err := r.Log(t.Context(), identity.Login{User: name, Password: "opensesame"})
		if (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := r.Log(t.Context(), identity.Login{User: name, Password: "guess"}); !fault.Is(err, fault.Denied) {
			t.Errorf("%s, with another password: %v", name, err)
		}
	}
}

// TestCredentialsAreBounded: in number, and in what is told of each.
func TestCredentialsAreBounded(t *testing.T) {
	r := newRig(t)
	add := func(name, description string) error {
		_, _, err := r.AddCredential(t.Context(), identity.Credential{Name: name, Description: description, User: r.user.ID, Project: r.home.ID}, "opensesame")
		return err
	}
	if err := add("long", strings.Repeat("x", 2001)); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "description") {
		t.Errorf("one with a long description: %v", err)
	}
	for i := range 100 {
		check(t, add(strconv.Itoa(i), strings.Repeat("x", 2000)))
	}
	if err := add("one more", ""); !fault.Is(err, fault.Denied) {
		t.Errorf("one more: %v", err)
	}
}

// TestACredentialHasANameOfItsOwn among those of its user: it may be asked for by that.
func TestACredentialHasANameOfItsOwn(t *testing.T) {
	r := newRig(t)
	bob, err := r.AddUser(t.Context(), identity.UserEdit{Name: new("bob"), Password: new("opensesame")})
	check(t, err)
	check(t, r.SetRole(t.Context(), "bob", "home", identity.Member, true))
	for _, c := range []struct {
		user, name string
		code       fault.Code
	}{{r.user.ID, "ci", ""}, {r.user.ID, "ci", fault.Exists}, {bob.ID, "ci", ""}, {r.user.ID, "cd", ""}} {
		_, _, err := r.AddCredential(t.Context(), identity.Credential{Name: c.name, User: c.user, Project: r.home.ID}, "")
		if (err == nil) != (c.code == "") || err != nil && !fault.Is(err, c.code) {
			t.Errorf("%s of %s: %v", c.name, c.user, err)
		}
	}
}

// TestAUserWhoIsDisabledHasNoSession: also where the store says so, and nobody here has seen to it that they ended.
func TestAUserWhoIsDisabledHasNoSession(t *testing.T) {
	r := newRig(t)
	token := r.log(t, alice)
	o, err := r.store.Get(t.Context(), store.Key{Kind: identity.KindUser, ID: r.user.ID})
	check(t, err)
	disabled := strings.Replace(string(o.Value), `"enabled":true`, `"enabled":false`, 1)
	_, err = store.Commit(t.Context(), r.store, store.Tx{Put: []store.Put{{Key: o.Key, Value: []byte(disabled)}}})
	check(t, err)
	r.open(t)
	r.over(t, "of who is disabled", token)
}
