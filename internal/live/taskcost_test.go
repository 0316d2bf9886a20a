package live_test

import (
	"fmt"
	"iter"
	"runtime/metrics"
	"testing"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/rollout"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// TestAWatchOfATaskCostsNothingOfOtherPlans counts what a watch of one task allocates from its beginning, through changes of the task,
// beside nothing and beside ten deployments of 8,000 steps each that are under way.
func TestAWatchOfATaskCostsNothingOfOtherPlans(t *testing.T) {
	alone, beside := allocatedByAWatch(t, 0), allocatedByAWatch(t, 10)
	t.Logf("it allocates %d bytes alone, and %d beside ten plans", alone, beside)
	if beside > 2*alone {
		t.Errorf("it allocates %d bytes alone, and %d beside ten plans", alone, beside)
	}
}

// allocatedByAWatch returns how many bytes are allocated while a watch tells twenty changes of a task, beside so many other deployments.
func allocatedByAWatch(t *testing.T, others int) uint64 {
	t.Helper()
	const steps = 8000
	r := newRig(t, 0)
	c := &state.Change{Revision: r.Picture.Load().Revision + 1}
	for id := range int64(1 + others) {
		c.Deployments = append(c.Deployments, r.stores(1+id, steps))
		for step := range int32(steps / 2) {
			c.Records = append(c.Records, &course.Record{Deployment: 1 + id, Step: step, State: course.Ready})
		}
	}
	r.Picture.Committed(c)
	r.Picture.Publish()
	filter, err := qlang.ParseText("deployment == 1 and step == 7")
	if err != nil {
		t.Fatal(err)
	}
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(allocated)
	before := allocated[0].Value.Uint64()
	next, stop := iter.Pull2(r.Follow(t.Context(), query.Request{What: "task", Fields: []string{"task", "state", "ended"}, Filter: filter}, 0))
	defer stop()
	see := func() {
		t.Helper()
		var u *live.Update
		u, err, ok := next()
		if err != nil || !ok || len(u.Events) != 1 {
			t.Fatalf("the watch tells %+v, %v", u, err)
		}
	}
	see()
	for i := range int64(20) {
		r.Picture.Committed(&state.Change{Revision: c.Revision + 1 + i, Records: []*course.Record{{Deployment: 1, Step: 7, State: course.Ready, Ended: (1 + i) * 1e9}}})
		r.Picture.Publish()
		see()
	}
	metrics.Read(allocated)
	return allocated[0].Value.Uint64() - before
}

// stores stores the plan of a deployment that is under way, and returns that.
func (r *rig) stores(id int64, steps int) *course.Deployment {
	r.Helper()
	c := &course.Course{After: make([][]int32, steps)}
	for i := range steps {
		c.Steps = append(c.Steps, course.Step{Task: fmt.Sprint("task", i), Node: "1", Type: "shell", Run: true, Parameters: []byte(`{"cmd":"true"}`), Why: "condition"})
	}
	pieces, err := c.Encode()
	if err != nil {
		r.Fatal(err)
	}
	d := &course.Deployment{ID: id, Environment: fmt.Sprint("e", id), Status: course.Running, Attempt: 1, Steps: steps, Runs: steps, Chunks: len(pieces)}
	tx := store.Tx{}
	for i, text := range pieces {
		tx.Put = append(tx.Put, store.Put{Key: store.Key{Kind: rollout.KindPlan, ID: fmt.Sprintf("%d/%d", id, i)}, Value: text})
	}
	if _, err := store.Commit(r.Context(), r.Store, tx); err != nil {
		r.Fatal(err)
	}
	return d
}
