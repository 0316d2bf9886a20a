// Package joining decides who may speak for a node that is elsewhere: with a token an agent joins, and gets a certificate; with
// that it comes again, and renews it.
//
// It is values and decisions alone: who signs (package authority), where tokens and numbers are kept (cluster.NodeAgent), and how certificates
// travel (package agentwire) is told elsewhere.
//
// Invariants:
//   - A token counts once, for the key that used it first, and until its time (TestATokenCountsOnce), whether or not who has the
//     place renews meanwhile (TestATokenOutlivesARenewal).
//   - A certificate counts as long as its node keeps its number: the newest, and the one that it was asked for with, whose holder
//     may not have had the answer (TestTwoCertificatesCount). A node that was removed, and one of the same name that is another, keeps neither.
//   - A store that was put back to an older state knows its agents still: what was signed behind the newest that a node keeps was its agent's
//     (TestAStoreOfBeforeKnowsItsAgents). One that was revoked is none of those, whose clock ever was ahead (TestARevokedCertificateIsNoneOfLater).
//   - A certificate that has ended counts for nothing but to ask for the next (TestEndedCertificatesRenewOnce).
package joining

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"net/url"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// TokenTime is how long a token may be used, CertificateTime how long a certificate of an agent counts, and RenewAfter when it is to be renewed.
const (
	TokenTime       = time.Hour
	CertificateTime = 24 * time.Hour
	RenewAfter      = CertificateTime * 2 / 3
)

// Join decides whether an agent may join as a node: with a secret, the public key of which it wants the certificate, and at a time. What is returned is what
// the node keeps from then on, when the certificate has a number.
func Join(node *cluster.Node, secret string, key []byte, now time.Time) (keep func(c *x509.Certificate) *cluster.NodeAgent, err error) {
	refused := fault.New(fault.Denied, "the token is not that of node %s", node.Name).WithHint("drover node token %s makes one", node.Name)
	if node.Agent == nil || node.Agent.Token == nil {
		return nil, refused
	}
	t := *node.Agent.Token
	switch hash := KeyHash(key); {
	case HashOf(secret) != t.Hash:
		return nil, refused
	case now.Unix() > t.Until:
		return nil, fault.New(fault.Denied, "the token of node %s ended at %s", node.Name, time.Unix(t.Until, 0).UTC().Format(time.RFC3339)).WithHint("drover node token %s makes another", node.Name)
	case t.Key != "" && t.Key != hash:
		return nil, fault.New(fault.Denied, "the token of node %s was used by another agent", node.Name).WithHint("if it was not yours, make another: drover node token %s; it takes the place of that agent", node.Name)
	default:
		t.Key = hash
	}
	return func(c *x509.Certificate) *cluster.NodeAgent {
		return &cluster.NodeAgent{Token: &t, Serial: SerialOf(c), Until: until(node.Agent, c)}
	}, nil
}

// Admit decides whether who shows a certificate, which the authority has signed, may serve as a node.
func Admit(node *cluster.Node, c *x509.Certificate, now time.Time) error {
	if err := counts(node, c); err != nil {
		return err
	}
	if now.After(c.NotAfter) {
		return fault.New(fault.Denied, "the certificate of node %s ended at %s", node.Name, c.NotAfter.UTC().Format(time.RFC3339)).WithHint("the agent renews it by itself")
	}
	return nil
}

// Renew decides whether who shows a certificate may have the next one, and returns what the node keeps then. One that has ended is renewed, too: whoever has
// it was away. It counts no more afterwards, but until the next is used.
func Renew(node *cluster.Node, c *x509.Certificate) (keep func(next *x509.Certificate) *cluster.NodeAgent, err error) {
	if err := counts(node, c); err != nil {
		return nil, err
	}
	a := *node.Agent
	return func(next *x509.Certificate) *cluster.NodeAgent {
		return &cluster.NodeAgent{Token: a.Token, Serial: SerialOf(next), Until: until(&a, next), Former: SerialOf(c)}
	}, nil
}

// Confirmed returns what a node keeps when its agent has said that it has the certificate of a number, with which it comes from now on: the one that this was
// asked for with counts no more. Nil if nothing changes by that, for the agent has another by now.
func Confirmed(node *cluster.Node, serial string) *cluster.NodeAgent {
	if node == nil || node.Agent == nil || node.Agent.Serial != serial || node.Agent.Former == "" {
		return nil
	}
	next := *node.Agent
	next.Former = ""
	return &next
}

// until is behind which end a certificate is of later than all that a node has known, when it keeps the number of another one. The clock by which that
// one was signed may be behind those of before.
func until(a *cluster.NodeAgent, c *x509.Certificate) int64 { return max(a.Until, c.NotAfter.Unix()) }

// counts refuses a certificate whose number the node does not keep.
func counts(node *cluster.Node, c *x509.Certificate) error {
	name, uuid, err := nodeOf(c)
	if err != nil {
		return err
	}
	if node == nil || node.UUID != uuid || node.Name != name {
		return fault.New(fault.Denied, "node %s is not in the cluster", name).WithHint("if it is to be: drover node token %s", name)
	}
	a := node.Agent
	if a != nil && a.Serial != "" && c.NotAfter.Unix() > a.Until { // it was signed behind all that the node keeps: the store is of before
		return nil
	}
	if a == nil || SerialOf(c) != a.Serial && SerialOf(c) != a.Former {
		return fault.New(fault.Denied, "the certificate of node %s was revoked: another agent has joined, or it was renewed by somebody else", name).
			WithHint("drover node token %s lets an agent join anew", name)
	}
	return nil
}

// scheme begins the name of a node in its certificate: drover-node:UUID/NAME.
const scheme = "drover-node"

// NameIn is the name of a node in its certificate.
func NameIn(name, uuid string) *url.URL { return &url.URL{Scheme: scheme, Opaque: uuid + "/" + name} }

// nodeOf tells for which node a certificate is.
func nodeOf(c *x509.Certificate) (name, uuid string, err error) {
	if len(c.URIs) == 1 && c.URIs[0].Scheme == scheme {
		var ok bool
		if uuid, name, ok = strings.Cut(c.URIs[0].Opaque, "/"); ok {
			return name, uuid, nil
		}
	}
	return "", "", fault.New(fault.Denied, "the certificate is not that of a node's agent")
}

// NodeNamed tells which node a certificate is for.
func NodeNamed(c *x509.Certificate) (string, error) {
	name, _, err := nodeOf(c)
	return name, err
}

// HashOf is what a node keeps of a token's secret.
func HashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// KeyHash tells public keys apart, as they are in certificates and requests for them.
func KeyHash(key []byte) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:])
}

// SerialOf is the number of a certificate, as nodes keep it.
func SerialOf(c *x509.Certificate) string { return c.SerialNumber.Text(16) }
