package rapi

import (
	"bytes"
	"crypto/md5" //nolint:gosec // the format of existing users files
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/rights"
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

// rights are those of the account; nil stands for a request without one.
func (u *user) rights() rights.Account {
	if u == nil {
		return rights.Account{}
	}
	return rights.Listed(u.options)
}

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
// A line with a fault lets nobody in, unless it is in its options alone; what is
// wrong with it is returned beside the accounts, which all other lines make. A
// fault does not repeat its line, which may hold a password.
func ParseUsers(text string) (*Users, []error) {
	users := &Users{byName: map[string]*user{}}
	var faults []error
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		u, wrong := parseUser(strings.Fields(line))
		if wrong != "" {
			faults = append(faults, fault.New(fault.Invalid, "users file, line %d: it lets nobody in: %s", number, wrong))
			continue
		}
		users.byName[u.name] = u
		if slices.ContainsFunc(u.options, func(word string) bool { return !rights.IsListed(word) }) {
			faults = append(faults, fault.New(fault.Invalid, "users file, line %d: it has a right that means nothing; there are read and write", number))
		}
	}
	return users, faults
}

// parseUser makes an account of the words of a line, or tells what is wrong
// with them.
func parseUser(words []string) (u *user, wrong string) {
	if len(words) < 2 {
		return nil, "a line has a name, a password and perhaps options"
	}
	u = &user{name: words[0]}
	if len(words) > 2 {
		u.options = splitWords(strings.Join(words[2:], ","))
	}
	return u, u.setPassword(words[1])
}

// setPassword tells why the text can be no password, if it cannot.
func (u *user) setPassword(text string) (wrong string) {
	u.secret = text
	if strings.HasPrefix(text, "{") {
		scheme, rest, ok := strings.Cut(text[1:], "}")
		switch {
		case ok && strings.EqualFold(scheme, "CLEARTEXT"):
			u.secret = rest
		case ok && strings.EqualFold(scheme, "HA1"):
			u.secret, u.ha1 = strings.ToLower(rest), true
			if sum, err := hex.DecodeString(u.secret); err != nil || len(sum) != md5.Size {
				return "what follows {HA1} is not the hexadecimal form of an MD5 sum"
			}
		default:
			return "the schemes of passwords are {CLEARTEXT} and {HA1}"
		}
	}
	if u.secret == "" {
		return "the password is empty"
	}
	return ""
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

// Account returns what an account may do, and a text that changes with its password and tells nothing of it; ok is false if there is none.
func (u *Users) Account(name string) (may rights.Account, stamp string, ok bool) {
	found := u.byName[name]
	if found == nil {
		return rights.Account{}, "", false
	}
	sum := sha256.Sum256([]byte(found.secret))
	return found.rights(), hex.EncodeToString(sum[:]), true
}

// find returns the user that the credentials belong to, nil for none.
func (u *Users) find(name, password string) *user {
	if found := u.byName[name]; found != nil && found.verify(password) {
		return found
	}
	return nil
}

// UsersFile is a users file. Who may do something is asked of the file as it
// is at that moment: an account that was taken out is out at once, and without
// a file nobody has one.
type UsersFile struct {
	path  string
	log   *slog.Logger
	clock func() time.Time

	mu    sync.Mutex
	users *Users
	text  []byte
	// sight is how the file looked when it was read.
	sight sight
	// trouble is why the file could not be read; empty if it could.
	trouble string
}

// OpenUsers returns the accounts of the file at path, which need not be there.
// What is wrong with it, now or later, is logged.
func OpenUsers(path string, log *slog.Logger) *UsersFile {
	f := &UsersFile{path: path, log: log, clock: time.Now, users: &Users{}}
	f.Current()
	return f
}

// maxUsers is the greatest size of a users file, in bytes.
const maxUsers = 4 << 20

// sight is what the system tells of a file, but for when it was read.
type sight struct {
	device, file      uint64
	size              int64
	modified, changed syscall.Timespec
}

// settled is how old the last change of a file has to be, so that the next one has
// another time on any file system.
const settled = 3 * time.Second

// look returns the sight of a file; the zero value if it says nothing, for there is
// no file or it was changed a moment ago.
func look(path string, now time.Time) sight {
	var s syscall.Stat_t
	if err := syscall.Stat(path, &s); err != nil || now.Sub(time.Unix(s.Ctim.Unix())) < settled {
		return sight{}
	}
	return sight{s.Dev, s.Ino, s.Size, s.Mtim, s.Ctim}
}

// Current returns the accounts as they are now. The file is read unless it looks as
// it did: its size and the time of its modification can be those from before, the
// time of its last change, which only the system sets, cannot.
func (f *UsersFile) Current() *Users {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := look(f.path, f.clock())
	if now != (sight{}) && now == f.sight {
		return f.users
	}
	users := f.read()
	f.sight = now // from before it was read
	if f.trouble != "" {
		f.sight = sight{}
	}
	return users
}

// Trouble says why nobody has an account though somebody is to have one: the file cannot be read, or has nothing in it, not so much as a
// comment. Empty if neither is so.
func (f *UsersFile) Trouble() string {
	f.Current()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.trouble == "" && len(f.text) == 0 {
		return f.path + " is empty"
	}
	return f.trouble
}

func (f *UsersFile) read() *Users {
	text, err := readUsers(f.path)
	if err != nil {
		if f.trouble != err.Error() {
			f.log.Warn("the RAPI users file cannot be read, so that nobody has an account", "error", err)
		}
		f.trouble, f.users, f.text = err.Error(), &Users{}, nil
		return f.users
	}
	if f.text != nil && f.trouble == "" && bytes.Equal(text, f.text) {
		return f.users
	}
	users, faults := ParseUsers(string(text))
	for _, why := range faults {
		f.log.Warn("a line of the RAPI users file is at fault", "path", f.path, "error", why)
	}
	f.trouble, f.users, f.text = "", users, text
	return users
}

func readUsers(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, maxUsers+1))
	if err = errors.Join(err, file.Close()); err == nil && len(text) > maxUsers {
		err = fault.New(fault.TooLarge, "%s has more than %d bytes", path, maxUsers)
	}
	return text, err
}
