// Package app puts the parts together: it knows every adapter, builds the
// controller of a cluster from them, and serves its interfaces.
//
// Invariants:
//   - Parts are opened bottom up and closed top down; what cannot be opened
//     leaves nothing behind that runs.
//   - A controller holds the leader's lease for as long as it runs, and ends
//     when it loses it.
package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/agent/effect"
	identityapi "github.com/drover-project/drover/internal/api/identity"
	"github.com/drover-project/drover/internal/api/luxi"
	"github.com/drover-project/drover/internal/api/web"
	"github.com/drover-project/drover/internal/backend/ganeti"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/events"
	"github.com/drover-project/drover/internal/events/amqp"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/flavor"
	"github.com/drover-project/drover/internal/health"
	"github.com/drover-project/drover/internal/identity"
	"github.com/drover-project/drover/internal/identity/keystone"
	"github.com/drover-project/drover/internal/inventory"
	"github.com/drover-project/drover/internal/keypair"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/nodedriver"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/internal/readlease"
	"github.com/drover-project/drover/internal/rollout"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/store/life"
	"github.com/drover-project/drover/internal/systems"
	"github.com/drover-project/drover/internal/tagsync"
	"github.com/drover-project/drover/internal/upload"
	"github.com/drover-project/drover/internal/version"
)

// controller is a running control plane with the nodes that live in its
// process.
type controller struct {
	*member

	// store is that of the process, and knows when this term is over.
	store *termStore
	lease store.Lease
	// lead is how long this controller may be sure that it leads; what runs on its nodes and cannot be joined ends with it.
	lead    effect.Lead
	fleet   *agent.Fleet
	keeper  *inventory.Keeper
	queue   *queue.Queue
	querier *live.Querier
	// keyboards are those of serial lines.
	keyboards *console.Keyboards
	rollout   *rollout.Engine
	picture   *picture.Picture
	// broker is told of events; nil for none.
	broker *amqp.Broker
	// outbox publishes events, where there is somebody to be told.
	outbox *events.Outbox
	// remotes are the further clusters of servers, by name.
	remotes map[string]*ganeti.Cluster
	// accounts and servers are those of the Compute API.
	accounts *identity.Service
	servers  *tagsync.Engine
	quotas   *quota.Service
	keyPairs *keypair.Service
	flavors  *flavor.Service
	systems  *systems.Service
	uploads  *upload.Service
	// accountsAPI answers requests about accounts.
	accountsAPI *identityapi.API
	// keystone judges tokens in place of accounts; nil for none.
	keystone *keystone.Keystone
	rapi     http.Handler
	luxi     *luxi.Server
	compute  http.Handler
	web      *web.Server
	page     http.Handler // that, behind proxies
	// doorOpens is done when agents are taken in.
	doorOpens sync.Once
	// shutAgents ends the links of agents; nil where none are taken in.
	shutAgents func()
	// endAgents ends the agents that run beside this program; nil where none do.
	endAgents func()
	// successor is who shall have the lease when the term ends; empty for whoever
	// comes first.
	successor string
	// over is closed when the lease is given up; nil when nobody waits for it.
	over chan struct{}
	// term is that of clients: it ends when the controller is to lead no more, which
	// endTerm brings about.
	term    context.Context
	owed    owed
	lookout lookout
	endTerm context.CancelCauseFunc
	// behind are the jobs of the term that could not take back what they had done.
	behind atomic.Pointer[health.Jobs]
	// life is that of the store.
	life string
	// fresh: there was no cluster before.
	fresh bool
	// heard is how long after the beginning of the term the store was last asked who
	// leads, and said that it is this controller; zero for never.
	heard atomic.Int64
	// lessor grants read leases to those who stand by; nil for a controller that is
	// alone.
	lessor *readlease.Lessor
	begun  time.Time
	// format is that of the store (format.go), raising is held while it is raised, and
	// hearings are when others of the group were last heard of.
	format   format.Present
	raising  sync.Mutex
	hearings *hearings
	// seen is the term as whoever runs the controller sees it, where that is another program.
	seen Term
}

// dirOf is a directory of files, nil if none is named.
func dirOf(path string) fs.FS {
	if path == "" {
		return nil
	}
	return os.DirFS(path)
}

