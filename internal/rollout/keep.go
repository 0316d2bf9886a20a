package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/deploy/environment"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/plan"
	deploystate "github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// nameForm is what names of environments and graphs look like.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

func checkName(what, name string) error {
	if !nameForm.MatchString(name) {
		return fault.New(fault.Invalid, "the name of %s must be letters, digits, \"_\", \".\" and \"-\", at most 100 of them, got %q", what, name).At("name")
	}
	return nil
}

// who is the name under which a change is kept.
func who(by By) string { return by.Account.String() }

// Kept is what was stored, with what a person should know of it.
type Kept struct {
	Name     string   `json:"name"`
	Nodes    int      `json:"nodes,omitempty"`
	Tasks    int      `json:"tasks,omitempty"`
	Warnings []string `json:"warnings"`
}

func told(warnings []document.Warning) []string {
	out := []string{}
	for _, w := range warnings {
		out = append(out, w.String())
	}
	return out
}

// PutEnvironment stores the state to be reached of an environment, a text of YAML or JSON. Graphs that it names replace
// those that the environment had; without any these stay.
func (e *Engine) PutEnvironment(ctx context.Context, name string, file course.File, graphs []string, by By) (*Kept, error) {
	if err := checkName("an environment", name); err != nil {
		return nil, err
	}
	space := deploystate.NewSpace()
	read, err := environment.Read(space, file.Path, []byte(file.Text))
	if err != nil {
		return nil, err
	}
	var kept *Kept
	err = e.patiently(ctx, func(ctx context.Context) (err error) {
		kept, err = e.putEnvironment(ctx, name, read, graphs, by)
		return err
	})
	if err != nil {
		return nil, err // and leave alone what may still be at work
	}
	return kept, nil
}

// putEnvironment stores what was read of an environment, for who holds the baton.
func (e *Engine) putEnvironment(ctx context.Context, name string, read *environment.Environment, graphs []string, by By) (*Kept, error) {
	kept := &Kept{Name: name, Nodes: len(read.Nodes), Warnings: told(read.Warnings)}
	now := e.cfg.Now().UnixNano()
	x := &course.Environment{Name: name, Status: read.Status, Secrets: read.Secrets, Graphs: slices.Concat(read.Graphs, graphs), Created: now, Modified: now,
		By: who(by), Trail: by.Trail, Generation: 1}
	known := e.known()
	if old := known.Environment(name); old != nil {
		x.Created, x.Generation = old.Created, old.Generation+1
		if len(x.Graphs) == 0 {
			x.Graphs = old.Graphs
		}
	}
	for _, g := range x.Graphs {
		kind, name := course.GraphType(g)
		if g != name {
			if err := checkName("a type of graphs", kind); err != nil {
				return nil, err
			}
		}
		if err := hasGraph(known, name); err != nil {
			return nil, err
		}
	}
	parts := e.newParts()
	x.Common = parts.add(read.Common)
	if read.Settings != nil {
		x.Settings = json.RawMessage(plan.Canonical(read.Settings))
	}
	if master := read.Parts[plan.Master]; master != nil {
		x.Nodes = append(x.Nodes, course.Node{UID: plan.Master, Roles: []string{plan.Master}, Part: parts.add(master), Host: e.host(read.Hosts[plan.Master], master)})
	}
	for _, n := range read.Nodes {
		host := e.host(read.Hosts[n.UID], read.Parts[n.UID])
		x.Nodes = append(x.Nodes, course.Node{UID: n.UID, Roles: n.Tags, Part: parts.add(read.Parts[n.UID]), Host: host})
	}
	for _, n := range x.Nodes {
		switch {
		case n.Host == "" && n.UID != plan.Master:
			kept.Warnings = append(kept.Warnings, "no node of the cluster is known for node "+n.UID+"; tasks cannot run on it")
		case n.Host != "" && !hasHost(e.inventory(), n.Host):
			kept.Warnings = append(kept.Warnings, fmt.Sprintf("hosts names %s for node %s, which is no node of the cluster; tasks cannot run on it", n.Host, n.UID))
		}
	}
	if old := known.Environment(name); old != nil {
		if err := e.forgetGone(ctx, old, func(uid string) bool { return x.Node(uid) != nil }); err != nil {
			return nil, err
		}
	}
	return kept, e.storeEnvironment(x, parts, audit.New(audit.EnvironmentPut, name, by))
}

