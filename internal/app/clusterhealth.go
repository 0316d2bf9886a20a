package app

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/health"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/version"
)

const (
	// healthTime bounds how long another controller may take to tell all of itself. It is short: one that hangs is one of the
	// things that are looked for.
	healthTime = 4 * time.Second
	// catchUpTime is how long a controller that stands by may take to come to what the store has.
	catchUpTime = time.Second
)

// toldHealth is what a controller tells another of itself, and of the cluster if it leads.
type toldHealth struct {
	Instance string          `json:"instance"`
	Member   health.Member   `json:"member"`
	Cluster  *health.Cluster `json:"cluster,omitempty"`
}

// clusterHealth says how the cluster is, whoever leads it, and also while nobody does.
func (m *member) clusterHealth(ctx context.Context) health.Report {
	f := health.Facts{Now: m.now().UTC(), Asked: m.ownName()}
	if m.group != nil {
		m.group.gather(ctx, &f)
	} else {
		own := m.tellHealth(ctx)
		f.Members, f.Cluster = []health.Member{own.Member}, own.Cluster
	}
	return health.Of(&f)
}

// gather asks all controllers of the group.
func (g *group) gather(ctx context.Context, f *health.Facts) {
	peers, err := g.known(ctx)
	if err != nil {
		f.Remembered = err.Error()
	}
	told := make([]toldHealth, len(peers))
	var asked sync.WaitGroup
	for i, p := range peers {
		asked.Go(func() { told[i] = g.healthOf(ctx, p) })
	}
	asked.Wait()
	for _, t := range told {
		f.Members = append(f.Members, t.Member)
		if t.Cluster != nil && (f.Cluster == nil || t.Cluster.Epoch > f.Cluster.Epoch) {
			f.Cluster = t.Cluster
		}
	}
}

// healthOf asks a controller how it is.
func (g *group) healthOf(ctx context.Context, p peerRecord) toldHealth {
	if p.Instance == g.self.Instance {
		return g.m.tellHealth(ctx)
	}
	var told toldHealth
	asked := g.m.now()
	err := g.ask(ctx, p, http.MethodGet, healthPath, healthTime, &told)
	answered := g.m.now()
	switch {
	case err == nil && told.Instance == p.Instance:
		told.Member.Ahead = ahead(told.Member.Clock, asked, answered)
		return told
	case err == nil:
		return toldHealth{Member: health.Member{Name: p.Name, Address: p.Address, Role: health.IsUnknown, Silent: "another controller is at " + p.Address, Version: p.Version}}
	}
	limit, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	st, older := g.status(limit, p) // a program of before knows no more
	m := health.Member{Name: p.Name, Address: p.Address, Role: health.IsUnknown, Version: p.Version, Started: p.Started, Silent: err.Error()}
	if older == nil {
		m.Silent, m.Older, m.Role, m.Unfit, m.Revision = "", true, health.Role(st.Role), st.Unfit, st.Revision
	}
	return toldHealth{Member: m}
}

// ahead is how far a clock that was read between two moments is before them, or behind if it is negative.
func ahead(clock, from, to time.Time) time.Duration {
	switch {
	case clock.Before(from):
		return clock.Sub(from)
	case clock.After(to):
		return clock.Sub(to)
	}
	return 0
}

const healthPath = "/peer/health"

// tellPeerHealth answers another controller.
func (g *group) tellPeerHealth(w http.ResponseWriter, r *http.Request) {
	if err := json.NewEncoder(w).Encode(g.m.tellHealth(r.Context())); err != nil {
		g.m.log.Debug("another controller did not wait for the answer", "error", err)
	}
}

