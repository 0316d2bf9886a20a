package app

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-project/drover/internal/api/rapi"
)

func (a account) letIn(t *testing.T) bool {
	t.Helper()
	return rapi.OpenUsers(a.usersFile, slog.New(slog.DiscardHandler)).Current().Verify(a.name, a.password)
}

func mustOpenAccount(t *testing.T, dir string) account {
	t.Helper()
	a, err := openAccount(dir)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAccountStaysTheSame(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rapi")
	first := mustOpenAccount(t, dir)
	second := mustOpenAccount(t, dir)
	if first != second || !second.letIn(t) {
		t.Errorf("%v, then %v, let in: %v", first, second, second.letIn(t))
	}
	for _, name := range []string{"users", "password"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func TestAccountFilesOfAnAdministratorAreNotTouched(t *testing.T) {
	for _, removed := range []string{"password", "users"} {
		dir := filepath.Join(t.TempDir(), "rapi")
		mustOpenAccount(t, dir)
		path := filepath.Join(dir, "users")
		const edited = "someone secret write\n"
		err := errors.Join(os.WriteFile(path, []byte(edited), 0o600), os.Remove(filepath.Join(dir, removed)))
		if err != nil {
			t.Fatal(err)
		}
		if a := mustOpenAccount(t, dir); a.letIn(t) {
			t.Errorf("without %s: the program's own account is let in", removed)
		}
		text, err := os.ReadFile(path)
		switch {
		case removed == "users" && !errors.Is(err, fs.ErrNotExist):
			t.Errorf("the users file is back: %s, %v", text, err)
		case removed == "password" && (err != nil || string(text) != edited):
			t.Errorf("without a password the users file became %q (%v)", text, err)
		}
	}
}

func TestAccountThatWasBeingMadeIsFinished(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rapi")
	first := mustOpenAccount(t, dir)
	// As a controller leaves it that was killed before its last step.
	if err := os.Rename(filepath.Join(dir, "users"), filepath.Join(dir, ".users.new")); err != nil {
		t.Fatal(err)
	}
	if second := mustOpenAccount(t, dir); second != first || !second.letIn(t) {
		t.Errorf("%v became %v, let in: %v", first, second, second.letIn(t))
	}
	// And of one that was killed before the last but one.
	other := filepath.Join(t.TempDir(), "rapi")
	if err := errors.Join(os.Mkdir(other, 0o700), os.WriteFile(filepath.Join(other, ".users.new"), []byte("drover"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if a := mustOpenAccount(t, other); !a.letIn(t) {
		t.Error("the account is not let in")
	}
}
