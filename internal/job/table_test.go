package job_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
)

func tableJob(id job.ID, status job.Status, received, started, ended job.Time) *job.Job {
	return &job.Job{ID: id, Ops: []job.Op{{Input: noop, Status: status}}, Received: received, Started: started, Ended: ended}
}

var (
	noop = &opcode.Opcode{ID: "OP_TEST_DELAY", Params: map[string]any{"duration": 1.5}, Reason: reason.Trail{{Source: "user", Reason: "ticket"}}}
	// bulky is a result of which a table keeps none in memory, once its job has ended.
	bulky = make(json.RawMessage, 5<<20)
)

// seen is what a table tells of a job, whole or not.
func seen(j *job.Job) string {
	return fmt.Sprintln(j.ID, j.Status(), j.Final(), j.Received, j.Started, j.Ended, j.Priority(), j.Busy(), j.DryRun())
}

// A table and its indexes answer as a plain map would after any changes, whenever it
// was asked before. Copies answer as they did when they were made, and are changed
// without regard to the original.
func TestTableAgreesWithModel(t *testing.T) {
	type modelled struct {
		*job.Table

		model map[job.ID]*job.Job
	}
	moment := rapid.Map(rapid.IntRange(0, 4), func(n int) job.Time { return job.Time(n) })
	rapid.Check(t, func(t *rapid.T) {
		all := []modelled{{job.NewTable(), map[job.ID]*job.Job{}}}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			table := all[rapid.IntRange(0, len(all)-1).Draw(t, "table")]
			put := func(j *job.Job) {
				table.Put(j)
				table.model[j.ID] = j
			}
			id := 1 + job.ID(rapid.IntRange(0, 11).Draw(t, "id")*700) // over several shelves and zones
			switch rapid.IntRange(0, 8).Draw(t, "step") {
			case 0:
				table.Remove(id)
				delete(table.model, id)
			case 1:
				all = append(all, modelled{table.Copy(), maps.Clone(table.model)})
			case 2:
				if table.Len() != len(table.model) {
					t.Fatalf("%d jobs, want %d", table.Len(), len(table.model))
				}
			case 3:
				for n := range job.ID(rapid.IntRange(1, 70).Draw(t, "many")) { // some often
					put(tableJob(id+20+n%30, job.Statuses[n%2], moment.Draw(t, "received"), 0, 0))
				}
			default:
				j := tableJob(id, rapid.SampledFrom(job.Statuses[:]).Draw(t, "status"), moment.Draw(t, "received"), moment.Draw(t, "started"), 0)
				if j.Final() {
					j.Ended = moment.Draw(t, "ended")
				}
				if rapid.IntRange(0, 3).Draw(t, "size") == 0 {
					j.Ops[0].Result = bulky
				}
				put(j)
			}
		}
		for _, table := range all {
			checkTable(t, table.Table, table.model)
		}
	})
}

