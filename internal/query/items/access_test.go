package items

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/reason"
)

// drawInventory makes a small inventory in which much is missing: instances
// without names, nodes and groups that nobody knows.
func drawInventory(t *rapid.T) *query.Source {
	c := cluster.New(cluster.Init{Name: "c.example.com", UUID: "c", Time: 1, MasterNode: "n1", Hypervisors: []string{"kvm"}})
	changes := []cluster.Change{cluster.Put(c)}
	for k := range rapid.IntRange(1, 2).Draw(t, "groups") {
		changes = append(changes, cluster.Put(drawGroup(t, k)))
	}
	net, err := cluster.NewNetwork("net", "lan", "192.0.2.0/29", "192.0.2.1", 5)
	if err != nil {
		t.Fatal(err)
	}
	changes = append(changes, cluster.Put(net))
	for k := range rapid.IntRange(1, 4).Draw(t, "nodes") {
		changes = append(changes, cluster.Put(drawNode(t, k)))
	}
	for k := range rapid.IntRange(0, 12).Draw(t, "instances") {
		changes = append(changes, cluster.Put(drawInstance(t, k)))
	}
	return &query.Source{Inventory: cluster.Empty().With(changes...), Live: func(_ query.Need, nodes []string) map[string]query.NodeState {
		out := map[string]query.NodeState{}
		for _, n := range nodes {
			out[n] = query.NodeState{Hypervisor: &query.HypervisorState{}, Instances: map[string]query.InstanceState{"u0": {Memory: 64}, "u1": {Memory: 1}}}
		}
		return out
	}}
}

func one(t *rapid.T, label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(t, label)
}

func drawGroup(t *rapid.T, k int) *cluster.Group {
	g := cluster.NewGroup(fmt.Sprint("g", k), fmt.Sprint("group", k), 1)
	g.Tags = cluster.NewTags(one(t, "tag", "x", "y"))
	g.Networks["net"] = cluster.Params{"mode": "bridged"}
	return g
}

func drawNode(t *rapid.T, k int) *cluster.Node {
	name := one(t, "node", "n", "n1", "n10.a", "n01.b") + fmt.Sprint(".", k%2)
	n := cluster.NewNode(fmt.Sprint("n", k), name, "192.0.2.1", one(t, "group", "g0", "g1", "g9"), 1)
	n.Tags = cluster.NewTags(one(t, "tag", "x", "y"))
	n.Offline = rapid.Bool().Draw(t, "offline")
	return n
}

func drawInstance(t *rapid.T, k int) *cluster.Instance {
	i := &cluster.Instance{
		Meta: cluster.NewMeta(fmt.Sprint("u", k), 1), Name: one(t, "name", "", "w", "w1", "w01.a", "w1.a", "w1.a.b", "w10"),
		PrimaryNode: one(t, "primary", "", "n0", "n1", "n2", "n9"), Hypervisor: "kvm", OS: one(t, "os", "", "noop"), AdminState: one(t, "admin", "", cluster.AdminUp, cluster.AdminDown),
		BEParams: cluster.Params{"vcpus": int64(1 + k%3)},
	}
	i.Tags = cluster.NewTags(one(t, "tag", "x", "y"))
	if second := one(t, "secondary", "", "n0", "n1", "n3", "n9"); second != "" {
		i.Disks = []cluster.Disk{{Type: cluster.DiskDRBD, Nodes: []string{i.PrimaryNode, second}}}
	}
	if rapid.Bool().Draw(t, "nic") {
		i.NICs = []cluster.NIC{{MAC: "aa:00:00:00:00:01", IP: "192.0.2.3", Network: "net"}, {Network: "net"}}
	}
	return i
}

func drawJob(t *rapid.T, id job.ID) *job.Job {
	at := func(label string, from int) job.Time {
		return job.Time(rapid.SampledFrom([]int{0, 1, 999_999, 1_000_000, 1_000_001, 2_500_000, 3_000_000}[from:]).Draw(t, label))
	}
	j := &job.Job{ID: id, Received: at("received", 0), Started: at("started", 0)}
	ops := rapid.IntRange(0, 2).Draw(t, "ops")
	if ops == 0 {
		j.Received = at("received", 1) // it can be read, and has no opcodes
	}
	for range ops {
		op := &opcode.Opcode{ID: "OP_TEST_DUMMY", Reason: reason.Trail{{Source: "a"}, {Source: "b", Reason: "c"}}}
		j.Ops = append(j.Ops, job.Op{Input: op, Status: rapid.SampledFrom(job.Statuses[:]).Draw(t, "status")})
	}
	if j.Final() {
		j.Ended = at("ended", 1)
		j.Archived = rapid.Bool().Draw(t, "archived")
	}
	return j
}

