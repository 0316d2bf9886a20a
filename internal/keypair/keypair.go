// Package keypair keeps the public keys that users of the Compute API have put by, under names, for the machines that they make later.
//
// Invariants:
//   - A private key that is made here is told once, to who asked for it, and kept nowhere (TestAPrivateKeyIsToldOnce).
//   - Key pairs are of one user: nobody else sees or takes them (TestKeyPairsAreOfOneUser).
//   - What a user is told is durable (TestKeyPairsLast), and what is durable counts, whether or not who asked for it still waits (TestWhatIsStoredIsKnown).
package keypair

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// Kind is that of the objects in the store, one for each pair.
const Kind store.Kind = "keypair"

// Pair is a public key that a user has put by.
type Pair struct {
	User string `json:"user"`
	Name string `json:"name"`
	// Public is the key as a line of authorized_keys, Fingerprint the MD5 of it as Nova shows it.
	Public      string    `json:"public"`
	Fingerprint string    `json:"fingerprint"`
	Created     time.Time `json:"created"`
}

// Limits, Nova's own.
const (
	maxName = 255 // characters
	maxKey  = 16 << 10
)

// Config is what a Service needs.
type Config struct {
	Store store.Store
	Epoch int64 // of the leader lease; 0 where there is none
	Now   func() time.Time
	Log   *slog.Logger
}

// Service keeps key pairs. It may be used from any number of goroutines.
type Service struct {
	cfg    Config
	mirror store.Mirror
	// mu is held while what is known is looked at or changed.
	mu    sync.RWMutex
	pairs map[string]*Pair // by id
}

// Open loads what there is.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	s := &Service{cfg: cfg}
	s.mirror.Read = s.load
	return s, s.load(ctx)
}

// load reads what the store has.
func (s *Service) load(ctx context.Context) error {
	pairs := map[string]*Pair{}
	for o, err := range s.cfg.Store.List(ctx, Kind, store.Options{}) {
		if err != nil {
			return err
		}
		p := &Pair{}
		if err := json.Unmarshal(o.Value, p); err != nil {
			s.cfg.Log.Error("an object cannot be read and is set aside; restore it from a backup", "object", "keypair "+o.ID)
			continue
		}
		pairs[o.ID] = p
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pairs = pairs
	return nil
}

// commit makes a change durable and then known.
func (s *Service) commit(ctx context.Context, tx store.Tx, known func()) error {
	tx.Epoch = s.cfg.Epoch
	return s.mirror.Commit(ctx, s.cfg.Store, tx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		known()
	})
}

// sumOf stands for a pair of a user.
func sumOf(user, name string) [sha256.Size]byte { return sha256.Sum256([]byte(user + "\x00" + name)) }

// idOf is the id of an object: names may have characters that ids of the store may not.
func idOf(user, name string) string {
	sum := sumOf(user, name)
	return hex.EncodeToString(sum[:])
}

// Number is what Nova shows as a key pair's id, which nothing asks by: it stays the same.
func (p *Pair) Number() int64 {
	sum := sumOf(p.User, p.Name)
	return int64(binary.BigEndian.Uint32(sum[:])) & math.MaxInt32
}

