package items

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/state"
)

// run answers a query given as text and returns the rows as text.
func run(t testing.TB, src *query.Source, what, fields, filter string, opts query.Options) string {
	t.Helper()
	var n qlang.Node
	if filter != "" {
		n = mustParse(t, filter)
	}
	res, err := All.Run(src, what, strings.Split(fields, ","), n, opts)
	if err != nil {
		return "error: " + err.Error()
	}
	return rowsText(res)
}

func rowsText(res *query.Result) string {
	var lines []string
	for row := range res.Rows() {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = string(query.AppendValue(nil, c.Value))
			if c.Status != query.Normal {
				cells[i] = fmt.Sprint("!", c.Status)
			}
		}
		lines = append(lines, strings.Join(cells, " "))
	}
	return strings.Join(lines, "; ")
}

// smallSource has three nodes: one answers, one fails, one is marked offline,
// and an instance for each state that can be told.
func smallSource() *query.Source {
	c := cluster.New(cluster.Init{Name: "c", UUID: "c", MasterNode: "up", Hypervisors: []string{"fake"}})
	s := cluster.Empty().With(cluster.Put(c), cluster.Put(cluster.NewGroup("g", "default", 1)))
	for _, name := range []string{"up", "down", "off", "other"} {
		n := cluster.NewNode(name, name+".example.com", "192.0.2.1", "g", 1)
		n.Offline = name == "off"
		s = s.With(cluster.Put(n))
	}
	live := map[string]query.NodeState{
		"up":    {BootID: "b", Hypervisor: &query.HypervisorState{MemoryFree: 100}, Instances: map[string]query.InstanceState{}},
		"other": {Instances: map[string]query.InstanceState{"moved": {Memory: 1, VCPUs: 1}}},
		"down":  {Failed: "no answer"},
	}
	for _, i := range []struct {
		name, node, admin string
		reported, shut    bool
	}{
		{"running", "up", cluster.AdminUp, true, false}, {"crashed", "up", cluster.AdminUp, false, false},
		{"stopped", "up", cluster.AdminDown, false, false}, {"ghost", "up", cluster.AdminDown, true, false},
		{"parked", "up", cluster.AdminOffline, false, false}, {"moved", "up", cluster.AdminUp, false, false},
		{"shut", "up", cluster.AdminUp, true, true}, {"lost", "down", cluster.AdminUp, false, false},
		{"dark", "off", cluster.AdminUp, false, false}, {"home", "other", cluster.AdminDown, false, false},
	} {
		s = s.With(cluster.Put(&cluster.Instance{Meta: cluster.NewMeta(i.name, 1), Name: i.name, PrimaryNode: i.node, AdminState: i.admin, Hypervisor: "fake"}))
		if i.reported {
			live[i.node].Instances[i.name] = query.InstanceState{Memory: 64, VCPUs: 2, Shutdown: i.shut}
		}
	}
	return &query.Source{Inventory: s, Live: func(_ query.Need, nodes []string) map[string]query.NodeState {
		out := map[string]query.NodeState{}
		for _, n := range nodes {
			if n == "off" {
				panic("a node that is marked offline was asked")
			}
			out[n] = live[n]
		}
		return out
	}}
}

