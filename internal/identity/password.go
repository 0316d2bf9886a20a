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

// cost is what it takes to try a password. It is stored beside each, so that those which were made at another one go on being good.
type cost struct {
	memory uint32 // KiB
	passes uint32
	lanes  uint8
}

// present is the cost of new ones: 19 MiB of memory, twice over, as OWASP recommends for argon2id with one lane.
var present = cost{memory: 19 << 10, passes: 2, lanes: 1}

// highest is what a stored one may ask for at the most.
var highest = cost{memory: 1 << 20, passes: 32, lanes: 16}

const (
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

func (h hasher) key(password string, salt []byte, c cost) []byte {
	h <- struct{}{}
	defer func() { <-h }()
	return argon2.IDKey([]byte(password), salt, c.passes, c.memory, c.lanes, hashLen)
}

var b64 = base64.RawStdEncoding

// hash returns a password as it is stored, in the usual text form.
func (h hasher) hash(password string) (string, error) {
	if password == "" || len(password) > maxPassword {
		return "", fault.New(fault.Invalid, "a password must have 1 to %d bytes", maxPassword).At("password")
	}
	salt := make([]byte, saltLen)
	_, _ = rand.Read(salt) // never fails
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, present.memory, present.passes, present.lanes,
		b64.EncodeToString(salt), b64.EncodeToString(h.key(password, salt, present))), nil
}

// nobody is compared with where there is no such account, so that it takes as
// long to find that out as to find a wrong password.
var nobody = make([]byte, saltLen)

// matches reports whether a password is the one that was stored.
func (h hasher) matches(password, stored string) bool {
	if len(password) > maxPassword {
		return false
	}
	c, salt, want := decode(stored)
	if want == nil {
		h.key(password, nobody, present)
		return false
	}
	return subtle.ConstantTimeCompare(h.key(password, salt, c), want) == 1
}

// decode reads a stored hash; nil for what is none.
func decode(stored string) (c cost, salt, hash []byte) {
	parts := strings.Split(stored, "$")
	const fields = 6 // empty, algorithm, version, cost, salt, hash
	if len(parts) != fields || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return cost{}, nil, nil
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &c.memory, &c.passes, &c.lanes); err != nil {
		return cost{}, nil, nil
	}
	salt, err := b64.DecodeString(parts[4])
	hash, err2 := b64.DecodeString(parts[5])
	if err != nil || err2 != nil || len(hash) != hashLen || c.passes < 1 || c.lanes < 1 || c.memory > highest.memory || c.passes > highest.passes || c.lanes > highest.lanes {
		return cost{}, nil, nil
	}
	return c, salt, hash
}
