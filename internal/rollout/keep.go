package rollout

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/deploy/environment"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/internal/fault"
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

// Environments returns all environments, by name, without values.
func (e *Engine) Environments() []*course.Environment {
	e.mu.Lock()
	defer e.mu.Unlock()
	return shown(sorted(e.environments))
}

// Graphs returns all graphs, by name.
func (e *Engine) Graphs() []*course.Graph {
	e.mu.Lock()
	defer e.mu.Unlock()
	return sorted(e.graphs)
}

func sorted[K ~string, V any](m map[K]V) []V {
	out := make([]V, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}

// Environment returns an environment; NotFound if there is none.
func (e *Engine) Environment(name string) (*course.Environment, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.environment(name)
}

// environment is Environment for who holds mu.
func (e *Engine) environment(name string) (*course.Environment, error) {
	x := e.environments[name]
	if x == nil {
		return nil, fault.New(fault.NotFound, "there is no environment %q", name)
	}
	return x, nil
}

// Graph returns a graph; NotFound if there is none.
func (e *Engine) Graph(name string) (*course.Graph, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.graph(name)
}

// graph is Graph for who holds mu.
func (e *Engine) graph(name string) (*course.Graph, error) {
	x := e.graphs[name]
	if x == nil {
		return nil, fault.New(fault.NotFound, "there is no task graph %q", name)
	}
	return x, nil
}

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
func (e *Engine) PutEnvironment(name string, file course.File, graphs []string, by By) (*Kept, error) {
	if err := checkName("an environment", name); err != nil {
		return nil, err
	}
	space := state.NewSpace()
	read, err := environment.Read(space, file.Path, []byte(file.Text))
	if err != nil {
		return nil, err
	}
	var kept *Kept
	err = e.patiently(func() (err error) {
		kept, err = e.putEnvironment(name, read, graphs, by)
		return err
	})
	if err != nil {
		return nil, err // and leave alone what may still be at work
	}
	return kept, nil
}

// putEnvironment stores what was read of an environment, for who holds the baton.
func (e *Engine) putEnvironment(name string, read *environment.Environment, graphs []string, by By) (*Kept, error) {
	kept := &Kept{Name: name, Nodes: len(read.Nodes), Warnings: told(read.Warnings)}
	now := e.cfg.Now().UnixNano()
	x := &course.Environment{Name: name, Status: read.Status, Secrets: read.Secrets, Graphs: slices.Concat(read.Graphs, graphs), Created: now, Modified: now,
		By: who(by), Trail: by.Trail, Generation: 1}
	if old, err := e.Environment(name); err == nil {
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
		if _, err := e.Graph(name); err != nil {
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
		case n.Host != "" && !e.hasHost(n.Host):
			kept.Warnings = append(kept.Warnings, fmt.Sprintf("hosts names %s for node %s, which is no node of the cluster; tasks cannot run on it", n.Host, n.UID))
		}
	}
	return kept, e.storeEnvironment(x, parts, audit.New(audit.EnvironmentPut, name, by))
}

// host returns the node of the cluster that stands for a node of an environment: the one that the file names, or the one
// that has a name of the node's own.
func (e *Engine) host(named string, part *state.Part) string {
	if named != "" {
		return named
	}
	snap := e.cfg.Inventory.Snapshot()
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
func (e *Engine) hasHost(name string) bool {
	_, err := e.cfg.Inventory.Snapshot().FindNode(name)
	return err == nil
}

func (e *Engine) storeEnvironment(x *course.Environment, parts *parts, done audit.Event) error {
	tx := store.Tx{Put: append(parts.puts, put(KindEnvironment, x.Name, x))}
	return e.commit(tx, func() { e.environments[x.Name] = x }, done)
}

// PutNode stores the state to be reached of one node of an environment, with the data that is its own.
func (e *Engine) PutNode(environmentName, uid string, file course.File, host string, by By) (*Kept, error) {
	n, warnings, err := document.Parse(file.Path, []byte(file.Text))
	if err != nil {
		return nil, err
	}
	space := state.NewSpace()
	read, err := environment.ReadNode(space, uid, n)
	if err != nil {
		return nil, err
	}
	if host != "" {
		if _, err := e.cfg.Inventory.Snapshot().FindNode(host); err != nil {
			return nil, err
		}
	}
	err = e.changeNodes(environmentName, uid, by, func(x *course.Environment, parts *parts) error {
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

// DeleteNode takes a node out of an environment. What is remembered of its tasks stays.
func (e *Engine) DeleteNode(environmentName, uid string, by By) error {
	return e.changeNodes(environmentName, uid, by, func(x *course.Environment, _ *parts) error {
		before := len(x.Nodes)
		x.Nodes = slices.DeleteFunc(x.Nodes, func(n course.Node) bool { return n.UID == uid })
		if len(x.Nodes) == before {
			return fault.New(fault.NotFound, "the environment %s has no node %q", environmentName, uid)
		}
		return nil
	})
}

func (e *Engine) changeNodes(name, uid string, by By, change func(*course.Environment, *parts) error) error {
	return e.patiently(func() error {
		old, err := e.Environment(name)
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
func (e *Engine) DeleteEnvironment(name string, by By) error {
	return e.patiently(func() error { return e.deleteEnvironment(name, by) })
}

// deleteEnvironment is DeleteEnvironment for who holds the baton.
func (e *Engine) deleteEnvironment(name string, by By) error {
	if _, err := e.Environment(name); err != nil {
		return err
	}
	var found []place
	e.mu.Lock()
	for _, d := range e.deployments {
		if d.Environment == name && d.Status.Active() {
			e.mu.Unlock()
			return underWay(d)
		}
	}
	for p := range e.successes {
		if p.environment == name {
			found = append(found, p)
		}
	}
	e.mu.Unlock()
	for some := range slices.Chunk(found, deletedAtOnce) {
		if err := e.forget(some); err != nil {
			return err
		}
	}
	tx := store.Tx{Delete: []store.Key{{Kind: KindEnvironment, ID: name}}}
	return e.commit(tx, func() { delete(e.environments, name) }, audit.New(audit.EnvironmentDelete, name, by))
}

// forget deletes successes.
func (e *Engine) forget(successes []place) error {
	tx := store.Tx{}
	for _, p := range successes {
		tx.Delete = append(tx.Delete, store.Key{Kind: KindSuccess, ID: course.Success{Environment: p.environment, Node: p.node, Task: p.task}.Key()})
	}
	return e.commit(tx, func() {
		for _, p := range successes {
			delete(e.successes, p)
		}
	})
}

func underWay(d *course.Deployment) error {
	return fault.New(fault.WrongState, "deployment %d of the environment %s is under way", d.ID, d.Environment).
		WithHint("wait for its end, or stop it: drover deploy stop %d", d.ID)
}

// PutGraph stores a graph of tasks, after it was checked as a whole.
func (e *Engine) PutGraph(name string, files []course.File, by By) (*Kept, error) {
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
	err = e.patiently(func() error {
		if old, err := e.Graph(name); err == nil {
			x.Generation = old.Generation + 1
		}
		tx := store.Tx{Put: []store.Put{put(KindGraph, name, x)}}
		return e.commit(tx, func() { e.graphs[name] = x }, audit.New(audit.GraphPut, name, by))
	})
	if err != nil {
		return nil, err
	}
	return &Kept{Name: name, Tasks: x.Tasks, Warnings: told(append(whole.Warnings, graph.Dangling(whole)...))}, nil
}

// DeleteGraph removes a graph that no environment uses.
func (e *Engine) DeleteGraph(name string, by By) error {
	return e.patiently(func() error { return e.deleteGraph(name, by) })
}

// deleteGraph is DeleteGraph for who holds the baton.
func (e *Engine) deleteGraph(name string, by By) error {
	if _, err := e.Graph(name); err != nil {
		return err
	}
	for _, x := range e.Environments() {
		if slices.ContainsFunc(x.Graphs, func(g string) bool { _, n := course.GraphType(g); return n == name }) {
			return fault.New(fault.WrongState, "the environment %s uses the task graph %s", x.Name, name)
		}
	}
	tx := store.Tx{Delete: []store.Key{{Kind: KindGraph, ID: name}}}
	return e.commit(tx, func() { delete(e.graphs, name) }, audit.New(audit.GraphDelete, name, by))
}

// compile reads graphs and merges them, later ones over earlier ones.
func (e *Engine) compile(graphs []*course.Graph) (*graph.Graph, error) {
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

func (p *parts) add(part *state.Part) course.Digest {
	text := []byte(plan.Canonical(part.Data()))
	d := p.digest(text)
	if !p.seen[d] {
		p.seen[d] = true
		p.puts = append(p.puts, store.Put{Key: store.Key{Kind: KindPart, ID: string(d)}, Value: text})
	}
	return d
}
