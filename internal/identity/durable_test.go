package identity_test

import (
	"context"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/identity"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

// TestNothingIsKnownThatIsNotStored: a change that the store did not take is not in
// force, neither for who reads accounts nor for who logs in.
func TestNothingIsKnownThatIsNotStored(t *testing.T) {
	r := newRig(t)
	cred, _, err := r.AddCredential(t.Context(), identity.Credential{Name: "ci", User: r.user.ID, Project: r.home.ID}, "")
	check(t, err)
	failing := faultstore.New(r.store)
	r.store = failing
	r.open(t)
	token := r.log(t, alice)
	known := func() []any { return []any{r.Users(), r.Projects(), r.Credentials(r.user.ID)} }
	before := known()
	over := failing.Outage(fault.New(fault.Unavailable, "the disk is full"))
	for what, change := range map[string]func() error{
		"a user": func() error {
			_, err := r.AddUser(t.Context(), identity.UserEdit{Name: new("bob"), Password: new("x")})
			return err
		},
		"a user's change": func() error {
			_, err := r.EditUser(t.Context(), "alice", identity.UserEdit{Password: new("other"), Description: new("d")})
			return err
		},
		"a user's end": func() error { return r.RemoveUser(t.Context(), "alice") },
		"a role":       func() error { return r.SetRole(t.Context(), "alice", "home", identity.Admin, true) },
		"a role's end": func() error { return r.SetRole(t.Context(), "alice", "home", identity.Member, false) },
		"a project": func() error {
			_, err := r.AddProject(t.Context(), identity.ProjectEdit{Name: new("second")})
			return err
		},
		"a project's change": func() error {
			_, err := r.EditProject(t.Context(), "home", identity.ProjectEdit{Name: new("house")})
			return err
		},
		"a project's end": func() error { return r.RemoveProject(t.Context(), "home") },
		"a credential": func() error {
			_, _, err := r.AddCredential(t.Context(), identity.Credential{Name: "cd", User: r.user.ID, Project: r.home.ID}, "")
			return err
		},
		"a credential's end": func() error { return r.RemoveCredential(t.Context(), r.user.ID, cred.ID) },
		"a session": func() error {
			_, token, err := r.Log(t.Context(), alice)
			if token != "" {
				t.Error("a token is told that is not stored")
			}
			return err
		},
		"a session's end": func() error { return r.Revoke(t.Context(), token) },
	} {
		if err := change(); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", what, err)
		}
		if now := known(); !reflect.DeepEqual(now, before) {
			t.Errorf("%s: %+v, want %+v", what, now, before)
		}
		if _, err := r.Session(token); err != nil {
			t.Errorf("%s: the session is over: %v", what, err)
		}
	}
	over()
	if r.log(t, alice) == "" {
		t.Error("alice cannot log in afterwards")
	}
}

// TestANewPasswordAndTheEndOfSessionsAreOne: whatever the store does to the change,
// either both are there or neither; also for who was disabled.
func TestANewPasswordAndTheEndOfSessionsAreOne(t *testing.T) {
	no := false
	for what, edit := range map[string]identity.UserEdit{"a password": {Password: new("sesameopen")}, "disabled": {Enabled: &no}} {
		for n := range 3 { // the transaction that is lost, and all behind it
			r := newRig(t)
			token := r.log(t, alice)
			failing := faultstore.New(r.store)
			beneath := r.store
			r.store = failing
			r.open(t)
			failing.Inject(faultstore.Fault{Do: faultstore.CrashBefore, Skip: n})
			_, err := r.EditUser(t.Context(), "alice", edit)
			r.store = beneath
			r.open(t) // the controller starts again
			_, before := r.Session(token)
			if _, _, login := r.Log(t.Context(), alice); (login == nil) != (before == nil) || (err == nil) != (before != nil) {
				t.Errorf("%s, %d transactions are stored: the old password says %v, the old session %v, and the change ended with %v", what, n, login, before, err)
			}
			if yes := true; what == "disabled" && before != nil {
				_, err := r.EditUser(t.Context(), "alice", identity.UserEdit{Enabled: &yes})
				check(t, err)
				r.over(t, "when the user is enabled again", token)
			}
		}
	}
}

// TestALoginThatIsOvertakenIsDenied: a password that was right when it was looked at
// begins no session if it is changed before that is written down.
func TestALoginThatIsOvertakenIsDenied(t *testing.T) {
	no := false
	for what, overtake := range map[string]func(*rig) error{
		"a new password": func(r *rig) error {
			_, err := r.EditUser(t.Context(), "alice", identity.UserEdit{Password: new("sesameopen")})
			return err
		},
		"disabled": func(r *rig) error {
			_, err := r.EditUser(t.Context(), "alice", identity.UserEdit{Enabled: &no})
			return err
		},
		"removed": func(r *rig) error { return r.RemoveUser(t.Context(), "alice") },
	} {
		r := newRig(t)
		r.asked = func() { check(t, overtake(r)) }
		if _, token, err := r.Log(t.Context(), alice); !fault.Is(err, fault.Denied) || token != "" {
			t.Errorf("%s: %v", what, err)
		}
		if r.asked != nil {
			t.Error("nothing overtook it")
		}
	}
}

