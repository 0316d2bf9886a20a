package postgres

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/groupcommit"
)

// channel is where a writer tells the revision that it committed, and that it gave a
// lease a new epoch. Channels belong to a database, so the schema is part of the name.
const (
	channelPrefix = "drover_"
	leaseAcquired = "lease"
)

func channel(cfg *pgx.ConnConfig) string {
	return channelPrefix + cfg.RuntimeParams["search_path"]
}

// listener hears of the commits of other controllers, on a connection of its
// own.
type listener struct {
	cfg    *pgx.ConnConfig
	front  *groupcommit.Front
	writer *writer
	// acquired tells those who wait for a lease that somebody has acquired one.
	acquired signal
	stop     context.CancelFunc
	ended    chan struct{}
}

// signal wakes all who wait for it.
type signal struct {
	mu   sync.Mutex
	next chan struct{}
}

// wait returns what is closed at the next call of give.
func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = make(chan struct{})
	}
	return s.next
}

func (s *signal) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != nil {
		close(s.next)
		s.next = nil
	}
}

// probeTime is how long a notification may take to come back at the start.
const probeTime = 5 * time.Second

// listen begins to listen. It refuses a connection through something that
// swallows notifications: the symptom would be silence.
func listen(ctx context.Context, cfg *pgx.ConnConfig, front *groupcommit.Front, w *writer) (*listener, error) {
	l := &listener{cfg: cfg, front: front, writer: w, ended: make(chan struct{})}
	conn, err := l.connect(ctx)
	if err != nil {
		return nil, unreachable(err)
	}
	probe, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	_, err = w.conn.Exec(probe, "SELECT pg_notify($1, '0')", channel(cfg))
	if err == nil {
		_, err = conn.WaitForNotification(probe)
	}
	if err != nil {
		_ = conn.Close(context.Background()) // it is of no use
		return nil, fault.New(fault.Environment, "notifications of PostgreSQL do not arrive: %w", err).
			WithHint("connect to the server itself, not through a pooler that gives out a connection for each transaction")
	}
	var run context.Context
	run, l.stop = context.WithCancel(context.Background())
	go l.run(run, conn) //nolint:gosec // it outlives the opening: end stops it
	return l, nil
}

// connect opens the connection and catches up with what was missed.
func (l *listener) connect(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, l.cfg)
	if err != nil {
		return nil, err
	}
	var newest store.Revision
	if _, err = conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel(l.cfg)}.Sanitize()); err == nil {
		err = conn.QueryRow(ctx, "SELECT revision FROM head").Scan(&newest)
	}
	if err != nil {
		_ = conn.Close(context.Background())
		return nil, err
	}
	l.front.Advance(newest)
	l.acquired.give()
	return conn, nil
}

func (l *listener) run(ctx context.Context, conn *pgx.Conn) {
	defer close(l.ended)
	for ctx.Err() == nil {
		if conn == nil {
			conn = l.reconnect(ctx)
			continue
		}
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			_ = conn.Close(context.Background())
			conn = nil
			continue
		}
		if n.Payload == leaseAcquired {
			l.acquired.give()
			continue
		}
		rev, err := strconv.ParseInt(n.Payload, 10, 64)
		if err == nil && n.PID != l.writer.pid.Load() {
			l.front.Advance(store.Revision(rev))
		}
	}
	if conn != nil {
		_ = conn.Close(context.Background())
	}
}

// reconnect tries once, after a pause; nil if it did not work.
func (l *listener) reconnect(ctx context.Context) *pgx.Conn {
	conn, err := l.connect(ctx)
	if err == nil {
		return conn
	}
	groupcommit.Pause(ctx, retryPause)
	return nil
}

func (l *listener) end() {
	l.stop()
	<-l.ended
}

// retryPause is how long to wait before a server that did not answer is asked
// again.
const retryPause = 200 * time.Millisecond
