package luxi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/testkit"
)

// asked sends a request over a bare connection and returns its result as JSON.
func (c *conn) asked(method, args string) string {
	c.Helper()
	r := c.ask(`{"method":"` + method + `","args":` + args + `,"version":3000000}`)
	if !r.Success {
		c.Fatalf("%s %s: %v", method, args, r.Result)
	}
	text, err := json.Marshal(r.Result)
	if err != nil {
		c.Fatal(err)
	}
	return string(text)
}

// everything makes one of each item that can be asked for: among them a job
// that holds the lock of the node, and one that waits for it.
func (r *rig) everything() (holder, waiter job.ID, rule string) {
	r.Helper()
	ctx, stop := context.WithTimeout(r.Context(), time.Minute)
	defer stop()
	r.furnish()
	group := cluster.NewGroup(testkit.NewUUID(), "rack2", 1)
	network, err := cluster.NewNetwork(testkit.NewUUID(), "testnet", "192.0.2.0/24", "192.0.2.1", 1)
	if err != nil {
		r.Fatal(err)
	}
	err = r.keeper.Update(r.Context(), func(*cluster.Snapshot) ([]cluster.Change, error) {
		return []cluster.Change{cluster.Put(group), cluster.Put(network)}, nil
	})
	if err != nil {
		r.Fatal(err)
	}
	r.call("ReplaceFilter", &rule, nil, 7, []any{[]any{"jobid", []any{"==", "id", 1}}}, "ACCEPT", []any{[]any{"ops", "why", 1}})
	started := r.submit(map[string]any{"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web2", "reason": []any{}})
	if status := r.end(started); status != "success" {
		r.Fatalf("web2 was not started: %s", status)
	}
	locking := map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 60, "on_nodes": []string{"node1.gntpeer.example"}, "on_master": false, "no_locks": false,
		"reason": []any{}}
	holder = r.submit(locking)
	if _, err := r.queue.Wait(ctx, holder, func(j *job.Job) bool { return j.Status() == job.Running }); err != nil {
		r.Fatal(err)
	}
	waiter = r.submit(locking)
	if _, err := r.queue.Wait(ctx, waiter, func(j *job.Job) bool { return j.Status() == job.Waiting }); err != nil {
		r.Fatal(err)
	}
	return holder, waiter, rule
}

func TestEveryItemOverABareSocket(t *testing.T) {
	r := newRig(t)
	holder, waiter, rule := r.everything()
	c := r.dial()
	var node [][]string
	r.call("QueryNodes", &node, []string{}, []string{"uuid"}, false)
	lock := "node/" + node[0][0]
	rows := func(rows string) string { return `"data":` + rows }
	for _, tc := range []struct{ args, want string }{
		{`["instance",["name","status","be/vcpus","tags","oper_ram"],["|",["==","name","web2"],["=","name","db1"]]]`,
			rows(`[[[0,"web2.gntpeer.example"],[0,"running"],[0,1],[0,["web"]],[0,128]],[[0,"db1.gntpeer.example"],[0,"ADMIN_down"],[0,1],[0,["web"]],[3,null]]]`)},
		{`["node",["name","role","pinst_cnt","nosuch"],null]`, rows(`[[[0,"node1.gntpeer.example"],[0,"M"],[0,4],[1,null]]]`)},
		{`["group",["name","node_cnt","alloc_policy"],null]`, rows(`[[[0,"default"],[0,1],[0,"preferred"]],[[0,"rack2"],[0,0],[0,"preferred"]]]`)},
		{`["network",["name","network","gateway","free_count"],null]`, rows(`[[[0,"testnet"],[0,"192.0.2.0/24"],[0,"192.0.2.1"],[0,253]]]`)},
		{`["export",["node","export"],null]`, rows(`[]`)},
		{fmt.Sprintf(`["job",["id","status","summary"],[">=","id",%d]]`, holder),
			rows(fmt.Sprintf(`[[[0,%d],[0,"running"],[0,["TEST_DELAY(60.0)"]]],[[0,%d],[0,"waiting"],[0,["TEST_DELAY(60.0)"]]]]`, holder, waiter))},
		{fmt.Sprintf(`["lock",["name","mode","owner","pending"],["==","name",%q]]`, lock),
			rows(fmt.Sprintf(`[[[0,%q],[0,"exclusive"],[0,["%d"]],[0,[["exclusive",["%d"]]]]]]`, lock, holder, waiter))},
		{`["filter",["uuid","priority","predicates","action"],null]`, rows(fmt.Sprintf(`[[[0,%q],[0,7],[0,[["jobid",["==","id",1]]]],[0,"ACCEPT"]]]`, rule))},
		{`["instance",[],["==","name","web1"]]`, `{"data":[[]],"fields":[]}`},
		// Four arguments
		{`["instance",["name"],null,null]`, rows(`[[[0,"broken1.gntpeer.example"]],[[0,"db1.gntpeer.example"]],[[0,"web1.gntpeer.example"]],[[0,"web2.gntpeer.example"]]]`)},
		{`["instance",["name"],null,{}]`, rows(`[[[0,"broken1.gntpeer.example"]],[[0,"db1.gntpeer.example"]],[[0,"web1.gntpeer.example"]],[[0,"web2.gntpeer.example"]]]`)},
		{`["instance",["name"],["!",["==","name","web2"]],{"sort":["-name"],"limit":2}]`, rows(`[[[0,"web1.gntpeer.example"]],[[0,"db1.gntpeer.example"]]]`)},
		{`["instance",[],null,{"group_by":["status"],"figures":["count","sum(be/vcpus)"]}]`, rows(`[[[0,"ADMIN_down"],[0,3],[0,3]],[[0,"running"],[0,1],[0,1]]]`)},
		{`["instance",["name"],null,{"explain":true}]`, `"kept":4`},
	} {
		if got := c.asked("Query", tc.args); !strings.Contains(got, tc.want) {
			t.Errorf("Query %s\n got  %s\n want %s", tc.args, got, tc.want)
		}
	}
	r.call("CancelJob", nil, waiter, true)
	r.call("CancelJob", nil, holder, true)
}

