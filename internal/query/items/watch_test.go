package items

import (
	"iter"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/state"
)

// world is a state that changes at random, with its archive.
type world struct {
	*state.State
	archived *job.Table
	records  map[int64]map[int32]*course.Record // of tasks, as they are stored
	live     func(query.Need, []string) map[string]query.NodeState
}

func drawWorld(t *rapid.T) *world {
	inventory, jobs := drawInventory(t), drawJobs(t)
	w := &world{State: state.Empty(), archived: job.NewTable(), records: map[int64]map[int32]*course.Record{}, live: inventory.Live}
	c := &state.Change{Inventory: inventory.Inventory}
	for j, err := range jobs.Jobs(true) {
		if err != nil {
			t.Fatal(err)
		}
		if j.Archived {
			w.archived.Put(j)
			continue
		}
		c.Jobs = append(c.Jobs, j)
	}
	w.State = w.With(c)
	return w
}

// source is the world as it is now.
func (w *world) source() *query.Source {
	now, archived := w.State, w.archived.Copy()
	return &query.Source{
		Inventory: now.Inventory, JobTable: now.Jobs, Live: w.live, Servers: now.Servers, Deployments: now.Deployments,
		Plan:  func(*course.Deployment) (*course.Course, error) { return aCourse, nil },
		Tasks: w.tasks,
		Rules: func() []*jobfilter.Rule { return now.Rules },
		Locks: func() []lock.State { return slices.Collect(now.Locks.All()) },
		Jobs: func(old bool) iter.Seq2[*job.Job, error] {
			all := slices.Collect(now.Jobs.All())
			if old {
				all = slices.SortedFunc(func(yield func(*job.Job) bool) {
					for j := range now.Jobs.All() {
						yield(j)
					}
					for j := range archived.All() {
						yield(j)
					}
				}, func(a, b *job.Job) int { return int(a.ID - b.ID) })
			}
			return readable(slices.Values(all))
		},
		Archived: func(from, until job.Time) iter.Seq2[*job.Job, error] {
			return readable(archived.Between(job.ByEnded, from, until))
		},
		Job: func(id job.ID) (*job.Job, error) {
			if j := now.Jobs.Get(id); j != nil {
				return j, nil
			}
			return archived.Get(id), nil
		},
	}
}

// drawChange makes one transaction.
func (w *world) drawChange(t *rapid.T) *state.Change {
	c := &state.Change{Revision: w.Revision + 1}
	switch rapid.IntRange(0, 9).Draw(t, "what changes") {
	case 0:
		w.drawJobs(t, c)
	case 1:
		c.Holds = []state.Hold{{Job: w.drawID(t), By: &job.Hold{Rule: one(t, "rule", "r0", "r1"), Since: 1}}}
	case 2:
		if rapid.Bool().Draw(t, "add") {
			c.Rules = []*jobfilter.Rule{{UUID: one(t, "rule", "r0", "r1"), Priority: rapid.IntRange(0, 2).Draw(t, "priority")}}
		} else {
			c.RulesRemoved = []string{one(t, "rule", "r0", "r1")}
		}
	case 3:
		s := lock.State{Name: lock.Name{Level: lock.Instance, Item: one(t, "lock", "a", "b", "c")}, Mode: lock.Exclusive}
		if rapid.Bool().Draw(t, "held") {
			s.Holders = lock.OwnersOf(lock.Owner(w.drawID(t)))
		}
		c.Locks = []lock.State{s}
	case 4:
		w.drawServers(t, c)
	case 5, 6:
		w.drawDeployments(t, c)
	default:
		w.drawObjects(t, c)
	}
	return c
}

func (w *world) drawID(t *rapid.T) job.ID { return job.ID(rapid.IntRange(1, 13).Draw(t, "id")) }

// drawJobs changes a job, or archives one.
func (w *world) drawJobs(t *rapid.T, c *state.Change) {
	id := w.drawID(t)
	now := w.Jobs.Get(id)
	switch {
	case w.archived.Get(id) != nil:
	case now != nil && now.Final():
		old := *now
		old.Archived = true
		w.archived.Put(&old)
		c.Archived = []*job.Job{&old}
	default:
		next := drawJob(t, id)
		next.Archived = false
		c.Jobs = []*job.Job{next}
	}
}

