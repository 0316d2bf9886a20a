package live_test

import (
	"fmt"
	"iter"
	"runtime/metrics"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/rollout"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// steps is how many tasks each of the deployments has.
const steps = 8000

// TestATaskCostsNothingOfOtherPlans counts what it takes to tell of one task, beside nothing and beside ten deployments of 8,000 steps each that are under
// way: a watch from its beginning, a change of the task when plans have been read, a change of another deployment, and a query. When its plan has been read,
// and it is under way, it costs nothing of its own plan either.
func TestATaskCostsNothingOfOtherPlans(t *testing.T) {
	for _, c := range []struct {
		what string
		of   func(*plans) uint64
		// little: not a word for each step.
		little bool
	}{
		{"a watch, up to its first answer", (*plans).beginning, false},
		{"a change that a watch tells", (*plans).change, true},
		{"a change of the newest deployment that a watch does not tell", (*plans).elsewhere, true},
		{"a query, first", (*plans).query, false},
		{"a query, again", func(p *plans) uint64 { p.query(); return p.query() }, true},
		{"a query of a deployment that is over, again", func(p *plans) uint64 { p.end(); p.query(); return p.query() }, false},
	} {
		alone, beside := c.of(deployed(t, 0)), c.of(deployed(t, 10))
		t.Logf("%s allocates %d bytes alone, and %d beside ten plans", c.what, alone, beside)
		if beside > 2*alone+8*steps || c.little && beside > 8*steps {
			t.Errorf("%s allocates %d bytes alone, and %d beside ten plans", c.what, alone, beside)
		}
	}
}

// plans is a rig with deployments that are under way, of each of which half is done.
type plans struct {
	*rig

	newest   int64 // the number of the newest deployment
	revision int64
}

// deployed is a rig with so many deployments, and one more.
func deployed(tb testing.TB, others int) *plans {
	tb.Helper()
	p := &plans{rig: newRig(tb, 0), newest: int64(1 + others)}
	p.revision = p.Picture.Load().Revision
	c := &state.Change{}
	for id := range p.newest {
		c.Deployments = append(c.Deployments, p.stores(1+id, steps))
		for step := range int32(steps / 2) {
			c.Records = append(c.Records, &course.Record{Deployment: 1 + id, Step: step, State: course.Ready})
		}
	}
	p.publish(c)
	return p
}

// publish shows a change.
func (p *plans) publish(c *state.Change) {
	p.revision++
	c.Revision = p.revision
	p.Picture.Committed(c)
	p.Picture.Publish()
}

// ends shows that a task has ended, at a time.
func (p *plans) ends(deployment int64, step int32, at int64) {
	p.publish(&state.Change{Records: []*course.Record{{Deployment: deployment, Step: step, State: course.Ready, Ended: at * 1e9}}})
}

// end shows the first deployment as over.
func (p *plans) end() {
	over := *p.Picture.Load().Deployments.Deployment(1)
	over.Status = course.Halted
	p.publish(&state.Change{Deployments: []*course.Deployment{&over}})
}

// oneTask asks for one task of the first deployment.
func (p *plans) oneTask() query.Request {
	p.Helper()
	filter, err := qlang.ParseText("deployment == 1 and step == 7")
	if err != nil {
		p.Fatal(err)
	}
	return query.Request{What: "task", Fields: []string{"task", "state", "ended"}, Filter: filter}
}

// watch begins a watch of one task. What is returned waits for what it tells next.
func (p *plans) watch() (see, stop func()) {
	p.Helper()
	next, stop := iter.Pull2(p.Follow(p.Context(), p.oneTask(), 0))
	return func() {
		p.Helper()
		u, err, ok := next()
		if err != nil || !ok || len(u.Events) != 1 {
			p.Fatalf("the watch tells %+v, %v", u, err)
		}
	}, stop
}

// beginning is what a watch allocates up to its first answer.
func (p *plans) beginning() uint64 {
	return allocated(func() {
		see, stop := p.watch()
		defer stop()
		see()
	})
}

// change is what a change of the task allocates, until the watch has told it.
func (p *plans) change() uint64 { return p.changes(1) }

// elsewhere is what a change of a task of the newest deployment allocates, and one of the task behind it, until the watch has told that.
func (p *plans) elsewhere() uint64 { return p.changes(1, p.newest) }

// changes is what changes of tasks allocate, of the first deployment at last, until a watch has told the last one, on the average.
func (p *plans) changes(last int64, before ...int64) uint64 {
	p.Helper()
	see, stop := p.watch()
	defer stop()
	see()
	const often = 20
	at := int64(0)
	once := func() {
		at++
		for _, id := range before {
			p.ends(id, steps-1, at)
		}
		p.ends(last, 7, at)
		see()
	}
	once() // with which plans are read
	return allocated(func() {
		for range often {
			once()
		}
	}) / often
}

// query is what a query of one task allocates.
func (p *plans) query() uint64 {
	p.Helper()
	return allocated(func() {
		r, err := p.Query(p.Context(), p.oneTask())
		if err != nil || len(slices.Collect(r.Rows())) != 1 {
			p.Fatalf("the query answers %+v, %v", r, err)
		}
	})
}

// allocated is how many bytes the process allocates meanwhile.
func allocated(meanwhile func()) uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	meanwhile()
	metrics.Read(sample)
	return sample[0].Value.Uint64() - before
}

// BenchmarkATask measures what it takes to tell of one task beside ten plans: by a query, and of one change by a watch.
func BenchmarkATask(b *testing.B) {
	for _, others := range []int{0, 10} {
		b.Run(fmt.Sprint("query/others=", others), func(b *testing.B) {
			p := deployed(b, others)
			p.query()
			b.ReportAllocs()
			for b.Loop() {
				p.query()
			}
		})
		b.Run(fmt.Sprint("watch/others=", others), func(b *testing.B) {
			p := deployed(b, others)
			see, stop := p.watch()
			defer stop()
			see()
			b.ReportAllocs()
			at := int64(0)
			for b.Loop() {
				at++
				p.ends(1, 7, at)
				see()
			}
		})
	}
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