// readable yields jobs as one reads them that can all be read.
func readable(jobs iter.Seq[*job.Job]) iter.Seq2[*job.Job, error] {
	return func(yield func(*job.Job, error) bool) {
		for j := range jobs {
			if !yield(j, nil) {
				return
			}
		}
	}
}

// drawJobs makes live and archived jobs.
func drawJobs(t *rapid.T) *query.Source {
	var live, archived, all []*job.Job
	for k := range rapid.IntRange(0, 12).Draw(t, "jobs") {
		j := drawJob(t, job.ID(k+1))
		all = append(all, j)
		if j.Archived {
			archived = append(archived, j)
		} else {
			live = append(live, j)
		}
	}
	return &query.Source{
		Inventory: cluster.Empty(),
		Jobs: func(archived bool) iter.Seq2[*job.Job, error] {
			if archived {
				return readable(slices.Values(all))
			}
			return readable(slices.Values(live))
		},
		JobTable: job.NewTable(live...),
		Archived: func(from, until job.Time) iter.Seq2[*job.Job, error] {
			return func(yield func(*job.Job, error) bool) {
				for _, j := range slices.Backward(archived) {
					if from <= j.Ended && j.Ended < until && !yield(j, nil) {
						return
					}
				}
			}
		},
		Job: func(id job.ID) (*job.Job, error) {
			for _, j := range all {
				if j.ID == id {
					return j, nil
				}
			}
			return nil, nil
		},
	}
}

// accessCase is an item with tests to make filters of. Some fail on the rows
// that they reach; an index must not hide that, nor bring it about.
type accessCase struct {
	what   string
	fields []string
	source func(*rapid.T) *query.Source
	tests  []string
	prep   func(*query.Source, query.Request) (indexed, scanned *query.Plan, err1, err2 error)
}

// bothWays prepares a request with and without indexes.
func bothWays[R any](t *query.Table[R]) func(*query.Source, query.Request) (indexed, scanned *query.Plan, err1, err2 error) {
	bare := *t
	bare.Narrow = nil
	return func(src *query.Source, r query.Request) (indexed, scanned *query.Plan, err1, err2 error) {
		indexed, err1 = query.Catalog{t}.Prepare(src, r)
		scanned, err2 = query.Catalog{&bare}.Prepare(src, r)
		return indexed, scanned, err1, err2
	}
}

var accessCases = []accessCase{
	{"instance", []string{"uuid", "name", "oper_ram", "status"}, drawInventory, []string{
		`pnode == "n"`, `pnode == "n1.1"`, `pnode != "n1.1"`, `pnode =~ m/a/`, `pnode == "nosuch"`, `pnode == 5`,
		`pnode.group == "group0"`, `pnode.group.uuid == "g9"`, `pnode.group == "group0" or pnode == "n.0"`,
		`"n1.1" in snodes`, `"n.0" in snodes`, `"nosuch" in snodes`, `5 in snodes`, `"group1" in snodes.group`, `"g9" in snodes.group.uuid`,
		`"x" in tags`, `uuid == "u3"`, `uuid == "nosuch"`, `name == "w1"`, `name == "w1.a"`, `name == "w"`, `name == "w" and os == "noop"`, `name =~ m/1/`,
		`os == "noop"`, `be/vcpus >= 2`, `admin_up`, `os == 3`, `oper_ram > 5`, `oper_ram == "x"`, `hypervisor == "kvm"`,
		`name == "w10" or uuid == "u0" or pnode == "n.0"`, `ctime >= 0`, `disk_usage > 100`,
	}, bothWays(instanceTable)},
	{"node", []string{"uuid", "mfree"}, drawInventory, []string{
		`group == "group0"`, `group != "group0"`, `group.uuid == "g9"`, `group == 5`, `group =~ m/1$/`, `"x" in tags`, `uuid == "n0"`, `offline`,
		`mfree >= 0`, `mfree == "x"`, `pinst_cnt > 1`, `"w1" in pinst_list`, `name == "n1"`,
	}, bothWays(nodeTable)},
	{"group", []string{"uuid"}, drawInventory, []string{`"x" in tags`, `uuid == "g0"`, `node_cnt > 1`, `pinst_cnt == "x"`}, bothWays(groupTable)},
	{"network", []string{"uuid"}, drawInventory, []string{`"x" in tags`, `uuid == "net"`, `inst_cnt > 1`}, bothWays(networkTable)},
	{"job", []string{"id"}, drawJobs, jobTests, bothWays(jobTable)},
	{"job", []string{"id", "archived"}, drawJobs, jobTests, bothWays(jobTable)},
	{"opcode", []string{"id", "job"}, drawJobs, historyTests, bothWays(opcodeTable)},
	{"reason", []string{"job", "index", "hop"}, drawJobs, historyTests, bothWays(reasonTable)},
}