// openController opens the controller of a term, and makes a cluster if there is
// none.
func (m *member) openController(ctx context.Context, o Options, lease store.Lease) (c *controller, err error) {
	log := o.Log
	c = &controller{member: m, store: newTermStore(m.store, lease.Epoch), lease: lease, picture: picture.New(), begun: time.Now()}
	c.hearings = newHearings(c.store, c.lease.Epoch, c.begun)
	c.seen = Term{Lease: lease, Picture: c.picture}
	c.lend()
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if err = c.assume(ctx); err != nil {
		return c, err
	}
	if err = c.openFormat(ctx); err != nil { // before anything is written under this epoch
		return c, err
	}
	if c.life, err = life.Open(ctx, c.store, c.lease.Epoch, c.newUUID); err != nil {
		return c, err
	}
	if err = c.seal(ctx); err != nil {
		return c, err
	}
	if err = c.openEvents(o.Events); err != nil {
		return c, err
	}
	if c.keeper, err = inventory.Open(ctx, c.store, c.lease.Epoch, c.picture); err != nil {
		return c, err
	}
	for _, u := range c.keeper.Unreadable() {
		log.Error("an object of the inventory cannot be read and is set aside; restore it from a backup", "kind", u.Kind, "uuid", u.UUID, "error", u.Why)
	}
	if err = c.bootstrap(ctx, o); err != nil {
		return c, err
	}
	if err = c.openEngines(ctx, o); err != nil {
		return c, err
	}
	if err = c.raiseAlone(ctx); err != nil {
		return c, err
	}
	c.queue.Run() // opcodes that are queries find the querier whole
	c.rollout.Run(c.queue)
	return c, c.openServers(ctx, o)
}

// openEngines opens what answers queries, carries deployments out and runs jobs. Nothing runs yet.
func (c *controller) openEngines(ctx context.Context, o Options) (err error) {
	log := o.Log
	c.fleet = agent.NewFleet(func(node string) (*agent.Agent, error) {
		if c.ground != nil {
			return c.ground.Agent(&c.seen, node, &c.lead)
		}
		return c.openAgent(o, node)
	})
	c.querier = &live.Querier{Picture: c.picture, Store: c.store, Nodes: c.liveNodes(), Runtime: ofProgram(), Log: log}
	c.rollout, err = rollout.Open(ctx, rollout.Config{Store: c.store, Epoch: c.lease.Epoch, Picture: c.picture, Now: time.Now, Log: log,
		Functions: dirOf(o.Functions), Digest: c.sealed.Ring().Digest, Nodes: c.nodes()})
	if err != nil {
		return err
	}
	c.querier.Deployments = c.rollout.Reader
	executors := exec.All(c.querier.Source, hostNames(newAllocators(o.Allocators), newOutOfBand(o.OutOfBand), onMachine{c.member}))
	maps.Copy(executors, c.rollout.Executors())
	executors["OP_NODE_TOKEN"] = exec.NodeToken(c.joinAccess)
	if err = c.openUploads(ctx, o); err != nil {
		return err
	}
	c.queue, err = queue.Open(ctx, queue.Config{
		Uploads: c.uploads,
		Store:   c.store, Epoch: c.lease.Epoch, Life: c.life, Format: c.format.Format, Inventory: c.keeper, Picture: c.picture, Executors: executors, Nodes: c.nodes(),
		Now: time.Now, NewUUID: c.newUUID, Log: log, Grace: o.StopGrace, Told: c.told(), EventsByAge: o.ArchiveKeep.Events > 0, LeftBehind: c.leftBehind,
	})
	if err != nil {
		return err
	}
	c.querier.Queue = c.queue
	c.outbox = &events.Outbox{Store: c.store, Epoch: c.lease.Epoch, Queue: c.queue, Picture: c.picture, Log: log}
	c.keyboards = console.NewKeyboards(time.Now, c.queue.Record)
	if c.agents.taken { // nothing begins on a node before its agent follows this controller
		away, _ := c.waitedFor(c.begun)
		c.queue.Await(away)
	}
	return nil
}

// newClusterName is the name of a cluster that nobody has named.
const newClusterName = "dev.drover.example"

