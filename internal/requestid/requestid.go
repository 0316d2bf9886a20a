// Package requestid carries the id of a request through contexts, so that what
// is logged on its behalf can be found together.
//
// Invariants:
//   - An id is a word of letters, digits, '.', '_' and '-', so it needs no quoting
//     in logs and headers.
package requestid

import (
	"context"
	"strconv"
	"sync/atomic"
)

// Source gives out ids. Its methods are safe for concurrent use.
type Source struct {
	prefix string
	last   atomic.Uint64
}

// NewSource returns a source whose ids begin with a word that tells the process
// from others.
func NewSource(prefix string) *Source { return &Source{prefix: prefix + "-"} }

// Next returns an id that the source has not given before.
func (s *Source) Next() string { return s.prefix + strconv.FormatUint(s.last.Add(1), 10) }

// maxLength is the greatest length of an id that a client chose, in bytes.
const maxLength = 64

// Valid tells whether a text that a client sent may serve as an id.
func Valid(id string) bool {
	for i := range len(id) {
		switch c := id[i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return id != "" && len(id) <= maxLength
}

type key struct{}

// With returns a context that carries an id.
func With(ctx context.Context, id string) context.Context { return context.WithValue(ctx, key{}, id) }

// From returns the id that a context carries; empty for none.
func From(ctx context.Context) string {
	id, _ := ctx.Value(key{}).(string)
	return id
}
