package rollout

import (
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// known is what the picture has: what is decided by.
func (e *Reader) known() *course.Table { return e.cfg.Picture.Load().Deployments }

func environmentOf(t *course.Table, name string) (*course.Environment, error) {
	if x := t.Environment(name); x != nil {
		return x, nil
	}
	return nil, fault.New(fault.NotFound, "there is no environment %q", name)
}

// hasGraph refuses the name of a graph that there is not.
func hasGraph(t *course.Table, name string) error {
	if t.Graph(name) != nil {
		return nil
	}
	return fault.New(fault.NotFound, "there is no task graph %q", name)
}

func deploymentOf(t *course.Table, id int64) (*course.Deployment, error) {
	if x := t.Deployment(id); x != nil {
		return x, nil
	}
	if id > 0 && id < t.Newest() {
		return nil, fault.New(fault.NotFound, "there is no deployment %d: it was removed, or never planned", id).WithHint("those that there are: drover deploy history")
	}
	return nil, fault.New(fault.NotFound, "there is no deployment %d", id)
}

// read reads an object of the store whole.
func read[T any](ctx context.Context, e *Reader, kind store.Kind, id string) (*T, error) {
	o, err := e.cfg.Store.Get(ctx, store.Key{Kind: kind, ID: id})
	if err != nil {
		return nil, err
	}
	x := new(T)
	if err := json.Unmarshal(o.Value, x); err != nil {
		return nil, fault.New(fault.Internal, "the stored %s %s cannot be read: %w", kind, id, err)
	}
	return x, nil
}

// all yields the objects of a kind. One that cannot be read is told and left alone.
func all[T any](ctx context.Context, e *Reader, kind store.Kind) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for o, err := range e.cfg.Store.List(ctx, kind, store.Options{}) {
			if err != nil {
				yield(nil, err)
				return
			}
			x := new(T)
			if err := json.Unmarshal(o.Value, x); err != nil {
				e.cfg.Log.Error("a stored object cannot be read and is set aside; restore it from a backup", "kind", kind, "id", o.ID, "error", err)
				continue
			}
			if !yield(x, nil) {
				return
			}
		}
	}
}

// environment returns an environment whole; NotFound if there is none.
func (e *Reader) environment(ctx context.Context, name string) (*course.Environment, error) {
	if _, err := environmentOf(e.known(), name); err != nil {
		return nil, err
	}
	return read[course.Environment](ctx, e, KindEnvironment, name)
}

// Environments returns all environments, by name, without values.
func (e *Reader) Environments() []*course.Environment {
	return slices.Collect(e.known().Environments())
}

// Graph returns a graph; NotFound if there is none.
func (e *Reader) Graph(ctx context.Context, name string) (*course.Graph, error) {
	if err := hasGraph(e.known(), name); err != nil {
		return nil, err
	}
	return read[course.Graph](ctx, e, KindGraph, name)
}

// Graphs returns all graphs, by name.
func (e *Reader) Graphs(ctx context.Context) ([]*course.Graph, error) {
	out := []*course.Graph{}
	for x, err := range all[course.Graph](ctx, e, KindGraph) {
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// Deployment returns a deployment whole; NotFound if there is none.
func (e *Reader) Deployment(ctx context.Context, id int64) (*course.Deployment, error) {
	known, err := deploymentOf(e.known(), id)
	if err != nil {
		return nil, err
	}
	return e.whole(ctx, known)
}

// whole returns a deployment as the picture knows it, with the state to be reached, which the store has.
func (e *Reader) whole(ctx context.Context, known *course.Deployment) (*course.Deployment, error) {
	stored, err := read[course.Deployment](ctx, e, KindDeployment, known.Key())
	if err != nil {
		return nil, err
	}
	return known.With(stored), nil
}

// Deployments returns all deployments, the oldest first, without values.
func (e *Reader) Deployments(ctx context.Context) ([]*course.Deployment, error) {
	now, out := e.known(), []*course.Deployment{}
	for x, err := range all[course.Deployment](ctx, e, KindDeployment) {
		if err != nil {
			return nil, err
		}
		if known := now.Deployment(x.ID); known != nil {
			out = append(out, known.With(x).Shown())
		}
	}
	slices.SortFunc(out, func(a, b *course.Deployment) int { return int(a.ID - b.ID) })
	return out, nil
}