// bootstrap makes a cluster where there is none.
func (c *controller) bootstrap(ctx context.Context, o Options) error {
	if known := c.keeper.Snapshot().Cluster(); known != nil {
		if err := exec.Destroyed(known); err != nil { // to start again would not help
			return &configurationError{err}
		}
		if wanted, err := cluster.NormalName(o.ClusterName); err == nil && wanted != known.Name {
			c.log.Info("the setting cluster-name is for a new cluster; this one has another name", "name", known.Name, "cluster_name", wanted)
		}
		return nil
	}
	c.fresh = true
	if err := c.beginFormat(ctx); err != nil {
		return err
	}
	name, err := cluster.NormalName(cmp.Or(o.ClusterName, newClusterName))
	if err != nil {
		return err
	}
	setup := inventory.Setup{
		Name: name, Hypervisors: []string{o.Driver.Kind()}, HVParams: cluster.Fill(o.Driver.Params(), o.HVParams), DiskTemplates: append([]string{cluster.DiskDiskless}, o.Driver.Templates()...), VolumeGroup: o.Driver.Group(),
		Now: time.Now(), NewUUID: c.newUUID, Elsewhere: o.Agents,
	}
	for i := range o.Nodes {
		setup.Nodes = append(setup.Nodes, fmt.Sprintf("node%d.drover.example", i+1))
	}
	return c.keeper.Bootstrap(ctx, setup)
}

// openAgent opens the agent of a node that lives in this process, with its files
// below a directory.
func (c *controller) openAgent(o Options, node string) (*agent.Agent, error) {
	home := filepath.Join(cmp.Or(o.NodeData, filepath.Join(o.Data, "nodes")), node)
	driver, err := o.Driver.Open(context.Background(), nodedriver.Node{Dir: home, Log: c.log, ByUUID: func() bool { return c.format.Format() >= format.Identities }})
	if err != nil {
		return nil, err
	}
	return agent.New(agent.Config{Node: node, Dir: home, Driver: driver, Tasks: o.Tasks, Commands: o.Driver.Commands, Lead: &c.lead, Log: c.log, Told: c.querier.NodeTold})
}

// close ends the parts that were opened.
func (c *controller) close() {
	defer c.endLending()()
	renewed := c.keepOn()
	if c.web != nil {
		c.web.Close()
	}
	if c.uploads != nil {
		c.uploads.Close()
	}
	if c.servers != nil {
		c.servers.Close()
	}
	if c.systems != nil {
		c.systems.Close()
	}
	if c.rollout != nil {
		c.rollout.Close()
	}
	if c.queue != nil {
		c.queue.Close()
	}
	if c.shutAgents != nil {
		c.shutAgents()
	}
	if c.endAgents != nil {
		c.endAgents()
	}
	if c.keeper != nil {
		c.keeper.Close()
	}
	if c.broker != nil {
		c.broker.Close()
	}
	var all []error
	if c.fleet != nil {
		all = append(all, c.fleet.Close())
	}
	renewed()
	all = append(all, c.giveUp())
	if err := errors.Join(all...); err != nil {
		c.log.Error("closing the controller", "error", err)
	}
}

// giveUp ends the lease: in favour of the controller that asked for it, or of
// anybody.
func (c *controller) giveUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaseTime)
	defer cancel()
	if c.successor != "" {
		defer close(c.over)
		return c.shared.HandLease(ctx, c.lease, c.successor, leaseRenew)
	}
	return c.store.ReleaseLease(ctx, c.lease)
}

// newUUID returns a random UUID (version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// newPassword returns a random password.
func newPassword() string { return strings.ToLower(rand.Text()) }

// architecture is the word size and the architecture of Go's name, as uname(1) names it and clients read it.
func architecture(name string) [2]string {
	if known, ok := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[name]; ok {
		name = known
	}
	return [2]string{fmt.Sprintf("%dbits", strconv.IntSize), name}
}

// ofProgram is what the program tells about itself: the reference whose
// interfaces it speaks, under the reference's numbers, and its own version.
func ofProgram() query.Runtime {
	const protocol = 3000000
	return query.Runtime{
		SoftwareVersion: "3.0.2", VCSVersion: "(drover) version " + version.Current().Version,
		ProtocolVersion: protocol, ConfigVersion: protocol, OSAPIVersion: 20,
		Architecture: architecture(runtime.GOARCH),
	}
}
