package identity

import (
	"context"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// Login is what a client shows to get a token: one of a user with a password,
// a credential with a secret, or a token.
type Login struct {
	// User is an id or a name.
	User, Password string
	// Credential is an id, or with a user a name.
	Credential, Secret string
	Token              string
	// Project is the id or name of the project to work in; empty for the user's
	// own. Unscoped asks for none.
	Project  string
	Unscoped bool
}

// ErrDenied is the answer to whatever does not log in: it tells no more.
func ErrDenied() error {
	return fault.New(fault.Denied, "The request you have made requires authentication.")
}

// Log lets somebody in, and returns the session with its token. Denied for
// everything that is wrong.
func (s *Service) Log(ctx context.Context, l Login) (*Session, string, error) {
	if s.mirror.Unsure() { // the password may be another one by now
		done, err := s.mirror.Change(ctx)
		if err != nil {
			return nil, "", err
		}
		done()
	}
	t := &token{AuditID: newSecret()[:22]}
	user, err := s.check(&l, t)
	if err != nil {
		return nil, "", err
	}
	t.User = user.ID
	if t.Project, err = s.scope(user, &l); err != nil {
		return nil, "", err
	}
	t.Issued = s.cfg.Now().UTC().Truncate(time.Microsecond)
	if t.Expires.IsZero() {
		t.Expires = t.Issued.Add(TokenLife)
	}
	if err := s.sweep(ctx, user.ID); err != nil {
		return nil, "", err
	}
	defer s.mirror.Share()()
	// While the password was looked at another one may have taken its place.
	if now, err := s.FindUser(user.ID); err != nil || !now.Enabled || now.Password != user.Password {
		return nil, "", ErrDenied()
	}
	text := newSecret()
	if err := put(ctx, s, KindToken, s.tokens, hashOf(text), t, t.Expires); err != nil {
		return nil, "", err
	}
	session, err := s.Session(text)
	return session, text, err
}

// Verify reports whether a user, by id or name, may log in with a password.
func (s *Service) Verify(user, password string) bool {
	_, err := s.check(&Login{User: user, Password: password}, new(token))
	return err == nil
}

// check finds out who shows what, and notes in the token how.
func (s *Service) check(l *Login, t *token) (User, error) {
	switch {
	case l.Token != "":
		old, err := s.Session(l.Token)
		if err != nil {
			return User{}, ErrDenied()
		}
		// A token that is made from another ends with it.
		// How often it was renewed is no method: the list would have no end.
		t.Methods = append([]string{"token"}, slices.DeleteFunc(slices.Clone(old.Methods), func(m string) bool { return m == "token" })...)
		t.Expires, t.Credential = old.Expires, old.credential
		if old.credential != "" { // it is for one project
			l.Project, l.Unscoped = old.Project.ID, false
		}
		return old.User, nil
	case l.Credential != "":
		return s.checkCredential(l, t)
	}
	user, err := s.FindUser(l.User)
	if !s.hasher.matches(l.Password, user.Password) || err != nil || !user.Enabled {
		return User{}, ErrDenied()
	}
	t.Methods = []string{"password"}
	return user, nil
}

func (s *Service) checkCredential(l *Login, t *token) (User, error) {
	owner, _ := s.FindUser(l.User)
	s.mu.RLock()
	var found Credential
	for id, c := range s.creds {
		if id == l.Credential || owner.ID != "" && c.User == owner.ID && c.Name == l.Credential {
			found = *c
		}
	}
	s.mu.RUnlock()
	user, err := s.FindUser(found.User)
	if !s.hasher.matches(l.Secret, found.Secret) || err != nil || !user.Enabled || found.over(s.cfg.Now()) {
		return User{}, ErrDenied()
	}
	t.Methods, t.Credential = []string{"application_credential"}, found.ID
	l.Project, l.Unscoped = found.Project, false
	return user, nil
}

// scope finds the project to work in.
func (s *Service) scope(user User, l *Login) (string, error) {
	if l.Unscoped || l.Project == "" && user.Project == "" {
		return "", nil
	}
	want := l.Project
	if want == "" {
		want = user.Project
	}
	p, err := s.FindProject(want)
	if err != nil || !p.Enabled || len(user.Roles[p.ID]) == 0 {
		if l.Project == "" {
			return "", nil // the user's own project is gone
		}
		return "", ErrDenied()
	}
	return p.ID, nil
}
