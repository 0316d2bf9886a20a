// Package controller is what most tests of engines and transports stand on: a
// controller without its transports, on a store of its own and with fake nodes, all
// of it as in the program.
//
// Not everything can stand on it. Tests inside of a package that it is made of would
// import themselves: those of internal/exec, internal/inventory and internal/rollout
// (which queries know) build what they test and what is below it. The tests of
// internal/api/compute have a cluster in memory in place of a queue, those of
// internal/identity need a store alone, and those of internal/app
// and test/ start the whole program.
package controller

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/hypervisor/fake"
	"github.com/drover-project/drover/internal/inventory"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/rollout"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/postgres"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/testkit"
)

// Options say how a controller differs from the usual one: named cluster.example,
// with one node, node1.example, on an embedded store.
type Options struct {
	// Dir is where the store and the nodes keep what they have. A controller that
	// is opened on the directory of an earlier one goes on with its cluster.
	Dir string
	// URL is that of a store elsewhere.
	URL string
	// Keep is how many revisions the embedded store's feed reaches back; zero for
	// the usual.
	Keep store.Revision
	// Wrap stands between the store and everything; WrapQueue only between it and
	// the queue, for faults that are to spare the inventory.
	Wrap, WrapQueue func(store.Store) store.Store

	Cluster   string
	Nodes     []string
	Templates []string // of disks that are enabled; diskless and file if there are none
	NewUUID   func() string

	// Memory is that of a node in MiB; zero for the driver's own default.
	Memory int
	// OnCall sees each call of a node's driver, and may fail it.
	OnCall func(node string, c fake.Call) error
	// Reach gives executors other nodes than the fake ones.
	Reach exec.Nodes

	// Names is how names are looked up.
	Names exec.Names
	// Executors are what opcodes do, if not what they do in the program. The queue
	// is not there yet when it is called; all else is.
	Executors func(*Controller) exec.Catalogue

	// Patience and Grace are the queue's (queue.Config).
	Patience, Grace time.Duration
	// EventsByAge is the queue's.
	EventsByAge bool
	// Format is the queue's, too; nil for the newest.
	Format func() int
	// Told is the queue's, too.
	Told func() store.Revision
	// Log is where the controller writes to; nil for nowhere.
	Log *slog.Logger
}

// Controller is a controller without transports.
type Controller struct {
	Store   store.Store
	Picture *picture.Picture
	Keeper  *inventory.Keeper
	Fleet   *agent.Fleet
	Rollout *rollout.Engine
	Queue   *queue.Queue
	Querier *live.Querier
}

// New starts a controller that ends with the test, in a directory of the test if
// the options name none.
func New(t testing.TB, o Options) *Controller {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	c := Start(t.Context(), t, o)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("closing the controller: %v", err)
		}
	})
	return c
}

// Start starts a controller; whoever asks for it closes it.
func Start(ctx context.Context, t testkit.Failing, o Options) *Controller {
	t.Helper()
	c, err := open(ctx, o.complete())
	if err != nil {
		t.Fatalf("opening a controller: %v", err)
	}
	c.Queue.Run()
	c.Rollout.Run(c.Queue)
	return c
}

// complete fills in what is as usual.
func (o Options) complete() Options {
	if o.Cluster == "" {
		o.Cluster = "cluster.example"
	}
	if len(o.Nodes) == 0 {
		o.Nodes = []string{"node1.example"}
	}
	if len(o.Templates) == 0 {
		o.Templates = []string{"diskless", "file"}
	}
	if o.NewUUID == nil {
		o.NewUUID = testkit.NewUUID
	}
	if o.Executors == nil {
		o.Executors = func(c *Controller) exec.Catalogue { return exec.All(c.Querier.Source, o.Names) }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func open(ctx context.Context, o Options) (*Controller, error) {
	opened, err := openStore(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.Wrap != nil {
		opened = o.Wrap(opened)
	}
	c := &Controller{Store: opened, Picture: picture.New()}
	if c.Keeper, err = inventory.Open(ctx, opened, 0, c.Picture); err != nil {
		return nil, err
	}
	if c.Keeper.Snapshot().Cluster() == nil {
		err = c.Keeper.Bootstrap(ctx, inventory.Setup{Name: o.Cluster, Nodes: o.Nodes, Hypervisors: []string{"fake"},
			DiskTemplates: o.Templates, Now: time.Now(), NewUUID: o.NewUUID})
		if err != nil {
			return nil, err
		}
	}
	if o.WrapQueue != nil {
		c.Store = o.WrapQueue(opened)
	}
	c.Fleet = agent.NewFleet(o.openAgent)
	c.Querier = &live.Querier{Picture: c.Picture, Store: c.Store, Nodes: live.Local(c.Fleet), Log: o.Log,
		Runtime: query.Runtime{SoftwareVersion: "test", Architecture: [2]string{"64bits", "x86_64"}}}
	reach := o.Reach
	if reach == nil {
		reach = exec.Local(c.Fleet)
	}
	c.Rollout, err = rollout.Open(ctx, rollout.Config{Store: c.Store, Picture: c.Picture, Now: time.Now, Log: o.Log})
	if err != nil {
		return nil, err
	}
	c.Querier.Deployments = c.Rollout.Reader
	executors := o.Executors(c)
	maps.Copy(executors, c.Rollout.Executors())
	c.Queue, err = queue.Open(ctx, queue.Config{Store: c.Store, Life: "life", Inventory: c.Keeper, Picture: c.Picture, Executors: executors, Nodes: reach,
		Now: time.Now, NewUUID: o.NewUUID, Log: o.Log, Patience: o.Patience, Grace: o.Grace, Format: o.Format, Told: o.Told, EventsByAge: o.EventsByAge})
	c.Querier.Queue = c.Queue
	return c, err
}

func openStore(ctx context.Context, o Options) (store.Store, error) {
	if o.URL != "" {
		return postgres.Open(ctx, o.URL, postgres.Options{})
	}
	return sqlite.Open(filepath.Join(o.Dir, "store"), sqlite.Options{Keep: o.Keep})
}

func (o Options) openAgent(node string) (*agent.Agent, error) {
	dir := filepath.Join(o.Dir, node)
	cfg := fake.Config{Dir: filepath.Join(dir, "fake"), Memory: o.Memory}
	if o.OnCall != nil {
		cfg.Fault = func(c fake.Call) error { return o.OnCall(node, c) }
	}
	driver, err := fake.Open(cfg)
	if err != nil {
		return nil, err
	}
	return agent.New(agent.Config{Node: node, Dir: dir, Driver: driver, Tasks: true})
}

// Close stops a controller in good order and closes its store.
func (c *Controller) Close() error {
	c.Rollout.Close()
	c.Queue.Close()
	c.Keeper.Close()
	return errors.Join(c.Fleet.Close(), c.Store.Close())
}
