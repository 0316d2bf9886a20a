package keypair_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/keypair"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/store/sqlite"
)

const line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBSlNqpjSJ7CsHz+lzPz4LkyhLl0wMWPBfQUcTdtMtL6"

// most is how many a user may have.
const most = 100

func open(t *testing.T, dir string) (*keypair.Service, store.Store) {
	t.Helper()
	kept, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := keypair.Open(t.Context(), keypair.Config{Store: kept, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s, kept
}

// TestAPrivateKeyIsToldOnce: it belongs to the public one, and is in nothing that is stored.
func TestAPrivateKeyIsToldOnce(t *testing.T) {
	s, kept := open(t, t.TempDir())
	defer func() { _ = kept.Close() }()
	made, private, err := s.Add(t.Context(), "alice", "mine", "", most)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey([]byte(private))
	if err != nil {
		t.Fatalf("%v\n%s", err, private)
	}
	if got := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))); got != made.Public {
		t.Errorf("the private key's public one is %s, and what is kept is %s", got, made.Public)
	}
	secret := strings.Split(private, "\n")[1]
	for o, err := range kept.List(t.Context(), keypair.Kind, store.Options{}) {
		if err != nil || strings.Contains(string(o.Value), secret) || strings.Contains(string(o.Value), "PRIVATE") {
			t.Errorf("stored is %s (%v)", o.Value, err)
		}
	}
	if _, private, err := s.Add(t.Context(), "alice", "brought", line+" me@here", most); err != nil || private != "" {
		t.Errorf("of a key that was brought the private one is %q (%v)", private, err)
	}
	if got, err := s.Find("alice", "brought"); err != nil || got.Public != line+" me@here" || strings.Count(got.Fingerprint, ":") != 15 {
		t.Errorf("kept is %+v (%v)", got, err)
	}
}

// TestKeyPairsAreOfOneUser: two may have the same name, and neither reaches the other's.
func TestKeyPairsAreOfOneUser(t *testing.T) {
	s, kept := open(t, t.TempDir())
	defer func() { _ = kept.Close() }()
	for _, user := range []string{"alice", "bob"} {
		if _, _, err := s.Add(t.Context(), user, "mine", line, most); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Add(t.Context(), "alice", "mine", line, most); !fault.Is(err, fault.Exists) {
		t.Errorf("the same name once more: %v", err)
	}
	if err := s.Remove(t.Context(), "alice", "mine"); err != nil {
		t.Error(err)
	}
	if _, err := s.Find("bob", "mine"); err != nil {
		t.Errorf("another's was removed: %v", err)
	}
	if err := s.Remove(t.Context(), "alice", "mine"); !fault.Is(err, fault.NotFound) {
		t.Errorf("removed twice: %v", err)
	}
	if n := len(s.Of("alice")); n != 0 {
		t.Errorf("alice has %d", n)
	}
}

// TestKeyPairsLast: what was said to be there is there behind a new start, and what was removed is not.
func TestKeyPairsLast(t *testing.T) {
	dir := t.TempDir()
	s, kept := open(t, dir)
	for _, name := range []string{"b", "a", "gone"} {
		if _, _, err := s.Add(t.Context(), "alice", name, line, most); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Remove(t.Context(), "alice", "gone"); err != nil {
		t.Error(err)
	}
	before := s.Of("alice")
	if err := kept.Close(); err != nil {
		t.Fatal(err)
	}
	s, kept = open(t, dir)
	defer func() { _ = kept.Close() }()
	after := s.Of("alice")
	if len(after) != 2 || after[0] != before[0] || after[1] != before[1] || after[0].Name != "a" {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

func TestWhatIsNoKeyPairIsRefused(t *testing.T) {
	s, kept := open(t, t.TempDir())
	defer func() { _ = kept.Close() }()
	for what, of := range map[string][2]string{
		"no name": {"", line}, "a long one": {strings.Repeat("k", 256), line}, "a slash": {"a/b", line}, "blanks at its end": {"a ", line},
		"no key": {"a", "mine"}, "cut off": {"a", line[:40]}, "options": {"a", `command="/bin/sh" ` + line}, "two lines": {"a", line + "\n" + line},
		"a private one": {"a", "-----BEGIN OPENSSH PRIVATE KEY-----"}, "a long key": {"a", line + " " + strings.Repeat("x", 20<<10)},
	} {
		if _, _, err := s.Add(t.Context(), "alice", of[0], of[1], most); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range most {
		if _, _, err := s.Add(t.Context(), "alice", "k"+strings.Repeat("x", i), line, most); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Add(t.Context(), "alice", "one-more", line, most); !fault.Is(err, fault.Denied) {
		t.Errorf("one too many: %v", err)
	}
}

// TestWhatIsStoredIsKnown: also where the store could not say so, and where who asked has left.
func TestWhatIsStoredIsKnown(t *testing.T) {
	_, beneath := open(t, t.TempDir())
	failing := faultstore.New(beneath)
	s, err := keypair.Open(t.Context(), keypair.Config{Store: failing, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, _, err := s.Add(left, "u", "early", "", most); err != nil || len(s.Of("u")) != 1 {
		t.Errorf("of one who has left: %v, %v", s.Of("u"), err)
	}
	failing.Inject(faultstore.Fault{Do: faultstore.FailAfter})
	if _, _, err := s.Add(t.Context(), "u", "lost", "", most); !fault.Is(err, fault.Unavailable) {
		t.Fatal(err)
	}
	if _, _, err := s.Add(t.Context(), "u", "lost", "", most); !fault.Is(err, fault.Exists) {
		t.Errorf("what is stored is made again: %v", err)
	}
	failing.Inject(faultstore.Fault{Do: faultstore.FailAfter})
	if err := s.Remove(t.Context(), "u", "lost"); !fault.Is(err, fault.Unavailable) {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), "u", "lost"); !fault.Is(err, fault.NotFound) {
		t.Errorf("what is gone is removed again: %v", err)
	}
}

// TestNoKeyPairIsChangedInAnothersTerm: by the controller that led before, and does not know yet that another leads.
func TestNoKeyPairIsChangedInAnothersTerm(t *testing.T) {
	_, kept := open(t, t.TempDir())
	defer func() { _ = kept.Close() }()
	lease, err := kept.AcquireLease(t.Context(), "leader", "me", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s, err := keypair.Open(t.Context(), keypair.Config{Store: kept, Epoch: lease.Epoch, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Add(t.Context(), "alice", "mine", line, most); err != nil {
		t.Fatal(err)
	}
	if err := kept.ReleaseLease(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Add(t.Context(), "alice", "other", line, most); !fault.Is(err, fault.Fenced) {
		t.Errorf("added: %v", err)
	}
	if err := s.Remove(t.Context(), "alice", "mine"); !fault.Is(err, fault.Fenced) {
		t.Errorf("removed: %v", err)
	}
	if all := s.Of("alice"); len(all) != 1 || all[0].Name != "mine" {
		t.Errorf("there are %+v", all)
	}
}
