package app

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/gate"
)

// healthListener is a listener for those who watch a controller: health and figures, and nothing else. It is there as long as the process,
// with places of its own, so that no number of users is in its way.
type healthListener struct {
	url   string // empty where there is none
	shown atomic.Pointer[http.Handler]
	stop  context.CancelFunc
	ended sync.WaitGroup
}

// openHealthListener listens, if an address is named.
func openHealthListener(o Options) (*healthListener, error) {
	l := &healthListener{stop: func() {}}
	if o.Health == "" {
		return l, nil
	}
	listener, err := gateOf(gate.Health, o).Listen(context.Background(), o.Health)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot listen for health and figures: %w", err).
			WithHint("choose another address with --health; port 0 picks a free one")
	}
	l.url = "http://" + listener.Addr().String()
	l.show(inPlaceOfPages("the controller starts"))
	var ctx context.Context
	ctx, l.stop = context.WithCancel(context.Background())
	l.ended.Go(func() {
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*l.shown.Load()).ServeHTTP(w, r) })
		if err := rapi.ServeHandler(ctx, gate.Health, listener, nil, handler, o.Log); err != nil {
			o.Log.Warn("nobody can be told how the controller is at its own address for that", "error", err)
		}
	})
	return l, nil
}

// show has the pages served that there are from now on.
func (l *healthListener) show(pages map[string]http.Handler) {
	mux := http.NewServeMux()
	for path, page := range pages {
		mux.Handle("GET "+path, page)
	}
	var h http.Handler = mux
	l.shown.Store(&h)
}

// close ends it.
func (l *healthListener) close() {
	l.stop()
	l.ended.Wait()
}

// inPlaceOfPages are the pages of a controller that is not there yet, or no more.
func inPlaceOfPages(why string) map[string]http.Handler {
	return map[string]http.Handler{
		"/healthz": http.HandlerFunc(healthz),
		"/readyz": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			tellHealth(w, Health{Problems: []Problem{{Part: "queue", Text: why}}, Notes: []Problem{}})
		}),
	}
}
