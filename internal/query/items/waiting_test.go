package items

import (
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/state"
)

// waiter makes a job of one opcode.
func waiter(t *testing.T, id job.ID, more string) *job.Job {
	t.Helper()
	op, err := opcode.Parse([]byte(`{"OP_ID":"OP_TEST_DELAY","duration":1`+more+`}`), opcode.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return job.New(id, []*opcode.Opcode{op}, "", time.Unix(1, 0))
}

// TestWhatJobsWaitFor: each thing that can be waited for has its words, and who
// stands in a line has a place there, by priority first.
func TestWhatJobsWaitFor(t *testing.T) {
	pause := &jobfilter.Rule{UUID: "aaaaaaaa-0000-4000-8000-000000000001", Name: "storage", Action: jobfilter.Action{Kind: jobfilter.Pause}}
	limit := &jobfilter.Rule{UUID: "bbbbbbbb-0000-4000-8000-000000000002", Action: jobfilter.Action{Kind: jobfilter.RateLimit, Limit: 2}}
	held := func(id job.ID, r *jobfilter.Rule, more string) *job.Job {
		return waiter(t, id, more).WithHold(&job.Hold{Rule: r.UUID, Since: 2_000_005})
	}
	const lab = `,"reason":[["me","rate-limit:1:lab",1]]`
	c := cluster.New(cluster.Init{Name: "c", UUID: "c", MasterNode: "n", Hypervisors: []string{"fake"}})
	c.MaxRunningJobs = 2
	table := job.NewTable()
	for _, j := range []*job.Job{
		waiter(t, 1, lab).BeginWait(0, 1).BeginRun(0, 2), waiter(t, 2, "").BeginWait(0, 1).BeginRun(0, 2),
		waiter(t, 3, "").BeginWait(0, 4e6), waiter(t, 4, "").BeginWait(0, 1),
		held(5, pause, ""), held(6, limit, ""), held(7, limit, `,"priority":-10`),
		waiter(t, 8, `,"depends":[[5,[]],[2,["success"]]]`), waiter(t, 9, lab), waiter(t, 10, lab),
		waiter(t, 11, ""), waiter(t, 12, `,"priority":-10`),
		held(13, &jobfilter.Rule{UUID: "cccccccc-gone"}, ""), waiter(t, 14, `,"depends":[[5,[]]]`),
		waiter(t, 15, "").BeginWait(0, 3e6), waiter(t, 16, "").Dequeue(5e6), waiter(t, 17, "").RequestCancel("nobody wants it"),
	} {
		table.Put(j)
	}
	src := &query.Source{
		JobTable: table, Rules: func() []*jobfilter.Rule { return []*jobfilter.Rule{pause, limit} },
		Inventory: cluster.Empty().With(cluster.Put(c), cluster.Put(cluster.NewGroup("g", "default", 1)), cluster.Put(cluster.NewNode("n", "n1", "192.0.2.1", "g", 1))),
		Locks: func() []lock.State {
			return []lock.State{{Name: lock.Name{Level: lock.Node, Item: "n"}, Mode: lock.Exclusive, Holders: lock.OwnersOf(2),
				Pending: []lock.Pending{{Mode: lock.Shared, Owner: 4}, {Mode: lock.Shared, Owner: 3}}}}
		},
	}
	src.Jobs = func(bool) iter.Seq2[*job.Job, error] { return readable(table.All()) }
	want := `1 !3 !3; 2 !3 !3; 3 "lock node/n1 of job 2" 2; 4 "lock node/n1 of job 2" 1; 5 "rule storage" !3; ` +
		`6 "limit 2 of rule bbbbbbbb" 2; 7 "limit 2 of rule bbbbbbbb" 1; 8 "after jobs 5, 2" !3; ` +
		`9 "limit 1 of lab" 1; 10 "limit 1 of lab" 2; 11 "slot" 2; 12 "slot" 1; 13 "rule cccccccc" !3; 14 "after job 5" !3; 15 "slot" 3; 16 !3 !3; 17 !3 !3`
	if got := run(t, src, "job", "id,wait_reason,place", "", query.Options{}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	want = `1 "in-flight" !3 !3; 2 "in-flight" !3 !3; 3 "in-flight" ["lock node/n1"] [2]; 4 "in-flight" ["lock node/n1"] [2]; ` +
		`5 "hold" ["rule aaaaaaaa-0000-4000-8000-000000000001"] []; 6 "wait-bucket" ["limit rate limit 2 of filter rule bbbbbbbb-0000-4000-8000-000000000002"] []; ` +
		`7 "wait-bucket" ["limit rate limit 2 of filter rule bbbbbbbb-0000-4000-8000-000000000002"] []; 8 "wait-dependency" ["job 5","job 2"] [5,2]; ` +
		`9 "wait-bucket" ["limit ad-hoc limit rate-limit:1:lab"] [1]; 10 "wait-bucket" ["limit ad-hoc limit rate-limit:1:lab"] [1]; ` +
		`11 "wait-slot" ["slot"] []; 12 "wait-slot" ["slot"] []; 13 "hold" ["rule cccccccc-gone"] []; 14 "wait-dependency" ["job 5"] [5]; ` +
		`15 "in-flight" ["slot"] []; 16 "ended" !3 !3; 17 "cancel" !3 !3`
	if got := run(t, src, "job", "id,step,waits_for,waits_for_jobs", "", query.Options{}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// Since the rule holds it, since it began to wait for its locks, since it was received.
	if got := run(t, src, "job", "id,waits_since", `waits_since > 0 and ("slot" in waits_for or id == 5 or id == 3)`, query.Options{}); got !=
		`3 [4,0]; 5 [2,5]; 11 [1,0]; 12 [1,0]; 15 [3,0]` {
		t.Errorf("since when: %s", got)
	}
	if got := run(t, src, "job", "id", `place == 1`, query.Options{}); got != "4; 7; 9; 12" {
		t.Errorf("first in their lines: %s", got)
	}
	c.MaxRunningJobs = 3
	if got := run(t, src, "job", "id,wait_reason,step", `id == 11 or id == 9 or id == 15`, query.Options{}); got !=
		`11 !3 "run"; 9 "limit 1 of lab" "wait-bucket"; 15 !3 "in-flight"` {
		t.Errorf("with a slot free: %s", got)
	}
}

// TestPlacesAreFollowed: a place changes when somebody before it leaves the line,
// of whom the watch is told and not of the row itself.
func TestPlacesAreFollowed(t *testing.T) {
	limit := &jobfilter.Rule{UUID: "bbbbbbbb-0000-4000-8000-000000000002", Action: jobfilter.Action{Kind: jobfilter.RateLimit, Limit: 1}}
	table := job.NewTable()
	for id := range job.ID(3) {
		table.Put(waiter(t, id+1, "").WithHold(&job.Hold{Rule: limit.UUID, Since: 1}))
	}
	src := &query.Source{Inventory: cluster.Empty(), JobTable: table, Rules: func() []*jobfilter.Rule { return []*jobfilter.Rule{limit} }}
	src.Jobs = func(bool) iter.Seq2[*job.Job, error] { return readable(table.All()) }
	w, err := All.Watch(src, query.Request{What: "job", Fields: []string{"id", "place"}})
	if err != nil {
		t.Fatal(err)
	}
	first := table.Get(1).WithHold(nil).BeginWait(0, 2).BeginRun(0, 2)
	table.Put(first)
	events, err := w.Step(src, []*state.Change{{Jobs: []*job.Job{first}}})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, e := range events {
		got += fmt.Sprintf("%s %s; ", e.Type, e.Row)
	}
	if want := `change [[0,1],[3,null]]; change [[0,2],[0,1]]; change [[0,3],[0,2]]; `; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
