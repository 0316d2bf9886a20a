package standby

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/rollout"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// deployed take in what is stored of deployments, but for plans and what becomes of their tasks. A value of nil says that the
// object is gone.
var deployed = map[store.Kind]func(c *state.Change, id string, value []byte) error{
	rollout.KindEnvironment: func(c *state.Change, id string, value []byte) error {
		if value == nil {
			c.EnvironmentsRemoved = append(c.EnvironmentsRemoved, id)
			return nil
		}
		e := &course.Environment{}
		c.Environments = append(c.Environments, e)
		return decode(rollout.KindEnvironment, id, value, e)
	},
	rollout.KindGraph: func(c *state.Change, id string, value []byte) error {
		if value == nil {
			c.GraphsRemoved = append(c.GraphsRemoved, id)
			return nil
		}
		g := &course.Graph{}
		err := decode(rollout.KindGraph, id, value, g)
		c.Graphs = append(c.Graphs, g.Brief())
		return err
	},
	rollout.KindDeployment: func(c *state.Change, id string, value []byte) error {
		if value == nil {
			n, err := strconv.ParseInt(id, 10, 64)
			c.DeploymentsRemoved = append(c.DeploymentsRemoved, &course.Deployment{ID: n})
			return err
		}
		d := &course.Deployment{}
		err := decode(rollout.KindDeployment, id, value, d)
		c.Deployments = append(c.Deployments, d.Brief())
		return err
	},
}

func decode(kind store.Kind, id string, value []byte, x any) error {
	if err := json.Unmarshal(value, x); err != nil {
		return fault.New(fault.Internal, "the stored %s %s cannot be read: %w", kind, id, err)
	}
	return nil
}

// readDeployments shows what is stored of deployments, before the jobs of their tasks are read.
func (f *Follower) readDeployments(ctx context.Context) error {
	c := &state.Change{}
	for kind, take := range deployed {
		for o, err := range f.store.List(ctx, kind, store.Options{}) {
			if err == nil {
				err = take(c, o.ID, o.Value)
			}
			if err != nil {
				return err
			}
		}
	}
	err := f.takeTasks(ctx, c, nil)
	if err == nil {
		f.show(c)
	}
	return err
}

// takeTasks adds how tasks ended of deployments that are under way: all that there are of a deployment that has just been begun or
// resumed, and else those that changed.
func (f *Follower) takeTasks(ctx context.Context, c *state.Change, changed []store.Change) error {
	known := f.shown.Load().Deployments
	for i, d := range c.DeploymentsRemoved { // with what those who watch its tasks are to be told
		if before := known.Deployment(d.ID); before != nil {
			c.DeploymentsRemoved[i] = before
		}
	}
	gone := map[int64]bool{}
	for _, d := range c.DeploymentsRemoved {
		gone[d.ID] = true
	}
	now := map[int64]*course.Deployment{}
	for _, d := range c.Deployments {
		now[d.ID] = d
		if before := known.Deployment(d.ID); !d.Status.Active() || before != nil && before.Status.Active() && before.Attempt == d.Attempt {
			continue
		}
		if err := f.plans.Records(ctx, d.ID, func(r *course.Record) { c.Records = append(c.Records, r) }); err != nil {
			return err
		}
	}
	for _, last := range changed {
		id, _, ok := course.StepOf(last.ID)
		d := now[id]
		if d == nil {
			d = known.Deployment(id)
		}
		if !ok || d == nil || !d.Status.Active() || gone[id] || last.Value == nil { // what is removed goes with its deployment
			continue
		}
		r := &course.Record{}
		if err := decode(rollout.KindRecord, last.ID, last.Value, r); err != nil {
			return err
		}
		c.Records = append(c.Records, r)
	}
	return nil
}
