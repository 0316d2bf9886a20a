package items

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
)

// drawSource draws nodes of every state (answering, partly answering, failed,
// left out of the answer, marked offline) and instances on them, none on a node
// other than its own.
func drawSource(t *rapid.T) *query.Source {
	c := cluster.New(cluster.Init{Name: "c", UUID: "c", MasterNode: "n0", Hypervisors: []string{"fake"}})
	s := cluster.Empty().With(cluster.Put(c), cluster.Put(cluster.NewGroup("g", "default", 1)))
	live := map[string]query.NodeState{}
	for k := range rapid.IntRange(1, 4).Draw(t, "nodes") {
		uuid := fmt.Sprintf("n%d", k)
		n := cluster.NewNode(uuid, uuid+".example.com", "192.0.2.1", "g", 1)
		instances := map[string]query.InstanceState{}
		switch rapid.SampledFrom([]string{"up", "up", "poor", "failed", "silent", "offline"}).Draw(t, "state") {
		case "up":
			live[uuid] = query.NodeState{BootID: "b", Hypervisor: &query.HypervisorState{MemoryFree: rapid.Int64Range(0, 99).Draw(t, "free")},
				Storage: &query.Space{Total: 100, Free: 50}, Instances: instances}
		case "poor":
			live[uuid] = query.NodeState{BootID: "b", Instances: instances}
		case "failed":
			live[uuid] = query.NodeState{Failed: "no answer"}
		case "offline":
			n.Offline = true
		}
		s = s.With(cluster.Put(n))
		for j := range rapid.IntRange(0, 3).Draw(t, "instances") {
			i := &cluster.Instance{Meta: cluster.NewMeta(fmt.Sprintf("u%d%d", k, j), 1), PrimaryNode: uuid, Hypervisor: "fake",
				Name:       rapid.SampledFrom([]string{"web", "db", "mail"}).Draw(t, "name") + fmt.Sprintf("%d%d.example.com", k, j),
				AdminState: rapid.SampledFrom([]string{cluster.AdminUp, cluster.AdminDown, cluster.AdminOffline}).Draw(t, "admin"),
				BEParams:   cluster.Params{"vcpus": rapid.Int64Range(1, 3).Draw(t, "vcpus")}}
			i.Tags = cluster.Tags(rapid.SampledFrom([][]string{nil, {"a"}, {"a", "b"}}).Draw(t, "tags"))
			if rapid.Bool().Draw(t, "reported") {
				instances[i.UUID] = query.InstanceState{Memory: 64, VCPUs: 2, Shutdown: rapid.Bool().Draw(t, "shut")}
			}
			s = s.With(cluster.Put(i))
		}
	}
	return &query.Source{Inventory: s, Live: func(_ query.Need, nodes []string) map[string]query.NodeState {
		out := map[string]query.NodeState{}
		for _, n := range nodes {
			if state, ok := live[n]; ok {
				out[n] = state
			}
		}
		return out
	}}
}

// tests are texts of tests on configuration and live fields, by item.
var testTexts = map[string][]string{
	"instance": {`admin_up`, `status == "running"`, `status != "ERROR_nodedown"`, `oper_ram > 50`, `oper_ram != 64`, `name =~ m/^[a-m]/`,
		`pnode == "n0"`, `oper_vcpus == 2`, `network_port == 1`, `be/vcpus >= 2`, `"a" in tags`, `"b" not in tags`, `nic.ip/0 == "x"`, `name =* "web*"`, `oper_ram is missing`, `pnode is not missing`},
	"node": {`offline`, `master_candidate`, `mfree > 50`, `mfree != 50`, `bootid == "b"`, `dtotal == 100`, `dfree < 10`, `pinst_cnt > 1`,
		`name =~ m/1/`, `name != "n2"`, `group == "default"`, `sptotal == 1`, `mfree is missing`, `group is not missing`},
}