// TestAResetIsNotUndone: who knows the old password, and has it changed all the time, does not put his in the place of the one that an operator gave.
func TestAResetIsNotUndone(t *testing.T) {
	r := newRig(t)
	var all sync.WaitGroup
	begun, over := make(chan bool, 1), make(chan bool)
	for range 3 {
		all.Go(func() {
			for tries := 0; tries < 3; {
				select {
				case <-over:
					tries++ // some that began before the reset, and some after it
				default:
				}
				if r.ChangePassword(t.Context(), r.user.ID, "opensesame", "opensesame") == nil {
					select {
					case begun <- true:
					default:
					}
				}
			}
		})
	}
	<-begun
	_, err := r.EditUser(t.Context(), r.user.ID, identity.UserEdit{Password: new("of the operator")})
	close(over)
	all.Wait()
	check(t, err)
	if r.Verify(r.user.ID, "opensesame") || !r.Verify(r.user.ID, "of the operator") {
		t.Error("the old password is good again")
	}
}

// TestALoginWaitsForWhatIsBeingStored: while a new password is stored the old one begins no session, which would not end with the others.
func TestALoginWaitsForWhatIsBeingStored(t *testing.T) {
	r := newRig(t)
	slow := faultstore.New(r.store)
	r.store = slow
	r.open(t)
	puts := func(kind store.Kind) func(store.Tx) bool {
		return func(tx store.Tx) bool { return len(tx.Put) > 0 && tx.Put[0].Key.Kind == kind }
	}
	gate, begun := make(chan struct{}), make(chan struct{}, 1)
	held := slow.Inject(faultstore.Fault{Do: faultstore.Hold, Gate: gate, When: puts(identity.KindUser)})
	changed, answered := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := r.EditUser(t.Context(), "alice", identity.UserEdit{Password: new("sesameopen")})
		changed <- err
	}()
	<-held
	slow.Inject(faultstore.Fault{When: func(tx store.Tx) bool {
		if puts(identity.KindToken)(tx) {
			begun <- struct{}{}
		}
		return false
	}})
	go func() {
		_, _, err := r.Log(t.Context(), alice)
		answered <- err
	}()
	select {
	case <-begun:
	case <-time.After(300 * time.Millisecond): // it would have begun by then
	}
	close(gate)
	check(t, <-changed)
	if err := <-answered; !fault.Is(err, fault.Denied) {
		t.Errorf("the old password is answered with %v", err)
	}
}

// TestADisabledProjectIsClosed: nobody logs in to it, and its sessions are good for
// nothing until it is enabled.
func TestADisabledProjectIsClosed(t *testing.T) {
	r := newRig(t)
	cred, secret, err := r.AddCredential(t.Context(), identity.Credential{Name: "ci", User: r.user.ID, Project: r.home.ID}, "")
	check(t, err)
	byCredential := identity.Login{Credential: cred.ID, Secret: secret}
	tokens := []string{r.log(t, alice), r.log(t, byCredential)}
	enable := func(yes bool) {
		_, err := r.EditProject(t.Context(), "home", identity.ProjectEdit{Enabled: &yes})
		check(t, err)
	}
	enable(false)
	for _, token := range tokens {
		r.over(t, "of a project that is disabled", token)
	}
	for what, login := range map[string]identity.Login{"a password": alice, "a secret": byCredential, "a token": {Token: r.log(t, identity.Login{User: "alice", Password: "opensesame", Unscoped: true}), Project: "home"}} {
		if _, _, err := r.Log(t.Context(), login); !fault.Is(err, fault.Denied) {
			t.Errorf("by %s: %v", what, err)
		}
	}
	if s, err := r.Session(r.log(t, identity.Login{User: "alice", Password: "opensesame"})); err != nil || s.Project != nil {
		t.Errorf("whose own it is, and who names none, has a session for %+v, %v", s.Project, err)
	}
	enable(true)
	for _, token := range tokens {
		if _, err := r.Session(token); err != nil {
			t.Errorf("when it is enabled again: %v", err)
		}
	}
}

