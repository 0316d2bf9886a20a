// Package identity keeps the users of the Compute API, their projects and
// roles, and the tokens by which their requests are known.
//
// Invariants:
//   - Passwords and secrets are stored as argon2id hashes, tokens as SHA-256: who
//     reads the store can log in as nobody.
//   - A token is worth what its user is: it ends with the user, the project and
//     the user's role there.
//   - Nothing here, and no error of it, holds a password or a token.
package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// The kinds of objects that are kept in the store.
const (
	KindUser       store.Kind = "user"
	KindProject    store.Kind = "project"
	KindToken      store.Kind = "token"
	KindCredential store.Kind = "application-credential"
)

// Roles.
const (
	Member = "member"
	Reader = "reader"
	Admin  = "admin"
)

// Roles lists all roles.
var Roles = []string{Admin, Member, Reader}

// TokenLife is how long a token is good for.
const TokenLife = 12 * time.Hour

// User is who may log in.
type User struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Enabled bool   `json:"enabled"`
	// Password is a hash.
	Password string `json:"password"`
	// Project is the one that the user gets who names none; empty for none.
	Project string `json:"project,omitempty"`
	// Roles are those that the user has, by project.
	Roles map[string][]string `json:"roles,omitempty"`
}

// Project owns servers.
type Project struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Enabled     bool   `json:"enabled"`
}

// Credential is an application credential: it logs its user in to one project,
// with a secret of its own.
type Credential struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	User        string `json:"user"`
	Project     string `json:"project"`
	Secret      string `json:"secret"`
	// Roles are those that its sessions have, as far as the user has them too.
	Roles   []string  `json:"roles,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
}

// over reports whether the credential is good no more.
func (c *Credential) over(now time.Time) bool { return !c.Expires.IsZero() && !now.Before(c.Expires) }

// token is a token as it is stored, under the hash of its text.
type token struct {
	User    string    `json:"user"`
	Project string    `json:"project,omitempty"`
	Methods []string  `json:"methods"`
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires"`
	// Credential is the application credential that it came from.
	Credential string `json:"credential,omitempty"`
	AuditID    string `json:"audit_id"`
}

// Session is what a token stands for.
type Session struct {
	User User
	// Project is nil for a session without one.
	Project *Project
	Roles   []string
	Methods []string
	Issued  time.Time
	Expires time.Time
	AuditID string

	credential string // the id of the one that it came from
}

// Admin reports whether the session may administer.
func (s *Session) Admin() bool { return slices.Contains(s.Roles, Admin) }

// Config is what a service needs.
type Config struct {
	Store   store.Store
	Epoch   int64
	Now     func() time.Time
	NewUUID func() string
	Log     *slog.Logger
}

// Service keeps accounts and tokens.
type Service struct {
	cfg    Config
	hasher hasher

	changing sync.Mutex // one change at a time
	mu       sync.RWMutex
	users    map[string]*User
	projects map[string]*Project
	creds    map[string]*Credential
	tokens   map[string]*token // by hash
}

// Open loads what there is.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	s := &Service{cfg: cfg, hasher: newHasher(), users: map[string]*User{}, projects: map[string]*Project{},
		creds: map[string]*Credential{}, tokens: map[string]*token{}}
	return s, errors.Join(load(ctx, s, KindUser, s.users), load(ctx, s, KindProject, s.projects),
		load(ctx, s, KindCredential, s.creds), load(ctx, s, KindToken, s.tokens))
}

func load[T any](ctx context.Context, s *Service, kind store.Kind, into map[string]*T) error {
	for o, err := range s.cfg.Store.List(ctx, kind, store.Options{}) {
		if err != nil {
			return err
		}
		v := new(T)
		if err := json.Unmarshal(o.Value, v); err != nil {
			s.cfg.Log.Error("a stored account cannot be read and is set aside", "kind", kind, "id", o.ID)
			continue
		}
		into[o.ID] = v
	}
	return nil
}

