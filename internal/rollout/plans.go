package rollout

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// Plans reads the plans of deployments from a store, and what became of their tasks. It needs no engine, so it is for controllers
// that follow another's, too. The plans that were asked for last stay in memory. It is safe for concurrent use.
type Plans struct {
	store store.Store

	mu   sync.Mutex
	kept []kept // the one that was asked for last comes last
	size int
}

// kept is a plan in memory, which nobody changes.
type kept struct {
	deployment int64
	course     *course.Course
	size       int
}

// mostKept bounds the plans that stay in memory, in bytes that they have in the store. The newest one always stays. A deployment that
// is under way has its own, besides.
const mostKept = 64 << 20

// NewPlans returns the reader of a store.
func NewPlans(s store.Store) *Plans { return &Plans{store: s} }

// Course returns the plan of a deployment.
func (p *Plans) Course(ctx context.Context, d *course.Deployment) (*course.Course, error) {
	if c := p.find(d.ID); c != nil {
		return c, nil
	}
	c, size := &course.Course{}, 0
	for i := range d.Chunks {
		o, err := p.store.Get(ctx, store.Key{Kind: KindPlan, ID: chunkKey(d.ID, i)})
		if err != nil {
			return nil, err
		}
		if err := c.Add(o.Value); err != nil {
			return nil, err
		}
		size += len(o.Value)
	}
	p.keep(kept{d.ID, c, size})
	return c, nil
}

// find returns a plan that is in memory, nil if it is not.
func (p *Plans) find(deployment int64) *course.Course {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.kept, func(k kept) bool { return k.deployment == deployment })
	if i < 0 {
		return nil
	}
	k := p.kept[i]
	p.kept = append(slices.Delete(p.kept, i, i+1), k)
	return k.course
}

// keep keeps a plan in memory, and forgets those that were asked for before when they are too many.
func (p *Plans) keep(k kept) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(p.kept, func(other kept) bool { return other.deployment == k.deployment }) { // read twice at a time
		return
	}
	p.kept = append(p.kept, k)
	p.size += k.size
	for p.size > mostKept && len(p.kept) > 1 {
		p.size -= p.kept[0].size
		p.kept = slices.Delete(p.kept, 0, 1)
	}
}

// Records reads what became of the tasks of a deployment that ran.
func (p *Plans) Records(ctx context.Context, deployment int64, take func(*course.Record)) error {
	prefix := course.RecordPrefix(deployment)
	for o, err := range p.store.List(ctx, KindRecord, store.Options{After: prefix}) {
		if err != nil {
			return err
		}
		if !strings.HasPrefix(o.ID, prefix) {
			break
		}
		x := &course.Record{}
		if err := json.Unmarshal(o.Value, x); err != nil {
			return fault.New(fault.Internal, "the record %s of a task cannot be read: %w", o.ID, err)
		}
		take(x)
	}
	return nil
}

// Tasks returns the tasks of a deployment of a picture as they are in it, in the order of the plan; of one that is over it reads how
// they ended.
func (p *Plans) Tasks(ctx context.Context, now *course.Table, d *course.Deployment) ([]course.Task, error) {
	c, err := p.Course(ctx, d)
	if err != nil {
		return nil, err
	}
	if d.Status.Active() {
		return c.Tasks(d, func(step int32) course.Known { return now.Task(d.ID, step) }), nil
	}
	ended := map[int32]course.Known{}
	if d.Counts[course.Stopped] > 0 {
		if err := p.cancelled(ctx, d, ended); err != nil {
			return nil, err
		}
	}
	if d.Status != course.Planned {
		err = p.Records(ctx, d.ID, func(x *course.Record) {
			k := ended[x.Step]
			k.Record = x
			ended[x.Step] = k
		})
	}
	return c.Tasks(d, func(step int32) course.Known { return ended[step] }), err
}

// cancelled adds the tasks of a deployment that is over whose jobs were cancelled.
func (p *Plans) cancelled(ctx context.Context, d *course.Deployment, to map[int32]course.Known) error {
	o, err := p.store.Get(ctx, store.Key{Kind: KindDeployment, ID: d.Key()})
	if err != nil {
		return err
	}
	whole := &course.Deployment{}
	if err := json.Unmarshal(o.Value, whole); err != nil {
		return fault.New(fault.Internal, "the stored deployment %d cannot be read: %w", d.ID, err)
	}
	for _, step := range whole.Cancelled {
		to[step] = course.Known{State: course.Stopped}
	}
	return nil
}
