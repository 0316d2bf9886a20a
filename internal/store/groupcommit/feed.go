package groupcommit

import (
	"sort"
	"sync"

	"github.com/drover-project/drover/internal/store"
)

// Span is the changes of one commit, revisions first to last.
type Span struct {
	first, last store.Revision
	changes     []store.Change
}

// Bounds of the feed's end in memory: spans, and bytes of their values.
const (
	maxSpans     = 256
	maxSpanBytes = 4 << 20
)

// feed is the live end of the feed: it wakes those who wait, and serves those who
// are close behind.
type feed struct {
	mu     sync.Mutex
	newest store.Revision
	spans  []Span // oldest first, without gaps
	bytes  int
	// changed is closed and replaced at each commit.
	changed chan struct{}
	// err ends all watches.
	err error
}

func newFeed(newest store.Revision) *feed {
	return &feed{newest: newest, changed: make(chan struct{})}
}

func (f *feed) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// publish adds a commit. One that others were told of already, by what somebody else
// committed after it, has to be read from the store.
func (f *feed) publish(s Span) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.last < s.first || s.last <= f.newest {
		return
	}
	f.newest = s.last
	f.spans = append(f.spans, s)
	f.bytes += s.bytes()
	drop := 0
	for len(f.spans)-drop > maxSpans || (f.bytes > maxSpanBytes && drop < len(f.spans)) {
		f.bytes -= f.spans[drop].bytes()
		drop++
	}
	if drop > 0 {
		rest := copy(f.spans, f.spans[drop:])
		clear(f.spans[rest:])
		f.spans = f.spans[:rest]
	}
	f.wake()
}

func (s Span) bytes() int {
	n := 0
	for i := range s.changes {
		n += len(s.changes[i].Value)
	}
	return n
}

// advance tells of commits that somebody else made: they have to be read from
// the store.
func (f *feed) advance(newest store.Revision) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if newest <= f.newest {
		return
	}
	f.newest, f.bytes = newest, 0
	clear(f.spans)
	f.spans = f.spans[:0]
	f.wake()
}

// close ends all watches with an error; the first one counts.
func (f *feed) close(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
		f.wake()
	}
}

// position is what the feed has after a revision: changes in memory, or stored
// ones, or nothing yet.
type position struct {
	changes []store.Change
	// last is the revision up to which changes reach.
	last store.Revision
	// stored tells that the database has to be read.
	stored bool
	// wait is closed when it is worth asking again.
	wait <-chan struct{}
}

func (f *feed) after(rev store.Revision) (position, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return position{}, f.err
	}
	if rev == f.newest {
		return position{wait: f.changed}, nil
	}
	i := sort.Search(len(f.spans), func(i int) bool { return f.spans[i].last > rev })
	if i == len(f.spans) || f.spans[i].first > rev+1 {
		return position{stored: true}, nil
	}
	s := f.spans[i]
	from := sort.Search(len(s.changes), func(j int) bool { return s.changes[j].Revision > rev })
	return position{changes: s.changes[from:], last: s.last}, nil
}