// host returns the node of the cluster that stands for a node of an environment: the one that the file names, or the one
// that has a name of the node's own.
func (e *Engine) host(named string, part *deploystate.Part) string {
	if named != "" {
		return named
	}
	snap := e.inventory()
	for _, key := range []string{"fqdn", "hostname", "name"} {
		v, _ := part.Get(key)
		name, _ := v.(string)
		if name == "" {
			continue
		}
		if n, err := snap.FindNode(name); err == nil {
			return n.Name
		}
	}
	return ""
}

// hasHost tells whether the cluster has a node of a name.
func hasHost(in *cluster.Snapshot, name string) bool {
	_, err := in.FindNode(name)
	return err == nil
}

func (e *Engine) storeEnvironment(x *course.Environment, parts *parts, done audit.Event) error {
	tx := store.Tx{Put: append(parts.puts, put(KindEnvironment, x.Name, x))}
	return e.commit(tx, &state.Change{Environments: []*course.Environment{x}}, done)
}

// PutNode stores the state to be reached of one node of an environment, with the data that is its own.
func (e *Engine) PutNode(ctx context.Context, environmentName, uid string, file course.File, host string, by By) (*Kept, error) {
	n, warnings, err := document.Parse(file.Path, []byte(file.Text))
	if err != nil {
		return nil, err
	}
	space := deploystate.NewSpace()
	read, err := environment.ReadNode(space, uid, n)
	if err != nil {
		return nil, err
	}
	if host != "" {
		if _, err := e.inventory().FindNode(host); err != nil {
			return nil, err
		}
	}
	err = e.changeNodes(ctx, environmentName, uid, by, func(x *course.Environment, parts *parts) error {
		node := course.Node{UID: uid, Roles: read.Tags, Part: parts.add(read.Part), Host: e.host(host, read.Part)}
		if old := x.Node(uid); old != nil {
			if node.Host == "" {
				node.Host = old.Host
			}
			*old = node
			return nil
		}
		x.Nodes = append(x.Nodes, node)
		return nil
	})
	return &Kept{Name: uid, Nodes: 1, Warnings: told(warnings)}, err
}

// DeleteNode takes a node out of an environment, with what is remembered of its tasks.
func (e *Engine) DeleteNode(ctx context.Context, environmentName, uid string, by By) error {
	return e.changeNodes(ctx, environmentName, uid, by, func(x *course.Environment, _ *parts) error {
		if err := e.forgetGone(ctx, x, func(other string) bool { return other != uid }); err != nil {
			return err
		}
		before := len(x.Nodes)
		x.Nodes = slices.DeleteFunc(x.Nodes, func(n course.Node) bool { return n.UID == uid })
		if len(x.Nodes) == before {
			return fault.New(fault.NotFound, "the environment %s has no node %q", environmentName, uid)
		}
		return nil
	})
}

func (e *Engine) changeNodes(ctx context.Context, name, uid string, by By, change func(*course.Environment, *parts) error) error {
	return e.patiently(ctx, func(ctx context.Context) error {
		old, err := e.environment(ctx, name)
		if err != nil {
			return err
		}
		x := *old
		x.Nodes = slices.Clone(old.Nodes)
		x.Generation++
		x.Modified, x.By, x.Trail = e.cfg.Now().UnixNano(), who(by), by.Trail
		parts := e.newParts()
		if err := change(&x, parts); err != nil {
			return err
		}
		done := audit.New(audit.EnvironmentPut, name, by)
		done.Name = "node " + uid
		return e.storeEnvironment(&x, parts, done)
	})
}

// deletedAtOnce is how many successes a transaction deletes at most: an environment may have tens of thousands.
const deletedAtOnce = 1000

// DeleteEnvironment removes an environment with all that is known of successes in it, and at last itself: who is told that it
// failed finds it there, and deletes it again. Its deployments stay as history.
func (e *Engine) DeleteEnvironment(ctx context.Context, name string, by By) error {
	return e.patiently(ctx, func(ctx context.Context) error { return e.deleteEnvironment(ctx, name, by) })
}

// deleteEnvironment is DeleteEnvironment for who holds the baton.
func (e *Engine) deleteEnvironment(ctx context.Context, name string, by By) error {
	known := e.known()
	if _, err := environmentOf(known, name); err != nil {
		return err
	}
	if d := known.ActiveIn(name); d != nil {
		return underWay(d)
	}
	tx := store.Tx{}
	for s, err := range e.successes(ctx, name) {
		if err != nil {
			return err
		}
		tx.Delete = append(tx.Delete, store.Key{Kind: KindSuccess, ID: s.Key()})
	}
	for some := range slices.Chunk(tx.Delete, deletedAtOnce) {
		if err := e.commit(store.Tx{Delete: some}, &state.Change{}); err != nil {
			return err
		}
	}
	tx = store.Tx{Delete: []store.Key{{Kind: KindEnvironment, ID: name}}}
	return e.commit(tx, &state.Change{EnvironmentsRemoved: []string{name}}, audit.New(audit.EnvironmentDelete, name, by))
}