// put makes an object durable, and then known.
func put[T any](ctx context.Context, s *Service, kind store.Kind, into map[string]*T, id string, v *T, at time.Time) error {
	value, err := json.Marshal(v)
	if err != nil {
		return fault.New(fault.Internal, "an account that cannot be written: %w", err)
	}
	p := store.Put{Key: store.Key{Kind: kind, ID: id}, Value: value}
	if !at.IsZero() {
		p.At = at.UnixMicro()
	}
	if _, err := store.Commit(ctx, s.cfg.Store, store.Tx{Epoch: s.cfg.Epoch, Put: []store.Put{p}}); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	into[id] = v
	return nil
}

func remove[T any](ctx context.Context, s *Service, kind store.Kind, from map[string]*T, ids ...string) error {
	tx := store.Tx{Epoch: s.cfg.Epoch}
	for _, id := range ids {
		tx.Delete = append(tx.Delete, store.Key{Kind: kind, ID: id})
	}
	if _, err := store.Commit(ctx, s.cfg.Store, tx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		delete(from, id)
	}
	return nil
}

func newID(uuid string) string { return strings.ReplaceAll(uuid, "-", "") }

// maxName is how long the name of a user or a project may be, in bytes.
const maxName = 255

func checkName(name string) error {
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }) {
		return fault.New(fault.Invalid, "a name must have 1 to %d bytes and no control characters", maxName).At("name")
	}
	return nil
}

// AddProject makes a project. Exists if the name is taken.
func (s *Service) AddProject(ctx context.Context, name, description string) (Project, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := checkName(name); err != nil {
		return Project{}, err
	}
	if _, err := s.FindProject(name); err == nil {
		return Project{}, fault.New(fault.Exists, "there is a project %q already", name).At("name")
	}
	p := &Project{ID: newID(s.cfg.NewUUID()), Name: name, Description: description, Enabled: true}
	return *p, put(ctx, s, KindProject, s.projects, p.ID, p, time.Time{})
}

// RemoveProject removes a project; its servers stay, for administrators to
// remove.
func (s *Service) RemoveProject(ctx context.Context, id string) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	p, err := s.FindProject(id)
	if err != nil {
		return err
	}
	return remove(ctx, s, KindProject, s.projects, p.ID)
}

// AddUser makes a user. Exists if the name is taken.
func (s *Service) AddUser(ctx context.Context, name, password string) (User, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := checkName(name); err != nil {
		return User{}, err
	}
	if _, err := s.FindUser(name); err == nil {
		return User{}, fault.New(fault.Exists, "there is a user %q already", name).At("name")
	}
	hash, err := s.hasher.hash(password)
	if err != nil {
		return User{}, err
	}
	u := &User{ID: newID(s.cfg.NewUUID()), Name: name, Enabled: true, Password: hash}
	return *u, put(ctx, s, KindUser, s.users, u.ID, u, time.Time{})
}

// Edit is a change of a user; what is nil stays.
type Edit struct {
	Password *string
	Enabled  *bool
	Project  *string
}

// EditUser changes a user. Sessions of one who is disabled end.
func (s *Service) EditUser(ctx context.Context, id string, e Edit) (User, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	u, err := s.FindUser(id)
	if err != nil {
		return User{}, err
	}
	if e.Password != nil {
		if u.Password, err = s.hasher.hash(*e.Password); err != nil {
			return User{}, err
		}
	}
	if e.Enabled != nil {
		u.Enabled = *e.Enabled
	}
	if e.Project != nil {
		u.Project = *e.Project
	}
	if err := put(ctx, s, KindUser, s.users, u.ID, &u, time.Time{}); err != nil {
		return User{}, err
	}
	if e.Password == nil {
		return u, nil
	}
	return u, s.revokeWhere(ctx, func(t *token) bool { return t.User == u.ID }) // a new password ends what the old one began
}

// RemoveUser removes a user with all sessions and credentials.
func (s *Service) RemoveUser(ctx context.Context, id string) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	u, err := s.FindUser(id)
	if err != nil {
		return err
	}
	if err := remove(ctx, s, KindUser, s.users, u.ID); err != nil {
		return err
	}
	var creds []string
	for _, c := range s.Credentials(u.ID) {
		creds = append(creds, c.ID)
	}
	return errors.Join(remove(ctx, s, KindCredential, s.creds, creds...), s.revokeWhere(ctx, func(t *token) bool { return t.User == u.ID }))
}

