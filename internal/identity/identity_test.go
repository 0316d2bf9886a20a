package identity_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/identity"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/testkit"
)

// rig is a service whose clock the test holds.
type rig struct {
	*identity.Service
	store   store.Store
	now     time.Time
	user    identity.User
	home    identity.Project
	servers map[string]int // how many a project owns
	epoch   int64
	// counting is called before they are counted, and asked once, when the time is asked
	// for.
	counting, asked func()
}

func (r *rig) count(project string) int {
	r.counting()
	return r.servers[project]
}

func (r *rig) clock() time.Time {
	if asked := r.asked; asked != nil {
		r.asked = nil
		asked()
	}
	return r.now
}

func (r *rig) open(t *testing.T) {
	t.Helper()
	var err error
	r.Service, err = identity.Open(t.Context(), identity.Config{Store: r.store, Epoch: r.epoch, Now: r.clock, NewUUID: testkit.NewUUID,
		Servers: r.count, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	check(t, err)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newRig(t *testing.T) *rig {
	t.Helper()
	s, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	r := &rig{store: s, now: time.Unix(1e9, 0), servers: map[string]int{}, counting: func() {}}
	r.open(t)
	r.home, err = r.AddProject(t.Context(), identity.ProjectEdit{Name: new("home")})
	check(t, err)
	r.user, err = r.AddUser(t.Context(), identity.UserEdit{Name: new("alice"), Password: new("opensesame")})
	check(t, err)
	check(t, r.SetRole(t.Context(), r.user.ID, r.home.ID, identity.Member, true))
	return r
}

var alice = identity.Login{User: "alice", Password: "opensesame", Project: "home"}

func (r *rig) log(t *testing.T, l identity.Login) string {
	t.Helper()
	_, token, err := r.Log(t.Context(), l)
	check(t, err)
	return token
}

func TestLogins(t *testing.T) {
	r := newRig(t)
	_, err := r.AddProject(t.Context(), identity.ProjectEdit{Name: new("other")})
	check(t, err)
	cred, secret, err := r.AddCredential(t.Context(), identity.Credential{Name: "ci", User: r.user.ID, Project: r.home.ID}, "")
	check(t, err)
	for what, c := range map[string]struct {
		login   identity.Login
		ok      bool
		project string
	}{
		"password":            {alice, true, "home"},
		"by ids":              {identity.Login{User: r.user.ID, Password: "opensesame", Project: r.home.ID}, true, "home"},
		"own project":         {identity.Login{User: "alice", Password: "opensesame"}, true, "home"},
		"no project":          {identity.Login{User: "alice", Password: "opensesame", Unscoped: true}, true, ""},
		"wrong password":      {identity.Login{User: "alice", Password: "opensesame2"}, false, ""},
		"no password":         {identity.Login{User: "alice"}, false, ""},
		"unknown user":        {identity.Login{User: "mallory", Password: "opensesame"}, false, ""},
		"long password":       {identity.Login{User: "alice", Password: strings.Repeat("x", 1<<20)}, false, ""},
		"project of others":   {identity.Login{User: "alice", Password: "opensesame", Project: "other"}, false, ""},
		"credential":          {identity.Login{Credential: cred.ID, Secret: secret}, true, "home"},
		"credential by name":  {identity.Login{User: "alice", Credential: "ci", Secret: secret}, true, "home"},
		"credential, no user": {identity.Login{Credential: "ci", Secret: secret}, false, ""},
		"wrong secret":        {identity.Login{Credential: cred.ID, Secret: "x"}, false, ""},
		"token":               {identity.Login{Token: r.log(t, alice), Project: "home"}, true, "home"},
		"wrong token":         {identity.Login{Token: "x"}, false, ""},
	} {
		t.Run(what, func(t *testing.T) {
			s, token, err := r.Log(t.Context(), c.login)
			if !c.ok {
				if !fault.Is(err, fault.Denied) || token != "" {
					t.Errorf("got %v", err)
				}
				return
			}
			check(t, err)
			project := ""
			if s.Project != nil {
				project = s.Project.Name
			}
			if again, err := r.Session(token); err != nil || again.User.ID != r.user.ID || project != c.project {
				t.Errorf("%+v, project %q, %v", again, project, err)
			}
		})
	}
}

func TestSessionsEnd(t *testing.T) {
	for what, end := range map[string]func(*rig, string) error{
		"revoked": func(r *rig, token string) error { return r.Revoke(t.Context(), token) },
		"over":    func(r *rig, _ string) error { r.now = r.now.Add(identity.TokenLife); return nil },
		"user disabled": func(r *rig, _ string) error {
			no := false
			_, err := r.EditUser(t.Context(), "alice", identity.UserEdit{Enabled: &no})
			return err
		},
		"new password": func(r *rig, _ string) error {
			p := "sesameopen"
			_, err := r.EditUser(t.Context(), "alice", identity.UserEdit{Password: &p})
			return err
		},
		"user removed":    func(r *rig, _ string) error { return r.RemoveUser(t.Context(), "alice") },
		"project removed": func(r *rig, _ string) error { return r.RemoveProject(t.Context(), "home") },
		"role taken":      func(r *rig, _ string) error { return r.SetRole(t.Context(), "alice", "home", identity.Member, false) },
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t)
			token := r.log(t, alice)
			if _, err := r.Session(token); err != nil {
				t.Fatal(err)
			}
			check(t, end(r, token))
			if _, err := r.Session(token); !fault.Is(err, fault.Denied) {
				t.Errorf("the session goes on: %v", err)
			}
			r.open(t)
			if _, err := r.Session(token); !fault.Is(err, fault.Denied) {
				t.Errorf("after a restart the session goes on: %v", err)
			}
		})
	}
}

