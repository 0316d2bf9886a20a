// Package identity keeps the users of the Compute API, their projects and
// roles, and the tokens by which their requests are known.
//
// Invariants:
//   - Passwords and secrets are stored as argon2id hashes, tokens as SHA-256: who
//     reads the store can log in as nobody.
//   - A token is worth what its user is: it ends with the user, the project and
//     the user's role there.
//   - A new password ends all sessions in the same transaction, also those that the old
//     one is about to begin.
//   - Somebody can administer: who is the last to do so stays that.
//   - What owns servers is not removed.
//   - A change that is durable counts, whether or not who asked for it still waits; and none is made upon what nobody knows to be
//     stored (TestWhatIsStoredIsInForce).
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
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/store"
)

// The kinds of objects that are kept in the store.
const (
	KindUser       store.Kind = "user"
	KindProject    store.Kind = "project"
	KindToken      store.Kind = "token"
	KindCredential store.Kind = "application-credential"
)

// Roles; what each may do is in package rights.
const (
	Member = rights.Member
	Reader = rights.Reader
	Admin  = rights.Admin
)

// Roles lists all roles.
var Roles = []string{Admin, Member, Reader}

// TokenLife is how long a token is good for.
const TokenLife = 12 * time.Hour

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

// Account is who asks with the session.
func (s *Session) Account() rights.Account {
	if s.Project == nil {
		return rights.InProject(s.User.ID, "", nil)
	}
	return rights.InProject(s.User.ID, s.Project.ID, s.Roles)
}

// Config is what a service needs.
type Config struct {
	Store   store.Store
	Epoch   int64
	Now     func() time.Time
	NewUUID func() string
	// Servers is how many servers a project owns.
	Servers func(project string) int
	// Images is how many images a project's users uploaded; nil where none are.
	Images func(project string) int
	Log    *slog.Logger
}

// Service keeps accounts and tokens.
type Service struct {
	cfg    Config
	hasher hasher

	// mirror lets changes of accounts in, one at a time. It is shared while a session is written down that rests upon how they are.
	mirror store.Mirror
	// owning is held while a project is removed, and shared while something is made
	// that it owns.
	owning   sync.RWMutex
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
	s.mirror.Read = s.load
	return s, s.load(ctx)
}

// load reads all that the store has. Who calls it has the change, so nobody changes it meanwhile.
func (s *Service) load(ctx context.Context) error {
	return errors.Join(load(ctx, s, KindUser, s.users), load(ctx, s, KindProject, s.projects),
		load(ctx, s, KindCredential, s.creds), load(ctx, s, KindToken, s.tokens))
}

func load[T any](ctx context.Context, s *Service, kind store.Kind, into map[string]*T) error {
	stored := map[string]*T{}
	for o, err := range s.cfg.Store.List(ctx, kind, store.Options{}) {
		if err != nil {
			return err
		}
		v := new(T)
		if err := json.Unmarshal(o.Value, v); err != nil {
			s.cfg.Log.Error("a stored account cannot be read and is set aside", "kind", kind, "id", o.ID)
			continue
		}
		stored[o.ID] = v
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(into)
	maps.Copy(into, stored)
	return nil
}

// commit makes a transaction durable and then known.
func (s *Service) commit(ctx context.Context, tx store.Tx, known func()) error {
	return s.mirror.Commit(ctx, s.cfg.Store, tx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		known()
	})
}

// put makes an object durable, together with the end of sessions, and then known.
func put[T any](ctx context.Context, s *Service, kind store.Kind, into map[string]*T, id string, v *T, at time.Time, ends ...string) error {
	value, err := json.Marshal(v)
	if err != nil {
		return fault.New(fault.Internal, "an account that cannot be written: %w", err)
	}
	p := store.Put{Key: store.Key{Kind: kind, ID: id}, Value: value}
	if !at.IsZero() {
		p.At = at.UnixMicro()
	}
	tx := store.Tx{Epoch: s.cfg.Epoch, Put: []store.Put{p}}
	for _, token := range ends {
		tx.Delete = append(tx.Delete, store.Key{Kind: KindToken, ID: token})
	}
	return s.commit(ctx, tx, func() {
		into[id] = v
		for _, token := range ends {
			delete(s.tokens, token)
		}
	})
}

func remove[T any](ctx context.Context, s *Service, kind store.Kind, from map[string]*T, ids ...string) error {
	tx := store.Tx{Epoch: s.cfg.Epoch}
	for _, id := range ids {
		tx.Delete = append(tx.Delete, store.Key{Kind: kind, ID: id})
	}
	return s.commit(ctx, tx, func() {
		for _, id := range ids {
			delete(from, id)
		}
	})
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

func byID[T any](s *Service, what string, in map[string]*T, id string) (T, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if v := in[id]; v != nil {
		return *v, nil
	}
	var none T
	return none, fault.New(fault.NotFound, "Could not find %s: %s.", what, fault.Clip(id, maxName))
}

func find[T any](s *Service, what string, in map[string]*T, idOrName string, name func(*T) string) (T, error) {
	v, err := byID(s, what, in, idOrName)
	if err == nil {
		return v, nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, v := range in {
		if name(v) == idOrName {
			return *v, nil
		}
	}
	return v, err
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

func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