// drawObjects puts or deletes some objects of the inventory.
func (w *world) drawObjects(t *rapid.T, c *state.Change) {
	var changes []cluster.Change
	for range rapid.IntRange(1, 3).Draw(t, "objects") {
		k := rapid.IntRange(0, 4).Draw(t, "object")
		var put cluster.Object
		switch one(t, "kind", "instance", "instance", "node", "group", "network", "cluster") {
		case "instance":
			put = drawInstance(t, k)
		case "node":
			put = drawNode(t, k)
		case "group":
			g := drawGroup(t, k%3)
			g.Name = one(t, "group name", "group0", "group1", "other")
			put = g
		case "network":
			n, err := cluster.NewNetwork("net", one(t, "network", "lan", "wan"), "192.0.2.0/29", "192.0.2.1", 5)
			if err != nil {
				t.Fatal(err)
			}
			put = n
		case "cluster":
			settings := *w.Inventory.Cluster()
			settings.Name = one(t, "cluster", "c.example.com", "d.example.com")
			settings.MasterNode = one(t, "master", "n0", "n1")
			put = &settings
		}
		change := cluster.Put(put)
		if put.Kind() != cluster.KindCluster && rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
			change = cluster.Delete(put.Kind(), put.Identity())
		}
		changes = append(changes, change)
		c.Objects = append(c.Objects, state.Object{Kind: change.Kind, UUID: change.UUID})
	}
	c.Inventory = w.Inventory.With(changes...)
}

// configOf returns the fields of an item that no node has to be asked for.
func configOf[R any](t *query.Table[R]) []string {
	var out []string
	for i := range t.Fields {
		if t.Fields[i].From != query.Live {
			out = append(out, t.Fields[i].Name)
		}
	}
	return out
}

var ruleTests = []string{`uuid == "r0"`, `priority > 0`, `priority == "x"`}

var lockTests = []string{`name == "instance/a"`, `mode == "exclusive"`, `name =~ m/b|c/`}

// watchCases are items with what may be asked about them.
var watchCases = []struct {
	what   string
	fields []string
	tests  []string
}{
	{"instance", configOf(instanceTable), accessCases[0].tests},
	{"instance", configOf(instanceTable), accessCases[0].tests},
	{"instance", []string{"name", "oper_ram", "status", "pnode"}, accessCases[0].tests},
	{"node", configOf(nodeTable), accessCases[1].tests},
	{"group", configOf(groupTable), accessCases[2].tests},
	{"network", configOf(networkTable), accessCases[3].tests},
	{"job", slices.DeleteFunc(configOf(jobTable), func(f string) bool { return f == "archived" || f == "ops" }), jobTests},
	{"job", slices.DeleteFunc(configOf(jobTable), func(f string) bool { return f == "ops" }), jobTests},
	{"opcode", []string{"id", "job", "job_status", "archived", "status"}, historyTests},
	{"reason", []string{"job", "index", "hop", "archived", "job_status"}, historyTests},
	{"filter", configOf(filterTable), ruleTests},
	{"lock", configOf(lockTable), lockTests},
	{"server", configOf(serverTable), serverTests},
	{"server-tag", configOf(serverTagTable), serverTagTests},
	{"server-tag", slices.DeleteFunc(configOf(serverTagTable), func(f string) bool { return f == "held_by" }), serverTagTests},
	{"environment", configOf(environmentTable), environmentTests},
	{"deployment", configOf(deploymentTable), deploymentTests},
	{"task", configOf(deployTaskTable), deployTaskTests},
	{"task", slices.DeleteFunc(configOf(deployTaskTable), func(f string) bool { return f == "held_by" }), deployTaskTests},
	{"cluster", []string{"name", "master_node", "tags"}, []string{`name == "c"`}},
}