// tellHealth gathers what this controller knows of itself, and of the cluster if it leads.
func (m *member) tellHealth(ctx context.Context) toldHealth {
	build := version.Current()
	t := toldHealth{Member: health.Member{Role: health.StandsBy, Version: build.Version, Commit: build.Commit, Clock: m.now().UTC(), Started: m.started,
		Stopping: m.stopping.Load(), Name: m.name}}
	own := &t.Member
	own.Crowds = m.crowds()
	if g := m.group; g != nil {
		t.Instance, own.Name, own.Address, own.Started = g.self.Instance, g.self.Name, g.self.Address, g.self.Started
		if unfit := g.unfit.Load(); unfit != nil {
			own.Unfit = unfit.Text
		}
		if d := g.drained.Load(); d != nil {
			own.Drained = d.String()
		}
		if g.cert != nil {
			own.Certificates = append(own.Certificates, told509("other controllers", g.cert))
		}
	}
	if cert := m.cert.Load(); cert != nil {
		own.Certificates = append(own.Certificates, told509("RAPI", cert))
	}
	if users := m.users.Load(); users != nil {
		if text := users.Trouble(); text != "" {
			own.Accounts = &health.Trouble{Text: text}
		}
	}
	if c := m.leads(); c != nil {
		own.Role, own.Revision = health.Leads, c.picture.Load().Revision
		t.Cluster = c.tellCluster()
		sure, cancel := context.WithTimeout(ctx, catchUpTime)
		if err := c.assured(sure); err != nil {
			own.Doubt = err.Error()
		}
		cancel()
	} else if m.group != nil {
		own.Revision, own.Behind = m.group.lag(ctx)
	}
	if d, known := m.clockAhead(ctx); known {
		own.ClockAhead = &d
	}
	own.Disk, own.Backups = m.disk(), m.backups.look(m.now())
	if trouble := m.meter.Trouble(); trouble != nil { // after what was just asked of it
		own.Store = &health.Trouble{Text: trouble.Err.Error(), Since: trouble.Since}
	}
	return t
}

func told509(of string, f *rapi.CertificateFile) health.Certificate {
	leaf := f.Current().Leaf
	return health.Certificate{Of: of, File: f.Path(), Own: f.Own(), Begin: leaf.NotBefore, End: leaf.NotAfter}
}

// lag is the revision that a controller which stands by shows, and how many it is behind what the store had a moment ago.
func (g *group) lag(ctx context.Context) (shown, behind int64) {
	limit, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	newest, err := g.m.store.Revision(limit)
	here := g.reading.Load()
	if here == nil {
		return 0, int64(newest) // it has just begun, or cannot follow the store
	}
	if err == nil {
		soon, cancel := context.WithTimeout(ctx, catchUpTime)
		defer cancel()
		_, _ = here.picture.Wait(soon, int64(newest)) // what it came to is looked at
	}
	shown = here.picture.Load().Revision
	return shown, max(0, int64(newest)-shown)
}

// disk is that of the data directory; nil where the system does not tell.
func (m *member) disk() *health.Disk {
	var s syscall.Statfs_t
	if m.data == "" || syscall.Statfs(m.data, &s) != nil {
		return nil
	}
	block := uint64(s.Bsize)
	d := &health.Disk{Path: m.data, Free: s.Bavail * block, Size: s.Blocks * block}
	if m.shared == nil {
		for _, name := range []string{sqlite.FileName, sqlite.FileName + "-wal"} {
			if info, err := os.Stat(filepath.Join(m.data, storeDir, name)); err == nil {
				d.Store += uint64(info.Size())
			}
		}
	}
	return d
}

// tellCluster gathers what the controller that leads knows of the cluster.
func (c *controller) tellCluster() *health.Cluster {
	now := c.now()
	shown := c.picture.Load()
	out := &health.Cluster{Epoch: c.lease.Epoch, Since: c.begun.UTC(), Format: c.format.Format(), Nodes: c.tellNodes(shown.Inventory), Watch: c.tellWatch()}
	if of := shown.Inventory.Cluster(); of != nil {
		out.Name = of.Name
	}
	for _, u := range c.keeper.Unreadable() {
		out.Unreadable = append(out.Unreadable, string(u.Kind)+" "+u.UUID)
	}
	q := &out.Queue
	if err := c.queue.Health(); err != nil {
		q.Trouble = err.Error()
	}
	q.Unreadable = c.queue.Unreadable()
	if q.Drained = shown.Flags.Drained; shown.Flags.Drain != nil {
		q.Drain = shown.Flags.Drain.String()
	}
	if until := shown.Flags.PausedUntil(now); until != nil {
		q.PausedUntil = time.Unix(int64(*until), 0).UTC()
	}
	c.tellPlaces(q)
	if left := c.behind.Load(); left != nil {
		q.Left = *left
	}
	for j := range shown.Jobs.Between(job.ByEnded, job.At(now.Add(-health.Recent)), job.Never) {
		if q.Ended++; j.Status() == job.Error {
			q.Failed++
		}
	}
	held := heldJobs(shown)
	for _, r := range shown.Rules {
		if n := held[r.UUID]; n.Jobs > 0 {
			out.Rules = append(out.Rules, health.Rule{UUID: r.UUID, Name: r.Name, Jobs: toldJobs(n)})
		}
	}
	if c.servers != nil {
		for _, s := range c.servers.Clusters() {
			out.Servers = append(out.Servers, health.ServerCluster{Name: s.Name, Away: s.Away, Why: s.Why})
		}
	}
	out.Tags = tellTags(shown)
	out.Events = c.tellEvents(shown.Revision)
	return out
}