// TestWhatIsStoredIsInForce: also where the store could not say so, and where who asked has left.
func TestWhatIsStoredIsInForce(t *testing.T) {
	left, leave := context.WithCancel(t.Context())
	leave()
	for what, c := range map[string]struct {
		ctx   context.Context //nolint:containedctx // that of one call
		fault []faultstore.Fault
		want  fault.Code
	}{
		"who asked has left":         {left, nil, ""},
		"the store could not say so": {t.Context(), []faultstore.Fault{{Do: faultstore.FailAfter}}, fault.Unavailable},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t)
			failing := faultstore.New(r.store)
			r.store = failing
			r.open(t)
			token := r.log(t, alice)
			for _, f := range c.fault {
				failing.Inject(f)
			}
			if _, err := r.EditUser(c.ctx, "alice", identity.UserEdit{Password: new("other")}); fault.CodeOf(err) != c.want {
				t.Fatal(err)
			}
			if _, err := r.Session(token); err == nil {
				t.Error("the session with the old password goes on")
			}
			if r.Verify("alice", alice.Password) || !r.Verify("alice", "other") {
				t.Error("the old password counts")
			}
			for _, f := range c.fault {
				failing.Inject(f)
			}
			if _, err := r.EditUser(c.ctx, "alice", identity.UserEdit{Enabled: new(false)}); fault.CodeOf(err) != c.want {
				t.Fatal(err)
			}
			if u, err := r.FindUser("alice"); err != nil || u.Enabled {
				t.Errorf("she is %+v, %v", u, err)
			}
		})
	}
}

// TestNobodyIsLetInUponWhatIsNotKnown: where a new password may be stored and the store cannot be read, the old one lets nobody in, also not when it can be read again.
func TestNobodyIsLetInUponWhatIsNotKnown(t *testing.T) {
	r := newRig(t)
	failing := faultstore.New(r.store)
	r.store = failing
	r.open(t)
	failing.Inject(faultstore.Fault{Do: faultstore.FailAfter})
	mend := failing.FailReads(faultstore.ReadFault{})
	if _, err := r.EditUser(t.Context(), "alice", identity.UserEdit{Password: new("other")}); !fault.Is(err, fault.Unavailable) {
		t.Fatal(err)
	}
	if _, _, err := r.Log(t.Context(), alice); !fault.Is(err, fault.Unavailable) {
		t.Errorf("while the store cannot be read: %v", err)
	}
	mend()
	if _, _, err := r.Log(t.Context(), alice); !fault.Is(err, fault.Denied) {
		t.Errorf("with the old password: %v", err)
	}
	if now := (identity.Login{User: alice.User, Password: "other", Project: alice.Project}); r.log(t, now) == "" {
		t.Error("the new password lets nobody in")
	}
}

// TestNothingIsChangedInAnothersTerm: by the controller that led before, and does not know yet that another leads.
func TestNothingIsChangedInAnothersTerm(t *testing.T) {
	r := newRig(t)
	lease, err := r.store.AcquireLease(t.Context(), "leader", "me", time.Hour)
	check(t, err)
	r.epoch = lease.Epoch
	r.open(t)
	empty, err := r.AddProject(t.Context(), identity.ProjectEdit{Name: new("empty")})
	check(t, err)
	token := r.log(t, alice)
	credential, _, err := r.AddCredential(t.Context(), identity.Credential{Name: "robot", User: r.user.ID, Project: r.home.ID}, "")
	check(t, err)
	check(t, r.store.ReleaseLease(t.Context(), lease))
	for what, change := range map[string]func() error{
		"a project": func() error {
			_, err := r.AddProject(t.Context(), identity.ProjectEdit{Name: new("more")})
			return err
		},
		"a project's name": func() error {
			_, err := r.EditProject(t.Context(), r.home.ID, identity.ProjectEdit{Name: new("yard")})
			return err
		},
		"a project's end": func() error { return r.RemoveProject(t.Context(), empty.ID) },
		"a user": func() error {
			_, err := r.AddUser(t.Context(), identity.UserEdit{Name: new("bob")})
			return err
		},
		"a password": func() error {
			_, err := r.EditUser(t.Context(), r.user.ID, identity.UserEdit{Password: new("sesameopen")})
			return err
		},
		"a user's end": func() error { return r.RemoveUser(t.Context(), r.user.ID) },
		"a role":       func() error { return r.SetRole(t.Context(), r.user.ID, r.home.ID, identity.Reader, true) },
		"a token": func() error {
			_, _, err := r.Log(t.Context(), alice)
			return err
		},
		"a token's end": func() error { return r.Revoke(t.Context(), token) },
		"a credential": func() error {
			_, _, err := r.AddCredential(t.Context(), identity.Credential{Name: "other", User: r.user.ID, Project: r.home.ID}, "")
			return err
		},
		"a credential's end": func() error { return r.RemoveCredential(t.Context(), r.user.ID, credential.ID) },
	} {
		if err := change(); !fault.Is(err, fault.Fenced) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := r.Session(token); err != nil || len(r.Projects()) != 2 || len(r.Users()) != 1 || len(r.Credentials(r.user.ID)) != 1 {
		t.Errorf("there are %v, %v and %v; the token: %v", r.Projects(), r.Users(), r.Credentials(r.user.ID), err)
	}
}
