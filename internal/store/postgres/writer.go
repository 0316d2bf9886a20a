package postgres

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/readlease"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/groupcommit"
)

// writer is the one goroutine that writes, with its connection.
type writer struct {
	cfg     *pgx.ConnConfig
	conn    *pgx.Conn // nil while the server cannot be reached
	pid     atomic.Uint32
	now     func() time.Time // nil is the server's clock
	keep    store.Revision
	channel string
	// lessor is who granted read leases of what is stored, nil for nobody. leased is the
	// one of the batch that is on its way.
	lessor atomic.Pointer[readlease.Lessor]
	leased *readlease.Lessor
	// seats are the epochs of the leases that were acquired here (await.go).
	seats map[int64]bool
	// known is the newest revision that the feed in memory has heard of from here.
	known store.Revision
	done  chan struct{}
	ctx   context.Context // ends when Close has waited long enough
	stop  context.CancelFunc
}

func newWriter(conn *pgx.Conn, cfg *pgx.ConnConfig, opts Options, newest store.Revision) *writer {
	w := &writer{cfg: cfg, conn: conn, now: opts.Now, keep: opts.Keep, seats: map[int64]bool{}, channel: channel(cfg), known: newest, done: make(chan struct{})}
	w.pid.Store(conn.PgConn().PID())
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

// patience is how long a batch is tried again while the server cannot be
// reached, before it is answered that it could not be stored.
const patience = 5 * time.Second

// endTime is how long Close waits for the server.
const endTime = 10 * time.Second

// end waits until everything that was handed over is answered.
func (w *writer) end() {
	timer := time.AfterFunc(endTime, w.stop)
	defer timer.Stop()
	<-w.done
	w.stop()
}

func (w *writer) close() error {
	if w.conn == nil {
		return nil
	}
	return w.conn.Close(context.Background())
}

// run commits batch after batch until the front is closed and empty.
func (w *writer) run(f *groupcommit.Front) {
	defer close(w.done)
	buf := make([]*groupcommit.Request, 0, groupcommit.MaxBatch)
	for {
		requests, more := f.Take(buf)
		if !more {
			return
		}
		w.leased = w.lessor.Load()
		w.leased.Begin()
		known := w.handle(requests, f)
		for _, r := range requests {
			r.Answer()
		}
		w.leased.End(int64(w.known), known)
		clear(requests)
	}
}

// handle commits a batch, again and again while the connection breaks before it
// is certain, and sets every request's answer. It returns false if nobody can tell
// whether the batch took effect.
func (w *writer) handle(requests []*groupcommit.Request, f *groupcommit.Front) (known bool) {
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	for {
		err := w.reconnect(ctx)
		if err == nil {
			err = w.try(ctx, requests, f)
		}
		if err == nil {
			return true
		}
		answer, certain := refusal(err)
		unknown, lost := errors.AsType[unknownOutcomeError](err)
		if lost {
			answer, certain = unknown.error, true
		}
		if !certain && ctx.Err() != nil {
			answer, certain = unreachable(err), true
		}
		if !certain || lost || w.rollback(ctx) != nil {
			w.drop()
		}
		if certain {
			groupcommit.Refuse(requests, answer)
			return !lost
		}
		groupcommit.Pause(ctx, retryPause)
	}
}

// unknownOutcomeError is the error of a commit of which nobody can tell whether it
// took effect: the batch must not be tried again.
type unknownOutcomeError struct{ error }

// try decides and commits a batch once. With any error but an unknownOutcomeError
// nothing of the batch took effect.
func (w *writer) try(ctx context.Context, requests []*groupcommit.Request, f *groupcommit.Front) error {
	h, err := w.begin(ctx, requests)
	if err != nil {
		return err
	}
	if h.revision != w.known {
		f.Advance(h.revision)
		w.known = h.revision
	}
	b := groupcommit.Decide(requests, h.revision, h.leases, func(key store.Key) (store.Revision, error) { return h.expected[key], nil })
	if b.Empty() {
		return w.rollback(ctx)
	}
	w.leased.Await() // it has been called off while the transaction began
	if b.Format > 0 {
		if err := raise(ctx, w.conn, b.Format); err != nil {
			return err
		}
	}
	if err := w.settle(w.commit(ctx, b, h), h.xid); err != nil {
		return err
	}
	w.seated(b, h)
	w.known = b.Revision
	f.Publish(b.Span())
	return nil
}

// head is what a batch is decided on.
type head struct {
	revision, trimmed store.Revision
	xid               string
	leases            *groupcommit.Leases
	expected          map[store.Key]store.Revision
}

// begin begins a transaction, takes the lock that orders the writers, and reads
// what the batch depends on, in one round trip.
func (w *writer) begin(ctx context.Context, requests []*groupcommit.Request) (*head, error) {
	h := &head{expected: map[store.Key]store.Revision{}}
	batch := &pgx.Batch{}
	batch.Queue("BEGIN")
	batch.Queue("SELECT revision, trimmed, pg_current_xact_id()::text FROM head FOR UPDATE").QueryRow(func(row pgx.Row) error {
		return row.Scan(&h.revision, &h.trimmed, &h.xid)
	})
	var clock int64
	// A statement of its own: the clock is read when the lock is there.
	batch.Queue("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").QueryRow(func(row pgx.Row) error {
		return row.Scan(&clock)
	})
	var stored []store.Lease
	batch.Queue("SELECT name, holder, epoch, expires FROM lease").Query(func(rows pgx.Rows) (err error) {
		stored, err = pgx.CollectRows(rows, scanLease)
		return err
	})
	if kinds, places := expected(requests); len(kinds) > 0 {
		batch.Queue("SELECT kind, place, revision FROM object JOIN unnest($1::text[], $2::text[]) AS e (kind, place) USING (kind, place)", kinds, places).
			Query(func(rows pgx.Rows) error {
				var kind, place string
				var revision store.Revision
				_, err := pgx.ForEachRow(rows, []any{&kind, &place, &revision}, func() error {
					h.expected[store.Key{Kind: store.Kind(kind), ID: groupcommit.PlaceID(place)}] = revision
					return nil
				})
				return err
			})
	}
	if err := w.conn.SendBatch(ctx, batch).Close(); err != nil {
		return nil, err
	}
	now := w.now
	if now == nil {
		now = func() time.Time { return time.UnixMicro(clock) }
	}
	h.leases = groupcommit.NewLeases(stored, now)
	return h, nil
}

func scanLease(row pgx.CollectableRow) (l store.Lease, err error) {
	var expires int64
	err = row.Scan(&l.Name, &l.Holder, &l.Epoch, &expires)
	l.Expires = time.UnixMicro(expires)
	return l, err
}

// expected returns the objects on whose revisions the requests depend.
func expected(requests []*groupcommit.Request) (kinds, places []string) {
	for _, r := range requests {
		for _, e := range r.Expected() {
			kinds = append(kinds, string(e.Kind))
			places = append(places, groupcommit.Place(e.ID))
		}
	}
	return kinds, places
}

// trimParts says how many revisions more than it must keep the feed may hold,
// as a part of those.
const trimParts = 64

// commit writes what the batch comes to and commits it, in one round trip.
func (w *writer) commit(ctx context.Context, b *groupcommit.Batch, h *head) error {
	p := pipeline{w.conn.PgConn().StartPipeline(ctx)}
	p.write(b.Writes)
	if b.Revision >= b.First {
		p.send(addToFeed, bigint(b.Revision), bigint(b.First), groupcommit.Entries(b.First, b.Changes()))
		trimmed := h.trimmed
		if b.Revision-trimmed >= w.keep+w.keep/trimParts {
			trimmed = b.Revision - w.keep
			p.send(trimFeed, bigint(trimmed))
		}
		p.send(moveHead, bigint(b.Revision), bigint(trimmed))
		p.send(notify, []byte(w.channel), strconv.AppendInt(nil, int64(b.Revision), 10))
	}
	for _, l := range b.Leases.Changed() {
		p.send(putLease, []byte(l.Name), []byte(l.Holder), bigint(l.Epoch), bigint(l.Expires.UnixMicro()))
		if l.Epoch > h.leases.Newest() {
			p.sendText(seatLock, bigint(l.Epoch)) // before anybody can know the epoch
			p.send(notify, []byte(w.channel), []byte(leaseAcquired))
		}
	}
	p.send(commitAll)
	for epoch := range w.seats {
		if !held(b.Leases, epoch) {
			p.sendText(seatFree, bigint(epoch))
		}
	}
	return p.end()
}

// seated remembers the seats after a commit.
func (w *writer) seated(b *groupcommit.Batch, h *head) {
	for _, l := range b.Leases.Changed() {
		if l.Epoch > h.leases.Newest() {
			w.seats[l.Epoch] = true
		}
	}
	for epoch := range w.seats {
		if !held(b.Leases, epoch) {
			delete(w.seats, epoch)
		}
	}
}

// held tells whether a lease with an epoch is held after a batch.
func held(t *groupcommit.Leases, epoch int64) bool {
	changed := t.Changed()
	if changed == nil {
		return true
	}
	return slices.ContainsFunc(changed, func(l store.Lease) bool { return l.Epoch == epoch && l.Holder != "" })
}

// settle turns the error of a commit into what it means for the batch: nil if
// it took effect all the same.
func (w *writer) settle(err error, xid string) error {
	if err == nil {
		return nil
	}
	if _, certain := refusal(err); certain {
		return err
	}
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	took, lookErr := w.outcome(ctx, xid)
	switch {
	case lookErr != nil:
		return unknownOutcomeError{lookErr}
	case took:
		return nil
	}
	return err
}

// outcome asks what became of a transaction whose commit was not answered,
// until the server can tell.
func (w *writer) outcome(ctx context.Context, xid string) (took bool, err error) {
	for {
		w.drop()
		if err = w.reconnect(ctx); err == nil {
			var status *string
			err = w.conn.QueryRow(ctx, "SELECT pg_xact_status($1::text::xid8)", xid).Scan(&status)
			switch {
			case err != nil:
			case status == nil:
				return false, fault.New(fault.Unavailable, "PostgreSQL no longer knows what became of transaction %s", xid)
			case *status != "in progress":
				return *status == "committed", nil
			}
		}
		if ctx.Err() != nil {
			return false, unreachable(context.Cause(ctx))
		}
		groupcommit.Pause(ctx, retryPause)
	}
}

// reconnect opens the connection if there is none.
func (w *writer) reconnect(ctx context.Context) error {
	if w.conn != nil {
		return nil
	}
	conn, err := pgx.ConnectConfig(ctx, w.cfg)
	if err != nil {
		return err
	}
	if err = prepare(ctx, conn); err == nil {
		err = w.sit(ctx, conn)
	}
	if err != nil {
		_ = conn.Close(context.Background())
		return err
	}
	w.conn = conn
	w.pid.Store(conn.PgConn().PID())
	return nil
}

// drop lets go of a connection that is of no use.
func (w *writer) drop() {
	if w.conn != nil {
		_ = w.conn.Close(context.Background())
		w.conn = nil
	}
}

// rollback ends a transaction that changes nothing, or that the server refused. The
// connection, and with it the seat of a leader, stays.
func (w *writer) rollback(ctx context.Context) error {
	if w.conn == nil {
		return nil // the connection itself was refused
	}
	_, err := w.conn.Exec(ctx, "ROLLBACK")
	return err
}
