package tagsync_test

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/tagsync"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/controller"
)

// rig is a controller with one fake node: store, queue and engine are real.
type rig struct {
	testkit.Failing
	ctx    context.Context //nolint:containedctx // that of the test
	dir    string
	log    *slog.Logger
	core   *controller.Controller
	store  *faultstore.Store
	shown  *picture.Picture
	queue  *queue.Queue
	engine *tagsync.Engine
	// ahead is how far the engine's clock is ahead of the true one.
	ahead atomic.Int64
	// around wraps the cluster that the engine gets, if set.
	around func(tagsync.Backend) tagsync.Backend
	// more are further clusters.
	more map[string]tagsync.Backend
	// effects are those of tags.
	effects []servertag.Effect
	// room is how much projects may have; nil for no limit.
	room func(string) server.Amount
	// format is that of the store; nil for the newest. life is that of the store.
	format func() int
	life   string
}

// quiet is a log that nobody reads.
var quiet = slog.New(slog.DiscardHandler)

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigAround(t, nil)
}

// newRigAround is a rig whose engine gets a wrapped cluster.
func newRigAround(t *testing.T, around func(tagsync.Backend) tagsync.Backend) *rig {
	t.Helper()
	r := &rig{Failing: t, ctx: t.Context(), dir: t.TempDir(), log: slog.New(slog.NewTextHandler(t.Output(), nil)), around: around}
	r.start()
	t.Cleanup(r.stop)
	return r
}

// start opens everything on what is in the directory.
func (r *rig) start() {
	r.Helper()
	r.core = controller.Start(r.ctx, r.Failing, controller.Options{Dir: r.dir, Log: r.log, Memory: 1 << 20, Patience: time.Millisecond,
		Wrap: func(beneath store.Store) store.Store {
			r.store = faultstore.New(beneath)
			return r.store
		}})
	r.queue, r.shown = r.core.Queue, r.core.Picture
	var backend tagsync.Backend = r.local()
	if r.around != nil {
		backend = r.around(backend)
	}
	policy := servertag.DefaultPolicy()
	policy.Effects = r.effects
	backends := map[string]tagsync.Backend{"": backend}
	maps.Copy(backends, r.more)
	var err error
	r.engine, err = tagsync.Open(r.ctx, tagsync.Config{
		Store: r.store, Life: r.life, Picture: r.shown, Note: r.queue.Note, Format: r.format, Room: r.room, Backends: backends, Policy: policy,
		Images: server.DefaultImages, Prefix: "snf-", NewUUID: testkit.NewUUID, Log: r.log,
		Now: func() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) },
	})
	r.check(err)
	r.engine.Run()
}

// local is the cluster as the engine has it.
func (r *rig) local() tagsync.Local {
	return tagsync.Local{Queue: r.queue, Picture: r.shown, Store: r.store}
}

func (r *rig) stop() {
	r.engine.Close()
	if err := r.core.Close(); err != nil {
		r.Fatalf("closing: %v", err)
	}
}

func (r *rig) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatalf("%v", err)
	}
}

func (r *rig) asked() servertag.Asked {
	return servertag.Asked{User: "alice", Front: "compute", Request: "req-7", From: "127.0.0.1", Time: r.engine.Now()}
}

// create makes a server with tags, and waits until it is there.
func (r *rig) create(tags ...string) *server.Server {
	r.Helper()
	s, err := r.engine.Create(r.ctx, &tagsync.Wish{Name: "web", Project: "p", User: "u", Flavor: server.DefaultFlavors()[3], Image: r.engine.Images()[0],
		NICs: 1, Tags: tags, Asked: r.asked()})
	r.check(err)
	return r.until(s.ID, "is active and at rest", func(s *server.Server) bool { return s.Status() == server.Active && atRest(s) })
}

func atRest(s *server.Server) bool {
	return len(s.Tasks) == 0 && s.Tags.OldestPending() == 0 && len(s.Tags.Jobs) == 0
}

// until waits until a condition holds for a server; nil is one that is gone.
func (r *rig) until(id, what string, holds func(*server.Server) bool) *server.Server {
	r.Helper()
	var s *server.Server
	testkit.Until(r, "the server "+what, r.shown.Changed, func() bool {
		s = r.engine.Servers().Get(id)
		return holds(s)
	}, func() any { return s })
	return s
}

func (r *rig) settled(id string) *server.Server {
	r.Helper()
	return r.until(id, "comes to rest", func(s *server.Server) bool { return s == nil || atRest(s) })
}

// onCluster returns the tags that the instance of a server has.
func (r *rig) onCluster(s *server.Server) []string {
	r.Helper()
	inst := r.shown.Load().Inventory.InstanceNamed(s.Instance)
	if inst == nil {
		r.Fatalf("there is no instance %s", s.Instance)
	}
	return slices.Clone(inst.Tags)
}

// submit submits a job about an instance, as an administrator does.
func (r *rig) submit(id string, params map[string]any) job.ID {
	r.Helper()
	op, err := opcode.FromMap(id, params)
	r.check(err)
	jobID, err := r.queue.Submit(r.ctx, queue.Submission{Ops: []*opcode.Opcode{op}})
	r.check(err)
	return jobID
}

// finish submits a job and waits until it has ended.
func (r *rig) finish(id string, params map[string]any) *job.Job {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, testkit.Patience())
	defer cancel()
	j, err := r.queue.Wait(ctx, r.submit(id, params), (*job.Job).Final)
	r.check(err)
	return j
}

func tagParams(s *server.Server, tags ...string) map[string]any {
	list := make([]any, len(tags))
	for i, t := range tags {
		list[i] = t
	}
	return map[string]any{"kind": "instance", "name": s.Instance, "tags": list}
}
