// Package items holds the tables of all that can be asked for: of each item its
// fields, where its rows come from, which indexes spare a scan, and what its rows
// depend on. Each item is a file of its name; the engine that answers by the
// tables is package query.
//
// Invariants:
//   - A getter is a function of the view and the row alone.
//   - An item that watches follow row by row names all objects whose rows a change
//     may concern (depend.go).
package items

import (
	"iter"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/query"
)

// All are the items that can be asked for, in the order in which they are listed.
var All = query.Catalog{
	instanceTable, nodeTable, groupTable, networkTable, imageTable, diskTable, exportTable,
	jobTable, lockTable, filterTable, clusterTable, osTable, extStorageTable,
	opcodeTable, reasonTable, eventTable,
	environmentTable, deploymentTable, deployTaskTable,
	serverTable, serverTagTable,
}

// metaFields are the fields that every inventory object has.
func metaFields[R any](meta func(R) *cluster.Meta) []query.Field[R] {
	return []query.Field[R]{
		{Def: def("ctime", "CTime", query.KindTimestamp, "When the object was made"),
			Get: func(_ *query.View, r R) query.Cell { return timestamp(meta(r).CTime) }},
		{Def: def("mtime", "MTime", query.KindTimestamp, "When the object was last changed"),
			Get: func(_ *query.View, r R) query.Cell { return timestamp(meta(r).MTime) }},
		{Def: def("serial_no", "SerialNo", query.KindNumber, "How often the object was changed, counted from one"),
			Get: func(_ *query.View, r R) query.Cell { return known(meta(r).Serial) }},
		{Def: def("uuid", "UUID", query.KindText, "Identity of the object, which never changes"),
			Get: func(_ *query.View, r R) query.Cell { return text(meta(r).UUID) }},
		{Def: def("tags", "Tags", query.KindOther, "Labels that were put on the object"),
			Get: func(_ *query.View, r R) query.Cell { return known(meta(r).Tags) }},
	}
}

// ndParams lists the node parameters that have a field of their own.
var ndParams = []struct {
	name, title string
	kind        query.Kind
}{
	{"cpu_speed", "ndp/cpu_speed", query.KindFloat},
	{"exclusive_storage", "ExclusiveStorage", query.KindBool},
	{"oob_program", "OutOfBandProgram", query.KindOther},
	{"ovs", "OpenvSwitch", query.KindBool},
	{"ovs_link", "OpenvSwitchLink", query.KindOther},
	{"ovs_name", "OpenvSwitchName", query.KindOther},
	{"spindle_count", "SpindleCount", query.KindNumber},
	{"ssh_port", "ndp/ssh_port", query.KindNumber},
}

// ndOrder and beOrder are the orders in which clients get node and backend
// parameters.
var (
	ndOrder = []string{"oob_program", "spindle_count", "exclusive_storage", "ovs", "ovs_name", "ovs_link", "ssh_port", "cpu_speed"}
	beOrder = []string{"minmem", "maxmem", "vcpus", "auto_balance", "always_failover", "spindle_use"}
)

// ndFields are the fields of the effective node parameters; params looks one
// of them up.
func ndFields[R any](param func(v *query.View, r R, name string) query.Cell) []query.Field[R] {
	out := make([]query.Field[R], len(ndParams))
	for i, p := range ndParams {
		out[i] = query.Field[R]{
			Def: def("ndp/"+p.name, p.title, p.kind, "Node parameter "+p.name+" that is in effect"),
			Get: func(v *query.View, r R) query.Cell { return param(v, r, p.name) },
		}
	}
	return out
}

// layered returns the first of the layers' values for a name.
func layered(name string, layers ...cluster.Params) (any, bool) {
	for _, l := range layers {
		if v, ok := l[name]; ok {
			return v, true
		}
	}
	return nil, false
}

// orEmpty shows parameters that were never set as an empty object.
func orEmpty(p cluster.Params) query.Cell {
	if p == nil {
		p = cluster.Params{}
	}
	return known(p)
}

// groupName returns the name of a group, NoData when it is not known.
func groupName(v *query.View, uuid string) query.Cell {
	if g := v.Inventory.Group(uuid); g != nil {
		return text(g.Name)
	}
	return query.Cell{Status: query.NoData}
}

// taggedRows answers a first test "TAG in tags" from the index of tags.
func taggedRows[R any](v *query.View, kind cluster.Kind, tag string, get func(string) R) iter.Seq[R] {
	return func(yield func(R) bool) {
		for uuid := range v.Inventory.Tagged(kind, tag) {
			if !yield(get(uuid)) {
				return
			}
		}
	}
}

// none yields nothing.
func none[R any](func(R) bool) {}

// oneOrNone yields a row that an index found, nothing for nil.
func oneOrNone[T any](row *T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		if row != nil {
			yield(row)
		}
	}
}
