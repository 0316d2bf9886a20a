package luxi

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/luxi"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
)

// options are what our own fourth argument of Query may hold: the order, the
// number of rows, and the place to go on from.
type options struct {
	Sort  []string `json:"sort"` // field names, with "-" before one for descending order
	Limit int      `json:"limit"`
	After string   `json:"after"`
}

func (o options) decode() query.Options {
	out := query.Options{Limit: o.Limit, After: o.After}
	for _, name := range o.Sort {
		field, descending := strings.CutPrefix(name, "-")
		out.Sort = append(out.Sort, query.SortKey{Field: field, Descending: descending})
	}
	return out
}

func runQuery(ctx context.Context, d *Deps, a *arguments) (any, error) {
	what, fields := a.what(0), a.strs(1)
	filter := a.filter(2)
	var opts options
	if a.has(3) {
		a.decode(3, "JSObject", &opts)
	}
	if err := a.bad(); err != nil {
		return nil, err
	}
	if err := servedHere("Query", what); err != nil {
		return nil, err
	}
	return answered(query.Run(d.Querier.Source(ctx), what, fields, filter, opts.decode()))
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
	if _, err := query.Fields(name, nil); err != nil {
		a.fail(err)
	}
	return name
}

// servedHere refuses the items that the reference answers by jobs only.
func servedHere(method, what string) error {
	if what == "os" || what == "cluster" {
		return luxi.Generic("%s 'ItemTypeOpCode %s' not supported", method, map[string]string{"os": "QROs", "cluster": "QRCluster"}[what])
	}
	return nil
}

func queryFields(_ context.Context, _ *Deps, a *arguments) (any, error) {
	what, names := a.what(0), a.optionalStrs(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	if err := servedHere("QueryFields", what); err != nil {
		return nil, err
	}
	defs, err := query.Fields(what, names)
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
	return nil, errors.Join(&luxi.Error{Class: e.Class, Args: args}, e)
}

// oldRows answers in the old form: rows of bare values. An unknown field makes
// the whole request fail.
func oldRows(ctx context.Context, d *Deps, what string, fields []string, filter qlang.Node) (any, error) {
	return oldRowsOf(d.Querier.Source(ctx), what, fields, filter)
}

func oldRowsOf(src *query.Source, what string, fields []string, filter qlang.Node) (any, error) {
	defs, err := query.Fields(what, fields)
	if err != nil {
		return nil, err
	}
	var unknown []string
	for _, def := range defs {
		if def.Kind == query.KindUnknown && len(fields) > 0 {
			unknown = append(unknown, def.Name)
		}
	}
	if len(unknown) > 0 {
		return nil, luxi.Prereq("wrong_input", "Unknown output fields selected: %s", strings.Join(unknown, ", "))
	}
	result, err := answered(query.Run(src, what, fields, filter, query.Options{}))
	if err != nil {
		return nil, err
	}
	return raw(result.AppendValues(nil)), nil
}

func queryJobs(ctx context.Context, d *Deps, a *arguments) (any, error) {
	ids, all := a.jobIDs(0)
	fields := a.strs(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	if all {
		return oldRows(ctx, d, "job", fields, &qlang.All{})
	}
	if len(ids) == 0 {
		return oldRows(ctx, d, "job", fields, &qlang.All{})
	}
	tests := make([]qlang.Node, len(ids))
	for i, id := range ids {
		tests[i] = &qlang.Compare{Op: qlang.Eq, Field: "id", Value: qlang.IntValue(int64(id))}
	}
	return oldRows(ctx, d, "job", fields, &qlang.Or{Args: tests})
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
			return nil, luxi.Prereq("wrong_input", "Sync queries are not allowed")
		}
		src := d.Querier.Source(ctx)
		return oldRowsOf(src, what, fields, anyExisting(src.Inventory, what, names))
	}
}

// anyExisting is the filter for the items with the given names; those that do
// not exist are left out, as the old requests have it.
func anyExisting(inv *cluster.Snapshot, what string, names []string) qlang.Node {
	if len(names) == 0 {
		return &qlang.All{}
	}
	tests := []qlang.Node{}
	for _, name := range names {
		if find(inv, cluster.Kind(what), name) != nil {
			tests = append(tests, &qlang.Compare{Op: qlang.Eq, Field: "name", Value: qlang.TextValue(name)})
		}
	}
	return &qlang.Or{Args: tests}
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

func queryExports(ctx context.Context, d *Deps, a *arguments) (any, error) {
	nodes, lock := a.strs(0), a.boolean(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	if lock {
		return nil, luxi.Prereq("wrong_input", "Sync queries are not allowed")
	}
	return oldRows(ctx, d, "export", []string{"node", "export"}, qlang.AnyOf("node", nodes...))
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
		return nil, luxi.Prereq("unknown_entity", "%s name %s not found", tagWords[kind], name)
	}
	return o.Labels(), nil
}

// tagWords name the kinds in errors.
var tagWords = map[string]string{"nodegroup": "Group", "node": "Node", "instance": "Instance", "network": "Network"}

func queryClusterInfo(ctx context.Context, d *Deps, _ *arguments) (any, error) {
	return query.ClusterInfo(d.Querier.Source(ctx)), nil
}

func queryConfigValues(ctx context.Context, d *Deps, a *arguments) (any, error) {
	names := a.strs(0)
	if err := a.bad(); err != nil {
		return nil, err
	}
	inv := d.Querier.Source(ctx).Inventory
	c := inv.Cluster()
	flags := d.Queue.Flags()
	out := make([]any, len(names))
	for i, name := range names {
		switch name {
		case "cluster_name":
			out[i] = c.Name
		case "master_node":
			if n := inv.Node(c.MasterNode); n != nil {
				out[i] = n.Name
			}
		case "drain_flag":
			out[i] = flags.Drained
		case "watcher_pause":
			out[i] = flags.WatcherPause
		case "modify_ssh_setup":
			out[i] = c.ModifySSHSetup
		case "ssh_key_type":
			out[i] = c.SSHKeyType
		case "ssh_key_bits":
			out[i] = c.SSHKeyBits
		}
	}
	return out, nil
}

// jobRow returns a function that gives the values of some fields of a job, as
// JSON. An unknown field makes all of them null.
func jobRow(fields []string) func(*job.Job) raw {
	defs, err := query.Fields("job", fields)
	for _, def := range defs {
		if err == nil && len(fields) > 0 && def.Kind == query.KindUnknown {
			err = fault.New(fault.Invalid, "unknown field")
		}
	}
	if err != nil || len(fields) == 0 {
		nulls := raw("[" + strings.TrimSuffix(strings.Repeat("null,", len(fields)), ",") + "]")
		return func(*job.Job) raw { return nulls }
	}
	return func(j *job.Job) raw {
		src := &query.Source{Inventory: cluster.Empty(), Jobs: func(bool) iter.Seq[*job.Job] {
			return func(yield func(*job.Job) bool) { yield(j) }
		}}
		result, err := query.Run(src, "job", fields, nil, query.Options{})
		if err != nil || result.Len() != 1 {
			return raw("null")
		}
		values := result.AppendValues(nil) // a list of one row
		return raw(values[1 : len(values)-1])
	}
}
