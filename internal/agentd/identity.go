package agentd

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/agentwire"
	"github.com/drover-project/drover/internal/authority"
	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/joining"
	"github.com/drover-project/drover/internal/wholefile"
)

const (
	// identityName is the file in the agent's directory that says who it is, and keyName that with the key of one that is about to join.
	identityName = "agent.json"
	keyName      = "joining.pem"
)

// identity is who an agent is. It holds its private key, so the file is its owner's alone.
type identity struct {
	Node        string   `json:"node"`
	Addresses   []string `json:"addresses"`
	Authority   []byte   `json:"authority"`   // PEM
	Certificate []byte   `json:"certificate"` // PEM
	Key         []byte   `json:"key"`         // PEM
}

// readIdentity reads who the agent of a directory is; NotFound before it has joined.
func readIdentity(dir string) (*identity, error) {
	path := filepath.Join(dir, identityName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "%s is the directory of no agent: it has not joined a cluster", dir).
			WithHint("drover node token NODE, at a controller, prints a token; here: drover agent join TOKEN --data %s", dir)
	}
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot read who the agent is: %w", err)
	}
	var id identity
	if err := json.Unmarshal(text, &id); err != nil {
		return nil, fault.New(fault.Environment, "%s cannot be read: %w", path, err).WithHint("restore it from a backup, or move it away and join anew")
	}
	return &id, nil
}

// write keeps it, all of it or nothing.
func (id *identity) write(dir string) error {
	text, err := json.Marshal(id)
	if err != nil {
		return fault.New(fault.Internal, "who the agent is cannot be written: %w", err)
	}
	if err := wholefile.Write(filepath.Join(dir, identityName), append(text, '\n')); err != nil {
		return fault.New(fault.Environment, "cannot write who the agent is: %w", err)
	}
	if err := os.Remove(filepath.Join(dir, keyName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Environment, "cannot remove the key of an agent that has joined: %w", err)
	}
	return nil
}

// joiningKey is the key of an agent that is about to join. It is on disk before it is used: the answer may be lost.
func joiningKey(dir string) (*ecdsa.PrivateKey, error) {
	path := filepath.Join(dir, keyName)
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
		return parseKey(text)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.Environment, "cannot read the key of the agent: %w", err)
	}
	key, _, err := authority.NewRequest()
	if err != nil {
		return nil, err
	}
	if text, err = authority.KeyText(key); err != nil {
		return nil, err
	}
	if err := wholefile.Write(path, text); err != nil {
		return nil, fault.New(fault.Environment, "cannot write the key of the agent: %w", err)
	}
	return key, nil
}

func parseKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fault.New(fault.Environment, "the key of the agent cannot be read")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fault.New(fault.Environment, "the key of the agent cannot be read: %w", err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fault.New(fault.Environment, "the key of the agent is of an unknown kind")
	}
	return key, nil
}

// known is who the agent is, while it runs. It is safe for concurrent use.
type known struct {
	dir string
	now func() time.Time
	log *slog.Logger
	// given are addresses that count before what is known.
	given []string

	// renewing is held while a certificate is asked for: of two that are asked for at once one would not count.
	renewing sync.Mutex

	mu   sync.Mutex
	id   identity
	pair *tls.Certificate
}

func openIdentity(o Options) (*known, error) {
	id, err := readIdentity(o.Data)
	if err != nil {
		return nil, err
	}
	k := &known{dir: o.Data, now: o.now, log: o.Log, id: *id, given: o.Controllers}
	k.pair, err = pairOf(id)
	return k, err
}

func pairOf(id *identity) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(id.Certificate, id.Key)
	if err != nil {
		return nil, fault.New(fault.Environment, "the certificate of the agent cannot be read: %w", err).WithHint("move %s away and join anew", identityName)
	}
	return &pair, nil
}

func (k *known) node() string { return k.id.Node } // it stays

func (k *known) addresses() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.given) > 0 {
		return k.given
	}
	return slices.Clone(k.id.Addresses)
}

