package memory

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover/internal/readlease"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/groupcommit"
)

// Message is what goes between a handle and its database.
type Message string

// The messages. A read is a question and its answer. A commit that does not arrive has no
// effect; one whose answer does not arrive has, and Lookup asks what became of it. Notice
// tells a handle that another has committed.
const (
	Read   Message = "read"
	Begin  Message = "begin"
	Commit Message = "commit"
	Answer Message = "answer"
	Lookup Message = "lookup"
	Notice Message = "notice"
)

// Line is how a handle reaches its database.
type Line interface {
	// Cross returns when a message has arrived; with an error when it never will, because
	// the connection is broken or ctx ended. It is called from any goroutine.
	Cross(ctx context.Context, m Message) error
}

// Handle says how a handle is to be opened.
type Handle struct {
	// Name is for those who observe the database.
	Name string
	// Line is how the handle reaches it; nil for one that always works.
	Line Line
	// Keep is how many of the newest revisions the feed keeps at least when this handle
	// commits; zero is all.
	Keep store.Revision
}

// Store is one controller's handle on a database. It implements store.Shared.
type Store struct {
	*groupcommit.Front

	h Handle

	db *Database
	// lessor is who granted read leases of what is stored, nil for nobody.
	lessor atomic.Pointer[readlease.Lessor]
	// known is the newest revision that the feed in memory has heard of from the writer.
	known store.Revision
	// news has a token when another has committed.
	news   chan struct{}
	ctx    context.Context // ends when Close has waited long enough
	stop   context.CancelFunc
	wrote  chan struct{} // closed when the writer has ended
	heard  chan struct{} // closed when the listener has
	closed atomic.Bool

	// Guarded by the database's mutex:
	under *transaction // the one that it has begun
	stood []int64      // epochs of the seats that it lost with its connection
}

var _ store.Shared = (*Store)(nil)

// Open opens a handle.
func (db *Database) Open(h Handle) *Store {
	s := &Store{h: h, db: db, news: make(chan struct{}, 1), wrote: make(chan struct{}), heard: make(chan struct{})}
	s.ctx, s.stop = context.WithCancel(context.Background())
	db.mu.Lock()
	defer db.mu.Unlock()
	s.known = db.revision
	s.Front = groupcommit.NewFront(db.revision, s.stored)
	db.handles = append(db.handles, s)
	go s.write()
	go s.listen()
	return s
}

// Disconnect ends the connections of the handle as the database sees them, which is how
// it notices that a process died. What still crosses its line makes new ones.
func (s *Store) Disconnect() { s.db.disconnect(s) }

// Lend implements store.Shared.
func (s *Store) Lend(l *readlease.Lessor) { s.lessor.Store(l) }

// cross takes a message over the line.
func (s *Store) cross(ctx context.Context, m Message) error {
	if s.h.Line == nil {
		return nil
	}
	return s.h.Line.Cross(ctx, m)
}

const (
	// patience is how long a batch is tried again while the database cannot be reached, and
	// then again how long its outcome is looked for.
	patience = 5 * time.Second
	// retryPause is how long to wait before it is asked again.
	retryPause = 200 * time.Millisecond
	// endTime is how long Close waits for the database.
	endTime = 10 * time.Second
)

// Close implements store.Store.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.CloseQueue()
	timer := time.AfterFunc(endTime, s.stop)
	<-s.wrote
	timer.Stop()
	s.stop()
	<-s.heard
	s.CloseFeed(groupcommit.ErrClosed)
	s.db.disconnect(s)
	s.db.forget(s)
	return nil
}
