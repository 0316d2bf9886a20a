// Package state is what a controller knows at one moment, as a value: its jobs,
// rules, locks and switches, the inventory, servers and deployments, as of one revision of the store.
//
// Invariants:
//   - A State never changes and may be read from any number of goroutines.
//   - It is what the store holds at its revision, with what follows from that
//     (which rule holds a job, who has which lock); never a part of a transaction.
//   - With costs what the changes cost, whatever the size of the State.
package state

import (
	"slices"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/server"
)

// State is one picture of everything.
type State struct {
	// Revision is that of the newest transaction of the store whose effect is in
	// the picture; the effects of all before it are, too.
	Revision int64
	// Jobs are those that are not archived.
	Jobs *job.Table
	// Rules are in the order in which they are asked.
	Rules []*jobfilter.Rule
	// Locks are those that are held or waited for.
	Locks     lock.View
	Flags     Flags
	Inventory *cluster.Snapshot
	// Servers are those that users have over the Compute API.
	Servers *server.Table
	// Deployments are environments, task graphs and deployments, and what became of the tasks of those that are under way.
	Deployments *course.Table
}

// Flags are the switches of the queue as a whole.
type Flags struct {
	// Drained: the queue takes no new jobs.
	Drained bool `json:"drained"`
	// Drain tells who drained it, and why; nil if it is not drained, or nobody knows.
	Drain *Drain `json:"drain,omitempty"`
	// WatcherPause is until when watchers do nothing, in seconds since the
	// epoch; nil when they are not paused.
	WatcherPause *float64 `json:"watcher_pause,omitempty"`
}

// Drain is who told the queue to take no new jobs.
type Drain struct {
	// Who is the account and where it came from.
	Who string `json:"who"`
	Why string `json:"why,omitempty"`
	// At is when, in nanoseconds since the epoch.
	At int64 `json:"at"`
}

// String tells it to a person.
func (d *Drain) String() string {
	if d == nil {
		return "nobody knows by whom and why"
	}
	text := "drained by " + d.Who + " on " + time.Unix(0, d.At).UTC().Format(time.RFC3339)
	if d.Why != "" {
		text += ": " + d.Why
	}
	return text
}

// PausedUntil is until when watchers do nothing, nil at a time when they are not
// paused or the pause is over.
func (f Flags) PausedUntil(now time.Time) *float64 {
	if f.WatcherPause == nil || *f.WatcherPause <= float64(now.UnixNano())/1e9 {
		return nil
	}
	return f.WatcherPause
}

// Change is what one transaction of the store changed in the picture.
type Change struct {
	Revision int64
	// Jobs are the new values of jobs that are not archived.
	Jobs []*job.Job
	// Holds are changes of what holds jobs, on top of Jobs.
	Holds []Hold
	// Archived are jobs that went into the archive, with their last values.
	Archived []*job.Job
	// Pruned are jobs of the archive that are there no more.
	Pruned []job.ID
	// Rules were added or replaced, those in RulesRemoved (by UUID) taken out.
	Rules        []*jobfilter.Rule
	RulesRemoved []string
	// Locks are those that look different, as they are now.
	Locks []lock.State
	// Events were recorded. They are not part of a State.
	Events []*audit.Event
	// Flags are the new switches, nil if they stay.
	Flags *Flags
	// Inventory is the new inventory, nil if it stays. Objects are those of it
	// that were put or deleted; nil with an inventory says that any may have been.
	Inventory *cluster.Snapshot
	Objects   []Object
	// Servers are new values of servers, ServersRemoved those taken out, by id.
	Servers        []*server.Server
	ServersRemoved []string
	// Environments, Graphs and Deployments are new values; those named by the fields that end in Removed were taken out.
	Environments        []*course.Environment
	EnvironmentsRemoved []string
	Graphs              []*course.Graph
	GraphsRemoved       []string
	Deployments         []*course.Deployment
	DeploymentsRemoved  []*course.Deployment
	// Records say how tasks of deployments that are under way ended.
	Records []*course.Record
}

// Hold says which rule holds a job, nil for none.
type Hold struct {
	Job job.ID
	By  *job.Hold
}

