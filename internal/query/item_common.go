package query

import (
	"iter"

	"github.com/drover-project/drover/internal/cluster"
)

// items are all that can be asked for, in the order in which they are listed.
var items = []item{
	instanceTable, nodeTable, groupTable, networkTable, exportTable,
	jobTable, lockTable, filterTable, clusterTable, osTable, extStorageTable,
	opcodeTable, reasonTable, eventTable,
	environmentTable, deploymentTable, deployTaskTable,
	serverTable, serverTagTable,
}

// metaFields are the fields that every inventory object has.
func metaFields[R any](meta func(R) *cluster.Meta) []field[R] {
	return []field[R]{
		{Def: Def{"ctime", "CTime", KindTimestamp, "When the object was made"},
			get: func(_ *view, r R) Cell { return timestamp(meta(r).CTime) }},
		{Def: Def{"mtime", "MTime", KindTimestamp, "When the object was last changed"},
			get: func(_ *view, r R) Cell { return timestamp(meta(r).MTime) }},
		{Def: Def{"serial_no", "SerialNo", KindNumber, "How often the object was changed, counted from one"},
			get: func(_ *view, r R) Cell { return known(meta(r).Serial) }},
		{Def: Def{"uuid", "UUID", KindText, "Identity of the object, which never changes"},
			get: func(_ *view, r R) Cell { return text(meta(r).UUID) }},
		{Def: Def{"tags", "Tags", KindOther, "Labels that were put on the object"},
			get: func(_ *view, r R) Cell { return known(meta(r).Tags) }},
	}
}

// ndParams lists the node parameters that have a field of their own.
var ndParams = []struct {
	name, title string
	kind        Kind
}{
	{"cpu_speed", "ndp/cpu_speed", KindFloat},
	{"exclusive_storage", "ExclusiveStorage", KindBool},
	{"oob_program", "OutOfBandProgram", KindOther},
	{"ovs", "OpenvSwitch", KindBool},
	{"ovs_link", "OpenvSwitchLink", KindOther},
	{"ovs_name", "OpenvSwitchName", KindOther},
	{"spindle_count", "SpindleCount", KindNumber},
	{"ssh_port", "ndp/ssh_port", KindNumber},
}

// ndOrder and beOrder are the orders in which clients get node and backend
// parameters.
var (
	ndOrder = []string{"oob_program", "spindle_count", "exclusive_storage", "ovs", "ovs_name", "ovs_link", "ssh_port", "cpu_speed"}
	beOrder = []string{"minmem", "maxmem", "vcpus", "auto_balance", "always_failover", "spindle_use"}
)

// ndFields are the fields of the effective node parameters; params looks one
// of them up.
func ndFields[R any](param func(v *view, r R, name string) Cell) []field[R] {
	out := make([]field[R], len(ndParams))
	for i, p := range ndParams {
		out[i] = field[R]{
			Def: Def{"ndp/" + p.name, p.title, p.kind, "Node parameter " + p.name + " that is in effect"},
			get: func(v *view, r R) Cell { return param(v, r, p.name) },
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
func orEmpty(p cluster.Params) Cell {
	if p == nil {
		p = cluster.Params{}
	}
	return known(p)
}

// groupName returns the name of a group, NoData when it is not known.
func groupName(v *view, uuid string) Cell {
	if g := v.inv.Group(uuid); g != nil {
		return text(g.Name)
	}
	return Cell{Status: NoData}
}

// taggedRows answers a first test "TAG in tags" from the index of tags.
func taggedRows[R any](v *view, kind cluster.Kind, tag string, get func(string) R) iter.Seq[R] {
	return func(yield func(R) bool) {
		for uuid := range v.inv.Tagged(kind, tag) {
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
