package memory

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/groupcommit"
)

// Options adjust a database. The zero value is meant for use.
type Options struct {
	// Now is the clock by which leases expire; nil is time.Now.
	Now func() time.Time
	// Observe is told each commit when it takes effect, in order. It must not call the
	// database.
	Observe func(Committed)
}

// Committed is what took effect at once.
type Committed struct {
	// By is who committed, as the handle was named.
	By string
	// Steps are what was accepted, in order.
	Steps []Step
	// Writes are the final states of the objects that changed.
	Writes []groupcommit.Write
}

// Step is a transaction or an operation on a lease, as accepted.
type Step struct {
	// Revision is that of a transaction, and Epoch the one it was made under; zero for none.
	Revision store.Revision
	Epoch    int64
	// Lease is one as it is after an operation on it.
	Lease store.Lease
	// From is the lease as it was before, if somebody else took it who was not named for it,
	// although it had not expired and its holder was connected all the time. Nobody ever does.
	From store.Lease
}

// Database is what the handles share.
type Database struct {
	opts Options
	// head is full while a transaction has the lock that orders the writers.
	head chan struct{}

	mu       sync.Mutex // guards what follows; nothing that waits holds it
	revision store.Revision
	trimmed  store.Revision // the feed begins behind it
	objects  map[store.Kind]map[string]store.Object
	feed     []store.Change
	leases   *groupcommit.Leases
	byName   map[string]store.Lease
	seats    map[int64]*Store // who acquired the lease of an epoch, while connected
	left     map[int64]bool   // epochs whose seats were free at some time
	handles  []*Store
	// moved is closed and replaced when a lease or a seat changes.
	moved chan struct{}
}

// New returns an empty database.
func New(opts Options) *Database {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Database{opts: opts, head: make(chan struct{}, 1), objects: map[store.Kind]map[string]store.Object{},
		leases: groupcommit.NewLeases(nil, opts.Now), byName: map[string]store.Lease{}, seats: map[int64]*Store{}, left: map[int64]bool{}, moved: make(chan struct{})}
}

// transaction is one that a writer has begun. It has the lock until it ends.
type transaction struct {
	db    *Database
	by    *Store
	timer *time.Timer
	// Guarded by the database's mutex:
	over, took bool
}

// idleTime is how long a transaction may stand still before the database ends it, with
// the lock that orders the writers.
const idleTime = 3 * time.Second

// begin waits for the lock that orders the writers.
func (db *Database) begin(ctx context.Context, by *Store) (*transaction, error) {
	select {
	case db.head <- struct{}{}:
	case <-ctx.Done():
		return nil, unreachable(context.Cause(ctx))
	}
	t := &transaction{db: db, by: by}
	db.mu.Lock()
	defer db.mu.Unlock()
	t.timer = time.AfterFunc(idleTime, t.abort)
	by.under = t
	return t, nil
}

// abort ends a transaction without effect, unless it is over.
func (t *transaction) abort() {
	t.db.mu.Lock()
	defer t.db.mu.Unlock()
	t.end()
}

// end gives the lock to the next. The caller holds the mutex.
func (t *transaction) end() {
	if t.over {
		return
	}
	t.over = true
	t.timer.Stop()
	t.by.under = nil
	<-t.db.head
}

// decide says what requests come to. The transaction has the lock, so nobody else
// changes what that depends on.
func (t *transaction) decide(requests []*groupcommit.Request) (b *groupcommit.Batch, newest store.Revision) {
	db := t.db
	db.mu.Lock()
	defer db.mu.Unlock()
	return groupcommit.Decide(requests, db.revision, db.leases, func(k store.Key) (store.Revision, error) {
		return db.objects[k.Kind][k.ID].Revision, nil
	}), db.revision
}

// commit makes a batch take effect; false if the database has ended the transaction.
func (t *transaction) commit(b *groupcommit.Batch, requests []*groupcommit.Request) bool {
	db := t.db
	db.mu.Lock()
	defer db.mu.Unlock()
	if t.over {
		return false
	}
	t.took = true
	done := db.committed(t.by, b, requests)
	db.write(b, t.by.h.Keep)
	db.lease(b, t.by)
	if db.opts.Observe != nil {
		db.opts.Observe(done)
	}
	for _, h := range db.handles {
		if h != t.by {
			h.tell()
		}
	}
	t.end()
	return true
}