func TestInstanceStatus(t *testing.T) {
	want := `"crashed" "ERROR_down" false !3; "dark" "ERROR_nodeoffline" !2 !4; "ghost" "ERROR_up" true 64; "home" "ADMIN_down" false !3; ` +
		`"lost" "ERROR_nodedown" !2 !2; "moved" "ERROR_wrongnode" true 1; "parked" "ADMIN_offline" false !3; "running" "running" true 64; ` +
		`"shut" "ERROR_down" true 64; "stopped" "ADMIN_down" false !3`
	if got := run(t, smallSource(), "instance", "name,status,oper_state,oper_ram", "", query.Options{}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// An instance alone is looked for on the nodes of the selected ones only.
func TestOnlyPrimariesOfSelectedInstancesAreAsked(t *testing.T) {
	got := run(t, smallSource(), "instance", "name,status", `name == "moved"`, query.Options{})
	if got != `"moved" "ERROR_down"` {
		t.Errorf("got %s", got)
	}
}

func TestExplainTellsHowOldAnswersAre(t *testing.T) {
	src := smallSource()
	var needs []query.Need
	src.Live = func(need query.Need, _ []string) map[string]query.NodeState {
		needs = append(needs, need)
		return map[string]query.NodeState{"up": {AsOf: 9}, "other": {AsOf: 5}, "down": {AsOf: 1, Failed: "no answer"}}
	}
	r := query.Request{What: "node", Fields: []string{"mfree"}}
	ex, err := All.Explain(src, r)
	if err != nil || ex.AsOf != 5 || ex.Silent != 1 || ex.Nodes != 3 {
		t.Errorf("got %+v, %v", ex, err)
	}
	r.Fresh = true
	if _, err = All.Explain(src, r); err != nil || len(needs) != 2 || needs[1] != needs[0]|query.NeedFresh {
		t.Errorf("asked for %v, %v", needs, err)
	}
	r.Fields = []string{"name"}
	if ex, err = All.Explain(src, r); err != nil || ex.AsOf != 0 || len(needs) != 2 {
		t.Errorf("nothing from nodes: %+v, %v, asked for %v", ex, err, needs)
	}
}

func TestNodeLiveFields(t *testing.T) {
	want := `"down.example.com" !2 !2 !2; "off.example.com" !4 !4 !4; "other.example.com" !2 !2 !2; "up.example.com" "b" 100 !2`
	if got := run(t, smallSource(), "node", "name,bootid,mfree,dtotal", "", query.Options{}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// A test on a value that is not there holds; its negation does not.
	if got := run(t, smallSource(), "node", "name", `mfree == 5`, query.Options{}); got != `"down.example.com"; "off.example.com"; "other.example.com"` {
		t.Errorf("mfree == 5: %s", got)
	}
	if got := run(t, smallSource(), "node", "name", `mfree != 5`, query.Options{}); got != `"up.example.com"` {
		t.Errorf("mfree != 5: %s", got)
	}
}

func TestPlanAsksNoMoreThanNeeded(t *testing.T) {
	src := smallSource()
	for _, tc := range []struct {
		fields, filter string
		nodes          []string
		need           query.Need
	}{
		{"name", `pnode == "up"`, nil, 0},
		{"name,status", `pnode == "up"`, []string{"up"}, query.NeedInstances},
		{"name", `pnode == "down" and status == "x"`, []string{"down"}, query.NeedInstances},
		{"name", `status == "x" and pnode == "down"`, []string{"up", "down", "other"}, query.NeedInstances},
		{"console", `name == "lost"`, []string{"down"}, query.NeedInstances | query.NeedConsole},
	} {
		plan, err := All.Prepare(src, query.Request{What: "instance", Fields: strings.Split(tc.fields, ","), Filter: mustParse(t, tc.filter)})
		if err != nil {
			t.Fatal(err)
		}
		got, want := slices.Sorted(slices.Values(plan.Nodes)), slices.Sorted(slices.Values(tc.nodes))
		if !slices.Equal(got, want) || plan.Need != tc.need {
			t.Errorf("%s where %s: asks %v for %b, want %v for %b", tc.fields, tc.filter, got, plan.Need, want, tc.need)
		}
	}
}

func TestNames(t *testing.T) {
	src := recordedSource(t)
	for _, tc := range []struct{ what, filter, want string }{
		{"instance", `name == "web2" or name == "web1" or name == "web2"`, `"web2.gntpeer.example"; "web1.gntpeer.example"; "web2.gntpeer.example"`},
		{"instance", `name == "nosuch"`, "error: Instance name nosuch not found"},
		{"instance", `(name == "nosuch") and uuid == "x"`, ""},
		{"group", `name == "nosuch"`, "error: NodeGroup name nosuch not found"},
		{"instance", `name == "18d4996e-7ee3-4493-b24f-521c41192177"`, ""},
		{"instance", `uuid == "18d4996e-7ee3-4493-b24f-521c41192177"`, `"web1.gntpeer.example"`},
		{"instance", `uuid == "nosuch"`, ""},
		{"instance", `"web" in tags`, `"web1.gntpeer.example"; "web2.gntpeer.example"`},
		{"instance", `nosuch == 1`, "error: Can't find field named 'nosuch'"},
		{"instance", `statu == "running"`, "error: Can't find field named 'statu' (did you mean 'status'?)"},
	} {
		if got := run(t, src, tc.what, "name", tc.filter, query.Options{}); got != tc.want {
			t.Errorf("%s where %s: got %s, want %s", tc.what, tc.filter, got, tc.want)
		}
	}
}

func TestJobIDs(t *testing.T) {
	src := recordedSource(t)
	for filter, want := range map[string]string{
		`id == 3 or id == 1 or id == 3`: `3 "success"; 1 "success"`,
		`id == 999999`:                  `999999 !3`,
		`id == "x"`:                     "error: parsing job id: cannot parse string 'x'",
		`id == -5`:                      "error: Invalid value for job ID ' -5'",
		`id < 3`:                        `1 "success"; 2 "success"`,
		`id == "7"`:                     `error: Invalid types in comparison, trying to compare 7 with 'QuotedString "7"' (numbers stand without quotes; times are "2026-11-15", "2026-11-15 08:30" or -1h, durations 90s or 1h30m, sizes 512M or 2G)`,
		`oppriority > -7`:               `error: Invalid types in comparison, trying to compare [0] with 'NumericValue (-7)'`,
	} {
		if got := run(t, src, "job", "id,status", filter, query.Options{}); got != want {
			t.Errorf("%s: got %s, want %s", filter, got, want)
		}
	}
}

func TestUnknownItem(t *testing.T) {
	_, err := All.Run(smallSource(), "instnce", nil, nil, query.Options{})
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "instance") {
		t.Errorf("got %v", err)
	}
}

func TestAliasesAreNotListed(t *testing.T) {
	src := recordedSource(t)
	if got := run(t, src, "instance", "nic1.ip,disk0.size,mem,autostart", `name == "web2"`, query.Options{}); got != `"192.0.2.2" !3 256 true` {
		t.Errorf("got %s", got)
	}
	if got, want := run(t, src, "node", "pinst,sinst", "", query.Options{}), run(t, src, "node", "pinst_list,sinst_list", "", query.Options{}); got != want || got == "" {
		t.Errorf("got %s, want %s", got, want)
	}
	if slices.Contains(fieldNames(t, "instance"), "mem") {
		t.Error("an alias is listed")
	}
}

func TestSortAndPages(t *testing.T) {
	src := recordedSource(t)
	opts := query.Options{Sort: []query.SortKey{{Field: "be/maxmem", Descending: true}, {Field: "name"}}, Limit: 3}
	whole := run(t, src, "instance", "be/maxmem,name", "", query.Options{Sort: opts.Sort})
	var pages []string
	for {
		res, err := All.Run(src, "instance", []string{"be/maxmem", "name"}, nil, opts)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, rowsText(res))
		if res.Next == "" {
			break
		}
		opts.After = res.Next
	}
	if got := strings.Join(pages, "; "); got != whole || len(pages) != 4 || !strings.HasPrefix(whole, `512 "db1`) {
		t.Errorf("%d pages %s\nwhole %s", len(pages), got, whole)
	}
	for _, bad := range []string{"x", "e30", "%"} {
		if _, err := All.Run(src, "instance", nil, nil, query.Options{Sort: opts.Sort, After: bad}); !fault.Is(err, fault.Invalid) {
			t.Errorf("token %q: %v", bad, err)
		}
	}
	if _, err := All.Run(src, "instance", nil, nil, query.Options{Sort: []query.SortKey{{Field: "nosuch"}}}); err == nil {
		t.Error("sorting by an unknown field was accepted")
	}
}

// A page goes on where the last row of the page before was, though it is gone.
func TestPageAfterARowThatIsGone(t *testing.T) {
	src := recordedSource(t)
	opts := query.Options{Sort: []query.SortKey{{Field: "name"}}, Limit: 2}
	first, err := All.Run(src, "instance", []string{"name"}, nil, opts)
	if err != nil {
		t.Fatal(err)
	}
	src.Inventory = src.Inventory.With(cluster.Delete(cluster.KindInstance, first.Identity(1)))
	opts.After = first.Next
	if got := run(t, src, "instance", "name", "", opts); got != `"db1.gntpeer.example"; "db2.gntpeer.example"` {
		t.Errorf("got %s", got)
	}
}

// TestGroupsOfTimes: rows are counted by the spans that their times are in, which begin at whole multiples of the span.
func TestGroupsOfTimes(t *testing.T) {
	const day = 1_700_006_400 // it begins
	var jobs []*job.Job
	for i, at := range []int64{day - 1, day, day + 599, day + 600, day + 86_400 + 5} {
		j := &job.Job{ID: job.ID(i + 1), Received: job.Time(at*1_000_000 + 999_999)}
		if i > 2 {
			j.Started = j.Received + 1
		}
		jobs = append(jobs, j)
	}
	src := jobSource(jobs)
	for _, c := range []struct{ by, want string }{
		{"received_ts/10m", fmt.Sprintf("%d 1; %d 2; %d 1; %d 1", day-600, day, day+600, day+86_400)},
		{"received_ts/1h", fmt.Sprintf("%d 1; %d 3; %d 1", day-3600, day, day+86_400)},
		{"received_ts/1d", fmt.Sprintf("%d 1; %d 3; %d 1", day-86_400, day, day+86_400)},
		{"received_ts/1d12h", fmt.Sprintf("%d 4; %d 1", day-86_400-day%129_600+86_400, day+86_400-(day+86_400)%129_600)},
		{"start_ts/1d", fmt.Sprintf("%d 1; %d 1; !3 3", day, day+86_400)},
	} {
		res, err := All.Group(src, query.Request{What: "job"}, []string{c.by}, []query.Calc{{Func: "count"}})
		if err != nil {
			t.Errorf("by %s: %v", c.by, err)
			continue
		}
		if got := rowsText(res); got != c.want {
			t.Errorf("by %s: got %s, want %s", c.by, got, c.want)
		}
		if d := res.Fields[0]; d.Name != c.by || d.Kind != query.KindTimestamp || !strings.HasSuffix(d.Title, c.by[strings.Index(c.by, "/"):]) {
			t.Errorf("by %s: the column is %+v", c.by, d)
		}
	}
	for by, want := range map[string]string{
		"status/10m":                  `status has no times, which "status/10m" asks for spans of`,
		"zzz/10m":                     "Can't find field named 'zzz'",
		"end_ts/0s":                   `the span of "end_ts/0s" has no length`,
		"end_ts/999999999w999999999w": `the span of "end_ts/999999999w999999999w" is too long`,
		"end_ts/x":                    "Can't find field named 'end_ts/x'",
	} {
		if _, err := All.Group(src, query.Request{What: "job"}, []string{by}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("by %s: %v, want %s", by, err, want)
		}
	}
	if err := All.CheckGroups("job", []string{"status/10m"}); err == nil {
		t.Error("spans of texts are let through")
	}
	// Fields with a slash in their names are fields.
	if _, err := All.Group(smallSource(), query.Request{What: "instance"}, []string{"be/vcpus"}, []query.Calc{{Func: "count"}}); err != nil {
		t.Error(err)
	}
}

func TestGroup(t *testing.T) {
	src := recordedSource(t)
	calcs, err := query.ParseCalcs([]string{"count", "sum(oper_ram)", "min(be/vcpus)", "max(name)", "avg(oper_ram)", "avg(be/maxmem)"})
	if err != nil {
		t.Fatal(err)
	}
	res, err := All.Group(src, query.Request{What: "instance"}, []string{"admin_state"}, calcs)
	if err != nil {
		t.Fatal(err)
	}
	want := `"down" 3 128 1 "mail2.gntpeer.example" 128 128; "offline" 1 !3 1 "offline1.gntpeer.example" !3 128; "up" 6 1280 1 "web2.gntpeer.example" 256 234.66666666666666`
	if got := rowsText(res); got != want || res.Fields[2].Title != "sum(Memory)" || res.Fields[2].Kind != query.KindUnit {
		t.Errorf("got %s, %+v", got, res.Fields)
	}
	// All rows are one group, also when there are none; but nothing has no groups.
	none := query.Request{What: "instance", Filter: mustParse(t, `name =~ m/nosuch/`)}
	for _, c := range []struct {
		r    query.Request
		by   []string
		want string
	}{
		{query.Request{What: "instance"}, nil, `10 1408 1 "web2.gntpeer.example" 234.66666666666666 192`},
		{none, nil, `0 !3 !3 !3 !3 !3`},
		{none, []string{"admin_state"}, ``},
	} {
		c.r.Limit = 5
		if res, err := All.Group(src, c.r, c.by, calcs); err != nil || rowsText(res) != c.want {
			t.Errorf("%v by %v: got %s, %v, want %s", c.r.Filter, c.by, rowsText(res), err, c.want)
		}
	}
	for _, bad := range []string{"", "sum", "avg", "median(x)", "sum()", "sum(a b)"} {
		if _, err := query.ParseCalcs([]string{bad}); err == nil {
			t.Errorf("figure %q was accepted", bad)
		}
	}
	if _, err := All.Group(src, query.Request{What: "instance"}, []string{"nosuch"}, nil); err == nil {
		t.Error("grouping by an unknown field was accepted")
	}
	if _, err := All.Group(src, query.Request{What: "instance"}, nil, []query.Calc{{Func: "sum", Field: "name"}}); err == nil || !strings.Contains(err.Error(), "add up name:") {
		t.Errorf("names were added up: %v", err)
	}
}

func TestWatch(t *testing.T) {
	src := smallSource()
	w, err := All.Watch(src, query.Request{What: "instance", Fields: []string{"name", "serial_no"}, Filter: mustParse(t, `admin_state == "down"`)})
	if err != nil {
		t.Fatal(err)
	}
	texts := func(events []query.Event) string {
		var out []string
		for _, e := range events {
			out = append(out, e.Type+" "+e.ID+" "+string(e.Row))
		}
		return strings.Join(out, "; ")
	}
	step := func(objects ...string) string {
		var changed []state.Object
		for _, uuid := range objects {
			changed = append(changed, state.Object{Kind: cluster.KindInstance, UUID: uuid})
		}
		events, err := w.Step(src, []*state.Change{{Inventory: src.Inventory, Objects: changed}})
		if err != nil {
			t.Fatal(err)
		}
		return texts(events)
	}
	if got := texts(w.Rows()); got != `enter ghost [[0,"ghost"],[0,1]]; enter home [[0,"home"],[0,1]]; enter stopped [[0,"stopped"],[0,1]]` {
		t.Errorf("first: %s", got)
	}
	if got := step("home"); got != "" {
		t.Errorf("nothing changed: %s", got)
	}
	ghost := src.Inventory.Instance("ghost").Clone()
	ghost.Touch(2)
	src.Inventory = src.Inventory.With(cluster.Put(ghost), cluster.Delete(cluster.KindInstance, "home"))
	if got := step("ghost", "home"); got != `change ghost [[0,"ghost"],[0,2]]; leave home ` {
		t.Errorf("then: %s", got)
	}
}

func historySource(t testing.TB) *query.Source {
	t.Helper()
	parse := func(s string) *opcode.Opcode {
		o, err := opcode.Parse([]byte(s), opcode.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	jobs := []*job.Job{
		{ID: 1, Archived: true, Ops: []job.Op{{Status: job.Success, End: 1e6, Input: parse(`{"OP_ID":"OP_INSTANCE_SHUTDOWN","instance_name":"web1.example.com",` +
			`"reason":[["alice","OPS-123",1000000000],["gnt:opcode:instance_shutdown","job=1;index=0",2000000000]]}`)}}},
		{ID: 2, Hold: &job.Hold{Rule: "r", Since: 5e6}, Ops: []job.Op{{Status: job.Queued, Input: parse(`{"OP_ID":"OP_INSTANCE_SET_PARAMS",` +
			`"instance_name":"web2","beparams":{"maxmem":512},"nics":[["add",-1,{"ip":"192.0.2.7"}]],"reason":[["bob","because",3]]}`)}}},
		{ID: 8, Received: 7e6, Ended: 7e6}, {ID: 9, Archived: true, Received: 7e6, Ended: 7e6}, // LUXI takes jobs without opcodes
	}
	src := &query.Source{Inventory: cluster.Empty(), Jobs: func(archived bool) iter.Seq2[*job.Job, error] {
		if !archived {
			return readable(slices.Values(jobs[1:3]))
		}
		return readable(slices.Values(jobs))
	}}
	src.Job = func(id job.ID) (*job.Job, error) {
		for j, err := range src.Jobs(true) {
			if err != nil || j.ID == id {
				return j, err
			}
		}
		return nil, nil
	}
	return src
}

func TestHistoryItems(t *testing.T) {
	src := historySource(t)
	for _, tc := range []struct{ what, fields, filter, want string }{
		{"reason", "job,object,opcode,timestamp", `reason =~ m/OPS-123/`, `1 "web1.example.com" "OP_INSTANCE_SHUTDOWN" 1`},
		{"reason", "source,reason", `object == "web1" and opcode == "OP_INSTANCE_SHUTDOWN" and hop == 0`, `"alice" "OPS-123"`},
		{"opcode", "id,status,object_kind,end_ts", ``, `"1.0" "success" "instance" 1; "2.0" "queued" "instance" !3`},
		{"opcode", "id,beparams.maxmem,nics.0.2.ip,instance_name", ``, `"1.0" !3 !3 "web1.example.com"; "2.0" 512 "192.0.2.7" "web2"`},
		{"opcode", "id", `beparams.maxmem == 512 and status == "queued"`, `"2.0"`},
		{"opcode", "nosuch.part", ``, `!1; !1`},
		{"job", "id,held_by,held_since,reason", ``, `2 "r" [5,0] "bob: because"; 8 !3 !3 ""`},
		{"job", "id,archived,held_by", ``, `1 true !3; 2 false "r"; 8 false !3; 9 true !3`},
	} {
		if got := run(t, src, tc.what, tc.fields, tc.filter, query.Options{}); got != tc.want {
			t.Errorf("%s %s where %s: got %s, want %s", tc.what, tc.fields, tc.filter, got, tc.want)
		}
	}
}

func TestOperatingSystems(t *testing.T) {
	src := smallSource()
	sound := query.OSState{Path: "/p", Valid: true, Variants: []string{"b", "a"}, APIVersions: []int64{20, 10}, Parameters: [][2]string{{"x", "help"}}}
	poor := query.OSState{Path: "/p", Valid: true, Variants: []string{"a"}, APIVersions: []int64{20}}
	src.Live = func(query.Need, []string) map[string]query.NodeState {
		return map[string]query.NodeState{"up": {OS: map[string]query.OSState{"noop": sound, "rare": sound}}, "other": {OS: map[string]query.OSState{"noop": poor}}, "down": {Failed: "x"}}
	}
	want := `"noop" true ["a"] [20] []; "rare" false [] [] []`
	if got := run(t, src, "os", "name,valid,variants,api_versions,parameters", "", query.Options{}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestExports(t *testing.T) {
	src := smallSource()
	src.Live = func(query.Need, []string) map[string]query.NodeState {
		return map[string]query.NodeState{"up": {Exports: []string{"a", "b"}}, "other": {}, "down": {Failed: "x"}}
	}
	want := `"down.example.com" !2; "off.example.com" !4; "up.example.com" "a"; "up.example.com" "b"`
	if got := run(t, src, "export", "node,export", "", query.Options{}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := run(t, src, "export", "node,export", `node == "up"`, query.Options{}); got != `"up.example.com" "a"; "up.example.com" "b"` {
		t.Errorf("one node: %s", got)
	}
}

// leafTexts are tests on configuration and live fields of nodes and instances.
var leafTexts = []string{`admin_up`, `status == "running"`, `oper_ram > 50`, `oper_ram != 64`, `name =~ m/^[a-m]/`, `not admin_up`,
	`pnode == "up"`, `oper_vcpus == 2`, `network_port == 1`, `name != "ghost"`, `oper_ram == 1`}

func drawFilter(t *rapid.T, depth int) qlang.Node {
	if depth == 0 || rapid.IntRange(0, 2).Draw(t, "leaf") == 0 {
		n, err := qlang.ParseText(rapid.SampledFrom(leafTexts).Draw(t, "text"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	args := make([]qlang.Node, rapid.IntRange(1, 3).Draw(t, "n"))
	for i := range args {
		args[i] = drawFilter(t, depth-1)
	}
	switch rapid.IntRange(0, 2).Draw(t, "op") {
	case 0:
		return &qlang.And{Args: args}
	case 1:
		return &qlang.Or{Args: args}
	}
	return &qlang.Not{Arg: args[0]}
}

// Evaluation in two passes keeps the same rows as evaluation in one.
func TestTwoPassesKeepTheRowsOfOne(t *testing.T) {
	src := smallSource()
	rapid.Check(t, func(t *rapid.T) {
		filter := drawFilter(t, 3)
		v := query.NewView(src, nil)
		// All nodes answer in both cases: which are asked may change a status.
		nodes := []string{"up", "down", "other"}
		v.Answers = query.NewAnswers(nodes, src.Live(0, nodes), query.NeedInstances)
		var one, two []string
		for i := range src.Inventory.Instances() {
			before, err1 := instanceTable.Compile(filter, false)(v, i)
			after, err2 := instanceTable.Compile(filter, true)(v, i)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			if after != query.No {
				one = append(one, i.Name)
				if before == query.No {
					t.Fatalf("%s: %s is kept by the second pass only", qlang.JSON(filter), i.Name)
				}
			}
			if before != query.No && after != query.No {
				two = append(two, i.Name)
			}
		}
		if !slices.Equal(one, two) {
			t.Fatalf("%s: one pass %q, two %q", qlang.JSON(filter), one, two)
		}
	})
}

// Whatever the filter, a query answers or fails with a coded error.
func FuzzFilter(f *testing.F) {
	f.Add(`["&",["==","name","x"],["!",["?","admin_up"]]]`)
	f.Add(`["=[]","tags",5]`)
	f.Add(`["<","oper_ram",1e400]`)
	src := smallSource()
	f.Fuzz(func(t *testing.T, text string) {
		n, err := qlang.ParseJSON([]byte(text))
		if err != nil {
			return
		}
		if _, err := All.Run(src, "instance", []string{"name"}, n, query.Options{}); err != nil {
			if _, ok := errors.AsType[*fault.Error](err); !ok {
				t.Errorf("%s: %v has no code", text, err)
			}
		}
	})
}

func TestTrailText(t *testing.T) {
	trail := reason.Trail{{Source: "gnt:user"}, {Source: "alice", Reason: "x"}, {Source: "gnt:opcode:a", Reason: "job=1;index=0"}}
	if got := trail.Text(); got != "gnt:user; alice: x" {
		t.Errorf("got %q", got)
	}
}

// chunk is what a piece of an answer is about as long as, in bytes.
const chunk = 64 << 10

// valuesIn returns the values of all rows.
func valuesIn(res *query.Result) []any {
	out := []any{}
	for _, row := range res.All() {
		values := make([]any, len(row))
		for i, c := range row {
			values[i] = c.Value
		}
		out = append(out, values)
	}
	return out
}

// The old form comes in pieces, too, and they join to the rows as they are.
func TestValuesAreTheRows(t *testing.T) {
	for _, n := range []int{0, 1, 2000} {
		res, err := All.Run(bigSource(n), "instance", append(eightFields, "network_port"), nil, query.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := query.AppendValue(nil, valuesIn(res))
		pieces, got := 0, []byte(nil)
		for p := range res.Values().Chunks() {
			pieces++
			got = append(got, p...)
			if len(p) > 2*chunk {
				t.Errorf("a piece of %d bytes", len(p))
			}
		}
		if string(got) != string(want) || pieces < len(want)/(2*chunk) {
			t.Errorf("%d rows: %d pieces, %.100s, want %.100s", n, pieces, got, want)
		}
	}
}

func TestChunksAreOneDocument(t *testing.T) {
	src := bigSource(2000)
	res, err := All.Run(src, "instance", eightFields, nil, query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pieces, whole := 0, []byte(nil)
	for p := range res.Chunks() {
		pieces++
		whole = append(whole, p...)
	}
	answer, ok := canonicalJSON(t, whole).(map[string]any)
	if data, _ := answer["data"].([]any); !ok || len(data) != 2000 || pieces < 3 {
		t.Errorf("%d pieces, %d rows", pieces, len(data))
	}
}
