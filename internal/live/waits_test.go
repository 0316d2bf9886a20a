package live_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/queue/machine"
	"github.com/drover-project/drover/internal/schedule"
	"github.com/drover-project/drover/internal/testkit/controller"
)

// waiters is a controller of two slots with a job for each thing that can be waited
// for.
type waiters struct {
	*testing.T
	*controller.Controller
}

func newWaiters(t *testing.T) *waiters {
	t.Helper()
	w := &waiters{t, controller.New(t, controller.Options{})}
	if err := w.Keeper.Update(t.Context(), func(s *cluster.Snapshot) ([]cluster.Change, error) {
		c := *s.Cluster()
		c.MaxRunningJobs = 2
		return []cluster.Change{cluster.Put(&c)}, nil
	}); err != nil {
		t.Fatal(err)
	}
	w.rule(`"PAUSE"`, `[["reason",["=~","reason","^paused"]]]`)
	w.rule(`["RATE_LIMIT",1]`, `[["reason",["=~","reason","^limited"]]]`)
	return w
}

func (w *waiters) rule(action, predicates string) {
	w.Helper()
	a, err := jobfilter.ParseAction([]byte(action))
	if err != nil {
		w.Fatal(err)
	}
	p, err := jobfilter.ParsePredicates([]byte(predicates))
	if err != nil {
		w.Fatal(err)
	}
	if _, _, err := w.Queue.PutFilter(w.Context(), "", jobfilter.Rule{Action: a, Predicates: p}, queue.By{}); err != nil {
		w.Fatal(err)
	}
}

// delay submits a job that waits for as long as the test lasts.
func (w *waiters) delay(more string) job.ID {
	w.Helper()
	op, err := opcode.Parse([]byte(`{"OP_ID":"OP_TEST_DELAY","duration":1000`+more+`}`), opcode.Options{})
	if err != nil {
		w.Fatal(err)
	}
	id, err := w.Queue.Submit(w.Context(), queue.Submission{Ops: []*opcode.Opcode{op}})
	if err != nil {
		w.Fatal(err)
	}
	return id
}

func (w *waiters) until(id job.ID, s job.Status) {
	w.Helper()
	if _, err := w.Queue.Wait(w.Context(), id, func(j *job.Job) bool { return j.Status() == s }); err != nil {
		w.Fatal(err)
	}
}

// asExplained is what an explanation says a job waits for, in the form of the fields
// step, waits_for and waits_since.
func asExplained(t *testing.T, x machine.Explanation) string {
	t.Helper()
	since, on := "null", "null"
	if last := x.Timeline[len(x.Timeline)-1]; last.Waiting() && last.To == 0 {
		since = fmt.Sprintf("[%d,%d]", last.From/1e6, last.From%1e6)
		var texts []string
		switch {
		case last.Kind == job.WaitForDependency:
			for _, id := range last.Jobs {
				texts = append(texts, fmt.Sprint("job ", id))
			}
		case last.On == "":
			texts = []string{string(last.Kind)}
		default:
			texts = []string{string(last.Kind) + " " + last.On}
		}
		data, err := json.Marshal(texts)
		if err != nil {
			t.Fatal(err)
		}
		on = string(data)
	}
	return fmt.Sprintf(`[%q,%s,%s]`, x.Step, on, since)
}

// What lists tell of waits is what the queue itself says of each job.
func TestListsTellOfWaitsWhatExplanationsTell(t *testing.T) {
	w := newWaiters(t)
	const limited, lab = `["gnt:user","limited",1]`, `["gnt:user","rate-limit:1:lab",1]`
	locked := w.delay(`,"on_nodes":["node1.example"],"no_locks":false`)
	w.until(locked, job.Running)
	behind := w.delay(`,"on_nodes":["node1.example"],"no_locks":false`)
	w.until(behind, job.Waiting)
	runs := w.delay(`,"reason":[` + limited + `,` + lab + `]`)
	w.until(runs, job.Running)
	want := map[job.ID]schedule.Step{locked: schedule.InFlight, behind: schedule.InFlight, runs: schedule.InFlight}
	for more, step := range map[string]schedule.Step{
		`,"reason":[["gnt:user","paused",1]]`:       schedule.Hold,
		`,"reason":[` + limited + `]`:               schedule.WaitBucket,
		`,"reason":[` + lab + `]`:                   schedule.WaitBucket,
		fmt.Sprintf(`,"depends":[[%d,[]]]`, locked): schedule.WaitDependency,
		"": schedule.WaitSlot,
	} {
		want[w.delay(more)] = step
	}
	ended := w.delay("")
	if _, err := w.Queue.Cancel(t.Context(), ended, false, queue.By{}); err != nil {
		t.Fatal(err)
	}
	w.until(ended, job.Canceled)
	want[ended] = schedule.Ended
	got, err := w.Querier.Query(t.Context(), query.Request{What: "job", Fields: []string{"id", "step", "waits_for", "waits_since"}})
	if err != nil || got.Len() != len(want) {
		t.Fatalf("%d jobs, %v", got.Len(), err)
	}
	for row := range got.Rows() {
		id := job.ID(row[0].Value.(int64))
		x, err := w.Queue.Explain(t.Context(), id)
		if err != nil || x.Step != want[id] {
			t.Fatalf("job %d: step %s, want %s, %v", id, x.Step, want[id], err)
		}
		values := []any{}
		for _, c := range slices.Clone(row[1:]) {
			values = append(values, c.Value)
		}
		if listed, told := string(query.AppendValue(nil, values)), asExplained(t, x); listed != told {
			t.Errorf("job %d (%s): listed as %s, explained as %s", id, x.Why, listed, told)
		}
	}
}