// moved keeps where controllers are by now.
func (k *known) moved(addresses []string) {
	if err := k.update(func(id *identity) { id.Addresses = addresses }); err != nil {
		k.log.Warn("where controllers are could not be kept", "error", err)
	}
}

// update changes who the agent is, on disk first.
func (k *known) update(change func(*identity)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := k.id
	change(&id)
	if slices.Equal(id.Addresses, k.id.Addresses) && string(id.Certificate) == string(k.id.Certificate) {
		return nil
	}
	pair, err := pairOf(&id)
	if err != nil {
		return err
	}
	if err := id.write(k.dir); err != nil {
		return err
	}
	k.id, k.pair = id, pair
	return nil
}

// tls is how the agent meets controllers.
func (k *known) tls() (*tls.Config, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return authority.Trust(k.id.Authority, k.pair)
}

// ends is when the certificate ends.
func (k *known) ends() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pair.Leaf.NotAfter
}

// renewAt is when the certificate is to be renewed: not at the moment at which a thousand agents that joined together do.
func (k *known) renewAt() time.Time {
	spread := joining.CertificateTime / 10
	return k.ends().Add(joining.RenewAfter - joining.CertificateTime).Add(rand.N(spread) - spread/2)
}

// renewals are the pauses between tries to renew a certificate.
func renewals() backoff.Pauses {
	return backoff.Pauses{First: time.Second, Longest: 5 * time.Minute}
}

// lookEvery is how often it is looked whether the certificate is to be renewed: a clock that counts while the machine sleeps would be needed to wait for
// the moment itself.
const lookEvery = time.Minute

// pauseUntil is how long to wait before it is looked again.
func pauseUntil(due, now time.Time) time.Duration { return min(max(due.Sub(now), 0), lookEvery) }

// keepCertificate renews the certificate in time, until ctx ends.
func (k *known) keepCertificate(ctx context.Context) {
	due, failures := k.renewAt(), 0
	for {
		wait := pauseUntil(due, k.now())
		if failures > 0 {
			wait = renewals().After(failures)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		if k.now().Before(due) {
			continue
		}
		if err := k.renew(ctx); err != nil {
			failures++
			k.log.Warn("the certificate of the agent is not renewed yet", "ends", k.ends(), "error", err)
			continue
		}
		due, failures = k.renewAt(), 0
	}
}

// renew asks for the next certificate of the agent's key.
func (k *known) renew(ctx context.Context) error {
	k.mu.Lock()
	keyText := k.id.Key
	k.mu.Unlock()
	key, err := parseKey(keyText)
	if err != nil {
		return err
	}
	_, err = k.renewFor(ctx, key)
	return err
}

// renewAll makes another key, and asks for its certificate. It returns the number of that, when the agent has kept both.
func (k *known) renewAll(ctx context.Context) (serial string, err error) {
	key, _, err := authority.NewRequest()
	if err != nil {
		return "", err
	}
	return k.renewFor(ctx, key)
}

// renewFor asks for the certificate of a key, and has the agent come with both from then on.
func (k *known) renewFor(ctx context.Context, key *ecdsa.PrivateKey) (serial string, err error) {
	k.renewing.Lock()
	defer k.renewing.Unlock()
	config, err := k.tls()
	if err != nil {
		return "", err
	}
	request, err := authority.RequestFor(key)
	if err != nil {
		return "", err
	}
	keyText, err := authority.KeyText(key)
	if err != nil {
		return "", err
	}
	papers, err := agentwire.Renew(ctx, k.addresses(), config, k.node(), request)
	if err != nil {
		return "", err
	}
	if err := k.update(func(id *identity) { id.Certificate, id.Key = papers.Certificate, keyText }); err != nil {
		return "", err
	}
	k.mu.Lock()
	serial = joining.SerialOf(k.pair.Leaf)
	k.mu.Unlock()
	k.log.Info("the certificate of the agent was renewed", "until", k.ends())
	return serial, nil
}
