package identity

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// User is who may log in.
type User struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Enabled bool   `json:"enabled"`
	// Password is a hash; empty for who cannot log in with one.
	Password    string `json:"password"`
	Email       string `json:"email,omitempty"`
	Description string `json:"description,omitempty"`
	// Project is the one that the user gets who names none; empty for none.
	Project string `json:"project,omitempty"`
	// Roles are those that the user has, by project.
	Roles map[string][]string `json:"roles,omitempty"`
}

// FindUser finds a user by id or name.
func (s *Service) FindUser(idOrName string) (User, error) {
	return find(s, "user", s.users, idOrName, func(u *User) string { return u.Name })
}

// User finds a user by id alone: a request that names its user by a path means no name.
func (s *Service) User(id string) (User, error) { return byID(s, "user", s.users, id) }

// Users returns all users, by name.
func (s *Service) Users() []User {
	return all(s, s.users, func(*User) bool { return true }, func(u User) string { return u.Name })
}

// UserEdit says what a user is to be; what is nil stays as it is.
type UserEdit struct {
	Name, Password, Email, Description, Project *string
	Enabled                                     *bool
}

// maxText is how long an address or a description may be, in bytes.
const maxText = 2000

// apply makes a user what an edit says.
func (s *Service) apply(u *User, e UserEdit) error {
	if e.Name != nil && *e.Name != u.Name {
		if err := checkName(*e.Name); err != nil {
			return err
		}
		if _, err := s.FindUser(*e.Name); err == nil {
			return fault.New(fault.Exists, "there is a user %q already", *e.Name).At("name")
		}
		u.Name = *e.Name
	}
	for what, text := range map[string]*string{"email": e.Email, "description": e.Description} {
		if text != nil && len(*text) > maxText {
			return fault.New(fault.Invalid, "%s may have %d bytes at most", what, maxText).At(what)
		}
	}
	if e.Password != nil {
		hash, err := s.hasher.hash(*e.Password)
		if err != nil {
			return err
		}
		u.Password = hash
	}
	set(&u.Email, e.Email)
	set(&u.Description, e.Description)
	set(&u.Project, e.Project)
	set(&u.Enabled, e.Enabled)
	return nil
}

// set puts a value in place, if there is one.
func set[T any](where, what *T) {
	if what != nil {
		*where = *what
	}
}

// AddUser makes a user, who is enabled unless the edit says otherwise, and without
// a password can log in as soon as one is given. Exists if the name is taken.
func (s *Service) AddUser(ctx context.Context, e UserEdit) (User, error) {
	done, err := s.mirror.Change(ctx)
	if err != nil {
		return User{}, err
	}
	defer done()
	u := &User{ID: newID(s.cfg.NewUUID()), Enabled: true}
	if e.Name == nil {
		e.Name = new("")
	}
	if err := cmp.Or(checkName(*e.Name), s.apply(u, e)); err != nil {
		return User{}, err
	}
	return *u, put(ctx, s, KindUser, s.users, u.ID, u, time.Time{})
}

// EditUser changes a user. Sessions end of one who is disabled or gets another
// password. Conflict if nobody could administer any more.
func (s *Service) EditUser(ctx context.Context, id string, e UserEdit) (User, error) {
	done, err := s.mirror.Change(ctx)
	if err != nil {
		return User{}, err
	}
	defer done()
	return s.editUser(ctx, id, e)
}

// editUser is EditUser for who has the change.
func (s *Service) editUser(ctx context.Context, id string, e UserEdit) (User, error) {
	u, err := s.FindUser(id)
	if err != nil {
		return User{}, err
	}
	if err := s.apply(&u, e); err != nil {
		return User{}, err
	}
	if err := s.stayAdministered(func(users map[string]*User, _ map[string]*Project) { users[u.ID] = &u }); err != nil {
		return User{}, err
	}
	var ends []string
	if e.Password != nil || !u.Enabled { // a new password ends what the old one began
		ends = s.tokensWhere(func(t *token) bool { return t.User == u.ID })
	}
	if err := put(ctx, s, KindUser, s.users, u.ID, &u, time.Time{}, ends...); err != nil {
		return User{}, err
	}
	return u, nil
}

