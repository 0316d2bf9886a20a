package sealed

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/drover-project/drover/internal/store"
)

// Parts tells by kind what is sealed of the values of objects: what is under these keys, at any depth; all of it if
// there are none.
type Parts map[store.Kind][]string

// beginning is how a sealed text begins, as a value of JSON.
const beginning = `{"sealed":"`

// sealedText is a sealed text: the key that opens it, and what that opens.
type sealedText struct {
	Sealed string `json:"sealed"`
	Text   []byte `json:"text"`
}

// sealedIn reads a sealed text; false if it is something else.
func sealedIn(value []byte) (s sealedText, ok bool) {
	if !bytes.HasPrefix(value, []byte(beginning)) {
		return s, false
	}
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.DisallowUnknownFields()
	return s, decoder.Decode(&s) == nil && s.Text != nil
}

// empty tells whether a value holds nothing that could be secret.
func empty(value []byte) bool {
	switch string(value) {
	case "", `null`, `{}`, `[]`, `""`:
		return true
	}
	return false
}

// splice changes the values under some keys of a JSON text. All else stays, byte for byte; without a change it is the text
// that was given.
func splice(text []byte, names []string, change func(name string, value []byte) ([]byte, error)) ([]byte, error) {
	in := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var out []byte
	done := 0 // how much of the text is in out
	for {
		token, err := in.ReadToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		around, n := in.StackIndex(in.StackDepth())
		if token.Kind() != '"' || around != '{' || n%2 == 0 { // no key
			continue
		}
		name := token.String()
		if !slices.Contains(names, name) {
			continue
		}
		value, err := in.ReadValue()
		if err != nil {
			return nil, err
		}
		end := int(in.InputOffset())
		next, err := change(name, value)
		if err != nil {
			return nil, err
		}
		if next != nil {
			out = append(append(out, text[done:end-len(value)]...), next...)
			done = end
		}
	}
	if done == 0 {
		return text, nil
	}
	return append(out, text[done:]...), nil
}

// mentions tells whether a text may have one of some keys; it is quick.
func mentions(text []byte, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return bytes.Contains(text, []byte(name)) })
}

// placeOf is what a sealed text is bound to: the object, and the key in it that it is under.
func placeOf(key store.Key, name string) string {
	return string(key.Kind) + "/" + key.ID + "\x00" + name
}

// seal returns a value of an object with what is secret sealed, and whether anything is.
func (s *Store) seal(ring *Ring, key store.Key, value []byte) (out []byte, is bool) {
	names, ours := s.parts[key.Kind]
	switch {
	case !ours, empty(value):
		return value, false
	case len(names) == 0:
		return ring.seal(placeOf(key, ""), value), true
	case !mentions(value, names):
		return value, false
	}
	out, err := splice(value, names, func(name string, part []byte) ([]byte, error) {
		if empty(part) {
			return nil, nil
		}
		is = true
		return ring.seal(placeOf(key, name), part), nil
	})
	if err != nil { // it is no JSON: nobody knows where the secrets are in it
		return ring.seal(placeOf(key, ""), value), true
	}
	return out, is
}

// open returns a value of an object as it was written. With missing set the ring lacks the key.
func (s *Store) open(key store.Key, value []byte) (out []byte, missing bool, err error) {
	names, ours := s.parts[key.Kind]
	if !ours || !bytes.Contains(value, []byte(beginning)) {
		return value, false, nil
	}
	ring := s.Ring()
	if whole, is := sealedIn(value); is {
		return ring.open(placeOf(key, ""), whole)
	}
	if len(names) == 0 {
		return value, false, nil
	}
	out, err = splice(value, names, func(name string, part []byte) ([]byte, error) {
		closed, is := sealedIn(part)
		if !is {
			return nil, nil
		}
		text, lacks, err := ring.open(placeOf(key, name), closed)
		missing = missing || lacks
		return text, err
	})
	return out, missing, err
}