// Of returns the key pairs of a user, by name.
func (s *Service) Of(user string) []Pair {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []Pair
	for _, p := range s.pairs {
		if p.User == user {
			out = append(out, *p)
		}
	}
	slices.SortFunc(out, func(a, b Pair) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Find returns a key pair of a user; NotFound when there is none of the name.
func (s *Service) Find(user, name string) (Pair, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if p := s.pairs[idOf(user, name)]; p != nil {
		return *p, nil
	}
	return Pair{}, fault.New(fault.NotFound, "Keypair %s not found for user %s", fault.Clip(name, maxName), user).At("key_name")
}

// Add puts a public key by. Without one a pair is made, and its private key returned. Exists when the user has one of the name, Denied when he
// has as many as he may have.
func (s *Service) Add(ctx context.Context, user, name, public string, most int) (p Pair, private string, err error) {
	if err := checkName(name); err != nil {
		return p, "", err
	}
	if public == "" {
		if public, private, err = generate(); err != nil {
			return p, "", err
		}
	}
	p = Pair{User: user, Name: name, Created: s.cfg.Now().UTC().Truncate(time.Second)}
	if p.Public, p.Fingerprint, err = readKey(public); err != nil {
		return p, "", err
	}
	done, err := s.mirror.Change(ctx)
	if err != nil {
		return p, "", err
	}
	defer done()
	if _, err := s.Find(user, name); err == nil {
		return p, "", fault.New(fault.Exists, "Key pair '%s' already exists.", name).At("name")
	}
	if len(s.Of(user)) >= most {
		return p, "", fault.New(fault.Denied, "Quota exceeded, too many key pairs.").At("keypair").WithHint("a user has at most %d; remove some", most)
	}
	return p, private, s.keep(ctx, &p)
}

func (s *Service) keep(ctx context.Context, p *Pair) error {
	value, err := json.Marshal(p)
	if err != nil {
		return fault.New(fault.Internal, "a key pair that cannot be written: %w", err)
	}
	id := idOf(p.User, p.Name)
	return s.commit(ctx, store.Tx{Put: []store.Put{{Key: store.Key{Kind: Kind, ID: id}, Value: value}}}, func() { s.pairs[id] = p })
}

// Remove takes a key pair of a user away. Machines that were made with it keep the key.
func (s *Service) Remove(ctx context.Context, user, name string) error {
	done, err := s.mirror.Change(ctx)
	if err != nil {
		return err
	}
	defer done()
	if _, err := s.Find(user, name); err != nil {
		return err
	}
	id := idOf(user, name)
	return s.commit(ctx, store.Tx{Delete: []store.Key{{Kind: Kind, ID: id}}}, func() { delete(s.pairs, id) })
}

// checkName refuses names that Nova refuses, too, and those that clients take for a way through a path.
func checkName(name string) error {
	ok := strings.Trim(name, ".") != "" && len(name) <= maxName && strings.TrimSpace(name) == name && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-@. ", r))
	})
	if !ok {
		return fault.New(fault.Invalid, "Keypair data is invalid: Keypair name must be string and between 1 and %d characters long, and contain letters, digits, underscores, blanks, dashes, dots and @ alone", maxName).At("name")
	}
	return nil
}

// readKey reads one line of authorized_keys. Options before the key would be taken for the machine's, and are refused.
func readKey(text string) (line, fingerprint string, err error) {
	refuse := func(why string) error {
		return fault.New(fault.Invalid, "Keypair data is invalid: failed to generate fingerprint: %s", why).At("public_key").WithHint("a line as ssh-keygen writes it to FILE.pub")
	}
	text = strings.TrimSpace(text)
	if len(text) > maxKey || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return "", "", refuse("it is too long, or more than one line")
	}
	key, comment, options, _, err := ssh.ParseAuthorizedKey([]byte(text))
	switch {
	case err != nil:
		return "", "", refuse("it is no public key of SSH")
	case len(options) > 0:
		return "", "", refuse("it has options")
	}
	line = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	if comment != "" {
		line += " " + comment
	}
	return line, ssh.FingerprintLegacyMD5(key), nil
}

// generate makes a pair of keys, the private one in the form of OpenSSH.
func generate() (public, private string, err error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", "", fault.New(fault.Internal, "no key pair could be made: %w", err)
	}
	key, err := ssh.NewPublicKey(pub)
	if err != nil {
		return "", "", fault.New(fault.Internal, "no key pair could be made: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(priv, "")
	if err != nil {
		return "", "", fault.New(fault.Internal, "no key pair could be made: %w", err)
	}
	return string(ssh.MarshalAuthorizedKey(key)), string(pem.EncodeToMemory(block)), nil
}