func TestSessionsSurviveARestartAndTheStoreHoldsNoSecrets(t *testing.T) {
	r := newRig(t)
	token := r.log(t, alice)
	_, secret, err := r.AddCredential(t.Context(), identity.Credential{Name: "ci", User: r.user.ID, Project: r.home.ID}, "")
	check(t, err)
	r.open(t)
	if _, err := r.Session(token); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	for _, kind := range []store.Kind{identity.KindUser, identity.KindProject, identity.KindToken, identity.KindCredential} {
		for o, err := range r.store.List(t.Context(), kind, store.Options{}) {
			check(t, err)
			for _, hidden := range []string{token, secret, alice.Password} {
				if strings.Contains(o.ID+string(o.Value), hidden) {
					t.Errorf("a %s holds a secret", kind)
				}
			}
		}
	}
}

func TestNamesAreUnique(t *testing.T) {
	r := newRig(t)
	if _, err := r.AddUser(t.Context(), identity.UserEdit{Name: new("alice"), Password: new("x")}); !fault.Is(err, fault.Exists) {
		t.Errorf("a second alice: %v", err)
	}
	if _, err := r.AddProject(t.Context(), identity.ProjectEdit{Name: new("home")}); !fault.Is(err, fault.Exists) {
		t.Errorf("a second home: %v", err)
	}
	for _, name := range []string{"", "a\x00b", strings.Repeat("x", 256)} {
		if _, err := r.AddUser(t.Context(), identity.UserEdit{Name: new(name), Password: new("x")}); !fault.Is(err, fault.Invalid) {
			t.Errorf("user %q: %v", name, err)
		}
	}
	for name, ok := range map[string]bool{strings.Repeat("ν", 64): true, strings.Repeat("x", 65): false} {
		if _, err := r.AddProject(t.Context(), identity.ProjectEdit{Name: new(name)}); ok != (err == nil) || !ok && !fault.Is(err, fault.Invalid) {
			t.Errorf("a project with %d characters: %v", len([]rune(name)), err)
		}
	}
}
