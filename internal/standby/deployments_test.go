package standby_test

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/rollout"
	"github.com/drover-project/drover/internal/standby"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/testkit/controller"
)

// nodePort is what such a node lacks.
type nodePort = exec.Node

// failing is a node on which tasks of one type fail.
type failing struct{ nodePort }

func (failing) Node() string { return "node1.example" }

func (failing) RunTask(_ context.Context, _ agent.Order, task agent.Task, _ func(string)) error {
	if task.Type == "puppet" {
		return fault.New(fault.Failed, "the disk is full")
	}
	return nil
}

// deployedTo is a controller whose nodes carry tasks out, and an environment: a task that fails, one that needs it, and one that is held.
func deployedTo(t *testing.T) (r rig, rule string) {
	t.Helper()
	r = rig{t, controller.New(t, controller.Options{Reach: func(string) (exec.Node, error) { return failing{}, nil }})}
	_, err := r.leads.Rollout.PutGraph(t.Context(), "g", []course.File{{Path: "g.yaml", Text: `
- {id: broken, type: puppet, version: 2.1.0, role: '*', parameters: {puppet_manifest: m, puppet_modules: m}}
- {id: needs, type: shell, version: 2.1.0, role: '*', requires: [broken], parameters: {cmd: x}}
- {id: held, type: shell, version: 2.1.0, role: '*', parameters: {cmd: x}}
- {id: fine, type: shell, version: 2.1.0, role: '*', parameters: {cmd: x}}`}}, rollout.By{})
	r.check(err)
	env := course.File{Path: "e.yaml", Text: `nodes: {"1": {uid: "1", roles: [n]}}` + "\n" + `hosts: {"1": node1.example}` + "\n" + `settings: {password: correct-horse}`}
	_, err = r.leads.Rollout.PutEnvironment(t.Context(), "prod", env, []string{"g"}, rollout.By{})
	r.check(err)
	var pause jobfilter.Rule
	pause.Action, err = jobfilter.ParseAction([]byte(`"PAUSE"`))
	r.check(err)
	pause.Predicates, err = jobfilter.ParsePredicates([]byte(`[["opcode",["=","task","held"]]]`))
	r.check(err)
	rule, _, err = r.leads.Queue.PutFilter(t.Context(), "", pause, queue.By{})
	r.check(err)
	return r, rule
}

// quiet tells whether nothing is about to change: no job is unfinished but the one that is held, without which the deployment is over.
func (r rig) quiet(id int64, held bool) bool {
	now, left := r.leads.Picture.Load(), 0
	for j := range now.Jobs.All() {
		if !j.Final() {
			left++
		}
	}
	return held == (left == 1) && left <= 1 && now.Deployments.Deployment(id).Status.Active() == held
}

// tasks waits until the tasks of a deployment are in states, in the order of held, broken, needs and fine.
func (r rig) tasks(id int64, states ...course.State) (jobOfHeld job.ID) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	for {
		changed := r.leads.Picture.Changed()
		all, err := r.leads.Rollout.Tasks(ctx, id)
		r.check(err)
		got := map[string]course.Task{}
		for _, t := range all {
			got[t.Task] = t
		}
		now := []course.State{got["held"].State, got["broken"].State, got["needs"].State, got["fine"].State}
		if slices.Equal(now, states) && r.quiet(id, slices.Contains(states, course.Given)) {
			return job.ID(got["held"].Job)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			r.Fatalf("the tasks are %v, not %v", now, states)
		}
	}
}

