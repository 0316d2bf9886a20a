// Package environment reads states of environments: what is common to all nodes, and each node's own part.
//
//	name: production
//	common: {cluster: {id: 1, status: operational}, debug: false}
//	nodes:
//	  "1": {uid: "1", roles: [primary-controller]}
//	  "2": {uid: "2", roles: [compute]}
//
// Besides, a file may have status, settings (what {SETTINGS.x} in texts of tasks means), graphs (names of stored task
// graphs), hosts (UID to the node of the cluster that carries tasks out) and secrets (paths of values that are not shown). Maps of a state are in the order of their keys, whatever order the file has.
package environment

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/secret"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/yaql"
	"github.com/drover-project/drover/yaql/yaqljson"
)

// maxNodes bounds the number of nodes of an environment.
const maxNodes = 20_000

// Environment is the state of an environment.
type Environment struct {
	Name     string
	Status   string
	Settings any
	Graphs   []string
	Common   *state.Part
	Parts    map[string]*state.Part // by UID of a node, the master among them if the file has it
	Nodes    []plan.Node            // without the master, by their roles
	// Hosts are the nodes of the cluster that carry tasks out, by UID.
	Hosts map[string]string
	// Secrets say which values are secret, as package secret has it.
	Secrets  []string
	Warnings []document.Warning
}

// maxSecrets bounds what an environment may say of its secrets.
const maxSecrets = 1000

// keys are those that a file may have.
var keys = []string{"name", "status", "settings", "graphs", "hosts", "secrets", "common", "nodes"}

// Read reads a file of YAML or JSON.
func Read(space *state.Space, file string, text []byte) (*Environment, error) {
	if v, ok := quickly(text); ok {
		if e, err := build(space, file, v); err == nil {
			return e, nil
		}
	}
	n, warnings, err := document.Parse(file, text)
	if err != nil {
		return nil, err
	}
	if err := check(n); err != nil {
		return nil, err
	}
	e, err := build(space, file, n.Value())
	if err != nil {
		return nil, err
	}
	e.Warnings = warnings
	return e, nil
}

// quickly reads JSON without keeping the places of its values.
func quickly(text []byte) (*yaql.Dict, bool) {
	if trimmed := bytes.TrimLeft(text, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return nil, false
	}
	v, err := yaqljson.DecodePlain(text)
	if err != nil {
		return nil, false
	}
	d, ok := v.(*yaql.Dict)
	return d, ok
}

