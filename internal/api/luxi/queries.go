package luxi

import (
	"context"
	"errors"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/query/items"
	"github.com/drover-project/drover/internal/store"
)

// options are what our own fourth argument of Query may hold.
type options struct {
	// The order (field names, with "-" before one for descending order), the
	// number of rows, and the place to go on from.
	Sort  []string `json:"sort"`
	Limit int      `json:"limit"`
	After string   `json:"after"`
	// Fresh asks nodes instead of taking what they told last.
	Fresh bool `json:"fresh"`
	// GroupBy and Figures ask for groups instead of rows; figures are "count",
	// "sum(oper_ram)" and so on.
	GroupBy []string `json:"group_by"`
	Figures []string `json:"figures"`
	// Explain asks how the query would be carried out instead.
	Explain bool `json:"explain"`
	// Watch asks for what is new since a revision (0 for all at once), and to
	// wait until there is something; the answer is a live.Update.
	Watch *store.Revision `json:"watch"`
}

func (o options) decode() query.Options {
	return query.Options{Sort: query.ParseSort(o.Sort), Limit: o.Limit, After: o.After, Fresh: o.Fresh}
}

// run answers the query in the way that the options ask for.
func (o options) run(ctx context.Context, d *Deps, r query.Request) (any, error) {
	if o.Watch != nil {
		if len(o.GroupBy)+len(o.Figures) > 0 || o.Explain || o.After != "" {
			return nil, fault.New(fault.Invalid, "a query that is followed has neither groups, figures, pages nor an explanation").At("watch")
		}
		ctx, cancel := context.WithTimeout(ctx, luxiwire.MaxWait)
		defer cancel()
		u, err := d.Querier.Next(ctx, r, *o.Watch)
		_, err = answered(nil, err)
		return u, err
	}
	switch {
	case o.Explain:
		ex, err := d.Querier.Explain(ctx, r)
		if err != nil {
			_, err = answered(nil, err)
			return nil, err
		}
		return ex, nil
	case len(o.GroupBy)+len(o.Figures) > 0:
		calcs, err := query.ParseCalcs(o.Figures)
		if err != nil {
			return nil, err
		}
		return answered(d.Querier.Group(ctx, r, o.GroupBy, calcs))
	}
	return answered(d.Querier.Query(ctx, r))
}

func runQuery(ctx context.Context, d *Deps, a *arguments) (any, error) {
	what, fields := a.what(0), a.strs(1)
	filter := a.filter(2)
	var opts options
	if a.has(3) {
		a.object(3, &opts)
	}
	if err := a.bad(); err != nil {
		return nil, err
	}
	if err := servedHere("Query", what); err != nil {
		return nil, err
	}
	return opts.run(ctx, d, query.Request{What: what, Fields: fields, Filter: filter, Options: opts.decode()})
}

// what reads the name of an item.
func (a *arguments) what(i int) string {
	name := a.str(i)
	if a.err != nil {
		return name
	}
	if name == "extstorage" { // known to the query engine, but not over LUXI
		a.fail(fault.New(fault.Invalid, "Can't parse value '%s' as neitherQueryTypeLuxi nor QueryTypeOp", name))
	}
	if _, err := items.All.Fields(name, nil); err != nil {
		a.fail(err)
	}
	return name
}

// servedHere refuses the items that the reference answers by jobs only.
func servedHere(method, what string) error {
	if what == "os" || what == "cluster" {
		return luxiwire.Generic("%s 'ItemTypeOpCode %s' not supported", method, map[string]string{"os": "QROs", "cluster": "QRCluster"}[what])
	}
	return nil
}

