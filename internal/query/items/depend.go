package items

import (
	"iter"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/state"
)

// jobsOf names the jobs that changed, for items whose rows belong to jobs.
func jobsOf(d *query.Delta) (a query.Affected) {
	for _, c := range d.Changes {
		for _, j := range c.Jobs {
			a.Add(j.ID.String())
		}
		for _, h := range c.Holds {
			a.Add(h.Job.String())
		}
		for _, j := range c.Archived {
			a.Add(j.ID.String())
		}
		for _, id := range c.Pruned {
			a.Add(id.String())
		}
	}
	return a
}

// jobNow returns a job that changed, as it is now: nil if it is archived and
// archived ones are not asked for.
func jobNow(v *query.View, d *query.Delta, key string, archived bool) *job.Job {
	id, err := job.ParseID(key)
	if err != nil {
		return nil // not reached: the key was made of an id
	}
	if j := v.JobTable.Get(id); j != nil || !archived {
		return j
	}
	for _, c := range slices.Backward(d.Changes) {
		for _, j := range c.Archived {
			if j.ID == id {
				return j
			}
		}
	}
	return archivedJob(v, id)
}

// archivedJob looks a job up that went into the archive earlier.
func archivedJob(v *query.View, id job.ID) *job.Job {
	j, err := oneJob(v, id)
	if err != nil {
		v.Failed = err
	}
	if j == nil || !j.Archived {
		return nil
	}
	return j
}

func rulesOf(d *query.Delta) (a query.Affected) {
	for _, c := range d.Changes {
		for _, r := range c.Rules {
			a.Add(r.UUID)
		}
		for _, uuid := range c.RulesRemoved {
			a.Add(uuid)
		}
		// How many jobs a rule holds: the rule that held one before is not told.
		a.All = a.All || len(c.Holds) > 0
	}
	return a
}

func ruleNow(v *query.View, _ *query.Delta, uuid string) []rule {
	for _, r := range v.Rules() {
		if r.UUID == uuid {
			return []rule{r}
		}
	}
	return nil
}

func locksOf(d *query.Delta) (a query.Affected) {
	for _, c := range d.Changes {
		for i := range c.Locks {
			a.Add(c.Locks[i].Name.String())
		}
	}
	return a
}

// lockNow returns a lock that changed, as it is now.
func lockNow(_ *query.View, d *query.Delta, name string) []lock.State {
	for _, c := range slices.Backward(d.Changes) {
		for _, s := range c.Locks {
			if s.Name.String() != name {
				continue
			}
			if s.Free() {
				return nil
			}
			return []lock.State{s}
		}
	}
	return nil
}

// spread names the objects whose rows show something of another object, in one
// state.
type spread func(s *cluster.Snapshot, uuid string, add func(uuid string))

// objectsOf returns the function for an item of the inventory: its rows show
// their own object, the cluster's settings, and what spreads says of the others.
func objectsOf(own cluster.Kind, spreads map[cluster.Kind]spread) func(*query.Delta) query.Affected {
	return func(d *query.Delta) (a query.Affected) {
		for _, c := range d.Changes {
			if c.Inventory != nil && c.Objects == nil {
				a.All = true
			}
			for _, o := range c.Objects {
				switch {
				case o.Kind == cluster.KindCluster:
					a.All = true
				case o.Kind == own:
					a.Add(o.UUID)
				case spreads[o.Kind] != nil:
					spreads[o.Kind](d.Was, o.UUID, a.Add)
					spreads[o.Kind](d.Now, o.UUID, a.Add)
				}
			}
		}
		return a
	}
}

func addAll[T cluster.Object](objects iter.Seq[T], add func(string)) {
	for o := range objects {
		add(o.Identity())
	}
}

func addOn(s *cluster.Snapshot, node string, add func(string)) {
	addAll(s.PrimariesOn(node), add)
	addAll(s.SecondariesOn(node), add)
}

var instancesThatShow = map[cluster.Kind]spread{
	cluster.KindNode: addOn,
	cluster.KindGroup: func(s *cluster.Snapshot, group string, add func(string)) {
		for n := range s.NodesIn(group) {
			addOn(s, n.UUID, add)
		}
	},
	cluster.KindNetwork: func(s *cluster.Snapshot, network string, add func(string)) { addAll(s.InstancesIn(network), add) },
}

var nodesThatShow = map[cluster.Kind]spread{
	cluster.KindInstance: func(s *cluster.Snapshot, instance string, add func(string)) {
		if i := s.Instance(instance); i != nil {
			add(i.PrimaryNode)
			for _, node := range i.SecondaryNodes() {
				add(node)
			}
		}
	},
	cluster.KindGroup: func(s *cluster.Snapshot, group string, add func(string)) { addAll(s.NodesIn(group), add) },
}

var groupsThatShow = map[cluster.Kind]spread{
	cluster.KindNode: addGroup,
	cluster.KindInstance: func(s *cluster.Snapshot, instance string, add func(string)) {
		if i := s.Instance(instance); i != nil {
			addGroup(s, i.PrimaryNode, add)
		}
	},
}

func addGroup(s *cluster.Snapshot, node string, add func(string)) {
	if n := s.Node(node); n != nil {
		add(n.Group)
	}
}

var networksThatShow = map[cluster.Kind]spread{
	cluster.KindInstance: func(s *cluster.Snapshot, instance string, add func(string)) {
		if i := s.Instance(instance); i != nil {
			for n := range i.NICs {
				add(i.NICs[n].Network)
			}
		}
	},
	cluster.KindGroup: func(s *cluster.Snapshot, group string, add func(string)) {
		if g := s.Group(group); g != nil {
			for network := range g.Networks {
				add(network)
			}
		}
	},
}

// objectNow makes a function that returns the row of an object as it is now.
func objectNow[T any](get func(*cluster.Snapshot, string) *T) func(*query.View, *query.Delta, string) []*T {
	return func(v *query.View, _ *query.Delta, uuid string) []*T {
		if o := get(v.Inventory, uuid); o != nil {
			return []*T{o}
		}
		return nil
	}
}

// clusterChanges says whether the one row of the cluster may be different.
func clusterChanges(d *query.Delta) (a query.Affected) {
	a.All = slices.ContainsFunc(d.Changes, func(c *state.Change) bool { return c.Inventory != nil || c.Flags != nil })
	return a
}