func checkTable(t *rapid.T, table *job.Table, model map[job.ID]*job.Job) {
	pick := func(keep func(*job.Job) bool) []*job.Job {
		var out []*job.Job
		for _, j := range model {
			if keep(j) {
				out = append(out, j)
			}
		}
		slices.SortFunc(out, func(a, b *job.Job) int { return cmp.Compare(a.ID, b.ID) })
		return out
	}
	equal := func(what string, got, want []*job.Job) {
		if !slices.EqualFunc(got, want, func(a, b *job.Job) bool { return seen(a) == seen(b) }) {
			t.Fatalf("%s: got %v, want %v", what, got, want)
		}
	}
	equal("all", slices.Collect(table.All()), pick(func(*job.Job) bool { return true }))
	if table.Len() != len(model) || table.Get(13) != nil {
		t.Fatalf("%d jobs, want %d", table.Len(), len(model))
	}
	for id, j := range model {
		got := table.Get(id)
		if seen(got) != seen(j) {
			t.Fatalf("job %d is %v, want %v", id, got, j)
		}
		b := got.Brief()
		if b == nil {
			if got != j {
				t.Fatalf("job %d is %v, want %v", id, got, j)
			}
			continue
		}
		summary, known := b.Summary()
		why, alsoKnown := b.Reason()
		if !known || !alsoKnown || summary != noop.Summary() || why != "user: ticket" || !j.Final() {
			t.Fatalf("job %d is %q because %q", id, summary, why)
		}
	}
	for _, s := range job.Statuses {
		want := pick(func(j *job.Job) bool { return j.Status() == s })
		equal(string(s), slices.Collect(table.In(s)), want)
		if table.CountIn(s) != len(want) {
			t.Fatalf("%d jobs are %s, want %d", table.CountIn(s), s, len(want))
		}
	}
	for c, read := range map[job.Clock]func(*job.Job) job.Time{
		job.ByReceived: func(j *job.Job) job.Time { return j.Received },
		job.ByStarted:  func(j *job.Job) job.Time { return j.Started },
		job.ByEnded:    func(j *job.Job) job.Time { return j.Ended },
	} {
		for _, span := range [][2]job.Time{{0, 1}, {1, 3}, {2, job.Never}, {-5, 9}, {3, 1}} {
			want := pick(func(j *job.Job) bool { return span[0] <= read(j) && read(j) < span[1] })
			got := slices.SortedFunc(table.Between(c, span[0], span[1]), func(a, b *job.Job) int { return cmp.Compare(a.ID, b.ID) })
			equal("between", got, want)
			if n := table.CountBetween(c, span[0], span[1]); n != len(want) {
				t.Fatalf("%d jobs between %v, want %d", n, span, len(want))
			}
		}
	}
}

// BenchmarkTableChange is the whole life of a job in a table that has many:
// received, running, ended, with a picture taken in between, as readers do.
func BenchmarkTableChange(b *testing.B) {
	for _, n := range []int{1_000, 1_000_000} {
		table := job.NewTable()
		for k := range n {
			at := job.Time(k * 10)
			table.Put(tableJob(job.ID(k+1), job.Success, at+1, at+2, at+3))
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for id := job.ID(n + 1); b.Loop(); id++ {
				at := job.Time(id * 10)
				table.Put(tableJob(id, job.Queued, at, 0, 0))
				table.Put(tableJob(id, job.Running, at, at+1, 0))
				if id%2 == 0 {
					table.Copy()
				}
				table.Put(tableJob(id, job.Success, at, at+1, at+2))
			}
		})
	}
}

// Pictures are read by several while the next ones are made of them, and stay as they
// were.
func TestPicturesAreReadWhileTheTableChanges(t *testing.T) {
	const jobs, rounds, readers = 500, 50, 3
	table := job.NewTable()
	for id := job.ID(1); id <= jobs; id++ {
		table.Put(tableJob(id, job.Queued, job.Time(id), 0, 0))
	}
	var all sync.WaitGroup
	for round := range job.ID(rounds) {
		picture, begun := table, round*(jobs/rounds)
		for range readers {
			all.Go(func() {
				queued := 0
				for range picture.In(job.Queued) {
					queued++
				}
				if queued != jobs-int(begun) || picture.CountBetween(job.ByStarted, 1, job.Never) != int(begun) {
					t.Errorf("%d queued, want %d", queued, jobs-begun)
				}
			})
			all.Go(func() {
				if is, was := picture.Get(begun), picture.Get(begun+1); begun > 0 && is.Started == 0 || was.Started != 0 {
					t.Errorf("of %d the last that began is %v, the next %v", begun, is, was)
				}
			})
		}
		table = table.Copy()
		for id := begun + 1; id <= begun+jobs/rounds; id++ {
			table.Put(tableJob(id, job.Running, job.Time(id), job.Time(id+1), 0))
		}
	}
	all.Wait()
}