// committed is what is told of a commit, before it takes effect. The caller holds the
// mutex.
func (db *Database) committed(by *Store, b *groupcommit.Batch, requests []*groupcommit.Request) Committed {
	c := Committed{By: by.h.Name, Writes: b.Writes}
	byName := maps.Clone(db.byName)
	for _, r := range requests {
		rev, epoch, leased, err := r.Outcome()
		if err != nil {
			continue
		}
		s := Step{Revision: rev, Epoch: epoch, Lease: leased}
		if leased.Name != "" {
			was := byName[leased.Name]
			if was.Holder != "" && was.Holder != leased.Holder && db.opts.Now().Before(was.Expires) && db.seats[was.Epoch] != nil && db.seats[was.Epoch] != by && !db.left[was.Epoch] {
				s.From = was
			}
			byName[leased.Name] = leased
		}
		c.Steps = append(c.Steps, s)
	}
	return c
}

// write stores objects and feed, and trims that to the newest revisions that are kept.
func (db *Database) write(b *groupcommit.Batch, keep store.Revision) {
	for _, w := range b.Writes {
		of := db.objects[w.Key.Kind]
		if of == nil {
			of = map[string]store.Object{}
			db.objects[w.Key.Kind] = of
		}
		if w.Deleted {
			delete(of, w.Key.ID)
			continue
		}
		of[w.Key.ID] = store.Object{Key: w.Key, Revision: w.Revision, At: w.At, Value: slices.Clone(w.Value)}
	}
	db.feed = append(db.feed, b.Changes()...)
	db.revision = b.Revision
	if keep > 0 && db.revision-db.trimmed > 2*keep {
		db.trimmed = db.revision - keep
		db.feed = slices.Clone(db.feed[behind(db.feed, db.trimmed):])
	}
}

// behind is the place of the first change that is newer than a revision.
func behind(feed []store.Change, rev store.Revision) int {
	i, _ := slices.BinarySearchFunc(feed, rev+1, func(c store.Change, r store.Revision) int { return int(c.Revision - r) })
	return i
}

// lease stores leases and seats.
func (db *Database) lease(b *groupcommit.Batch, by *Store) {
	before := db.leases.Newest()
	db.leases = b.Leases
	changed := b.Leases.Changed()
	for _, l := range changed {
		db.byName[l.Name] = l
		if l.Epoch > before {
			db.seats[l.Epoch] = by
		}
	}
	if changed == nil {
		return
	}
	held := map[int64]bool{}
	for _, l := range db.byName {
		held[l.Epoch] = l.Holder != ""
	}
	for epoch := range db.seats {
		if !held[epoch] {
			delete(db.seats, epoch)
		}
	}
	db.move()
}

// move wakes those who wait for a lease or a seat. The caller holds the mutex.
func (db *Database) move() {
	close(db.moved)
	db.moved = make(chan struct{})
}

// disconnect ends a handle's connections as the database sees them: what it has begun is
// taken back, and its seats are free.
func (db *Database) disconnect(s *Store) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if s.under != nil {
		s.under.end()
	}
	for epoch, by := range db.seats {
		if by == s {
			delete(db.seats, epoch)
			s.stood = append(s.stood, epoch)
			db.left[epoch] = true
		}
	}
	db.move()
}

// sit gives a handle that reaches the database again the seats that it had, where they
// are free.
func (db *Database) sit(s *Store) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if len(s.stood) == 0 {
		return
	}
	for _, l := range db.byName {
		if slices.Contains(s.stood, l.Epoch) && l.Holder != "" && db.seats[l.Epoch] == nil {
			db.seats[l.Epoch] = s
		}
	}
	s.stood = nil
	db.move()
}

func unreachable(err error) error {
	return fault.New(fault.Unavailable, "the database cannot be reached: %w", err)
}
