package rapi

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/wholefile"
)

// certificateLifetime is how long a certificate that we made is valid.
const certificateLifetime = 5 * 365 * 24 * time.Hour

// clocksDiffer is how much earlier it is valid than it was made.
const clocksDiffer = time.Hour

// CertificateFile is the file with the server's certificate and key. It is safe
// for concurrent use.
type CertificateFile struct {
	path    string
	own     bool // it was made here, unless somebody put another into its place
	current atomic.Pointer[tls.Certificate]
}

// OpenCertificate reads the certificate and key of the server from one PEM file.
// If there is no such file, it makes a self-signed certificate for this host
// and stores it there, readable by the owner only.
func OpenCertificate(path string, now time.Time) (*CertificateFile, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		text, err := makeCertificate(now)
		if err == nil {
			err = wholefile.Write(path, text)
		}
		if err != nil {
			return nil, fault.New(fault.Environment, "the certificate %s: %w", path, err)
		}
	}
	f := &CertificateFile{path: path, own: true}
	return f, f.Reload()
}

// Renew makes a new certificate in place of one that was made here and ends soon, for connections that come from now on; false
// if there is no need.
func (f *CertificateFile) Renew(now time.Time) (bool, error) {
	leaf := f.Current().Leaf
	if !f.Own() || now.Add(soon).Before(leaf.NotAfter) {
		return false, nil
	}
	err := f.Replace(now)
	return err == nil, err
}

// Replaceable refuses a certificate that somebody else has made, with WrongState; nil is no certificate.
func (f *CertificateFile) Replaceable() error {
	switch {
	case f == nil:
		return fault.New(fault.WrongState, "This controller does not serve RAPI yet")
	case !f.Own():
		return fault.New(fault.WrongState, "The certificate %s is not the controller's own", f.path).
			WithHint("put another one there, and have the controller read it: systemctl reload drover")
	}
	return nil
}

// Replace makes a new certificate, with another key, in place of one that is Replaceable, for connections that come from now on.
func (f *CertificateFile) Replace(now time.Time) error {
	if err := f.Replaceable(); err != nil {
		return err
	}
	text, err := makeCertificate(now)
	if err == nil {
		err = wholefile.Write(f.path, text)
	}
	if err != nil {
		return fault.New(fault.Environment, "the certificate %s cannot be renewed: %w", f.path, err)
	}
	return f.Reload()
}

// madeHere tells whether a certificate is one that makeCertificate makes.
func madeHere(leaf *x509.Certificate) bool {
	return bytes.Equal(leaf.RawIssuer, leaf.RawSubject) && leaf.NotAfter.Sub(leaf.NotBefore) == certificateLifetime+clocksDiffer
}

// ReadCertificate is OpenCertificate for a file that somebody named: it has to be there.
func ReadCertificate(path string) (*CertificateFile, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Environment, "the certificate %s is not there", path).
			WithHint("put certificate and key there, in one PEM file; without the setting one is made in the data directory")
	}
	f := &CertificateFile{path: path}
	return f, f.Reload()
}

// soon is how long before its end a certificate is told of.
const soon = 30 * 24 * time.Hour

// Path is that of the file.
func (f *CertificateFile) Path() string { return f.path }

// Own tells whether Drover made what is in the file, and renews that.
func (f *CertificateFile) Own() bool { return f.own && madeHere(f.Current().Leaf) }

// NotAfter is when the certificate ends.
func (f *CertificateFile) NotAfter() time.Time { return f.Current().Leaf.NotAfter }

// Trouble says what clients will have against the certificate, and when; empty for nothing.
func (f *CertificateFile) Trouble(now time.Time) string {
	leaf := f.Current().Leaf
	const day = "2 January 2006, 15:04 MST"
	switch {
	case now.Before(leaf.NotBefore):
		return "the certificate " + f.path + " begins only on " + leaf.NotBefore.UTC().Format(day)
	case now.After(leaf.NotAfter):
		return "the certificate " + f.path + " has ended on " + leaf.NotAfter.UTC().Format(day)
	case now.Add(soon).After(leaf.NotAfter):
		return "the certificate " + f.path + " ends on " + leaf.NotAfter.UTC().Format(day)
	}
	return ""
}

// Current returns the certificate as it was last read.
func (f *CertificateFile) Current() *tls.Certificate { return f.current.Load() }

// Reload reads the file anew, for connections that come from now on. What was
// there stays if the file cannot be used.
func (f *CertificateFile) Reload() error {
	cert, err := readCertificate(f.path)
	if err == nil {
		f.current.Store(&cert)
	}
	return err
}

func readCertificate(path string) (tls.Certificate, error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = checkPrivate(path)
	}
	if err != nil {
		return tls.Certificate{}, fault.New(fault.Environment, "the certificate %s: %w", path, err)
	}
	cert, err := tls.X509KeyPair(text, text)
	if err != nil {
		return tls.Certificate{}, fault.New(fault.Environment, "the certificate %s: %w", path, err)
	}
	return cert, nil
}

// checkPrivate refuses a file with a key that everybody can read, or that others
// than its owner can write.
func checkPrivate(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o027 != 0 {
		err = fault.New(fault.Environment, "the mode %04o lets others at the key", info.Mode().Perm()).WithHint("chmod 600 it, and make a new key")
	}
	return err
}

func makeCertificate(now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: host},
		NotBefore:             now.Add(-clocksDiffer),
		NotAfter:              now.Add(certificateLifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		DNSNames:              []string{host, "localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	return append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...), nil
}
