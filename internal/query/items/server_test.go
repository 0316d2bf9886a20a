package items

import (
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/state"
)

var serverTests = []string{`id == "s1"`, `status == "BUILD"`, `pending > 0`, `"a" in tags`, `number > 1`, `pending_since > 3`}

var serverTagTests = []string{`server == "s1"`, `status == "PENDADD"`, `tag =~ m/a|b/`, `generation > 1`, `held_by == "r0"`, `job > 0`}

// drawServers makes a server, removes one, or changes its tags.
func (w *world) drawServers(t *rapid.T, c *state.Change) {
	n := rapid.Int64Range(1, 3).Draw(t, "server")
	id := "s" + strconv.FormatInt(n, 10)
	s := w.Servers.Get(id)
	switch {
	case s == nil:
		s = &server.Server{ID: id, Number: n, Name: "web", Instance: "snf-" + strconv.FormatInt(n, 10), Project: "p"}
	case rapid.IntRange(0, 4).Draw(t, "remove") == 0:
		c.ServersRemoved = []string{id}
		return
	}
	c.Servers = []*server.Server{s.WithTags(drawTags(t, w, s.Tags))}
}

func drawTags(t *rapid.T, w *world, set servertag.Set) servertag.Set {
	p, now := servertag.DefaultPolicy(), job.Time(w.Revision+1)
	name := one(t, "tag", "a", "b", "c_")
	by := servertag.Asked{User: "alice", Front: "compute", Time: now}
	switch rapid.IntRange(0, 3).Draw(t, "what of tags") {
	case 0:
		set, _ = set.Unwant(p, servertag.User, name, by)
	case 1:
		set = set.Settle(p, servertag.Sight{Now: now, Instance: true, Tags: []string{"cyclades:user:a", "cyclades:system:x"}})
	case 2:
		for _, step := range set.Next(servertag.Sight{Now: now, Instance: true}).Steps {
			set = set.Begin(step, now)
			set = set.Submitted(set.Serial, w.drawID(t), now)
		}
	default:
		set, _, _ = set.Want(p, servertag.User, []string{name}, by)
	}
	return set
}

// TestServersAndTheirTags: what is wanted, what the cluster shows, which job is
// at it and which rule holds that, by row and by group.
func TestServersAndTheirTags(t *testing.T) {
	p := servertag.DefaultPolicy()
	by := servertag.Asked{User: "alice", Front: "compute", Request: "req-7", Time: 10e6}
	set, _, err := servertag.Set{}.Want(p, servertag.User, []string{"kept", "new"}, by)
	if err != nil {
		t.Fatal(err)
	}
	set = set.Settle(p, servertag.Sight{Now: 11e6, Instance: true, Tags: []string{"cyclades:user:kept", "cyclades:system:ours"}})
	by.Time = 20e6
	set, _ = set.Unwant(p, servertag.User, "kept", by)
	next := set.Next(servertag.Sight{Now: 21e6, Instance: true})
	set = set.Begin(next.Steps[0], 21e6)
	set = set.Submitted(set.Serial, 5, 21e6)
	rows := server.NewTable(
		&server.Server{ID: "s1", Number: 1, Name: "web", Instance: "snf-1", Project: "p", Built: 9e6, Tags: set,
			Done: []server.Act{{Task: server.Task{Do: server.Create, Asked: by, Job: 4}, Ended: 9e6, Failed: "x"}}},
		&server.Server{ID: "s0", Number: 2, Name: "db", Instance: "snf-2", Backend: "far", Project: "p", Tasks: []server.Task{{Do: server.Create}}})
	jobs := job.NewTable()
	jobs.Put(waiter(t, 5, "").WithHold(&job.Hold{Rule: "r0", Since: 1}))
	src := &query.Source{Inventory: cluster.Empty(), Servers: rows, JobTable: jobs, Now: time.Unix(30, 0)}
	for _, tc := range []struct{ what, fields, filter, want string }{
		{"server", "id,status,backend,task,tags,system_tags", "", `"s1" "ACTIVE" "own" !3 ["new"] ["ours"]; "s0" "BUILD" "far" "create" [] []`},
		{"server", "id,actions", "", `"s1" [["create","alice","req-7",20,9,4,"x"]]; "s0" [["create","",null,null,null,null,null]]`},
		{"server", "pending,failed,generation,pending_since,pending_age,jobs", `id == "s1"`, `2 0 4 10 20 [5]`},
		{"server", "name", `id == "nosuch"`, ""},
		{"server", "name", `pending_age > 100`, ""},
		{"server", "name", `"new" in tags`, `"web"`},
		{"server-tag", "namespace,tag,status,wanted,seen,job,held_by", "",
			`"system" "ours" "ACTIVE" true "present" !3 !3; "user" "kept" "PENDDEL" false !3 !3 !3; "user" "new" "PENDADD" true "absent" 5 "r0"`},
		{"server-tag", "raw,user,front,request,asked,pending_since,pending_age,waits_for", `tag == "new"`,
			`"cyclades:user:new" "alice" "compute" "req-7" 10 10 20 "job 5 is to add it"`},
		{"server-tag", "instance", `held_by == "r0"`, `"snf-1"`},
	} {
		if got := run(t, src, tc.what, tc.fields, tc.filter, query.Options{}); got != tc.want {
			t.Errorf("%s %s where %q:\n got  %s\n want %s", tc.what, tc.fields, tc.filter, got, tc.want)
		}
	}
	groups, err := All.Group(src, query.Request{What: "server-tag"}, []string{"status"}, []query.Calc{{Func: "count"}, {Func: "max", Field: "pending_age"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := rowsText(groups), `"ACTIVE" 1 !3; "PENDADD" 1 20; "PENDDEL" 1 10`; got != want {
		t.Errorf("by status: %s, want %s", got, want)
	}
}
