package exec

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/placement"
)

// tagged returns the object whose tags the opcode is about.
func tagged(op *opcode.Opcode, snap *cluster.Snapshot) (cluster.Object, error) {
	name, kind := op.Str("name"), op.Str("kind")
	if uuid := op.Str("instance_uuid"); uuid != "" {
		return meantInstance(kind, uuid, snap)
	}
	switch kind {
	case "cluster":
		return snap.Cluster(), nil
	case "instance":
		return namedInstance(name, snap)
	case "node":
		return namedNode(name, snap)
	case "nodegroup":
		return findGroup(name, snap)
	case "network":
		return findNetwork(name, snap)
	default:
		return nil, fault.New(fault.Invalid, "'%s' is no kind of thing that has tags", kind).At("kind")
	}
}

// meantInstance returns the instance with a UUID, whatever its name is by now.
func meantInstance(kind, uuid string, snap *cluster.Snapshot) (cluster.Object, error) {
	if kind != "instance" {
		return nil, fault.New(fault.Invalid, "only an instance is meant by instance_uuid, not a %s", kind).At("instance_uuid")
	}
	if inst := snap.Instance(uuid); inst != nil {
		return inst, nil
	}
	return nil, unknown("Instance", uuid).At("instance_uuid")
}

// tagLocks locks what the tags are on. Tags of the cluster need nothing but
// the order of updates.
func tagLocks(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	o, err := tagged(op, snap)
	if err != nil {
		return nil, err
	}
	switch o.Kind() {
	case cluster.KindInstance:
		return lock.Request{want(lock.Instance, o.Label(), lock.Exclusive)}, nil
	case cluster.KindNode:
		return lock.Request{want(lock.Node, o.Identity(), lock.Exclusive)}, nil
	case cluster.KindGroup:
		return lock.Request{want(lock.NodeGroup, o.Identity(), lock.Exclusive)}, nil
	case cluster.KindNetwork:
		return lock.Request{want(lock.Network, o.Identity(), lock.Exclusive)}, nil
	}
	return nil, nil
}

func tagsGet(_ context.Context, env *Env) (Plan, error) {
	o, err := tagged(env.Op, env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	return answer(o.Labels()), nil
}

// answer is the plan of an opcode that only asks: nothing is left to do.
func answer(result any) Plan {
	return Plan{Do: func(context.Context) (any, error) { return result, nil }, Dry: result}
}

func tagsSet(_ context.Context, env *Env) (Plan, error) {
	return changeTags(env, func(kind cluster.Kind, t cluster.Tags) (cluster.Tags, error) {
		return labelled(kind, t, env.Op.Strings("tags"))
	})
}

// labelled adds tags to those of an object.
func labelled(kind cluster.Kind, t cluster.Tags, tags []string) (cluster.Tags, error) {
	if kind == cluster.KindInstance {
		if err := placement.CheckTags(tags); err != nil {
			return nil, err
		}
	}
	return cluster.AddTags(t, tags)
}

func tagsDel(_ context.Context, env *Env) (Plan, error) {
	return changeTags(env, func(_ cluster.Kind, t cluster.Tags) (cluster.Tags, error) { return untag(t, env.Op.Strings("tags")) })
}

// untag takes tags away. One that could not be there is a mistake; so is one that is not
// there, or not any more: named twice, it is gone by the second time.
func untag(t cluster.Tags, tags []string) (cluster.Tags, error) {
	for _, tag := range tags {
		if err := cluster.CheckTag(tag); err != nil {
			return nil, err
		}
	}
	once := slices.Sorted(slices.Values(tags))
	once = slices.Compact(once)
	rest, missing := t.Without(once...)
	switch {
	case len(missing) > 0:
		return nil, fault.New(fault.NotFound, "Tag(s) %s not found", quoted(missing))
	case len(once) < len(tags):
		return nil, fault.New(fault.BadTag, "Tag not found").At("tags").WithHint("name each once")
	}
	return rest, nil
}

func changeTags(env *Env, change func(cluster.Kind, cluster.Tags) (cluster.Tags, error)) (Plan, error) {
	o, err := tagged(env.Op, env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	kind, uuid := o.Kind(), o.Identity()
	if _, err := change(kind, o.Labels()); err != nil {
		return Plan{}, err
	}
	return Plan{Change: func(snap *cluster.Snapshot) ([]cluster.Change, any, error) {
		old := snap.Object(kind, uuid)
		if old == nil {
			return nil, nil, fault.New(fault.Conflict, "what the tags are on was removed meanwhile")
		}
		tags, err := change(kind, old.Labels())
		if err != nil || slices.Equal(tags, old.Labels()) {
			return nil, nil, err
		}
		return []cluster.Change{cluster.Put(withTags(old, tags, env.nanos()))}, nil, nil
	}}, nil
}

// withTags returns a copy of an object with other tags.
func withTags(o cluster.Object, tags cluster.Tags, now int64) cluster.Object {
	set := func(m *cluster.Meta) {
		m.Tags = tags
		m.Touch(now)
	}
	switch o := o.(type) {
	case *cluster.Cluster:
		c := *o
		set(&c.Meta)
		return &c
	case *cluster.Group:
		c := *o
		set(&c.Meta)
		return &c
	case *cluster.Node:
		c := *o
		set(&c.Meta)
		return &c
	case *cluster.Instance:
		c := *o
		set(&c.Meta)
		return &c
	case *cluster.Network:
		c := *o
		set(&c.Meta)
		return &c
	}
	return o
}

// tagsSearch prepares OP_TAGS_SEARCH: pairs [path, tag] of all objects, the
// cluster first.
func tagsSearch(_ context.Context, env *Env) (Plan, error) {
	pattern, err := regexp.Compile(env.Op.Str("pattern"))
	if err != nil {
		return Plan{}, fault.New(fault.Invalid, "Invalid search pattern '%s': %w", env.Op.Str("pattern"), err).At("pattern")
	}
	snap := env.snapshot()
	found := [][2]string{}
	look := func(path string, o cluster.Object) {
		for _, tag := range o.Labels() {
			if pattern.MatchString(tag) {
				found = append(found, [2]string{path, tag})
			}
		}
	}
	look("/cluster", snap.Cluster())
	for i := range snap.Instances() {
		look("/instances/"+i.Name, i)
	}
	for n := range snap.Nodes() {
		look("/nodes/"+n.Name, n)
	}
	for g := range snap.Groups() {
		look("/nodegroup/"+g.Name, g)
	}
	for n := range snap.Networks() {
		look("/network/"+n.Name, n)
	}
	return answer(found), nil
}

// quoted lists names for a message.
func quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = "'" + n + "'"
	}
	return strings.Join(out, ", ")
}
