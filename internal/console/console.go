// Package console holds the serial line of a virtual machine: what the guest printed last, and those who look at it.
//
// Invariants:
//   - What a guest prints takes a bounded amount of memory, however much it is and however slow those are who look (TestAFlood).
//   - Who begins to look sees the last Kept bytes from before, and then all, in order; who is too slow is told how much was left out
//     and never something out of order (TestWhoIsTooSlow).
//   - A guest is never held up by somebody who looks.
package console

import (
	"context"
	"errors"
	"io"
	"sync"
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

// Attach says where keys go from now on; nil when nobody is there to take them.
func (l *Line) Attach(keys io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = keys
}

// ErrNobodyThere is the error about keys for a machine that does not run.
var ErrNobodyThere = errors.New("the machine does not run")

// Type sends keys to the guest.
func (l *Line) Type(p []byte) error {
	l.mu.Lock()
	keys := l.keys
	l.mu.Unlock()
	if keys == nil {
		return ErrNobodyThere
	}
	_, err := keys.Write(p)
	return err
}

// Text is what is kept of what the guest printed.
func (l *Line) Text() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]byte(nil), l.kept()...)
}

// View is one who looks at a line.
type View struct {
	line *Line
	at   uint64 // how much of all that came it has seen
}

// Look begins to look, at what is kept.
func (l *Line) Look() *View {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &View{line: l, at: l.end - uint64(len(l.kept()))}
}

// Next returns what has come since the last call, and waits if that is nothing; missed says how many bytes before that are gone because
// the view was too slow. The error is that of ctx.
func (v *View) Next(ctx context.Context) (text []byte, missed uint64, err error) {
	l := v.line
	for {
		l.mu.Lock()
		first := l.end - uint64(len(l.kept()))
		if v.at < l.end {
			if v.at < first {
				missed, v.at = first-v.at, first
			}
			text = append([]byte(nil), l.kept()[v.at-first:]...)
			v.at = l.end
			l.mu.Unlock()
			return text, missed, nil
		}
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, 0, context.Cause(ctx)
		}
	}
}
