package rapi_test

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/fault"
)

func TestHA1(t *testing.T) {
	if got, want := rapi.HA1("rapi", "secret"), "9cf5f3e6762b1255ef10e1c30cd8c5d5"; got != want {
		t.Errorf("HA1 = %q, want %q", got, want)
	}
}

func TestUsersFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users")
	write := func(text string, age time.Duration) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-age)
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := rapi.OpenUsers(path); !fault.Is(err, fault.Environment) {
		t.Errorf("a missing file: %v", err)
	}
	write("just-a-name\n", time.Hour)
	if _, err := rapi.OpenUsers(path); !fault.Is(err, fault.Invalid) {
		t.Errorf("a line without a password: %v", err)
	}
	write("# comment\n\n plain pw read,write\nclear {cleartext}pw write\nhash {ha1}"+rapi.HA1("hash", "pw")+"\nodd {SHA}pw write\n", time.Hour)
	file, err := rapi.OpenUsers(path)
	if err != nil {
		t.Fatal(err)
	}
	users, err := file.Current()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"plain": true, "clear": true, "hash": true, "odd": false, "nobody": false} {
		if got := users.Verify(name, "pw"); got != want {
			t.Errorf("%s: let in %v, want %v", name, got, want)
		}
		if users.Verify(name, "pw2") || users.Verify(name, "") {
			t.Errorf("%s: let in with a wrong password", name)
		}
	}
	write("other pw\n", 0)
	if users, err = file.Current(); err != nil || !users.Verify("other", "pw") || users.Verify("plain", "pw") {
		t.Errorf("the changed file was not read again (%v)", err)
	}
	write("broken\n", -time.Hour)
	if users, err = file.Current(); err == nil || !users.Verify("other", "pw") {
		t.Errorf("a broken file must leave the accounts as they were (%v)", err)
	}
}

func TestCertificateIsMadeOnceAndKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rapi.pem")
	first, err := rapi.Certificate(path, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	second, err := rapi.Certificate(path, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if string(first.Certificate[0]) != string(second.Certificate[0]) {
		t.Error("a second start made another certificate")
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	cert, err := x509.ParseCertificate(first.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"localhost", "127.0.0.1"} {
		if err := cert.VerifyHostname(host); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	if err := os.WriteFile(path, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := rapi.Certificate(path, time.Now()); !fault.Is(err, fault.Environment) {
		t.Errorf("a broken file: %v", err)
	}
}
