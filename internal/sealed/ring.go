// Package sealed keeps the secrets of stored values under a key that is not in the store: whoever has the store alone,
// or a backup or a copy of it, cannot read them.
//
// A store is used through Over, which seals what is written and opens what is read; who writes and reads knows nothing
// of it. What is sealed is said by a table: the values under some keys of a kind of objects, or all of each. Sealing is
// AES-256-GCM with a random nonce, bound to the object and the place in it. A sealed value says which key opens it.
//
// Invariants:
//   - Nothing of what the table names reaches the store in clear.
//   - What is read is, byte for byte, what was written.
//   - A store with values that are sealed under a key has a note of that key, written in the same transaction as the
//     first of them, so that it is known before anything else which keys are needed (KeysOf).
//   - What cannot be opened is never shown in place of what was sealed.
package sealed

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/drover-project/drover/internal/fault"
)

// keySize is the size of a key in bytes.
const keySize = 32

// Ring are the keys of a file: the first seals, all of them open.
type Ring struct{ keys []*key }

// key is a line of the file, and what is derived from it.
type key struct {
	line   string
	id     string
	seal   cipher.AEAD
	digest []byte
}

// ReadRing reads a file of keys; fault.NotFound if there is none.
func ReadRing(path string) (*Ring, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "there is no key file %s", path)
	}
	if err == nil {
		err = checkPrivate(path)
	}
	if err != nil {
		return nil, fault.New(fault.Environment, "the key file %s: %w", path, err)
	}
	r, err := ParseRing(text)
	if err != nil {
		return nil, fault.New(fault.Environment, "the key file %s: %w", path, err)
	}
	return r, nil
}

// checkPrivate refuses a file that everybody can read, or that others than its owner can write.
func checkPrivate(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o027 != 0 {
		return fault.New(fault.Environment, "the mode %04o lets others at the keys", info.Mode().Perm()).WithHint("chmod 600 it")
	}
	return err
}

// ParseRing reads the text of a file: a key to a line, 32 bytes as base64. Empty lines, and those that begin with #, are
// for people.
func ParseRing(text []byte) (*Ring, error) {
	r := &Ring{}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		secret, err := base64.StdEncoding.DecodeString(string(line))
		if err != nil || len(secret) != keySize {
			return nil, fault.New(fault.Invalid, "line %d is no key", n).WithHint("a key is %d bytes as base64: openssl rand -base64 %[1]d", keySize)
		}
		k, err := derive(secret)
		if err != nil {
			return nil, err
		}
		if r.key(k.id) == nil {
			r.keys = append(r.keys, k)
		}
	}
	if len(r.keys) == 0 {
		return nil, fault.New(fault.Invalid, "there is no key in it").WithHint("a key is %d bytes as base64: openssl rand -base64 %[1]d", keySize)
	}
	return r, nil
}

// derive makes a key of a secret: what it is called, and a key for each use.
func derive(secret []byte) (*key, error) {
	of := func(use string, size int) ([]byte, error) {
		return hkdf.Key(sha256.New, secret, nil, "drover "+use, size)
	}
	const idSize = 6
	id, err := of("id", idSize)
	if err != nil {
		return nil, err
	}
	sealing, err := of("sealing", keySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(sealing)
	if err != nil {
		return nil, err
	}
	k := &key{line: base64.StdEncoding.EncodeToString(secret), id: hex.EncodeToString(id)}
	if k.seal, err = cipher.NewGCMWithRandomNonce(block); err != nil {
		return nil, err
	}
	k.digest, err = of("digests", keySize)
	return k, err
}

// NewRing returns a ring with a new key.
func NewRing() (*Ring, error) {
	secret := make([]byte, keySize)
	_, _ = rand.Read(secret) // never fails
	k, err := derive(secret)
	return &Ring{[]*key{k}}, err
}

// MakeRing makes a file with a new key, readable by its owner alone. Whoever made it first has made it: the file of another
// is read.
func MakeRing(path string) (*Ring, error) {
	r, err := NewRing()
	if err != nil {
		return nil, err
	}
	if err := write(path, r.Text(), os.Link); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fault.New(fault.Environment, "the key file %s cannot be made: %w", path, err)
	}
	return ReadRing(path)
}

