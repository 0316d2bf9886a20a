// Package console holds the serial line of a virtual machine: what the guest printed last, those who look at it, and the one of them who types.
//
// Invariants:
//   - What a guest prints takes a bounded amount of memory, however much it is and however slow those are who look (TestAFlood).
//   - Who begins to look sees the last Kept bytes from before, and then all, in order; who is too slow sees how much was left out
//     and never something out of order (TestWhoIsTooSlow).
//   - A guest is never held up by somebody who looks.
//   - One types on a line at a time; who takes over from another one is told of, and the other learns it (TestOneTypes). Nothing is typed
//     of which it could not be made durable who types (TestWhoTypesIsTold).
package console

import (
	"context"
	"io"
	"sync"

	"github.com/drover-project/drover/internal/fault"
)

// Kept is how many bytes of what a guest printed are kept, also behind its end.
const Kept = 64 << 10

// Line is the serial line of one machine. The zero Line is ready. It is safe for concurrent use.
type Line struct {
	mu      sync.Mutex
	ring    []byte
	end     uint64        // how many bytes have come in all
	changed chan struct{} // closed when more comes
	keys    io.Writer     // where what people type goes; nil when the machine does not run
}

// Write takes what the guest printed. It never fails.
func (l *Line) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end += uint64(len(p))
	l.ring = append(l.ring, p[max(0, len(p)-Kept):]...)
	if len(l.ring) > 2*Kept { // seldom, for what is kept is moved
		l.ring = append(l.ring[:0], l.kept()...)
	}
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	return len(p), nil
}

// kept is the end of what is in memory.
func (l *Line) kept() []byte { return l.ring[max(0, len(l.ring)-Kept):] }

// Attach says where keys go from now on.
func (l *Line) Attach(keys io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = keys
}

// Detach says that nobody takes keys there any more. Where another one takes them by now, it goes on.
func (l *Line) Detach(keys io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keys == keys {
		l.keys = nil
	}
}

// ErrNobodyThere is the error about keys for a machine that does not run.
var ErrNobodyThere error = fault.New(fault.WrongState, "the machine does not run, so nobody reads what is typed")

// Type sends keys to the guest.
func (l *Line) Type(p []byte) error {
	l.mu.Lock()
	keys := l.keys
	l.mu.Unlock()
	if keys == nil {
		return ErrNobodyThere
	}
	if _, err := keys.Write(p); err != nil {
		return fault.New(fault.Unavailable, "the machine takes no keys: %w", err)
	}
	return nil
}

// Piece is a part of what a guest printed.
type Piece struct {
	Text []byte `json:"text"`
	// From says of how many bytes that came before the text is the next: more than was asked for if some are not kept any more, and less if
	// who holds the line has begun anew. Next is where to go on.
	From uint64 `json:"from"`
	Next uint64 `json:"next"`
}

// Read returns what has come behind a position, and waits if that is nothing; from 0 on that is what is kept. When ctx ends first the piece is
// empty.
func (l *Line) Read(ctx context.Context, at uint64) Piece {
	for {
		piece, changed := l.behind(at)
		if changed == nil {
			return piece
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return piece
		}
	}
}

// behind is what has come behind a position; if that is nothing, with what is closed when more comes.
func (l *Line) behind(at uint64) (Piece, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.kept()
	first := l.end - uint64(len(kept))
	if at < first || at > l.end {
		at = first
	}
	if at < l.end {
		return Piece{Text: append([]byte(nil), kept[at-first:]...), From: at, Next: l.end}, nil
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return Piece{From: at, Next: at}, l.changed
}