var jobTests = []string{
	`status == "running"`, `status == "success"`, `status != "success"`, `status =~ m/^(queued|waiting)$/`, `status == "running" or status == "error"`,
	`status == 5`, `status < "r"`, `not status == "queued"`, `status == "nosuch"`,
	`received_ts >= 1`, `received_ts > 1`, `received_ts < 1`, `received_ts <= 2`, `received_ts == 1`, `received_ts != 1`, `received_ts == "x"`,
	`start_ts > 0`, `start_ts <= 0`, `start_ts > -1`, `start_ts < -7`, `start_ts >= 99999999999999999999`, `start_ts < 99999999999999`,
	`end_ts >= 1`, `end_ts < 2`, `end_ts <= 0`, `end_ts < 0`, `end_ts >= 1 and end_ts < 3`, `end_ts > 2 or status == "error"`,
	`received_ts >= 1 and received_ts <= 2`, `id == 3`, `id == 3 or id == 30`, `id == 99999999999999999999`, `id > 2`, `archived`,
	`priority == 0`, `reason == "a; b: c"`, `priority == "x"`, `held_by == "y"`,
}

var historyTests = []string{
	`job == 3`, `job == 3 or job == 1`, `job > 2`, `job_status == "running"`, `job_status != "running"`, `job_status == "success"`, `job_status == 5`,
	`job_status =~ m/^(queued|waiting|running)$/`, `archived`, `index == 1`, `index == "x"`, `object == "y"`, `status == "error"`,
}

// The rows of a query, the nodes that are asked for it and the error that it
// fails with are those of a scan, whatever index it uses.
func TestIndexesGiveTheRowsOfAScan(t *testing.T) {
	for k, c := range accessCases {
		t.Run(fmt.Sprint(k, c.what), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				src := c.source(t)
				filter := drawTests(t, c.tests, 3)
				r := query.Request{What: c.what, Fields: c.fields, Filter: filter}
				indexed, scanned, err1, err2 := c.prep(src, r)
				if fmt.Sprint(err1) != fmt.Sprint(err2) {
					t.Fatalf("%s: %v, scanned %v", qlang.JSON(filter), err1, err2)
				}
				if err1 != nil {
					return
				}
				if got, want := answerOf(src, indexed), answerOf(src, scanned); got != want || !reflect.DeepEqual(indexed.Nodes, scanned.Nodes) {
					t.Fatalf("%s by %s of %s:\n%s, asking %v;\nscanned %s, asking %v", qlang.JSON(filter), indexed.Explain.Access, indexed.Explain.Index,
						got, indexed.Nodes, want, scanned.Nodes)
				}
				if indexed.Explain.Considered > scanned.Explain.Considered {
					t.Fatalf("%s: %d rows considered, of %d", qlang.JSON(filter), indexed.Explain.Considered, scanned.Explain.Considered)
				}
			})
		})
	}
}

// Of the tests that the filters above are made of, some are answered by an
// index: what is compared with a scan is not another scan.
func TestEachItemHasTestsThatAnIndexAnswers(t *testing.T) {
	for k, c := range accessCases {
		src := rapid.Custom(c.source).Example(1)
		used := map[string]bool{}
		for _, text := range c.tests {
			filter, err := qlang.ParseText(text)
			if err != nil {
				t.Fatal(err)
			}
			indexed, _, err, _ := c.prep(src, query.Request{What: c.what, Fields: c.fields, Filter: filter})
			if err == nil && indexed.Explain.Access == "index" {
				used[indexed.Explain.Index] = true
			}
		}
		if len(used) == 0 {
			t.Errorf("%d %s: no filter used an index", k, c.what)
		}
		t.Logf("%d %s: %v", k, c.what, used)
	}
}

func answerOf(src *query.Source, p *query.Plan) string {
	var answers map[string]query.NodeState
	if len(p.Nodes) > 0 && src.Live != nil {
		answers = src.Live(p.Need, p.Nodes)
	}
	res, err := p.Finish(answers)
	if err != nil {
		return err.Error()
	}
	return string(res.AppendJSON(nil))
}