// check finds the place of what is wrong with the form of a file.
func check(n *document.Node) error {
	if n.Kind != document.Map {
		return wrong(n, "an environment is a map with common and nodes")
	}
	for i, k := range n.Keys {
		if !slices.Contains(keys, k.Name) {
			return fault.New(fault.Invalid, "%s: the key %q of an environment means nothing; there are %v", k.Position, k.Name, keys)
		}
		if item := n.Items[i]; item.Kind != document.Map && (k.Name == "nodes" || k.Name == "common" && !isNull(item)) {
			return wrong(item, k.Name+" must be a map")
		}
	}
	nodes := n.Get("nodes")
	if nodes == nil {
		return wrong(n, "the environment has no nodes")
	}
	for i, k := range nodes.Keys {
		if err := checkNode(k.Name, nodes.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func isNull(n *document.Node) bool { return n.Kind == document.Scalar && n.Scalar == nil }

func checkNode(uid string, node *document.Node) error {
	if node.Kind != document.Map {
		return wrong(node, fmt.Sprintf("node %s must be a map of its data", uid))
	}
	roles := node.Get("roles")
	if roles == nil {
		return nil
	}
	if roles.Kind != document.List {
		return wrong(roles, fmt.Sprintf("roles of node %s must be a list", uid))
	}
	for _, r := range roles.Items {
		if _, ok := r.Scalar.(string); !ok {
			return wrong(r, fmt.Sprintf("a role of node %s is no text", uid))
		}
	}
	return nil
}

func wrong(n *document.Node, message string) error {
	return fault.New(fault.Invalid, "%s: %s", n.Position, message)
}

// build makes an environment of a value, and says less than check about what is wrong.
func build(space *state.Space, file string, v any) (*Environment, error) {
	d, ok := v.(*yaql.Dict)
	if !ok {
		return nil, fault.New(fault.Invalid, "%s: an environment is a map with common and nodes", file)
	}
	e := &Environment{Parts: map[string]*state.Part{}}
	if _, there := d.Get("nodes"); !there {
		return nil, fault.New(fault.Invalid, "%s: the environment has no nodes", file).At("nodes")
	}
	var err error
	d.Range(func(k, v any) bool {
		switch k {
		case "name":
			e.Name, err = word(file, "name", v)
		case "status":
			e.Status, err = word(file, "status", v)
		case "settings":
			e.Settings = document.Sorted(v)
		case "graphs":
			e.Graphs, err = words(file, "graphs", v)
		case "hosts":
			err = e.hosts(file, v)
		case "secrets":
			err = e.secrets(file, v)
		case "common":
			if _, is := v.(*yaql.Dict); !is && v != nil {
				err = fault.New(fault.Invalid, "%s: common must be a map", file).At("common")
				return false
			}
			e.Common = space.NewPart(document.Sorted(v))
		case "nodes":
			err = e.nodes(space, file, v)
		default:
			err = fault.New(fault.Invalid, "%s: the key %q of an environment means nothing", file, k)
		}
		return err == nil
	})
	if e.Common == nil {
		e.Common = space.NewPart(nil)
	}
	if err == nil {
		err = e.hostsOfNodes(file)
	}
	if err == nil {
		err = noMarks(file, d)
	}
	return e, err
}

// word is the text of a key; a number is taken for what it looks like.
func word(file, key string, v any) (string, error) {
	switch v.(type) {
	case nil, string, int64, float64, bool:
		return text(v), nil
	}
	return "", fault.New(fault.Invalid, "%s: %s must be a text", file, key).At(key)
}

// words are the texts of a key that has a list of them; null is none.
func words(file, key string, v any) (out []string, err error) {
	if v != nil && list(v) == nil {
		return nil, fault.New(fault.Invalid, "%s: %s must be a list of texts", file, key).At(key)
	}
	for _, x := range list(v) {
		w, err := word(file, key, x)
		if err != nil || w == "" {
			return nil, fault.New(fault.Invalid, "%s: %s must be a list of texts, and %v is none", file, key, x).At(key)
		}
		out = append(out, w)
	}
	return out, nil
}

// hostsOfNodes refuses hosts of nodes that the environment lacks.
func (e *Environment) hostsOfNodes(file string) error {
	for _, uid := range slices.Sorted(maps.Keys(e.Hosts)) {
		if e.Parts[uid] == nil {
			return fault.New(fault.Invalid, "%s: hosts names a host for node %s, which the environment lacks", file, uid).At("hosts")
		}
	}
	return nil
}

// noMarks refuses a state in which marks stand for secrets: they would take the place of what they hide.
func noMarks(file string, v any) error {
	at, found := secret.Marked(v)
	if !found {
		return nil
	}
	return fault.New(fault.Invalid, "%s: the value at %s has %s in it, which is shown in place of a secret", file, at, secret.Mark).At(at).
		WithHint("write the secret itself; drover deploy env show --show-secrets tells it")
}

func (e *Environment) secrets(file string, v any) error {
	for _, x := range list(v) {
		path, ok := x.(string)
		if !ok {
			return fault.New(fault.Invalid, "%s: %v is no path of secrets", file, x).At("secrets")
		}
		e.Secrets = append(e.Secrets, path)
	}
	if list(v) == nil {
		return fault.New(fault.Invalid, "%s: secrets must be a list of paths", file).At("secrets")
	}
	if len(e.Secrets) > maxSecrets {
		return fault.New(fault.TooLarge, "%s: the environment has %d paths of secrets; %d are the limit", file, len(e.Secrets), maxSecrets).At("secrets")
	}
	if _, err := secret.NewRules(e.Secrets); err != nil {
		return fault.New(fault.Invalid, "%s: %w", file, err).At("secrets")
	}
	return nil
}

func (e *Environment) hosts(file string, v any) error {
	hosts, ok := v.(*yaql.Dict)
	if !ok {
		return fault.New(fault.Invalid, "%s: hosts must be a map from the uid of a node to the name of one of the cluster", file)
	}
	e.Hosts = map[string]string{}
	var err error
	hosts.Range(func(k, v any) bool {
		e.Hosts[text(k)], err = word(file, "hosts", v)
		return err == nil
	})
	return err
}

// Node is the state of one node.
type Node struct {
	plan.Node
	Part *state.Part
}

// ReadNode reads the data of one node.
func ReadNode(space *state.Space, uid string, n *document.Node) (*Node, error) {
	if uid == "" {
		return nil, fault.New(fault.Invalid, "a node needs a uid").At("uid")
	}
	if err := checkNode(uid, n); err != nil {
		return nil, err
	}
	e := &Environment{Parts: map[string]*state.Part{}}
	whole := yaql.NewDict(1)
	_ = whole.Set(uid, n.Value()) // texts can be keys
	if err := e.nodes(space, n.File, whole); err != nil {
		return nil, err
	}
	if err := noMarks(n.File, n.Value()); err != nil {
		return nil, err
	}
	out := &Node{Node: plan.Node{UID: uid, Tags: []string{plan.Master}}, Part: e.Parts[uid]}
	if len(e.Nodes) > 0 {
		out.Node = e.Nodes[0]
	}
	return out, nil
}

func (e *Environment) nodes(space *state.Space, file string, v any) error {
	nodes, ok := v.(*yaql.Dict)
	if !ok {
		return fault.New(fault.Invalid, "%s: nodes must be a map of nodes by their uid", file)
	}
	if nodes.Len() > maxNodes {
		return fault.New(fault.TooLarge, "%s: the environment has %d nodes; %d are the limit", file, nodes.Len(), maxNodes)
	}
	var err error
	nodes.Range(func(k, v any) bool {
		uid := text(k)
		data, ok := v.(*yaql.Dict)
		if !ok {
			err = fault.New(fault.Invalid, "%s: node %s must be a map", file, uid)
			return false
		}
		e.Parts[uid] = space.NewPart(document.Sorted(data))
		if uid == plan.Master {
			return true
		}
		n := plan.Node{UID: uid}
		roles, _ := data.Get("roles")
		for _, r := range list(roles) {
			role, ok := r.(string)
			if !ok {
				err = fault.New(fault.Invalid, "%s: a role of node %s is no text", file, uid)
				return false
			}
			n.Tags = append(n.Tags, role)
		}
		if roles != nil && list(roles) == nil {
			err = fault.New(fault.Invalid, "%s: roles of node %s must be a list", file, uid)
			return false
		}
		e.Nodes = append(e.Nodes, n)
		return true
	})
	return err
}

func list(v any) []any {
	items, _ := v.([]any)
	return items
}

func text(v any) string {
	if s, ok := v.(string); ok || v == nil {
		return s
	}
	return fmt.Sprint(v)
}

// Veil hides the secrets of environments, by the rules of all of them, and of the parameters of a plan: a graph may hold secrets of
// its own. What is nil has none.
func Veil(p *plan.Plan, all ...*Environment) (*secret.Veil, error) {
	all = slices.DeleteFunc(all, func(e *Environment) bool { return e == nil })
	var own, texts []string
	for _, e := range all {
		own = append(own, e.Secrets...)
	}
	rules, err := secret.NewRules(own)
	if err != nil {
		return nil, err
	}
	take := func(text string) { texts = append(texts, text) }
	rules.Collect(nil, p.Parameters(), take)
	for _, e := range all {
		rules.Collect([]string{"settings"}, e.Settings, take)
		rules.Collect(nil, e.Common.Data(), take)
		for _, p := range e.Parts {
			rules.Collect(nil, p.Data(), take)
		}
	}
	return secret.NewVeil(rules, texts), nil
}