// TestFollowersTellOfDeployments has deployments go their ways, and compares what a follower tells of them that saw all of it in the
// feed, and one that reads it all, with what the leader tells.
func TestFollowersTellOfDeployments(t *testing.T) {
	r, rule := deployedTo(t)
	deployments := r.leads.Rollout
	f := r.follow()
	watch, _ := f.Picture().Follow()
	defer watch.Close()
	var id int64
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"an environment is there", func() error { return nil }},
		{"planned", func() error {
			d, _, err := deployments.Plan(t.Context(), rollout.Wish{Environment: "prod"}, rollout.By{})
			if err == nil {
				id = d.ID
			}
			return err
		}},
		{"begun", func() error {
			_, err := deployments.Begin(t.Context(), id, rollout.By{})
			r.tasks(id, course.Given, course.Failed, course.Blocked, course.Ready)
			return err
		}},
		{"a task was cancelled, and with it all is over", func() error {
			_, err := r.leads.Queue.Cancel(t.Context(), r.tasks(id, course.Given, course.Failed, course.Blocked, course.Ready), false, queue.By{})
			r.tasks(id, course.Stopped, course.Failed, course.Blocked, course.Ready)
			return err
		}},
		{"resumed", func() error {
			_, err := deployments.Resume(t.Context(), id, false, rollout.By{})
			r.tasks(id, course.Given, course.Failed, course.Waiting, course.Ready)
			return err
		}},
		{"stopped", func() error {
			_, err := deployments.Stop(t.Context(), id, rollout.By{})
			r.tasks(id, course.Stopped, course.Failed, course.Blocked, course.Ready)
			return err
		}},
		{"tried again", func() error {
			r.check(r.leads.Queue.DeleteFilter(t.Context(), rule, queue.By{}))
			_, err := deployments.Resume(t.Context(), id, true, rollout.By{})
			r.tasks(id, course.Ready, course.Failed, course.Blocked, course.Ready)
			return err
		}},
		{"planned anew", func() error {
			_, _, err := deployments.Plan(t.Context(), rollout.Wish{Environment: "prod"}, rollout.By{})
			return err
		}},
		{"the environment is gone", func() error { return deployments.DeleteEnvironment(t.Context(), "prod", rollout.By{}) }},
		{"a deployment is removed", func() error {
			_, err := deployments.Delete(t.Context(), []int64{id}, false, rollout.By{})
			return err
		}},
	} {
		r.check(step.do())
		r.agree(f, step.name)
		r.agree(r.follow(), step.name+", read anew")
	}
	_, changes, _ := watch.Next()
	var removed []*course.Deployment
	for _, c := range changes {
		removed = append(removed, c.DeploymentsRemoved...)
	}
	if len(removed) != 1 || removed[0].ID != id || removed[0].Steps != 4 { // who watches its tasks is told of each
		t.Errorf("what was removed is told as %+v", removed)
	}
}

// TestARecordThatIsGoneIsPassedOver: in one step of the feed a deployment ends and is removed with its records, while the picture has it
// under way still; and its records go before it does.
func TestARecordThatIsGoneIsPassedOver(t *testing.T) {
	r, rule := deployedTo(t)
	deployments := r.leads.Rollout
	d, _, err := deployments.Plan(t.Context(), rollout.Wish{Environment: "prod"}, rollout.By{})
	r.check(err)
	_, err = deployments.Begin(t.Context(), d.ID, rollout.By{})
	r.check(err)
	r.tasks(d.ID, course.Given, course.Failed, course.Blocked, course.Ready)
	record, deployment := course.RecordKey(d.ID, 0), strconv.FormatInt(d.ID, 10)
	var step store.Progress
	open := func() *standby.Follower {
		f, err := standby.Open(t.Context(), r.leads.Store, func(context.Context, store.Revision) iter.Seq2[store.Progress, error] {
			return func(yield func(store.Progress, error) bool) { yield(step, nil) }
		})
		r.check(err)
		return f
	}
	for _, also := range []bool{false, true} {
		f := open()
		now, err := r.leads.Store.Revision(t.Context())
		r.check(err)
		step = store.Progress{Revision: now + 1, Changes: []store.Change{{Revision: now + 1, Key: store.Key{Kind: rollout.KindRecord, ID: record}}}}
		if also {
			step.Changes = append(step.Changes, store.Change{Revision: now + 1, Key: store.Key{Kind: rollout.KindDeployment, ID: deployment}})
		}
		r.check(f.Run(t.Context()))
		if gone := f.Picture().Load().Deployments.Deployment(d.ID) == nil; gone != also {
			t.Errorf("the deployment is gone: %v, want %v", gone, also)
		}
	}
	r.check(r.leads.Queue.DeleteFilter(t.Context(), rule, queue.By{}))
	r.tasks(d.ID, course.Ready, course.Failed, course.Blocked, course.Ready)
}
