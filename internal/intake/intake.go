// Package intake bounds what is taken in from clients, before anything is made
// of it: how many values a JSON text holds, whether it is text, and how much memory
// all requests that are being read may hold together.
//
// Invariants:
//   - A text is measured without decoding it, in one pass and without memory.
//   - What was taken from a Budget is given back, however a request ends.
//   - A text that Read takes has one meaning, whoever reads it (FuzzRead, TestRead).
package intake

import (
	"strconv"
	"sync/atomic"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
)

// CheckValues refuses a JSON text with more values than the limit, keys of
// objects included: a value of two bytes can take some hundred when it is
// decoded. It only counts; whether the text is JSON at all is found by decoding
// it, as is how deep it is nested. The error has code fault.TooLarge and names
// the limit.
func CheckValues(text []byte, limit int) error {
	values := 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = endOfString(text, i)
		case '[', '{', ',', ':':
			if values++; values > limit {
				return fault.New(fault.TooLarge, "the JSON text holds more than %d values", limit)
			}
		}
	}
	return nil
}

// CheckText refuses a JSON text whose strings are no text: bytes that are not
// UTF-8, and escapes that stand for half of a letter. A decoder would put another
// letter in their place without a word. The error has code fault.Invalid.
func CheckText(text []byte) error {
	if !utf8.Valid(text) {
		return fault.New(fault.Invalid, "it is not UTF-8")
	}
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		switch r := unit(text[i:]); {
		case utf16.DecodeRune(r, unit(text[min(i+unitLen, len(text)):])) != unicode.ReplacementChar:
			i += 2*unitLen - 1
		case utf16.IsSurrogate(r):
			return fault.New(fault.Invalid, "an escape at byte %d stands for half of a letter", i)
		default:
			i++ // what is escaped
		}
	}
	return nil
}

// unitLen is how long an escape of a UTF-16 code unit is: \uXXXX.
const unitLen = 6

// unit reads the escape that a text begins with; 0 if there is none.
func unit(text []byte) rune {
	if len(text) < unitLen || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(text[2:unitLen]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// endOfString returns the place of the quote that ends the string beginning at
// i, or the end of the text.
func endOfString(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}

// Budget is an amount of memory that several requests share. The zero value
// has nothing to give. It may be used by several goroutines at once.
type Budget struct {
	limit int64
	taken atomic.Int64
}

// NewBudget returns a budget of so many bytes.
func NewBudget(bytes int64) *Budget { return &Budget{limit: bytes} }

// Limit returns the size of the budget in bytes.
func (b *Budget) Limit() int64 { return b.limit }

// Taken returns how much is taken at the moment, in bytes.
func (b *Budget) Taken() int64 { return b.taken.Load() }

// Take takes so many bytes, all or none. It never waits: who waits for memory
// while holding some can wait for ever. The error has code fault.Busy.
func (b *Budget) Take(bytes int64) error {
	if b.taken.Add(bytes) > b.limit {
		b.taken.Add(-bytes)
		return fault.New(fault.Busy, "the requests that are being read fill the %d bytes there are for them", b.limit).
			WithHint("try again in a while")
	}
	return nil
}

// Give gives back what was taken.
func (b *Budget) Give(bytes int64) { b.taken.Add(-bytes) }
