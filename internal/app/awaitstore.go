package app

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/systemd"
)

const (
	// storeTry is how long to wait before a store that could not be used is tried again,
	// and storeTold how often the log says that it still cannot.
	storeTry  = time.Second
	storeTold = time.Minute
	// startMore is how much more time the service manager is asked for, each time: more
	// than an attempt may take.
	startMore = time.Minute
)

// passes tells whether what keeps a controller from its store may be over some time, with
// nothing to be done to the controller: a server that is away, a disk that is full.
func passes(err error) bool {
	return fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Exhausted)
}

// notBegunError is an error from before a controller took any request.
type notBegunError struct{ error }

// Unwrap returns what it is.
func (e *notBegunError) Unwrap() error { return e.error }

// notBegun marks an error, if it is one.
func notBegun(err error) error {
	if err == nil {
		return nil
	}
	return &notBegunError{err}
}

// room is where a controller waits for its store: it says so to whoever asks over RAPI's
// port, and to the service manager, and refuses everything else.
type room struct {
	o      Options
	health *healthListener

	mu  sync.Mutex
	why Problem
}

// await waits until the store can be opened, or for a time if that was not what failed.
// Its error is another than that the store cannot be used.
func (r *room) await(ctx context.Context, why error) error {
	if err := os.MkdirAll(filepath.Join(r.o.Data, "rapi"), 0o700); err != nil {
		return fault.New(fault.Environment, "cannot make the directory of RAPI's files: %w", err)
	}
	cert, err := openCertificate(r.o)
	if err != nil {
		return err
	}
	l, err := listen(ctx, gate.RAPI, r.o.RAPI, r.o)
	if err != nil {
		return fault.New(fault.Environment, "cannot listen for RAPI: %w", err).WithHint("choose another address with --rapi; port 0 picks a free one")
	}
	serving, stop := context.WithCancel(ctx)
	var server sync.WaitGroup
	defer server.Wait()
	defer stop()
	server.Go(func() {
		if err := rapi.ServeHandler(serving, gate.RAPI, l, cert, r.pages(), r.o.Log); err != nil {
			r.o.Log.Warn("nobody can be told that the store is waited for", "error", err)
		}
	})
	begun, told := time.Now(), time.Time{}
	r.say(why, begun)
	r.health.show(r.tells())
	for ; passes(why); why = r.try(ctx) {
		r.say(why, begun)
		if time.Since(told) >= storeTold {
			r.o.Log.Warn("the store cannot be used; waiting until it can", "at", l.Addr(), "error", why)
			told = time.Now()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(storeTry):
		}
	}
	return why
}

// try opens the store, to see whether it can be.
func (r *room) try(ctx context.Context) error {
	s, err := openStore(ctx, r.o.Data, r.o.Store, copiesOf(r.o))
	if err != nil {
		return err
	}
	return s.Close()
}

// say tells whoever asks.
func (r *room) say(why error, since time.Time) {
	r.mu.Lock()
	r.why = Problem{Part: "store", Text: why.Error(), Since: since.UTC()}
	r.mu.Unlock()
	if err := r.o.Manager.Tell(systemd.Status("waits for its store: "+why.Error()), systemd.MoreTime(startMore)); err != nil {
		r.o.Log.Warn("the service manager was not told", "error", err)
	}
}

// tells are the pages that tell how it is.
func (r *room) tells() map[string]http.Handler {
	return map[string]http.Handler{"/healthz": http.HandlerFunc(healthz), "/readyz": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		r.mu.Lock()
		why := r.why
		r.mu.Unlock()
		tellHealth(w, Health{Problems: []Problem{why}, Notes: []Problem{}})
	})}
}

// pages are those of a controller that waits.
func (r *room) pages() http.Handler {
	mux := http.NewServeMux()
	for path, page := range r.tells() {
		mux.Handle(path, page)
	}
	mux.Handle("/", rapi.Unavailable("the controller waits for its store; /readyz tells why"))
	return mux
}
