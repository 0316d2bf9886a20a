package live_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/query/items"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

// run submits jobs that do nothing, and waits until they ended.
func (r *rig) run(n int) {
	r.Helper()
	for range n {
		op, err := opcode.Parse([]byte(`{"OP_ID":"OP_TEST_DELAY","duration":0,"on_master":false}`), opcode.Options{})
		if err != nil {
			r.Fatal(err)
		}
		id, err := r.Queue.Submit(r.Context(), queue.Submission{Ops: []*opcode.Opcode{op}})
		if err != nil {
			r.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		_, err = r.Queue.Wait(ctx, id, (*job.Job).Final)
		cancel()
		if err != nil {
			r.Fatal(err)
		}
	}
}

func (r *rig) archive() {
	r.Helper()
	if _, _, err := r.Queue.AutoArchive(r.Context(), 0, patience, queue.By{}); err != nil {
		r.Fatal(err)
	}
}

func TestAJobThatCannotBeReadIsToldAndTheRestServes(t *testing.T) {
	r := newRig(t, 0)
	r.run(4)
	r.archive()
	_, err := store.Commit(t.Context(), r.Store, store.Tx{Put: []store.Put{
		{Key: store.Key{Kind: queue.KindArchived, ID: "2"}, At: 1, Value: []byte(`{"id":2,"ops":"gone"}`)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	all := query.Request{What: "job", Fields: []string{"id", "archived"}}
	if got := r.rows(t.Context(), all); got != `[[1,true],[2,null],[3,true],[4,true]]` {
		t.Errorf("all: %s", got)
	}
	byName := query.Request{What: "job", Fields: []string{"id", "archived"}, Filter: parsed(t, `id == 2 or id == 3`)}
	if got := r.rows(t.Context(), byName); got != `[[2,null],[3,true]]` {
		t.Errorf("by name: %s", got)
	}
	result, err := r.Query(t.Context(), query.Request{What: "job", Fields: []string{"status"}, Filter: parsed(t, `id == 2`)})
	if err != nil || result.All()[0][0].Status != query.NoData {
		t.Errorf("its status is %+v, %v", result.All(), err)
	}
	for what, fields := range map[string][]string{"opcode": {"job", "status", "duration"}, "reason": {"job", "source"}} {
		if got := r.rows(t.Context(), query.Request{What: what, Fields: fields}); !strings.Contains(got, "[2,null") || !strings.Contains(got, "[4,") {
			t.Errorf("%s: %s", what, got)
		}
	}
	if _, err := r.Queue.Job(t.Context(), 2); err == nil || !strings.Contains(err.Error(), "job 2 cannot be read") {
		t.Errorf("the queue's answer: %v", err)
	}
}

var errRead = errors.New("the disk says no")

func TestHalfAnArchiveIsAnError(t *testing.T) {
	var broken *faultstore.Store
	r := newRigOn(t, 0, func(s store.Store) store.Store { broken = faultstore.New(s); return broken })
	r.run(3)
	r.archive()
	broken.FailReads(faultstore.ReadFault{Yields: 1, Err: errRead, When: func(kind store.Kind, _ string) bool { return kind == queue.KindArchived }})
	for _, q := range []query.Request{
		{What: "job", Fields: []string{"id", "archived"}},
		{What: "job", Fields: []string{"id", "archived"}, Filter: parsed(t, `end_ts > 1`)},
		{What: "job", Fields: []string{"id"}, Filter: parsed(t, `id == 2`)},
		{What: "opcode", Fields: []string{"job"}},
		{What: "opcode", Fields: []string{"job"}, Filter: parsed(t, `job == 2`)},
		{What: "reason", Fields: []string{"job"}, Options: query.Options{Limit: 1}},
	} {
		if result, err := r.Query(t.Context(), q); !errors.Is(err, errRead) {
			t.Errorf("%s %v: %v, %v", q.What, q.Fields, result, err)
		}
	}
	if got := r.rows(t.Context(), query.Request{What: "job", Fields: []string{"id"}}); got != `[]` {
		t.Errorf("what is in memory serves: %s", got)
	}
}

func TestAJobThatIsArchivedDuringAListIsThereOnce(t *testing.T) {
	r := newRig(t, 0)
	r.run(3)
	before := r.Source(t.Context())
	r.archive()
	result, err := items.All.Run(before, "job", []string{"id", "archived"}, nil, query.Options{})
	if err != nil || result.Len() != 3 {
		t.Fatalf("%v, %v", result, err)
	}
}

func parsed(t *testing.T, text string) qlang.Node {
	t.Helper()
	n, err := qlang.ParseText(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
