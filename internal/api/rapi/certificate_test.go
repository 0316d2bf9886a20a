package rapi_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/fault"
)

// TestCertificatesAreRenewed: those that were made here, a month before they end; nobody else's, wherever it is.
func TestCertificatesAreRenewed(t *testing.T) {
	const year = 365 * 24 * time.Hour
	made := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "rapi.pem")
	f, err := rapi.OpenCertificate(path, made)
	if err != nil {
		t.Fatal(err)
	}
	renewed := func(f *rapi.CertificateFile, at time.Time, want bool) {
		t.Helper()
		before := f.Current()
		if got, err := f.Renew(at); err != nil || got != want || (f.Current() != before) != want {
			t.Errorf("renewed: %v, %v", got, err)
		}
	}
	renewed(f, made.Add(5*year-31*24*time.Hour), false)
	renewed(f, made.Add(5*year-29*24*time.Hour), true)
	if f.NotAfter().Before(made.Add(9 * year)) {
		t.Errorf("it ends on %v", f.NotAfter())
	}
	renewed(f, made.Add(5*year), false)
	renewed(f, made.Add(11*year), true) // it had ended
	before := f.Current()
	if err := f.Replace(made.Add(11 * year)); err != nil || f.Current() == before || bytes.Equal(f.Current().Leaf.RawSubjectPublicKeyInfo, before.Leaf.RawSubjectPublicKeyInfo) {
		t.Errorf("one that somebody wants replaced has another key: %v", err)
	}

	named, err := rapi.ReadCertificate(path)
	if err != nil {
		t.Fatal(err)
	}
	renewed(named, made.Add(30*year), false)
	if err := named.Replace(made); !fault.Is(err, fault.WrongState) {
		t.Errorf("one that was named is replaced: %v", err)
	}
	if err := (*rapi.CertificateFile)(nil).Replaceable(); !fault.Is(err, fault.WrongState) {
		t.Errorf("one that is not read yet: %v", err)
	}

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: made, NotAfter: made.Add(year)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, block := range []*pem.Block{{Type: "PRIVATE KEY", Bytes: keyDER}, {Type: "CERTIFICATE", Bytes: der}} {
		_ = pem.Encode(&text, block) // a buffer takes all
	}
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign, err := rapi.OpenCertificate(path, made)
	if err != nil {
		t.Fatal(err)
	}
	renewed(foreign, made.Add(2*year), false)
}