func drawTest(t *rapid.T, what string, depth int) qlang.Node {
	if depth == 0 || rapid.IntRange(0, 2).Draw(t, "leaf") == 0 {
		n, err := qlang.ParseText(rapid.SampledFrom(testTexts[what]).Draw(t, "text"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	args := make([]qlang.Node, rapid.IntRange(0, 3).Draw(t, "n"))
	for i := range args {
		args[i] = drawTest(t, what, depth-1)
	}
	switch rapid.IntRange(0, 2).Draw(t, "op") {
	case 0:
		return &qlang.And{Args: args}
	case 1:
		return &qlang.Or{Args: args}
	}
	return &qlang.Not{Arg: drawTest(t, what, depth-1)}
}

// A query, which asks only nodes that the first pass cannot rule out, keeps the
// rows that one evaluation keeps when every node has been asked.
func TestQueriesKeepTheRowsOfOneEvaluation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := drawSource(t)
		what := rapid.SampledFrom([]string{"instance", "node"}).Draw(t, "what")
		filter := drawTest(t, what, 3)
		// A disjunction keeps names from being looked up, which finds others.
		filter = &qlang.And{Args: []qlang.Node{filter}}
		res, err := All.Run(src, what, []string{"uuid"}, filter, query.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var nodes []string
		for n := range src.Inventory.Nodes() {
			if !n.Offline {
				nodes = append(nodes, n.UUID)
			}
		}
		v := query.NewView(src, nil)
		v.Answers = query.NewAnswers(nodes, src.Live(0, nodes), query.NeedInstances|query.NeedNode|query.NeedHypervisor|query.NeedStorage)
		var want []string
		if what == "instance" {
			want = kept(t, instanceTable, v, slices.Collect(instanceTable.All(v)), filter)
		} else {
			want = kept(t, nodeTable, v, slices.Collect(nodeTable.All(v)), filter)
		}
		var got []string
		for row := range res.Rows() {
			got = append(got, row[0].Value.(string))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%s where %s: got %q, want %q", what, qlang.JSON(filter), got, want)
		}
	})
}

func kept[R any](t *rapid.T, tab *query.Table[R], v *query.View, rows []R, filter qlang.Node) []string {
	var out []string
	for _, r := range rows {
		verdict, err := tab.Compile(filter, true)(v, r)
		if err != nil {
			t.Fatal(err)
		}
		if verdict != query.No {
			out = append(out, tab.Identity(r))
		}
	}
	return out
}

// Pages of any size, sorted by any fields, show every row once, in the order of
// the whole.
func TestPagesShowEachRowOnce(t *testing.T) {
	fields := []string{"name", "status", "oper_ram", "admin_up", "be/vcpus", "tags", "nic.ip/0", "ctime", "pnode"}
	rapid.Check(t, func(t *rapid.T) {
		src := drawSource(t)
		opts := query.Options{}
		for _, f := range rapid.SliceOfN(rapid.SampledFrom(fields), 0, 3).Draw(t, "by") {
			opts.Sort = append(opts.Sort, query.SortKey{Field: f, Descending: rapid.Bool().Draw(t, "down")})
		}
		filter := qlang.Node(&qlang.All{})
		if names := namesOf(src); len(names) > 0 && rapid.Bool().Draw(t, "names") {
			filter = qlang.AnyOf("name", rapid.SliceOfN(rapid.SampledFrom(names), 1, 6).Draw(t, "asked for")...)
		}
		columns := append([]string{"uuid"}, fields...)
		ask := func(o query.Options) *query.Result {
			res, err := All.Run(src, "instance", columns, filter, o)
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		whole := ask(opts)
		opts.Limit = rapid.IntRange(1, 4).Draw(t, "limit")
		var pages []string
		for range whole.Len() + 1 {
			page := ask(opts)
			if page.Len() > 0 {
				pages = append(pages, rowsText(page))
			}
			if opts.After = page.Next; opts.After == "" {
				break
			}
		}
		if got := strings.Join(pages, "; "); got != rowsText(whole) || opts.After != "" {
			t.Fatalf("pages of %d by %v where %s: got %s, want %s", opts.Limit, opts.Sort, qlang.JSON(filter), got, rowsText(whole))
		}
	})
}

func namesOf(src *query.Source) []string {
	var out []string
	for i := range src.Inventory.Instances() {
		out = append(out, i.Name)
	}
	return out
}

// Rows in the order of a sort are in that order from each to the next, whatever
// values there are, and by name where they are equal.
func TestSortedRowsAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := drawSource(t)
		by := rapid.SampledFrom([]string{"status", "oper_ram", "tags", "nic.ip/0", "be/vcpus"}).Draw(t, "by")
		down := rapid.Bool().Draw(t, "down")
		res, err := All.Run(src, "instance", []string{by, "name"}, nil, query.Options{Sort: []query.SortKey{{Field: by, Descending: down}}})
		if err != nil {
			t.Fatal(err)
		}
		var last []query.Cell
		for row := range res.Rows() {
			if last != nil {
				c := query.CompareCells(last[0], row[0])
				if down {
					c = -c
				}
				if c > 0 || c == 0 && query.CompareCells(last[1], row[1]) >= 0 {
					t.Fatalf("by %s (descending %v): %v before %v", by, down, last, row)
				}
			}
			last = slices.Clone(row)
		}
	})
}

// A filter means the same in its JSON form and, if it has one, in its text form.
func TestWrittenFiltersMeanTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src, filter := drawSource(t), drawTest(t, "instance", 3)
		ask := func(n qlang.Node) string {
			res, err := All.Run(src, "instance", []string{"name"}, n, query.Options{})
			if err != nil {
				return err.Error()
			}
			return rowsText(res)
		}
		want := ask(filter)
		var decoded any
		if err := json.Unmarshal(qlang.JSON(filter), &decoded); err != nil {
			t.Fatal(err)
		}
		n, err := qlang.FromValue(decoded)
		if err != nil || ask(n) != want {
			t.Fatalf("%s by JSON: %v", qlang.JSON(filter), err)
		}
		text, err := qlang.Text(filter)
		if err != nil {
			return // no text form: an empty conjunction, for example
		}
		if n, err = qlang.ParseText(text); err != nil || ask(n) != want {
			t.Fatalf("%s by text %s: %v", qlang.JSON(filter), text, err)
		}
	})
}