func drawWatched(t *rapid.T) query.Request {
	c := rapid.SampledFrom(watchCases).Draw(t, "case")
	r := query.Request{What: c.what, Fields: c.fields}
	if rapid.Bool().Draw(t, "filtered") {
		r.Filter = drawTests(t, c.tests, 2)
	}
	r.Limit = rapid.IntRange(0, 4).Draw(t, "limit")
	if rapid.Bool().Draw(t, "sorted") {
		r.Sort = []query.SortKey{{Field: one(t, "by", c.fields...), Descending: rapid.Bool().Draw(t, "descending")}}
	}
	return r
}

// answered is an answer as a client of a watch knows it.
type answered map[string]string

func (a answered) apply(t *rapid.T, events []query.Event) {
	for _, e := range events {
		before, known := a[e.ID]
		switch {
		case e.Type == "enter" && known, e.Type != "enter" && !known, e.Type == "change" && before == string(e.Row):
			t.Fatalf("%s %s, which is known: %v, as %s", e.Type, e.ID, known, before)
		case e.Type == "leave":
			delete(a, e.ID)
		default:
			a[e.ID] = string(e.Row)
		}
	}
}

// rowsOf returns the answer of the query, run as a whole: rows by identity, and
// their identities in order.
func rowsOf(src *query.Source, r query.Request) (answered, []string, error) {
	result, err := All.Run(src, r.What, r.Fields, r.Filter, r.Options)
	if err != nil {
		return nil, nil, err
	}
	rows, order := answered{}, []string{}
	i := 0
	for row := range result.Rows() {
		id := result.Identity(i)
		i++
		if _, twice := rows[id]; !twice {
			order = append(order, id)
			rows[id] = cellsText(row)
		}
	}
	return rows, order, nil
}

// cellsText is a row as watches tell it.
func cellsText(row []query.Cell) string {
	out := make([]any, len(row))
	for i, c := range row {
		out[i] = []any{int64(c.Status), c.Value}
	}
	return string(query.AppendValue(nil, out))
}

// Whatever changes, the events of a watch lead to the answer that the query has
// when it is run as a whole, and its rows are in the order of that; it fails when
// the query fails, and goes on when the query does.
func TestWatchesShowWhatTheQueryWould(t *testing.T) {
	steps, incremental := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w, r := drawWorld(t), drawWatched(t)
		watch, err := All.Watch(w.source(), r)
		if err != nil {
			t.Skip("the query fails at first")
		}
		known := answered{}
		known.apply(t, watch.Rows())
		if watch.Incremental() {
			incremental++
		}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			steps++
			var changes []*state.Change
			for range rapid.IntRange(1, 3).Draw(t, "changes") {
				c := w.drawChange(t)
				w.State = w.With(c)
				changes = append(changes, c)
			}
			src := w.source()
			want, order, failed := rowsOf(src, r)
			events, err := watch.Step(src, changes)
			if (err != nil) != (failed != nil) {
				t.Fatalf("the watch: %v, the query: %v", err, failed)
			}
			if err != nil {
				continue
			}
			known.apply(t, events)
			if !maps.Equal(known, want) {
				t.Fatalf("%s %s %+v:\nwatched %v\nqueried %v", r.What, filterText(r), r.Options, known, want)
			}
			if got := identities(watch.Rows()); !slices.Equal(got, order) && (len(r.Sort) > 0 || lookedUp(r)) {
				t.Fatalf("%s %s %+v: rows in the order %v, queried %v", r.What, filterText(r), r.Options, got, order)
			}
		}
	})
	if incremental == 0 || steps < 20 {
		t.Errorf("%d steps, %d incremental watches: too few to tell", steps, incremental)
	}
}

func filterText(r query.Request) string {
	if r.Filter == nil {
		return "all"
	}
	return string(qlang.JSON(r.Filter))
}

func identities(events []query.Event) []string {
	out := []string{}
	for _, e := range events {
		out = append(out, e.ID)
	}
	return out
}

// lookedUp reports whether the item has an order of its own.
func lookedUp(r query.Request) bool { return r.What != "lock" && r.What != "filter" }
