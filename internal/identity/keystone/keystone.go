// Package keystone has tokens judged by another identity service: whatever speaks
// OpenStack's Identity API v3.
//
// Invariants:
//   - A token goes to the one configured service and nowhere else: over TLS that
//     is checked, or within this machine. No redirect is followed.
//   - Nothing here, and no error of it, holds a token. Those that are remembered
//     are remembered by their SHA-256.
//   - What is remembered of a token is at most MaxAge old, and ends with it.
package keystone

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/identity"
)

// MaxAge is for how long the service's word about a token counts: a token that
// is revoked there may be taken for so long.
const MaxAge = time.Minute

const (
	requestTimeout = 10 * time.Second
	// maxAnswer is how much of an answer is read, in bytes: with a large catalogue.
	maxAnswer = 4 << 20
	// maxKnown is how many tokens are remembered.
	maxKnown = 10_000
)

// Config is how the service is reached.
type Config struct {
	// URL is its address with the version, for example https://keystone.example:5000/v3.
	URL string
	// CA holds certificates in PEM of which one signed the service's, or is it; nil
	// for those of this machine.
	CA  []byte
	Now func() time.Time
}

// Keystone judges tokens. It is safe for concurrent use.
type Keystone struct {
	url    string
	now    func() time.Time
	client *http.Client

	mu    sync.Mutex
	known map[[sha256.Size]byte]known
}

// known is what the service said about a token.
type known struct {
	session *identity.Session
	until   time.Time
}

// Open takes in how the service is reached. It asks nothing yet.
func Open(cfg Config) (*Keystone, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return nil, fault.New(fault.Invalid, "keystone: the address is a URL such as https://keystone.example:5000/v3; plain http is for this machine alone").At("keystone")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute}
	if cfg.CA != nil {
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(cfg.CA) {
			return nil, fault.New(fault.Invalid, "keystone-ca: there is no certificate in the file").At("keystone-ca")
		}
	}
	return &Keystone{url: strings.TrimRight(cfg.URL, "/"), now: cfg.Now, known: map[[sha256.Size]byte]known{}, client: &http.Client{
		Transport: transport, Timeout: requestTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Session returns what a token stands for, as the service says. Denied when that
// says no, or gives no role that is known here; Unavailable when it cannot be asked.
func (k *Keystone) Session(ctx context.Context, token string) (*identity.Session, error) {
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, identity.ErrDenied()
	}
	key := sha256.Sum256([]byte(token))
	k.mu.Lock()
	found, ok := k.known[key]
	k.mu.Unlock()
	if ok && k.now().Before(found.until) {
		return found.session, nil
	}
	session, err := k.ask(ctx, token)
	if err != nil {
		return nil, err
	}
	k.remember(key, session)
	return session, nil
}

// remember keeps a session, in place of those that are over, or of any.
func (k *Keystone) remember(key [sha256.Size]byte, s *identity.Session) {
	now := k.now()
	until := now.Add(MaxAge)
	if s.Expires.Before(until) {
		until = s.Expires
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) >= maxKnown {
		for other, what := range k.known {
			if !now.Before(what.until) || len(k.known) >= maxKnown {
				delete(k.known, other)
			}
		}
	}
	k.known[key] = known{s, until}
}

// reference names something of the service.
type reference struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// told is the body of an answer about a token.
type told struct {
	Token struct {
		Methods []string    `json:"methods"`
		Issued  time.Time   `json:"issued_at"`
		Expires time.Time   `json:"expires_at"`
		Audit   []string    `json:"audit_ids"`
		User    reference   `json:"user"`
		Project *reference  `json:"project"`
		Roles   []reference `json:"roles"`
	} `json:"token"`
}

// ask asks the service about a token, in the name of the token itself.
func (k *Keystone) ask(ctx context.Context, token string) (*identity.Session, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, k.url+"/auth/tokens?nocatalog", http.NoBody)
	if err != nil {
		return nil, fault.New(fault.Internal, "making a request: %w", err)
	}
	r.Header.Set("X-Auth-Token", token)
	r.Header.Set("X-Subject-Token", token)
	answer, err := k.client.Do(r)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return nil, fault.New(fault.Unavailable, "the identity service cannot be reached: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // all of it was read
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return nil, identity.ErrDenied()
	default:
		return nil, fault.New(fault.Unavailable, "the identity service answered %d", answer.StatusCode)
	}
	var t told
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&t); err != nil {
		return nil, fault.New(fault.Unavailable, "the answer of the identity service cannot be read: %w", err)
	}
	return t.session(k.now())
}

// session is what was told.
func (t *told) session(now time.Time) (*identity.Session, error) {
	in := &t.Token
	s := &identity.Session{User: identity.User{ID: in.User.ID, Name: in.User.Name, Enabled: true}, Methods: in.Methods, Issued: in.Issued, Expires: in.Expires}
	if len(in.Audit) > 0 {
		s.AuditID = in.Audit[0]
	}
	for _, role := range in.Roles {
		if slices.Contains(identity.Roles, role.Name) {
			s.Roles = append(s.Roles, role.Name)
		}
	}
	if in.User.ID == "" || !now.Before(in.Expires) || in.Project != nil && (in.Project.ID == "" || len(s.Roles) == 0) {
		return nil, identity.ErrDenied()
	}
	if in.Project != nil {
		s.Project = &identity.Project{ID: in.Project.ID, Name: in.Project.Name, Enabled: true}
	}
	return s, nil
}