// Object names an object of the inventory.
type Object struct {
	Kind cluster.Kind
	UUID string
}

// Empty returns the picture of nothing.
func Empty() *State {
	return &State{Jobs: job.NewTable(), Inventory: cluster.Empty(), Servers: server.NewTable(), Deployments: course.NewTable()}
}

// With returns the picture after changes, made in order. The receiver stays as
// it is. It must not be called on one State from several goroutines at a time.
func (s *State) With(changes ...*Change) *State {
	next := *s
	if slices.ContainsFunc(changes, (*Change).ofJobs) {
		next.Jobs = s.Jobs.Copy()
	}
	if slices.ContainsFunc(changes, (*Change).ofServers) {
		next.Servers = s.Servers.Copy()
	}
	if slices.ContainsFunc(changes, (*Change).ofDeployments) {
		next.Deployments = s.Deployments.Copy()
	}
	var locks []lock.State
	for _, c := range changes {
		next.apply(c)
		locks = append(locks, c.Locks...)
	}
	next.Locks = s.Locks.With(locks)
	return &next
}

func (c *Change) ofJobs() bool { return len(c.Jobs)+len(c.Holds)+len(c.Archived)+len(c.Pruned) > 0 }

func (c *Change) ofServers() bool { return len(c.Servers)+len(c.ServersRemoved) > 0 }

func (c *Change) ofDeployments() bool {
	return len(c.Environments)+len(c.EnvironmentsRemoved)+len(c.Graphs)+len(c.GraphsRemoved)+len(c.Deployments)+len(c.DeploymentsRemoved)+len(c.Records) > 0 ||
		slices.ContainsFunc(c.Jobs, func(j *job.Job) bool { _, ok := course.KnownOf(j); return ok })
}

// apply makes one change in place; the State is not shared yet, nor are its tables
// of what the change is about.
func (s *State) apply(c *Change) {
	s.Revision = max(s.Revision, c.Revision)
	for _, j := range c.Jobs {
		s.Jobs.Put(j)
	}
	for _, h := range c.Holds {
		if j := s.Jobs.Get(h.Job); j != nil && !j.Final() {
			s.Jobs.Put(j.WithHold(h.By))
		}
	}
	for _, j := range c.Archived {
		s.Jobs.Remove(j.ID)
	}
	for _, v := range c.Servers {
		s.Servers.Put(v)
	}
	for _, id := range c.ServersRemoved {
		s.Servers.Remove(id)
	}
	s.setDeployments(c)
	s.setRules(c)
	if c.Flags != nil {
		s.Flags = *c.Flags
	}
	if c.Inventory != nil {
		s.Inventory = c.Inventory
	}
}

// setDeployments takes in what changed of deployments; that one was begun comes before what its jobs tell.
func (s *State) setDeployments(c *Change) {
	for _, e := range c.Environments {
		s.Deployments.PutEnvironment(e)
	}
	for _, name := range c.EnvironmentsRemoved {
		s.Deployments.RemoveEnvironment(name)
	}
	for _, g := range c.Graphs {
		s.Deployments.PutGraph(g)
	}
	for _, name := range c.GraphsRemoved {
		s.Deployments.RemoveGraph(name)
	}
	for _, d := range c.Deployments {
		s.Deployments.PutDeployment(d)
	}
	for _, d := range c.DeploymentsRemoved {
		s.Deployments.RemoveDeployment(d.ID)
	}
	for _, r := range c.Records {
		s.Deployments.PutRecord(r)
	}
	for _, j := range c.Jobs {
		if k, ok := course.KnownOf(j); ok {
			s.Deployments.PutJob(k)
		}
	}
}

func (s *State) setRules(c *Change) {
	if len(c.Rules)+len(c.RulesRemoved) == 0 {
		return
	}
	changed := slices.Clone(c.RulesRemoved)
	for _, r := range c.Rules {
		changed = append(changed, r.UUID)
	}
	rest := slices.DeleteFunc(slices.Clone(s.Rules), func(r *jobfilter.Rule) bool { return slices.Contains(changed, r.UUID) })
	rest = append(rest, c.Rules...)
	slices.SortStableFunc(rest, jobfilter.Compare)
	s.Rules = rest
}