// Joined is a ring that seals with the first key of another, and opens with the keys of both. Nil has no key.
func (r *Ring) Joined(first *Ring) *Ring {
	out := &Ring{slices.Clone(first.keys)}
	if r == nil {
		return out
	}
	for _, k := range r.keys {
		if out.key(k.id) == nil {
			out.keys = append(out.keys, k)
		}
	}
	return out
}

// Write puts the keys into a file, in place of what it held.
func (r *Ring) Write(path string) error {
	if err := write(path, r.Text(), os.Rename); err != nil {
		return fault.New(fault.Environment, "the key file %s cannot be written: %w", path, err)
	}
	return nil
}

// Text is the text of a file with the keys.
func (r *Ring) Text() []byte {
	out := []byte("# Keys under which Drover seals secrets in its store: the first seals, all of them open. Who has them and the store,\n" +
		"# or a backup, can read these; without them they are lost. Keep a copy of this file, and not beside the backups.\n")
	for _, k := range r.keys {
		out = fmt.Appendf(out, "# %s\n%s\n", k.id, k.line)
	}
	return out
}

// write makes a file, readable by its owner alone, which place puts where it belongs.
func write(path string, text []byte, place func(made, path string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = place(f.Name(), path)
	}
	if left := os.Remove(f.Name()); left != nil && !errors.Is(left, fs.ErrNotExist) {
		err = errors.Join(err, left)
	}
	return errors.Join(err, syncDir(filepath.Dir(path)))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// ID names the key that seals. It tells nothing of the key.
func (r *Ring) ID() string { return r.keys[0].id }

// Has tells whether the ring has a key. Nil has none.
func (r *Ring) Has(id string) bool { return r.key(id) != nil }

func (r *Ring) key(id string) *key {
	if r == nil {
		return nil
	}
	if i := slices.IndexFunc(r.keys, func(k *key) bool { return k.id == id }); i >= 0 {
		return r.keys[i]
	}
	return nil
}

// Digest names a text by what it holds. Who does not have the key cannot try whether a text that he guesses is the one.
func (r *Ring) Digest(text []byte) string {
	const size = 16 // no two texts of a store have the same by chance
	h := hmac.New(sha256.New, r.keys[0].digest)
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil)[:size])
}

// seal seals a text for a place.
func (r *Ring) seal(place string, text []byte) []byte {
	k := r.keys[0]
	closed := k.seal.Seal(nil, nil, text, []byte(place)) //nolint:gosec // the cipher draws its nonces by itself
	out := make([]byte, 0, len(beginning)+len(k.id)+base64.StdEncoding.EncodedLen(len(closed))+len(`","text":""}`))
	out = append(append(append(out, beginning...), k.id...), `","text":"`...)
	return append(base64.StdEncoding.AppendEncode(out, closed), `"}`...)
}

// open opens what was sealed for a place. With missing set the ring does not have the key.
func (r *Ring) open(place string, s sealedText) (text []byte, missing bool, err error) {
	k := r.key(s.Sealed)
	if k == nil {
		return nil, true, fault.New(fault.WrongState, "it is sealed with the key %s, which the key file does not have", s.Sealed).WithHint("%s", hint)
	}
	if text, err = k.seal.Open(nil, nil, s.Text, []byte(place)); err != nil {
		return nil, false, fault.New(fault.Internal, "it was changed since it was sealed with the key %s, or is of another place", s.Sealed)
	}
	return text, false, nil
}

// hint says what helps where a key is missing.
const hint = "put the key file back (the setting key-file names it; controllers of one store share it); where it is lost for good, drover store forget-key gives up what it sealed"