// ChangePassword gives a user another password in place of the old one, which ends
// all sessions. Denied if the old one is wrong.
func (s *Service) ChangePassword(ctx context.Context, id, old, password string) error {
	was, err := s.FindUser(id)
	if err != nil || !s.Verify(id, old) {
		return ErrDenied()
	}
	done, err := s.mirror.Change(ctx)
	if err != nil {
		return err
	}
	defer done()
	// While the old one was looked at an operator may have put another in its place, which nobody undoes who knows the old one.
	if now, err := s.FindUser(id); err != nil || now.Password != was.Password {
		return ErrDenied()
	}
	_, err = s.editUser(ctx, id, UserEdit{Password: &password})
	return err
}

// RemoveUser removes a user with all sessions and credentials, at once. Conflict if nobody
// could administer any more.
func (s *Service) RemoveUser(ctx context.Context, id string) error {
	done, err := s.mirror.Change(ctx)
	if err != nil {
		return err
	}
	defer done()
	u, err := s.FindUser(id)
	if err != nil {
		return err
	}
	if err := s.stayAdministered(func(users map[string]*User, _ map[string]*Project) { delete(users, u.ID) }); err != nil {
		return err
	}
	tx := store.Tx{Epoch: s.cfg.Epoch, Delete: []store.Key{{Kind: KindUser, ID: u.ID}}}
	creds, tokens := s.Credentials(u.ID), s.tokensWhere(func(t *token) bool { return t.User == u.ID })
	for _, c := range creds {
		tx.Delete = append(tx.Delete, store.Key{Kind: KindCredential, ID: c.ID})
	}
	for _, token := range tokens {
		tx.Delete = append(tx.Delete, store.Key{Kind: KindToken, ID: token})
	}
	return s.commit(ctx, tx, func() {
		delete(s.users, u.ID)
		for _, c := range creds {
			delete(s.creds, c.ID)
		}
		for _, token := range tokens {
			delete(s.tokens, token)
		}
	})
}

// SetRole gives a user a role in a project, or takes it away. Conflict if nobody
// could administer any more.
func (s *Service) SetRole(ctx context.Context, userID, projectID, role string, has bool) error {
	done, err := s.mirror.Change(ctx)
	if err != nil {
		return err
	}
	defer done()
	u, err := s.FindUser(userID)
	if err != nil {
		return err
	}
	p, err := s.FindProject(projectID)
	if err != nil {
		return err
	}
	if !slices.Contains(Roles, role) {
		return fault.New(fault.NotFound, "there is no role %q; there are %s", role, strings.Join(Roles, ", ")).At("role")
	}
	roles := slices.DeleteFunc(slices.Clone(u.Roles[p.ID]), func(r string) bool { return r == role })
	if has {
		roles = append(roles, role)
		slices.Sort(roles)
	}
	u.Roles = maps.Clone(u.Roles)
	if u.Roles == nil {
		u.Roles = map[string][]string{}
	}
	if u.Roles[p.ID] = roles; len(roles) == 0 {
		delete(u.Roles, p.ID)
	}
	if u.Project == "" && has {
		u.Project = p.ID
	}
	if err := s.stayAdministered(func(users map[string]*User, _ map[string]*Project) { users[u.ID] = &u }); err != nil {
		return err
	}
	return put(ctx, s, KindUser, s.users, u.ID, &u, time.Time{})
}

// stayAdministered refuses a change after which nobody could administer who can
// before it.
func (s *Service) stayAdministered(change func(map[string]*User, map[string]*Project)) error {
	s.mu.RLock()
	users, projects := maps.Clone(s.users), maps.Clone(s.projects)
	s.mu.RUnlock()
	if !administered(users, projects) {
		return nil
	}
	if change(users, projects); administered(users, projects) {
		return nil
	}
	return fault.New(fault.Conflict, "This is the last user who can administer: nobody could undo it.").
		WithHint("give another user the role admin first")
}

// administered reports whether somebody can log in as an administrator.
func administered(users map[string]*User, projects map[string]*Project) bool {
	for _, u := range users {
		for project, roles := range u.Roles {
			if p := projects[project]; u.Enabled && u.Password != "" && p != nil && p.Enabled && slices.Contains(roles, Admin) {
				return true
			}
		}
	}
	return false
}
