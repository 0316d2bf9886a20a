package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/fault"
)

// account is the RAPI account that a development cluster comes with.
type account struct {
	usersFile, name, password string
}

// openAccount reads the account in the directory. Where there is neither a
// users file nor a password, it makes them, with a random password. The users
// file holds a hash; the password itself is kept beside it, readable by its
// owner only, so that it stays the same at the next start. Each of the two
// files belongs to the administrator once it exists: if one was taken away, the
// other is not touched, and the account has no password that we know.
func openAccount(dir string) (account, error) {
	a := account{usersFile: filepath.Join(dir, "users"), name: "drover"}
	secret, prepared := filepath.Join(dir, "password"), filepath.Join(dir, ".users.new")
	text, err := os.ReadFile(secret)
	if err == nil {
		a.password = strings.TrimSpace(string(text))
		return a, a.publish(prepared)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return a, fault.New(fault.Environment, "cannot read the RAPI password: %w", err)
	}
	if _, err := os.Lstat(a.usersFile); err == nil {
		return a, nil
	}
	// A controller that is killed in between makes them anew or, once the
	// password is there, goes on with publish.
	password := newPassword()
	err = errors.Join(
		os.MkdirAll(dir, 0o700),
		os.WriteFile(prepared, fmt.Appendf(nil, "# name password [options]\n%s {HA1}%s read,write\n", a.name, rapi.HA1(a.name, password)), 0o600))
	if err == nil {
		err = os.WriteFile(secret+".new", []byte(password+"\n"), 0o600)
	}
	if err == nil {
		err = os.Rename(secret+".new", secret)
	}
	if err != nil {
		return a, fault.New(fault.Environment, "cannot make the RAPI account: %w", err)
	}
	a.password = password
	return a, a.publish(prepared)
}

// publish makes the prepared users file the users file, unless there is one.
func (a *account) publish(prepared string) error {
	err := os.Link(prepared, a.usersFile)
	if errors.Is(err, fs.ErrNotExist) { // the usual case: it was done long ago
		return nil
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = os.Remove(prepared)
	}
	if err != nil {
		return fault.New(fault.Environment, "cannot make the RAPI users file: %w", err)
	}
	return nil
}
