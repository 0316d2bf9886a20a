package items

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/state"
)

var environmentTests = []string{`name == "e0"`, `generation > 2`, `node_cnt == 1`, `deployed == "new"`}

var deploymentTests = []string{`id == 1`, `status == "running"`, `attempt > 1`, `ended > 0`}

var deployTaskTests = []string{`deployment == 1`, `deployment == 1 and step == 2`, `deployment == 2 and step == 9`, `state == "given"`, `state == "blocked"`, `step > 0`, `job > 0`, `held_by == "r0"`, `error =~ m/disk/`}

// aCourse is the plan of each deployment: a task, one that needs it, one by itself, and one that does not run.
var aCourse = &course.Course{
	Steps: []course.Step{{Task: "a", Node: "1", Run: true}, {Task: "b", Node: "1", Run: true}, {Task: "c", Node: "2", Run: true}, {Task: "d", Node: "2"}},
	After: [][]int32{nil, {0}, nil, nil},
}

// tasks are those of a deployment in the world as it is now.
func (w *world) tasks(d *course.Deployment) ([]course.Task, error) {
	return aCourse.Tasks(d, func(step int32) course.Known {
		if d.Status.Active() {
			return w.Deployments.Task(d.ID, step)
		}
		return course.Known{Record: w.records[d.ID][step]}
	}), nil
}

// drawDeployments changes an environment, or lets a deployment go on.
func (w *world) drawDeployments(t *rapid.T, c *state.Change) {
	if rapid.IntRange(0, 5).Draw(t, "environment") == 0 {
		name := one(t, "name", "e0", "e1")
		if rapid.IntRange(0, 2).Draw(t, "gone") == 0 {
			c.EnvironmentsRemoved = []string{name}
			return
		}
		c.Environments = []*course.Environment{{Name: name, Generation: rapid.Int64Range(1, 4).Draw(t, "generation"), Nodes: make([]course.Node, rapid.IntRange(0, 2).Draw(t, "nodes"))}}
		return
	}
	id := rapid.Int64Range(1, 2).Draw(t, "deployment")
	now := w.Deployments.Deployment(id)
	if now != nil && w.Deployments.Needed(now) == "" && rapid.IntRange(0, 3).Draw(t, "removed") == 0 {
		c.DeploymentsRemoved = []*course.Deployment{now}
		return
	}
	switch {
	case now == nil:
		w.records[id] = map[int32]*course.Record{}
		c.Deployments = []*course.Deployment{{ID: id, Environment: "e0", Mode: course.Earnest, Status: course.Planned, Steps: len(aCourse.Steps)}}
		return
	case !now.Status.Active():
		next := *now
		next.Status, next.Ended = course.Running, 0
		next.Attempt++
		if rapid.Bool().Draw(t, "retry") {
			next.Retried = next.Attempt
		}
		c.Deployments = []*course.Deployment{&next}
		for _, x := range w.records[id] {
			c.Records = append(c.Records, x)
		}
		return
	}
	step := rapid.Int32Range(0, 2).Draw(t, "step")
	switch rapid.IntRange(0, 5).Draw(t, "what of it") {
	case 0:
		next := *now
		next.Status, next.Ended = rapid.SampledFrom([]course.Status{course.Halted, course.Done, course.Broken, course.Stopping}).Draw(t, "end"), 7e9
		c.Deployments = []*course.Deployment{&next}
	case 1, 2:
		x := &course.Record{Deployment: id, Step: step, Task: aCourse.Steps[step].Task, State: rapid.SampledFrom([]course.State{course.Ready, course.Failed}).Draw(t, "outcome"), Attempt: now.Attempt, Job: 1, Ended: 5e9}
		if x.State == course.Failed {
			x.Error = "the disk is full"
		}
		w.records[id][step] = x
		c.Records = []*course.Record{x}
	case 3:
		c.Holds = []state.Hold{{Job: jobOf(id, step), By: &job.Hold{Rule: one(t, "rule", "r0", "r1"), Since: 1}}}
	default:
		op := &opcode.Opcode{ID: course.TaskOpcode, Params: map[string]any{"deployment": id, "attempt": int64(now.Attempt), "step": int64(step), "task": "a"}}
		c.Jobs = []*job.Job{{ID: jobOf(id, step), Received: 1, Ops: []job.Op{{Input: op, Status: rapid.SampledFrom([]job.Status{job.Queued, job.Running, job.Canceled}).Draw(t, "status")}}}}
	}
}

func jobOf(deployment int64, step int32) job.ID { return job.ID(20*deployment + int64(step)) }

// TestTasksOfOneDeployment: who asks for those of one deployment is answered from its plan alone, and for one that there is not, from none; who asks for
// one task of a deployment that is under way, without looking at the others.
func TestTasksOfOneDeployment(t *testing.T) {
	known := course.NewTable()
	for id := range int64(3) {
		known.PutDeployment(&course.Deployment{ID: id + 1, Environment: "e", Status: course.Planned, Steps: 4})
	}
	known.PutDeployment(&course.Deployment{ID: 4, Environment: "e", Status: course.Running, Attempt: 1, Steps: 4})
	known.PutRecord(&course.Record{Deployment: 4, Step: 2, State: course.Ready, Attempt: 1})
	var read []int64
	plan := func(*course.Deployment) (*course.Course, error) { return aCourse, nil }
	src := &query.Source{Plan: plan, Inventory: cluster.Empty(), Deployments: known, Now: time.Unix(30, 0), Tasks: func(d *course.Deployment) ([]course.Task, error) {
		read = append(read, d.ID)
		if d.ID == 3 {
			return nil, errors.New("it cannot be read")
		}
		return aCourse.Tasks(d, func(int32) course.Known { return course.Known{} }), nil
	}}
	for _, tc := range []struct {
		filter, want string
		reads        int
	}{
		{`deployment == 2 and node == "2"`, `2 2 "waiting"; 2 3 "skipped"`, 1},
		{`deployment == 7`, "", 0},
		{`deployment == 18446744073709551617`, "", 0},
		{`deployment == 4 and step == 2`, `4 2 "ready"`, 0},
		{`step == 1 and deployment == 4 and task == "b"`, `4 1 "waiting"`, 0},
		{`deployment == 4 and step == 2 and step == 1`, "", 0},
		{`deployment == 4 and step == 4`, "", 0},
		{`deployment == 4 and step == 4294967297`, "", 0},
		{`deployment == 4 and step == 18446744073709551617`, "", 0},
		{`deployment == 2 and step == 3`, `2 3 "skipped"`, 1},
		{`deployment == 1 or deployment == 2`, `1 0 "waiting"; 1 1 "waiting"; 1 2 "waiting"; 1 3 "skipped"; 2 0 "waiting"; 2 1 "waiting"; 2 2 "waiting"; 2 3 "skipped"`, 2},
	} {
		read = nil
		if got := run(t, src, "task", "deployment,step,state", tc.filter, query.Options{}); got != tc.want || len(read) != tc.reads {
			t.Errorf("%s: %s, having read %v", tc.filter, got, read)
		}
	}
	if _, err := All.Run(src, "task", []string{"step"}, nil, query.Options{}); err == nil {
		t.Error("a plan that cannot be read is left out of the list")
	}
}