// All fields of every item can be asked for at once, in any order and twice.
func TestAllFieldsOfEveryItem(t *testing.T) {
	r := newRig(t)
	holder, waiter, _ := r.everything()
	for what, count := range map[string]int{"instance": 297, "node": 51, "group": 25, "network": 19, "export": 2, "job": 34, "lock": 4, "filter": 20} {
		var defs struct {
			Fields []struct{ Name, Title, Kind, Doc string }
		}
		for _, all := range []any{nil, []string{}} {
			r.call("QueryFields", &defs, what, all)
			if len(defs.Fields) != count {
				t.Errorf("%s: %d fields, want %d", what, len(defs.Fields), count)
			}
		}
		var names []string
		for _, f := range defs.Fields {
			names = append(names, f.Name)
		}
		whole := r.query(what, names, nil)
		backwards := slices.Clone(names)
		slices.Reverse(backwards)
		twice := r.query(what, append(backwards, names...), nil)
		if len(whole.Data) != len(twice.Data) || what != "export" && len(whole.Data) == 0 {
			t.Errorf("%s: %d rows, then %d", what, len(whole.Data), len(twice.Data))
		}
		for i, row := range whole.Data {
			for k, cell := range row {
				if status := cell[0].(float64); status != 0 && (cell[1] != nil || status == 1) {
					t.Errorf("%s/%s: %v", what, names[k], cell)
				}
				again := twice.Data[i]
				if a, b := fmt.Sprint(again[len(names)-1-k][0]), fmt.Sprint(again[len(names)+k][0]); a != b || a != fmt.Sprint(cell[0]) {
					t.Errorf("%s/%s: statuses %v, %s and %s", what, names[k], cell[0], a, b)
				}
			}
		}
		r.call("QueryFields", &defs, what, []string{names[0], "nosuch", names[0]})
		if f := defs.Fields; len(f) != 3 || f[0] != f[2] || f[0].Name != names[0] || f[1].Kind != "unknown" || f[1].Doc != "Unknown field 'nosuch'" {
			t.Errorf("%s: some fields: %+v", what, f)
		}
	}
	r.call("CancelJob", nil, waiter, true)
	r.call("CancelJob", nil, holder, true)
}

func TestOldListsOverABareSocket(t *testing.T) {
	r := newRig(t)
	holder, waiter, rule := r.everything()
	c := r.dial()
	for _, tc := range []struct{ method, args, want string }{
		{"QueryInstances", `[[],["name","status"],false]`,
			`[["broken1.gntpeer.example","ADMIN_down"],["db1.gntpeer.example","ADMIN_down"],["web1.gntpeer.example","ADMIN_down"],["web2.gntpeer.example","running"]]`},
		{"QueryInstances", `[["web2","nosuch","web1.gntpeer.example","web2"],["name","network_port"],false]`, `[["web1.gntpeer.example",null],["web2.gntpeer.example",null]]`},
		{"QueryNodes", `[[],["name","role","offline"],false]`, `[["node1.gntpeer.example","M",false]]`},
		{"QueryNodes", `[["nosuch"],["name"],false]`, `[]`},
		{"QueryGroups", `[[],["name","node_cnt"],false]`, `[["default",1],["rack2",0]]`},
		{"QueryGroups", `[["rack2"],["name"],false]`, `[["rack2"]]`},
		{"QueryNetworks", `[[],["name","network"],false]`, `[["testnet","192.0.2.0/24"]]`},
		{"QueryJobs", fmt.Sprintf(`[[%d,"%d",999],["id","status"]]`, waiter, holder), fmt.Sprintf(`[[%d,"waiting"],[%d,"running"],[999,null]]`, waiter, holder)},
		{"QueryJobs", `[null,["id"]]`, fmt.Sprintf(`[[1],[2],[3],[4],[5],[%d],[%d]]`, holder, waiter)},
		{"QueryFilters", `[null,["uuid","priority"]]`, fmt.Sprintf(`[[%q,7]]`, rule)},
		{"QueryFilters", fmt.Sprintf(`[[%q],["action"]]`, rule), `[["ACCEPT"]]`},
		{"QueryExports", `[[],false]`, `[]`},
		{"QueryTags", `["instance","web1"]`, `["web"]`},
		{"QueryConfigValues", `[["cluster_name","master_node","drain_flag","nosuch"]]`, `["cluster.gntpeer.example","node1.gntpeer.example",false,null]`},
	} {
		if got := c.asked(tc.method, tc.args); got != tc.want {
			t.Errorf("%s %s\n got  %s\n want %s", tc.method, tc.args, got, tc.want)
		}
	}
	for _, method := range []string{"QueryInstances", "QueryNodes", "QueryGroups", "QueryNetworks"} {
		if _, _, text := r.refused(method, []string{}, []string{"name", "bogus", "zz"}, false); text != "Unknown output fields selected: bogus, zz" {
			t.Errorf("%s: %s", method, text)
		}
		if _, _, text := r.refused(method, []string{}, []string{"name"}, true); text != "Sync queries are not allowed" {
			t.Errorf("%s with locks: %s", method, text)
		}
		if _, class, _ := r.refused(method, nil, []string{"name"}, false); class != "text" {
			t.Errorf("%s without a list of names: %s", method, class)
		}
	}
	r.call("CancelJob", nil, waiter, true)
	r.call("CancelJob", nil, holder, true)
}