// tellPlaces tells what runs, and what waits for what.
func (c *controller) tellPlaces(q *health.Queue) {
	census := c.queue.Census()
	q.Slots, q.Running, q.Waiting = census.Slots, toldJobs(census.Running), map[string]health.Jobs{}
	for what, n := range waitingFor(&census) {
		if n.Jobs > 0 {
			q.Waiting[what] = toldJobs(n)
		}
	}
}

// tellTags tells which servers wait for tags.
func tellTags(shown *state.State) (out health.Tags) {
	for s := range shown.Servers.All() {
		if due := s.TagsDue(); due != 0 {
			if since := time.UnixMicro(int64(due)).UTC(); out.Servers == 0 || since.Before(out.Since) {
				out.Oldest, out.Since = s.ID, since
			}
			out.Servers++
		}
	}
	return out
}

// heldJobs are the jobs that filter rules hold, by the rules' UUIDs.
func heldJobs(shown *state.State) map[string]queue.Count {
	held := map[string]queue.Count{}
	for j := range shown.Jobs.Unfinished() {
		if j.Hold != nil && j.Hold.Rule != "" {
			n := held[j.Hold.Rule]
			n.Add(j.ID, j.Hold.Since)
			held[j.Hold.Rule] = n
		}
	}
	return held
}

// waitingFor are the jobs that wait, by what for, in the words of figures.
func waitingFor(c *queue.Census) map[string]queue.Count {
	return map[string]queue.Count{"filter": c.Held, "depend": c.Dependency, "node": c.Node, "bucket": c.Bucket, "slot": c.Slot, "lock": c.Lock}
}

func toldJobs(n queue.Count) health.Jobs {
	j := health.Jobs{Count: n.Jobs, Oldest: int64(n.Oldest)}
	if n.Jobs > 0 {
		j.Since = time.UnixMicro(int64(n.Since)).UTC()
	}
	return j
}

// tellNodes tells which nodes are not in service, and which are but away. Each is in one list at the most.
func (c *controller) tellNodes(snap *cluster.Snapshot) health.Nodes {
	var out health.Nodes
	for n := range snap.Nodes() {
		out.All++
		switch {
		case n.Offline:
			out.Offline = append(out.Offline, n.Name)
		case n.Agent != nil && !c.agents.hub.Linked(n.Name):
			since, _, _ := c.awaySince(n.Name)
			out.Away = append(out.Away, health.AwayNode{Name: n.Name, Since: since.UTC()})
		case n.Drained:
			out.Drained = append(out.Drained, n.Name)
		}
	}
	if later := c.lead.Overtaken(); len(later) > 0 {
		out.Ahead = slices.Sorted(maps.Keys(later))
		out.AheadEpoch = slices.Max(slices.Collect(maps.Values(later)))
	}
	return out
}

// tellEvents tells how the broker is told of events; nil where none is.
func (c *controller) tellEvents(revision int64) *health.Events {
	if c.broker == nil {
		return nil
	}
	e := &health.Events{Behind: max(0, revision-c.outbox.Looked())}
	if since, err := c.broker.Trouble(); err != nil {
		e.Trouble = &health.Trouble{Text: err.Error(), Since: since}
	}
	return e
}
