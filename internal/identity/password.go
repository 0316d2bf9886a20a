package identity

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"

	"github.com/drover-project/drover/internal/fault"
)

// The cost of a password: 19 MiB of memory, twice over, as OWASP recommends for
// argon2id with one lane.
const (
	memory  = 19 << 10 // KiB
	passes  = 2
	lanes   = 1
	saltLen = 16
	hashLen = 32
	// maxPassword is how long a password may be, in bytes.
	maxPassword = 512
	// atOnce is how many passwords are hashed at once: the others wait, so that a
	// flood of logins takes neither the memory nor all processors.
	atOnce = 2
)

// hasher hashes passwords, a few at a time.
type hasher chan struct{}

func newHasher() hasher { return make(hasher, atOnce) }

func (h hasher) key(password string, salt []byte) []byte {
	h <- struct{}{}
	defer func() { <-h }()
	return argon2.IDKey([]byte(password), salt, passes, memory, lanes, hashLen)
}

var b64 = base64.RawStdEncoding

// hash returns a password as it is stored, in the usual text form.
func (h hasher) hash(password string) (string, error) {
	if password == "" || len(password) > maxPassword {
		return "", fault.New(fault.Invalid, "a password must have 1 to %d bytes", maxPassword).At("password")
	}
	salt := make([]byte, saltLen)
	_, _ = rand.Read(salt) // never fails
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, memory, passes, lanes,
		b64.EncodeToString(salt), b64.EncodeToString(h.key(password, salt))), nil
}

// nobody is compared with where there is no such account, so that it takes as
// long to find that out as to find a wrong password.
var nobody = make([]byte, saltLen)

// matches reports whether a password is the one that was stored.
func (h hasher) matches(password, stored string) bool {
	if len(password) > maxPassword {
		return false
	}
	salt, want := decode(stored)
	if want == nil {
		h.key(password, nobody)
		return false
	}
	return subtle.ConstantTimeCompare(h.key(password, salt), want) == 1
}

// decode reads a stored hash; nil for what is none.
func decode(stored string) (salt, hash []byte) {
	parts := strings.Split(stored, "$")
	const fields = 6 // empty, algorithm, version, cost, salt, hash
	if len(parts) != fields || parts[3] != fmt.Sprintf("m=%d,t=%d,p=%d", memory, passes, lanes) {
		return nil, nil
	}
	salt, err := b64.DecodeString(parts[4])
	hash, err2 := b64.DecodeString(parts[5])
	if err != nil || err2 != nil || len(hash) == 0 {
		return nil, nil
	}
	return salt, hash
}
