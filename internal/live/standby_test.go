package live_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/query/items"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/rollout"
	"github.com/drover-project/drover/internal/standby"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/sqlite"
)

// follows returns what answers beside a cluster's own controller, from the store
// alone, until the test ends.
func (r *rig) follows() *live.Querier {
	r.Helper()
	s, ok := r.Store.(*sqlite.Store)
	if !ok {
		r.Fatal("the store has no feed of its own")
	}
	f, err := standby.Open(r.Context(), s, s.Follow)
	if err != nil {
		r.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	r.Cleanup(func() {
		stop()
		if err := <-ended; ctx.Err() == nil {
			r.Errorf("the feed was not followed to the end: %v", err)
		}
	})
	log := slog.New(slog.DiscardHandler)
	deployments, err := rollout.NewReader(rollout.ReaderConfig{Store: s, Picture: f.Picture(), Now: time.Now, Log: log})
	if err != nil {
		r.Fatal(err)
	}
	return &live.Querier{Stored: f.Stored(), Picture: f.Picture(), Deployments: deployments, Store: s, Log: log}
}

// storedFields are the fields of an item that are answered from what is stored.
func storedFields(t *testing.T, what string) (names []string) {
	t.Helper()
	defs, err := items.All.Fields(what, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range defs {
		stored, err := items.All.Stored(query.Request{What: what, Fields: []string{d.Name}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if stored {
			names = append(names, d.Name)
		}
	}
	return names
}

func parseOps(t *testing.T, texts ...string) (ops []*opcode.Opcode) {
	t.Helper()
	for _, text := range texts {
		op, err := opcode.Parse([]byte(text), opcode.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, op)
	}
	return ops
}

// A controller that stands by answers what the one that leads does, at the
// revision that it is asked for, whatever became of which objects: also what was
// there before it came, and what is in the archive.
func TestStandbyAnswersAsTheLeader(t *testing.T) {
	const delay = `{"OP_ID":"OP_TEST_DELAY","duration":0.001}`
	const held = `{"OP_ID":"OP_TEST_DELAY","duration":0.001,"comment":"held"}`
	random := rand.New(rand.NewPCG(1, 2))
	r := newRig(t, 0)
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	pause, err := jobfilter.ParseRule([]byte(`{"predicates":[["opcode",["=","comment","held"]]],"action":"PAUSE"}`))
	check(err)
	rule, _, err := r.Queue.PutFilter(ctx, "", pause, queue.By{})
	check(err)
	var waiting []job.ID
	steps := []func(n int){
		func(int) {
			id, err := r.Queue.Submit(ctx, queue.Submission{Ops: parseOps(t, delay)})
			check(err)
			_, err = r.Queue.Wait(ctx, id, (*job.Job).Final)
			check(err)
		},
		func(int) {
			id, err := r.Queue.Submit(ctx, queue.Submission{Ops: parseOps(t, delay, delay, delay)})
			check(err)
			_, err = r.Queue.Wait(ctx, id, (*job.Job).Final)
			check(err)
		},
		func(int) {
			id, err := r.Queue.Submit(ctx, queue.Submission{Ops: parseOps(t, held, delay)})
			check(err)
			waiting = append(waiting, id)
		},
		func(int) {
			if len(waiting) > 0 {
				_, err := r.Queue.Cancel(ctx, waiting[0], false, queue.By{})
				check(err)
				waiting = waiting[1:]
			}
		},
		func(n int) {
			check(r.Queue.SetDrained(ctx, n%2 == 0, queue.By{}))
			check(r.Queue.SetDrained(ctx, false, queue.By{}))
		},
		func(n int) { r.change(put(fmt.Sprintf("i%d", n%4), "up")) },
		func(n int) { r.change(cluster.Delete(cluster.KindInstance, fmt.Sprintf("uuid-i%d", n%4))) },
		func(n int) {
			pause.Priority = n
			_, _, err := r.Queue.PutFilter(ctx, "", pause, queue.By{})
			check(err)
		},
		func(int) {
			rules := r.Picture.Load().Rules
			if last := rules[len(rules)-1]; last.UUID != rule {
				check(r.Queue.DeleteFilter(ctx, last.UUID, queue.By{}))
			}
		},
		func(int) {
			_, _, err := r.Queue.AutoArchive(ctx, 0, time.Minute, queue.By{})
			check(err)
		},
	}
	var all []*live.Querier
	for n := range 200 {
		if n%50 == 0 {
			all = append(all, r.follows())
		}
		steps[random.IntN(len(steps))](n)
		if n%10 == 0 {
			for _, q := range all {
				sameAnswers(t, r.Querier, q)
			}
		}
	}
}

// sameAnswers compares what two controllers answer of everything that is stored.
func sameAnswers(t *testing.T, leads, follows *live.Querier) {
	t.Helper()
	revision, err := leads.Store.Revision(t.Context())
	for _, q := range []*live.Querier{leads, follows} {
		if err == nil {
			err = q.Reach(t.Context(), int64(revision))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	requests := []query.Request{{What: "job", Fields: []string{"id", "status", "opresult"}}}
	for _, what := range []string{"job", "filter", "instance", "node", "group", "network"} {
		requests = append(requests, query.Request{What: what, Fields: storedFields(t, what)})
	}
	for _, request := range requests {
		var told [2]string
		for i, q := range []*live.Querier{leads, follows} {
			result, err := q.Query(t.Context(), request)
			if err != nil {
				t.Fatalf("%s: %v", request.What, err)
			}
			told[i] = string(result.AppendJSON(nil))
		}
		if told[0] != told[1] {
			t.Fatalf("of each %s the leader tells\n%s\nand who follows it\n%s", request.What, told[0], told[1])
		}
	}
}

// What is not stored is the leader's to tell, as is a revision that does not come.
func TestStandbyLeavesTheRest(t *testing.T) {
	r := newRig(t, 0)
	q := r.follows()
	_, held := q.Query(t.Context(), query.Request{What: "job", Fields: []string{"id", "held_by"}})
	_, locks := q.Query(t.Context(), query.Request{What: "lock", Fields: []string{"name"}})
	_, runs := q.Old(t.Context(), "instance", nil, []string{"oper_state"})
	_, groups := q.Group(t.Context(), query.Request{What: "instance"}, []string{"status"}, nil)
	_, next := q.Next(t.Context(), instances, 0)
	for what, err := range map[string]error{"what holds jobs": held, "locks": locks, "what runs": runs, "groups of it": groups, "a watch": next} {
		if err != live.ErrLed { //nolint:errorlint // nothing is to be around it
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := q.Query(t.Context(), query.Request{What: "job", Fields: []string{"id"}, Filter: qlang.AnyOf("nothing", "x")}); err == nil || fault.Is(err, fault.Unavailable) {
		t.Errorf("a query that makes no sense: %v", err)
	}
}

// A revision of something that is not shown is reached all the same.
func TestReachesWhatIsNotShown(t *testing.T) {
	r := newRig(t, 0)
	revision, err := store.Commit(t.Context(), r.Store, store.Tx{Put: []store.Put{{Key: store.Key{Kind: "stranger", ID: "1"}, Value: []byte("{}")}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Reach(t.Context(), int64(revision)); err != nil || r.Picture.Load().Revision < int64(revision) {
		t.Errorf("%v, at %d of %d", err, r.Picture.Load().Revision, revision)
	}
}