// queryOSes lists operating systems. The protocol has a job for that, which a
// rule that holds jobs would hold.
func queryOSes(ctx context.Context, d *Deps, a *arguments) (any, error) {
	names, fields := a.optionalStrs(0), a.strs(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	result, err := items.OSes(d.Querier.Source(ctx), names, fields)
	if err != nil {
		return nil, err
	}
	return raw(result.AppendValues(nil)), nil
}

func queryFields(_ context.Context, _ *Deps, a *arguments) (any, error) {
	what, names := a.what(0), a.optionalStrs(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	if err := servedHere("QueryFields", what); err != nil {
		return nil, err
	}
	defs, err := items.All.Fields(what, names)
	if err != nil {
		return nil, err
	}
	return map[string][]query.Def{"fields": defs}, nil
}

// answered turns the query engine's errors into pairs.
func answered(result *query.Result, err error) (*query.Result, error) {
	e, ok := errors.AsType[*query.Error](err)
	if !ok {
		return result, err
	}
	args := make([]any, len(e.Args))
	for i, arg := range e.Args {
		args[i] = arg
	}
	// Both are kept: the pair for the answer, the code and hint beside it.
	return nil, errors.Join(&luxiwire.Error{Class: e.Class, Args: args}, e)
}

// old answers an old list request: rows of bare values. An unknown field makes
// the whole request fail.
func old(ctx context.Context, d *Deps, what string, names, fields []string) (any, error) {
	result, err := answered(d.Querier.Old(ctx, what, names, fields))
	if err != nil {
		return nil, err
	}
	return result.Values(), nil
}

func queryJobs(ctx context.Context, d *Deps, a *arguments) (any, error) {
	ids, fields := a.jobIDs(0), a.strs(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = id.String()
	}
	return old(ctx, d, "job", names, fields)
}

// queryItems answers the old list requests of one kind of item: names (none
// for all), fields, and whether to lock, which nobody may.
func queryItems(what string) func(context.Context, *Deps, *arguments) (any, error) {
	return func(ctx context.Context, d *Deps, a *arguments) (any, error) {
		names, fields, lock := a.strs(0), a.strs(1), a.boolean(2)
		if err := a.bad(); err != nil {
			return nil, err
		}
		if lock {
			return nil, luxiwire.Prereq("wrong_input", "Sync queries are not allowed")
		}
		return old(ctx, d, what, names, fields)
	}
}

func queryExports(ctx context.Context, d *Deps, a *arguments) (any, error) {
	nodes, lock := a.strs(0), a.boolean(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	if lock {
		return nil, luxiwire.Prereq("wrong_input", "Sync queries are not allowed")
	}
	return old(ctx, d, "export", nodes, []string{"node", "export"})
}

// find looks an item up by name or UUID; nil if there is none.
func find(inv *cluster.Snapshot, kind cluster.Kind, key string) cluster.Object {
	switch kind {
	case cluster.KindInstance:
		return found(inv.FindInstance(key))
	case cluster.KindNode:
		return found(inv.FindNode(key))
	case cluster.KindGroup:
		return found(inv.FindGroup(key))
	case cluster.KindNetwork:
		return found(inv.FindNetwork(key))
	default:
		return nil
	}
}

func found[T cluster.Object](o T, err error) cluster.Object {
	if err != nil {
		return nil
	}
	return o
}

// tagKinds are the kinds of things with tags, by their names in requests.
var tagKinds = map[string]cluster.Kind{
	"cluster": cluster.KindCluster, "nodegroup": cluster.KindGroup, "node": cluster.KindNode,
	"instance": cluster.KindInstance, "network": cluster.KindNetwork,
}

func queryTags(ctx context.Context, d *Deps, a *arguments) (any, error) {
	kind, name := a.str(0), a.str(1)
	if _, ok := tagKinds[kind]; !ok && a.err == nil {
		a.fail(fault.New(fault.Invalid, "Invalid string value for type TagKind: %q", kind))
	}
	if err := a.bad(); err != nil {
		return nil, err
	}
	inv := d.Querier.Source(ctx).Inventory
	if kind == "cluster" {
		return inv.Cluster().Tags, nil
	}
	o := find(inv, tagKinds[kind], name)
	if o == nil {
		return nil, luxiwire.Prereq("unknown_entity", "%s name %s not found", tagWords[kind], name)
	}
	return o.Labels(), nil
}

// tagWords name the kinds in errors.
var tagWords = map[string]string{"nodegroup": "NodeGroup", "node": "Node", "instance": "Instance", "network": "Network"}

func queryClusterInfo(ctx context.Context, d *Deps, _ *arguments) (any, error) {
	return items.ClusterInfo(d.Querier.Source(ctx)), nil
}

func queryConfigValues(ctx context.Context, d *Deps, a *arguments) (any, error) {
	names := a.strs(0)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return items.ConfigValues(d.Querier.Source(ctx), names), nil
}

// echo tells Ganeti's watcher that it is heard.
func echo(_ context.Context, _ *Deps, a *arguments) (any, error) {
	text := a.str(0)
	return text, a.bad()
}
