package app

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/api/luxi"
	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/rollout"
	"github.com/drover-project/drover/internal/standby"
)

// reader answers from the picture of a controller that stands by: what is stored, as
// long as that is what the leader would answer (package readlease), or to clients that
// say that they take an answer which may be older.
type reader struct {
	picture *picture.Picture
	rapi    http.Handler
	luxi    *luxi.Server
}

// readAgain is how long to wait before everything is read anew, after the feed could
// not be followed.
var readAgain = backoff.Pauses{First: time.Second, Longest: time.Minute}

// keepReading keeps a reader until ctx ends.
func (g *group) keepReading(ctx context.Context, o Options, s *surfaces) {
	var trying sync.WaitGroup
	defer trying.Wait()
	trying.Go(func() { g.keepKeys(ctx) })
	for failures := 1; ctx.Err() == nil; failures++ {
		begun := time.Now()
		g.remember(ctx)
		g.tryKeys(ctx)
		f, err := standby.Open(ctx, g.m.store, g.learning(g.m.shared.Follow))
		if err == nil {
			g.remember(ctx) // the feed tells of nobody who came, or took the lead, before the store was read
			g.tryKeys(ctx)
			err = g.read(ctx, f, o, s)
		}
		if ctx.Err() != nil {
			return
		}
		if time.Since(begun) > readAgain.Longest {
			failures = 1
		}
		g.m.log.Warn("what the leader does is not followed; all requests are forwarded to it", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(readAgain.After(failures)):
		}
	}
}

// read answers from what is followed, until it cannot be followed, or ctx ends.
func (g *group) read(ctx context.Context, f *standby.Follower, o Options, s *surfaces) error {
	r, err := g.newReader(f, o, s)
	if err != nil {
		return err
	}
	g.reading.Store(r)
	defer g.reading.Store(nil)
	keeping, stop := context.WithCancel(ctx)
	var files sync.WaitGroup
	defer files.Wait()
	defer stop()
	files.Go(func() { _ = s.ganeti.keep(keeping, f.Picture()) }) // it ends with its context
	return g.follow(ctx, f)
}

// follow moves the picture, and asks for read leases of it meanwhile.
func (g *group) follow(ctx context.Context, f *standby.Follower) error {
	asking, stop := context.WithCancel(ctx)
	var leases sync.WaitGroup
	defer leases.Wait()
	defer stop()
	leases.Go(func() { g.keepLease(asking) })
	return f.Run(ctx)
}

func (g *group) newReader(f *standby.Follower, o Options, s *surfaces) (*reader, error) {
	deployments, err := rollout.NewReader(rollout.ReaderConfig{Store: g.m.store, Picture: f.Picture(), Now: time.Now, Log: o.Log, Functions: dirOf(o.Functions),
		Leads: func(ctx context.Context) ([]string, error) {
			p, err := g.whoLeads(ctx)
			return p.Functions, err
		}})
	if err != nil {
		return nil, err
	}
	querier := &live.Querier{Stored: f.Stored(), Picture: f.Picture(), Deployments: deployments, Store: g.m.store, Runtime: ofProgram(), Log: o.Log}
	return &reader{
		picture: f.Picture(),
		rapi: behindProxies(o, rapi.New(rapi.Config{Querier: querier, Users: s.users, RequireAuthentication: o.RequireAuthentication, Now: time.Now, Log: o.Log,
			Leader: g.leader.proxy, Current: g.lessee.Covers,
			Observe: g.m.figures.observeStandby("rapi", o.Log), NewID: g.m.requestIDs.Next})),
		luxi: luxi.New(luxi.Deps{Querier: querier, Current: g.lessee.Covers, Log: o.Log,
			Observe: g.m.figures.observeStandby("luxi", o.Log), NewID: g.m.requestIDs.Next}),
	}, nil
}
