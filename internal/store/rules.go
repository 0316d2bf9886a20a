package store

import (
	"cmp"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store/format"
)

// Limits of every store.
const (
	// MaxValue is the greatest size of a value, in bytes.
	MaxValue = 64 << 20
	// MaxKind and MaxID are the greatest sizes of the parts of a key, in bytes.
	MaxKind = 64
	MaxID   = 512
	// MaxDigits is how many digits a decimal id may have to be ordered as a number.
	MaxDigits = 19
)

// KindStore is that of the objects in which a store says what it is.
const KindStore Kind = "store"

// FormatKey is where the store's format is (package format); a store without it has the
// first one. It is the one object that stores look into: a transaction that puts it brings the database's schema
// to that format, too, or neither. It is never deleted.
var FormatKey = Key{Kind: KindStore, ID: "format"}

// Check tells what is wrong with a key: a part that is empty, too long, not
// UTF-8, or holds a control character.
func (k Key) Check() error {
	if err := checkName("kind", string(k.Kind), MaxKind); err != nil {
		return err
	}
	return checkName("id", k.ID, MaxID)
}

func checkName(what, text string, limit int) error {
	if text == "" {
		return fault.New(fault.Invalid, "the %s of an object is empty", what)
	}
	if len(text) > limit {
		return fault.New(fault.TooLarge, "the %s of an object has %d bytes, more than %d", what, len(text), limit)
	}
	if !utf8.ValidString(text) {
		return fault.New(fault.Invalid, "the %s %q of an object is not UTF-8", what, text)
	}
	for i := range len(text) {
		if text[i] < ' ' || text[i] == 0x7f {
			return fault.New(fault.Invalid, "the %s %q of an object holds a control character", what, text)
		}
	}
	return nil
}

// Check tells what is wrong with a transaction in itself; adapters refuse it
// with this error.
func (tx Tx) Check() error {
	for i := range tx.Put {
		if err := tx.Put[i].check(); err != nil {
			return at(err, "put", i)
		}
	}
	for i, key := range tx.Delete {
		if err := key.Check(); err != nil {
			return at(err, "delete", i)
		}
		if key == FormatKey {
			return at(fault.New(fault.Invalid, "the format of a store cannot be deleted"), "delete", i)
		}
	}
	for i, e := range tx.Expect {
		if err := e.Check(); err != nil {
			return at(err, "expect", i)
		}
	}
	return tx.checkTwice()
}

func (p *Put) check() error {
	if len(p.Value) > MaxValue {
		return fault.New(fault.TooLarge, "the value of %s %q has %d bytes, more than %d", p.Kind, p.ID, len(p.Value), MaxValue)
	}
	if len(p.Value) == 0 {
		return fault.New(fault.Invalid, "the value of %s %q is empty", p.Kind, p.ID)
	}
	if p.Key == FormatKey {
		_, err := FormatOf(p.Value)
		return err
	}
	return p.Key.Check()
}

// FormatOf is the format that the object at FormatKey brings a store to; fault.Unsupported
// for one that this program does not know.
func FormatOf(value []byte) (n int, err error) {
	if n, err = format.Parse(value); err == nil {
		err = format.Own().CanLead(n)
	}
	return n, err
}

func at(err error, part string, i int) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.At(part + "[" + strconv.Itoa(i) + "]")
	}
	return err
}

// checkTwice refuses a key that is changed twice. Small transactions are
// compared pair by pair, which takes no memory.
func (tx Tx) checkTwice() error {
	n := len(tx.Put) + len(tx.Delete)
	key := func(i int) Key {
		if i < len(tx.Put) {
			return tx.Put[i].Key
		}
		return tx.Delete[i-len(tx.Put)]
	}
	const small = 12
	if n <= small {
		for i := range n {
			for j := range i {
				if key(i) == key(j) {
					return twice(key(i))
				}
			}
		}
		return nil
	}
	seen := make(map[Key]struct{}, n)
	for i := range n {
		if _, ok := seen[key(i)]; ok {
			return twice(key(i))
		}
		seen[key(i)] = struct{}{}
	}
	return nil
}

func twice(key Key) error {
	return fault.New(fault.Invalid, "the transaction changes %s %q twice", key.Kind, key.ID)
}

// CompareIDs is the order of ids within a kind: decimal numbers (without a
// leading zero, of at most MaxDigits digits) first, by value; then all other
// ids by their bytes.
func CompareIDs(a, b string) int {
	na, nb := IsNumber(a), IsNumber(b)
	switch {
	case na && nb:
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	case na:
		return -1
	case nb:
		return 1
	}
	return cmp.Compare(a, b)
}

// IsNumber reports whether an id is ordered as a number.
func IsNumber(id string) bool {
	if id == "" || len(id) > MaxDigits || (id[0] == '0' && id != "0") {
		return false
	}
	for i := range len(id) {
		if id[i] < '0' || id[i] > '9' {
			return false
		}
	}
	return true
}

// Check tells what is wrong with the options of a listing.
func (o Options) Check() error {
	switch {
	case o.Limit < 0:
		return fault.New(fault.Invalid, "the limit of a listing is negative: %d", o.Limit).At("limit")
	case o.ByAt && o.After != "":
		return fault.New(fault.Invalid, "a listing by time cannot begin after an id").At("after").
			WithHint("bound it by since and until")
	case !o.ByAt && (o.Since != 0 || o.Until != 0):
		return fault.New(fault.Invalid, "since and until bound only a listing by time").At("since")
	}
	return nil
}
