// Package authority signs the certificates by which agents of nodes and controllers know each other, and has what package joining decides about
// them carried out.
//
// Invariants:
//   - It signs for nobody but nodes and controllers, and neither is taken for the other (TestNobodyIsTakenForAnother).
//   - A certificate is handed out when it is durable that it counts (Door).
//   - An agent shows its secret to nobody who does not prove to be of its cluster (TestTrustByFingerprint).
package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net/url"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/joining"
)

// Authority signs the certificates of a cluster's agents and controllers, and of nobody else.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

const (
	// authorityTime is how long an authority counts. It is made once for the life of a cluster.
	authorityTime = 100 * 365 * 24 * time.Hour
	// skew is how far the clocks of machines may be apart.
	skew = 10 * time.Minute
	// ControllerName is the name that all certificates of controllers have.
	ControllerName = "controller.drover.internal"
)

// New makes one.
func New(now time.Time) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Drover agents"}, NotBefore: now.Add(-skew), NotAfter: now.Add(authorityTime),
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	cert, err := signed(template, template, key.Public(), key)
	return &Authority{cert: cert, key: key}, err
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fault.New(fault.Environment, "no key can be made: %w", err)
	}
	return key, nil
}

// serial draws the number of a certificate, which no other has.
func serial() *big.Int {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	raw[0] = raw[0]&0x7f | 0x40
	return new(big.Int).SetBytes(raw[:])
}

func signed(template, by *x509.Certificate, key crypto.PublicKey, with *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, by, key, with)
	if err != nil {
		return nil, fault.New(fault.Internal, "the certificate cannot be made: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fault.New(fault.Internal, "the certificate cannot be read: %w", err)
	}
	return cert, nil
}

const (
	pemCertificate = "CERTIFICATE"
	pemKey         = "PRIVATE KEY"
)

// Parse reads what Text wrote.
func Parse(text []byte) (*Authority, error) {
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, fault.New(fault.Internal, "the authority of agents cannot be read: %w", err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fault.New(fault.Internal, "the authority of agents has a key of an unknown kind")
	}
	return &Authority{cert: pair.Leaf, key: key}, nil
}

// Text is the authority with its key, which is a secret.
func (a *Authority) Text() ([]byte, error) {
	key, err := KeyText(a.key)
	return append(CertificateText(a.cert.Raw), key...), err
}

// Certificate is who signs, as PEM.
func (a *Authority) Certificate() []byte { return CertificateText(a.cert.Raw) }

// CertificateText is a certificate as PEM.
func CertificateText(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: der})
}

// KeyText is a private key as PEM.
func KeyText(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fault.New(fault.Internal, "the key cannot be written: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: der}), nil
}

// Fingerprint tells the authority from all others.
func (a *Authority) Fingerprint() string { return fingerprint(a.cert.Raw) }

func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// pool is who is trusted.
func (a *Authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Controller makes the certificate of a controller, with its key and who signed it.
func (a *Authority) Controller(now time.Time) (*tls.Certificate, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := leaf(now)
	template.Subject, template.DNSNames = pkix.Name{CommonName: ControllerName}, []string{ControllerName}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	cert, err := signed(template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{cert.Raw, a.cert.Raw}, PrivateKey: key, Leaf: cert}, nil
}

func leaf(now time.Time) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: serial(), NotBefore: now.Add(-skew), NotAfter: now.Add(joining.CertificateTime), BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

// ReadRequest reads what an agent wants a certificate for, as DER: its public key. What else a request says counts for nothing.
func ReadRequest(der []byte) (*x509.CertificateRequest, error) {
	r, err := x509.ParseCertificateRequest(der)
	if err == nil {
		err = r.CheckSignature()
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "the request for a certificate cannot be read: %w", err)
	}
	if key, ok := r.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
		return nil, fault.New(fault.Invalid, "the key of the request is of another kind than P-256")
	}
	return r, nil
}

// Sign makes the certificate of a node's agent.
func (a *Authority) Sign(r *x509.CertificateRequest, name, uuid string, now time.Time) (*x509.Certificate, error) {
	template := leaf(now)
	template.Subject = pkix.Name{CommonName: name}
	template.URIs = []*url.URL{joining.NameIn(name, uuid)}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return signed(template, a.cert, r.PublicKey, a.key)
}

// Verify checks that the authority has signed what an agent shows. That it has ended is for Admit and Renew.
func (a *Authority) Verify(c *x509.Certificate, now time.Time) error {
	if now.After(c.NotAfter) {
		now = c.NotAfter
	}
	_, err := c.Verify(x509.VerifyOptions{Roots: a.pool(), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return fault.New(fault.Denied, "the certificate was not signed by this cluster: %w", err)
	}
	return nil
}

// NewRequest makes a key, and the request for its certificate, as DER.
func NewRequest() (key *ecdsa.PrivateKey, request []byte, err error) {
	if key, err = newKey(); err != nil {
		return nil, nil, err
	}
	request, err = RequestFor(key)
	return key, request, err
}

// RequestFor makes the request for the certificate of a key, as DER.
func RequestFor(key *ecdsa.PrivateKey) ([]byte, error) {
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, fault.New(fault.Internal, "the request for a certificate cannot be made: %w", err)
	}
	return request, nil
}

// TrustByFingerprint is the TLS of an agent that knows no more of the controllers than the fingerprint of who signs for them.
func TrustByFingerprint(authority string, now func() time.Time) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: ControllerName,
		InsecureSkipVerify: true, //nolint:gosec // it is verified below, by who signed it
		VerifyConnection: func(s tls.ConnectionState) error {
			for _, c := range s.PeerCertificates {
				if fingerprint(c.Raw) != authority {
					continue
				}
				pool := x509.NewCertPool()
				pool.AddCert(c)
				_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool, DNSName: ControllerName, CurrentTime: now()})
				return err
			}
			return fault.New(fault.Denied, "who answers is no controller of the cluster that made the token").WithHint("make sure that the addresses lead to the controllers; a token of before a restored store is for another authority")
		},
	}
}

// Trust is the TLS of an agent that has its certificate.
func Trust(authority []byte, own *tls.Certificate) (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fault.New(fault.Environment, "the certificate of the cluster's authority cannot be read")
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, ServerName: ControllerName, RootCAs: pool, Certificates: []tls.Certificate{*own}}, nil
}

// Among finds the certificate with a fingerprint among those that were shown, as PEM.
func Among(shown []*x509.Certificate, fingerprintOf string) []byte {
	for _, c := range shown {
		if fingerprint(c.Raw) == fingerprintOf {
			return CertificateText(c.Raw)
		}
	}
	return nil
}
