package daemon

import (
	"bytes"
	"sync"
)

// Recent is the newest part of what was written to it, in whole lines: a log that a process keeps of itself, for whoever looks for what went
// wrong. It is safe for concurrent use.
type Recent struct {
	most int

	mu   sync.Mutex
	text []byte
	cut  bool // something older was there
}

// NewRecent keeps so many bytes at the most.
func NewRecent(most int) *Recent { return &Recent{most: most} }

// Write implements io.Writer; it never fails.
func (r *Recent) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = append(r.text, line...)
	if len(r.text) > 2*r.most { // not at each line: what is kept moves each time
		r.trim()
	}
	return len(line), nil
}

// trim drops the oldest lines beyond what is kept.
func (r *Recent) trim() {
	if len(r.text) <= r.most {
		return
	}
	rest := r.text[len(r.text)-r.most:]
	if r.text[len(r.text)-r.most-1] != '\n' { // the first line is not whole
		at := bytes.IndexByte(rest, '\n')
		rest = rest[at+1:]
	}
	r.text, r.cut = append(make([]byte, 0, len(rest)), rest...), true
}

// Text is what is kept, after a line that says so if something older was dropped.
func (r *Recent) Text() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trim()
	if r.cut {
		return append([]byte("... older lines are not kept\n"), r.text...)
	}
	return bytes.Clone(r.text)
}