// drawTests makes a filter of tests.
func drawTests(t *rapid.T, tests []string, depth int) qlang.Node {
	if depth == 0 || rapid.IntRange(0, 2).Draw(t, "leaf") == 0 {
		n, err := qlang.ParseText(rapid.SampledFrom(tests).Draw(t, "test"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	args := make([]qlang.Node, rapid.IntRange(0, 3).Draw(t, "n"))
	for i := range args {
		args[i] = drawTests(t, tests, depth-1)
	}
	switch op := rapid.IntRange(0, 5).Draw(t, "op"); {
	case op < 3:
		return &qlang.And{Args: args}
	case op < 5 || len(args) == 0:
		return &qlang.Or{Args: args}
	}
	return &qlang.Not{Arg: args[0]}
}

// Which tests cannot fail is told from the kinds of fields, so their values
// must be of them.
func TestValuesAreOfTheKindsOfTheirFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, src := range []*query.Source{drawInventory(t), drawJobs(t)} {
			for _, what := range []string{"instance", "node", "group", "network", "job", "opcode", "reason"} {
				var fields []string
				defs, err := All.Fields(what, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range defs {
					fields = append(fields, d.Name)
				}
				res, err := All.Run(src, what, fields, nil, query.Options{})
				if err != nil {
					t.Fatal(err)
				}
				for row := range res.Rows() {
					for i, c := range row {
						if c.Status == query.Normal && !ofKind(defs[i].Kind, c.Value) {
							t.Fatalf("%s.%s: %T is no %s", what, fields[i], c.Value, defs[i].Kind)
						}
					}
				}
			}
		}
	})
}

func ofKind(k query.Kind, v any) (ok bool) {
	switch k {
	case query.KindText:
		_, ok = v.(string)
	case query.KindBool:
		_, ok = v.(bool)
	case query.KindNumber, query.KindUnit, query.KindFloat, query.KindTimestamp:
		_, whole := v.(int64)
		_, fraction := v.(float64)
		_, moment := v.(query.Nanos)
		ok = whole || fraction || moment
	default:
		ok = true
	}
	return ok
}

// What each filter is answered from, and how many rows are looked at.
func TestExplainNamesTheIndex(t *testing.T) {
	inventory := bigSource(5000)
	jobs, input := make([]*job.Job, 5000), &opcode.Opcode{ID: "OP_TEST_DUMMY", Reason: reason.Trail{{Source: "a"}}}
	for k := range jobs {
		jobs[k] = &job.Job{ID: job.ID(k + 1), Received: job.Time(k*1e6 + 1), Started: job.Time(k*1e6 + 1), Ended: job.Time(k*1e6 + 2), Ops: []job.Op{{Input: input, Status: job.Success}}}
		if k%500 == 7 {
			jobs[k].Ops[0].Status, jobs[k].Ended = job.Running, 0
		}
	}
	history := jobSource(jobs)
	for _, c := range []struct {
		src                 *query.Source
		what, filter, index string
		considered          int
	}{
		{inventory, "instance", `pnode == "node7"`, "pnode", 50},
		{inventory, "instance", `admin_up and (pnode == "node7.example.com" or pnode == "node8")`, "pnode", 100},
		{inventory, "instance", `"node7.example.com" in snodes`, "snodes", 0},
		{inventory, "instance", `"node7.example.com" in snodes or pnode == "node7"`, "snodes, pnode", 50},
		{inventory, "instance", `"rack:7" in tags and pnode == "node7"`, "pnode", 50},
		{inventory, "instance", `pnode == "node7" and uuid == "x"`, "uuid", 0},
		{inventory, "instance", `admin_up and name == "web7"`, "name", 1},
		{inventory, "instance", `pnode != "node7"`, "", 5000},
		{inventory, "instance", `oper_ram > 5 and pnode == "node7"`, "", 5000},
		{inventory, "instance", `not pnode == "node7"`, "", 5000},
		{history, "job", `status == "running"`, "status", 10},
		{history, "job", `status == "running" or status == "error"`, "status", 10},
		{history, "job", `status == "success"`, "", 5000},
		{history, "job", `received_ts >= 4990`, "received_ts", 10},
		{history, "job", `received_ts >= 100 and received_ts < 103 and status == "success"`, "received_ts", 3},
		{history, "job", `end_ts > 4990`, "end_ts", 19},
		{history, "job", `start_ts < 5 and priority == 0`, "start_ts", 5},
		{inventory, "instance", `"rack:7" in tags and be/vcpus > 1`, "tags", 100},
		{history, "job", `priority == 0 and id == 7`, "id", 1},
		{history, "opcode", `job_status == "running"`, "status", 10},
		{history, "reason", `job == 7`, "job", 1},
	} {
		ex, err := All.Explain(c.src, query.Request{What: c.what, Filter: mustParse(t, c.filter)})
		if err != nil || ex.Index != c.index || ex.Considered != c.considered || (ex.Access == "index") != (c.index != "") {
			t.Errorf("%s where %s: %+v, %v; want %d by %q", c.what, c.filter, ex, err, c.considered, c.index)
		}
	}
}
