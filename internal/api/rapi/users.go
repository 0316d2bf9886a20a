package rapi

import (
	"crypto/md5" //nolint:gosec // the format of existing users files
	"crypto/subtle"
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// Realm is the name under which clients authenticate. It is part of the
// passwords in users files ({HA1}), so it can never change.
const Realm = "Ganeti Remote API"

// user is one line of a users file.
type user struct {
	name    string
	secret  string // plain text, or the hexadecimal HA1 in lower case
	ha1     bool
	options []string
}

func (u *user) may(option string) bool { return slices.Contains(u.options, option) }

func (u *user) verify(password string) bool {
	if u.ha1 {
		password = HA1(u.name, password)
	}
	return subtle.ConstantTimeCompare([]byte(u.secret), []byte(password)) == 1
}

// HA1 returns the hexadecimal form in which a users file can hold a password
// without showing it: {HA1} followed by this text.
func HA1(name, password string) string {
	sum := md5.Sum([]byte(name + ":" + Realm + ":" + password)) //nolint:gosec // the format of existing users files
	return hex.EncodeToString(sum[:])
}

// Users are the accounts of a users file, by name.
type Users struct{ byName map[string]*user }

// ParseUsers reads the text of a users file: lines "name password
// [option,...]", comments after "#" at the start of a line. The password is
// plain text, {CLEARTEXT}text or {HA1}hex; the options are "read" and "write".
// An account with another scheme is kept but never let in.
func ParseUsers(text string) (*Users, error) {
	users := &Users{byName: map[string]*user{}}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Fields(line)
		if len(parts) < 2 {
			return nil, fault.New(fault.Invalid, "users file, line %d: a line has a name, a password and perhaps options", number)
		}
		u := &user{name: parts[0]}
		if len(parts) > 2 {
			u.options = splitWords(strings.Join(parts[2:], ","))
		}
		if !u.setPassword(parts[1]) {
			continue
		}
		users.byName[u.name] = u
	}
	return users, nil
}

// setPassword reports whether the password can ever match.
func (u *user) setPassword(text string) bool {
	if !strings.HasPrefix(text, "{") {
		u.secret = text
		return true
	}
	scheme, rest, ok := strings.Cut(text[1:], "}")
	switch {
	case ok && strings.EqualFold(scheme, "CLEARTEXT"):
		u.secret = rest
	case ok && strings.EqualFold(scheme, "HA1"):
		u.secret, u.ha1 = strings.ToLower(rest), true
	default:
		return false
	}
	return true
}

func splitWords(text string) []string {
	var words []string
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// Verify reports whether the credentials are those of an account.
func (u *Users) Verify(name, password string) bool { return u.find(name, password) != nil }

// find returns the user that the credentials belong to, nil for none.
func (u *Users) find(name, password string) *user {
	if found := u.byName[name]; found != nil && found.verify(password) {
		return found
	}
	return nil
}

// UsersFile is a users file that is read again when it has changed.
type UsersFile struct {
	path string

	mu     sync.Mutex
	users  *Users
	seen   time.Time
	length int64
}

// OpenUsers reads the users file at path.
func OpenUsers(path string) (*UsersFile, error) {
	f := &UsersFile{path: path}
	if err := f.read(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *UsersFile) read() error {
	info, err := os.Stat(f.path)
	if err != nil {
		return fault.New(fault.Environment, "cannot read the users file: %w", err)
	}
	if f.users != nil && info.ModTime().Equal(f.seen) && info.Size() == f.length {
		return nil
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		return fault.New(fault.Environment, "cannot read the users file: %w", err)
	}
	users, err := ParseUsers(string(text))
	if err != nil {
		return err
	}
	f.users, f.seen, f.length = users, info.ModTime(), info.Size()
	return nil
}

// Current returns the accounts as they are now. If the file has become
// unreadable, the accounts are those from before, and the error says why.
func (f *UsersFile) Current() (*Users, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.read()
	return f.users, err
}