// successes yields the successes in an environment.
func (e *Reader) successes(ctx context.Context, environment string) iter.Seq2[course.Success, error] {
	prefix := course.SuccessPrefix(environment)
	return func(yield func(course.Success, error) bool) {
		for o, err := range e.cfg.Store.List(ctx, KindSuccess, store.Options{After: prefix}) {
			if err == nil && !strings.HasPrefix(o.ID, prefix) {
				return
			}
			var s course.Success
			if err == nil {
				err = json.Unmarshal(o.Value, &s)
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

func underWay(d *course.Deployment) error {
	return fault.New(fault.WrongState, "deployment %d of the environment %s is under way", d.ID, d.Environment).
		WithHint("wait for its end, or stop it: drover deploy stop %d", d.ID)
}

// PutGraph stores a graph of tasks, after it was checked as a whole.
func (e *Engine) PutGraph(ctx context.Context, name string, files []course.File, by By) (*Kept, error) {
	if err := checkName("a task graph", name); err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fault.New(fault.Invalid, "a task graph needs a file at least").At("files")
	}
	x := &course.Graph{Name: name, Files: files, Generation: 1, Modified: e.cfg.Now().UnixNano(), By: who(by), Trail: by.Trail}
	whole, err := e.compile([]*course.Graph{x})
	if err != nil {
		return nil, err
	}
	if err := graph.Circles(whole); err != nil {
		return nil, err
	}
	x.Tasks, x.Expressions = len(whole.Tasks), whole.Expressions
	err = e.patiently(ctx, func(context.Context) error {
		if old := e.known().Graph(name); old != nil {
			x.Generation = old.Generation + 1
		}
		tx := store.Tx{Put: []store.Put{put(KindGraph, name, x)}}
		return e.commit(tx, &state.Change{Graphs: []*course.Graph{x}}, audit.New(audit.GraphPut, name, by))
	})
	if err != nil {
		return nil, err
	}
	return &Kept{Name: name, Tasks: x.Tasks, Warnings: told(append(whole.Warnings, graph.Dangling(whole)...))}, nil
}

// DeleteGraph removes a graph that no environment uses.
func (e *Engine) DeleteGraph(ctx context.Context, name string, by By) error {
	return e.patiently(ctx, func(context.Context) error { return e.deleteGraph(name, by) })
}

// deleteGraph is DeleteGraph for who holds the baton.
func (e *Engine) deleteGraph(name string, by By) error {
	known := e.known()
	if err := hasGraph(known, name); err != nil {
		return err
	}
	for x := range known.Environments() {
		if slices.ContainsFunc(x.Graphs, func(g string) bool { _, n := course.GraphType(g); return n == name }) {
			return fault.New(fault.WrongState, "the environment %s uses the task graph %s", x.Name, name)
		}
	}
	tx := store.Tx{Delete: []store.Key{{Kind: KindGraph, ID: name}}}
	return e.commit(tx, &state.Change{GraphsRemoved: []string{name}}, audit.New(audit.GraphDelete, name, by))
}

// compile reads graphs and merges them, later ones over earlier ones.
func (e *Reader) compile(graphs []*course.Graph) (*graph.Graph, error) {
	whole := &graph.Graph{}
	for _, g := range graphs {
		for _, f := range g.Files {
			read, err := graph.Read(e.language, f.Path, []byte(f.Text))
			if err != nil {
				return nil, err
			}
			whole = whole.Merge(read)
		}
	}
	return whole, nil
}

// parts gathers parts of states that are to be stored, each once.
type parts struct {
	puts   []store.Put
	seen   map[course.Digest]bool
	digest func(text []byte) course.Digest
}

func (e *Engine) newParts() *parts {
	return &parts{seen: map[course.Digest]bool{}, digest: e.digest}
}

func (p *parts) add(part *deploystate.Part) course.Digest {
	text := []byte(plan.Canonical(part.Data()))
	d := p.digest(text)
	if !p.seen[d] {
		p.seen[d] = true
		p.puts = append(p.puts, store.Put{Key: store.Key{Kind: KindPart, ID: string(d)}, Value: text})
	}
	return d
}