// SetRole gives a user a role in a project, or takes it away.
func (s *Service) SetRole(ctx context.Context, userID, projectID, role string, has bool) error {
	s.changing.Lock()
	defer s.changing.Unlock()
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
	return put(ctx, s, KindUser, s.users, u.ID, &u, time.Time{})
}

func find[T any](s *Service, what string, in map[string]*T, idOrName string, name func(*T) string) (T, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if v := in[idOrName]; v != nil {
		return *v, nil
	}
	for _, v := range in {
		if name(v) == idOrName {
			return *v, nil
		}
	}
	var none T
	return none, fault.New(fault.NotFound, "Could not find %s: %s.", what, fault.Clip(idOrName, maxName))
}

// FindUser finds a user by id or name.
func (s *Service) FindUser(idOrName string) (User, error) {
	return find(s, "user", s.users, idOrName, func(u *User) string { return u.Name })
}

// FindProject finds a project by id or name.
func (s *Service) FindProject(idOrName string) (Project, error) {
	return find(s, "project", s.projects, idOrName, func(p *Project) string { return p.Name })
}

func all[T any](s *Service, in map[string]*T, keep func(*T) bool, name func(T) string) []T {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := []T{}
	for _, v := range in {
		if keep(v) {
			out = append(out, *v)
		}
	}
	slices.SortFunc(out, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	return out
}

// Users returns all users, by name.
func (s *Service) Users() []User {
	return all(s, s.users, func(*User) bool { return true }, func(u User) string { return u.Name })
}

// Projects returns all projects, by name.
func (s *Service) Projects() []Project {
	return all(s, s.projects, func(*Project) bool { return true }, func(p Project) string { return p.Name })
}

// ProjectsOf returns the projects in which a user has a role, by name.
func (s *Service) ProjectsOf(u User) []Project {
	return all(s, s.projects, func(p *Project) bool { return p.Enabled && len(u.Roles[p.ID]) > 0 }, func(p Project) string { return p.Name })
}

// Credentials returns the application credentials of a user, by name.
func (s *Service) Credentials(user string) []Credential {
	return all(s, s.creds, func(c *Credential) bool { return c.User == user }, func(c Credential) string { return c.Name })
}

// AddCredential makes an application credential, and returns its secret: the
// one that was given, or a random one. Without roles it has all that its user
// has in the project. Invalid for roles that the user does not have.
func (s *Service) AddCredential(ctx context.Context, c Credential, secret string) (Credential, string, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := checkName(c.Name); err != nil {
		return c, "", err
	}
	if slices.ContainsFunc(s.Credentials(c.User), func(o Credential) bool { return o.Name == c.Name }) {
		return c, "", fault.New(fault.Exists, "there is an application credential %q already", c.Name).At("name")
	}
	owner, err := s.FindUser(c.User)
	if err != nil {
		return c, "", err
	}
	has := owner.Roles[c.Project]
	if c.Roles == nil {
		c.Roles = has
	}
	for _, role := range c.Roles {
		if !slices.Contains(has, role) {
			return c, "", fault.New(fault.Invalid, "Could not find role assignment with role: %s.", fault.Clip(role, maxName)).At("roles")
		}
	}
	if secret == "" {
		secret = newSecret()
	}
	hash, err := s.hasher.hash(secret)
	if err != nil {
		return c, "", err
	}
	c.ID, c.Secret = newID(s.cfg.NewUUID()), hash
	return c, secret, put(ctx, s, KindCredential, s.creds, c.ID, &c, time.Time{})
}

// RemoveCredential removes an application credential of a user, and ends its
// sessions.
func (s *Service) RemoveCredential(ctx context.Context, user, id string) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	if !slices.ContainsFunc(s.Credentials(user), func(c Credential) bool { return c.ID == id }) {
		return fault.New(fault.NotFound, "Could not find application credential: %s.", fault.Clip(id, maxName))
	}
	return errors.Join(remove(ctx, s, KindCredential, s.creds, id), s.revokeWhere(ctx, func(t *token) bool { return t.Credential == id }))
}

func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
