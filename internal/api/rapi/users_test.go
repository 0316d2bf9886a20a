package rapi_test

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// usersFile is a users file, and what was logged about it.
type usersFile struct {
	*testing.T
	path string
	file *rapi.UsersFile
	log  bytes.Buffer
}

func newUsersFile(t *testing.T) *usersFile {
	t.Helper()
	u := &usersFile{T: t, path: filepath.Join(t.TempDir(), "users")}
	u.file = rapi.OpenUsers(u.path, slog.New(slog.NewTextHandler(&u.log, nil)))
	return u
}

func (u *usersFile) write(text string) {
	u.Helper()
	if err := os.WriteFile(u.path, []byte(text), 0o600); err != nil {
		u.Fatal(err)
	}
}

// lets checks who is let in with the password "pw"; all of them are tried.
func (u *usersFile) lets(names ...string) {
	u.Helper()
	users := u.file.Current()
	for _, name := range []string{"plain", "clear", "hash", "odd", "other"} {
		if got, want := users.Verify(name, "pw"), slices.Contains(names, name); got != want {
			u.Errorf("%s: let in %v, want %v", name, got, want)
		}
		for _, wrong := range []string{"pw2", "p", ""} {
			if users.Verify(name, wrong) {
				u.Errorf("%s: let in with the password %q", name, wrong)
			}
		}
	}
}

const someUsers = "# comment\n\n plain pw read,write\nclear {cleartext}pw write\nhash {ha1}%s\nodd {SHA}pw write\n"

func TestUsersFile(t *testing.T) {
	u := newUsersFile(t)
	u.lets() // there is no file
	u.write(fmt.Sprintf(someUsers, rapi.HA1("hash", "pw")))
	u.lets("plain", "clear", "hash")
	u.write("other pw\n")
	u.lets("other")
}

func TestFaultyLinesOfTheUsersFileLetNobodyInAndHoldUpNothing(t *testing.T) {
	u := newUsersFile(t)
	u.write("plain pw write\nother pw write\n")
	u.lets("plain", "other")
	// Who was taken out is out, whatever else is wrong with the file.
	u.write("plain pw write\nother-without-a-password\nclear {CLEARTEXT}\nhash {HA1}\nodd {HA1}pw\n")
	u.lets("plain")
	u.write("nonsense\n")
	u.lets()
	for _, want := range []string{"line 2: it lets nobody in: a line has a name", "line 3: it lets nobody in: the password is empty", "line 4: it lets nobody in: what follows {HA1}", "line 5", "line 1"} {
		if !strings.Contains(u.log.String(), want) {
			t.Errorf("not logged: %s", want)
		}
	}
	if strings.Contains(u.log.String(), "without-a-password") {
		t.Error("the log repeats a line")
	}
	length := u.log.Len()
	u.lets()
	if u.log.Len() != length {
		t.Error("the same fault is logged twice")
	}
}

// A right that is misspelt gives none, and is told.
func TestUnknownRightsAreTold(t *testing.T) {
	users, faults := rapi.ParseUsers("plain pw wirte\nother pw read,write\n")
	if len(faults) != 1 || !strings.Contains(faults[0].Error(), "line 1: it has a right that means nothing; there are read and write") {
		t.Errorf("told is %v", faults)
	}
	if !users.Verify("plain", "pw") || !users.Verify("other", "pw") {
		t.Error("an account is gone")
	}
}

func TestRemovedUsersFileLetsNobodyIn(t *testing.T) {
	u := newUsersFile(t)
	u.write("plain pw write\n")
	u.lets("plain")
	if err := os.Remove(u.path); err != nil {
		t.Fatal(err)
	}
	u.lets()
	u.write("plain pw write\n")
	u.lets("plain")
	if err := os.Truncate(u.path, 5<<20); err != nil { // far too large
		t.Fatal(err)
	}
	u.lets()
}

func TestEditOfSameSizeAndTimeIsSeen(t *testing.T) {
	u := newUsersFile(t)
	u.write("plain pw write\n")
	u.lets("plain")
	info, err := os.Stat(u.path)
	if err != nil {
		t.Fatal(err)
	}
	u.write("other pw write\n")
	if err := os.Chtimes(u.path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	u.lets("other")
}

func TestCertificateIsMadeOnceAndKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rapi.pem")
	first, err := rapi.OpenCertificate(path, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	second, err := rapi.OpenCertificate(path, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if string(first.Current().Certificate[0]) != string(second.Current().Certificate[0]) {
		t.Error("a second start made another certificate")
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	cert, err := x509.ParseCertificate(first.Current().Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if cert.IsCA || cert.KeyUsage&x509.KeyUsageCertSign != 0 {
		t.Error("the certificate can sign others")
	}
	for _, host := range []string{"localhost", "127.0.0.1"} {
		if err := cert.VerifyHostname(host); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := rapi.OpenCertificate(path, time.Now()); !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that all can read: %v", err)
	}
	if err := errors.Join(os.WriteFile(path, []byte("no certificate"), 0o600), os.Chmod(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := rapi.OpenCertificate(path, time.Now()); !fault.Is(err, fault.Environment) {
		t.Errorf("a broken file: %v", err)
	}
	if err := first.Reload(); !fault.Is(err, fault.Environment) || first.Current() == nil {
		t.Errorf("a broken file, read anew: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	other, err := rapi.OpenCertificate(path, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Reload(); err != nil || string(first.Current().Certificate[0]) != string(other.Current().Certificate[0]) {
		t.Errorf("another certificate was not taken up: %v", err)
	}
}
