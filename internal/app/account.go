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

// openAccount reads the account in the directory, or makes it with a random
// password. The users file holds a hash; the password itself is kept beside
// it, readable by its owner only, so that it stays the same at the next start.
func openAccount(dir string) (account, error) {
	a := account{usersFile: filepath.Join(dir, "users"), name: "drover"}
	secret := filepath.Join(dir, "password")
	text, err := os.ReadFile(secret)
	if err == nil {
		a.password = strings.TrimSpace(string(text))
		return a, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return a, fault.New(fault.Environment, "cannot read the RAPI password: %w", err)
	}
	a.password = newPassword()
	err = errors.Join(
		os.MkdirAll(dir, 0o700),
		os.WriteFile(a.usersFile, fmt.Appendf(nil, "# name password [options]\n%s {HA1}%s read,write\n", a.name, rapi.HA1(a.name, a.password)), 0o600),
		os.WriteFile(secret, []byte(a.password+"\n"), 0o600))
	if err != nil {
		return a, fault.New(fault.Environment, "cannot make the RAPI account: %w", err)
	}
	return a, nil
}
