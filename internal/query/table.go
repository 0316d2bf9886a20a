package query

import (
	"iter"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
)

// View is what the getters of one query see.
type View struct {
	*Source
	Cluster *cluster.Cluster
	Answers *Answers
	// Asked says which fields the query names, for items whose rows depend on
	// it (jobs look into the archive when asked for "archived").
	Asked map[string]bool
	// Memo is what an item works out once for all rows.
	Memo any
	// Failed is why rows could not be read to their end.
	Failed error
}

// Err returns the error that is to end the query, if there is one. Who
// gave up does not hear that reading failed because of it.
func (v *View) Err() error {
	if err := v.Source.interrupted(); err != nil {
		return err
	}
	return v.Failed
}

// Mode says how a filter compares the values of a field.
type Mode uint8

// The modes.
const (
	ModePlain Mode = iota
	// ModeHostname says that an equality test is also met by the name's first labels.
	ModeHostname
	// ModeSeconds says that a [seconds, microseconds] pair counts as its seconds.
	ModeSeconds
	// ModeDuration says that a value is a number of seconds, which a filter may write as 1h30m.
	ModeDuration
)

// Field is one entry of an item's table. R is the type of the item's rows.
type Field[R any] struct {
	Def
	From Origin
	Mode Mode
	// Strict: a value that is not there meets no test. The reference's fields are
	// not strict.
	Strict bool
	// Mutual: the value depends on the other rows, so a watch of it runs its query
	// again whenever any of them changes.
	Mutual bool
	// Led: only the controller that leads knows the value.
	Led bool
	// Words is the field that has the value as text, where filters search that
	// instead; empty for none.
	Words string
	// Need is what a Live field wants from nodes.
	Need Need
	Get  func(*View, R) Cell
}

// Table is an item: its fields and where its rows come from.
type Table[R any] struct {
	What string
	// NameField is the field that names select rows by; empty for none.
	NameField string
	Fields    []Field[R]
	// Aliases are further names of fields that are not listed.
	Aliases map[string]string
	// Absent are names that people look for and that no field has, with what to
	// write instead.
	Absent map[string]string
	// All yields all rows in the item's order.
	All func(v *View) iter.Seq[R]
	// Named returns the rows with the names, in the order of the names; ok is
	// false when all rows are to be looked at after all. nil without a
	// nameField.
	Named func(v *View, names []qlang.Value) (rows []R, ok bool, err error)
	// Narrow returns ways to rows by an index; see route. nil for none.
	Narrow func(t *Table[R], v *View, tests []qlang.Node) []Path[R]
	// Size is the number of all rows, which tells whether an index is worth
	// it; nil where they are always too many.
	Size func(v *View) int
	// Stored: rows are objects of the inventory, jobs or rules as the store has
	// them, so any controller knows them.
	Stored bool
	// Compare is the order of the rows; never nil with narrow. Without it watches
	// show rows by identity.
	Compare func(a, b R) int
	// Touch reads a word from each cache line that filters mostly read of a
	// row, and touchParts from what the row points to; nil for items that are
	// few or small. See fetch.
	Touch      func(R) int
	TouchParts func(R) int
	// Shorten makes a row small that is kept until its turn in the answer comes, and
	// restore makes it what it was; nil for rows that are small.
	Shorten func(R) R
	Restore func(*View, R) R
	// Identity tells rows apart, for page tokens.
	Identity func(R) string
	// Nodes returns the node that a row's live values come from, empty for
	// none. everyNode asks all nodes that can run instances instead.
	Nodes     func(v *View, row R) string
	EveryNode bool
	// Expand turns a row into those that exist once nodes answered; always is
	// what nodes are asked for whatever the fields, because rows depend on it.
	Expand func(v *View, row R) []R
	Always Need
	// Dynamic makes a field of a name that is not in the table; nil when the
	// name means nothing.
	Dynamic func(name string) *Field[R]

	// Affected names the objects whose rows may be different after changes,
	// rowsOf returns the rows of one of them as it is now, and object names the
	// one that a row belongs to (nil: each is its own). Without them a watch runs
	// its query again; see depend.go.
	Affected func(*Delta) Affected
	RowsOf   func(v *View, d *Delta, key string) []R
	Object   func(R) string

	index map[string]*Field[R]
}

// restored returns a row that was kept as it was.
func (t *Table[R]) restored(v *View, row R) R {
	if t.Restore == nil {
		return row
	}
	return t.Restore(v, row)
}

// objectOf names the object that a row belongs to.
func (t *Table[R]) objectOf(r R) string {
	if t.Object == nil {
		return t.Identity(r)
	}
	return t.Object(r)
}

// Item is a table without its row type.
type Item interface {
	name() string
	defs() []Def
	def(name string) Def
	times(name string) bool
	resolve(n qlang.Node, now time.Time) qlang.Node
	prepare(src *Source, r Request) (*Plan, error)
	follower(r Request, now time.Time) (f follower, live bool, err error)
	stored(r Request, now time.Time) (bool, error)
	derived(r Request, now time.Time) (bool, error)
}

// Indexed returns the table ready for use: fields in nice order and found by
// name.
func (t Table[R]) Indexed() *Table[R] {
	slices.SortStableFunc(t.Fields, func(a, b Field[R]) int { return cluster.CompareNames(a.Name, b.Name) })
	t.index = make(map[string]*Field[R], len(t.Fields)+len(t.Aliases))
	for i := range t.Fields {
		t.index[t.Fields[i].Name] = &t.Fields[i]
	}
	for alias, target := range t.Aliases {
		f := *t.index[target]
		f.Name = alias
		t.index[alias] = &f
	}
	return &t
}

func (t *Table[R]) name() string { return t.What }

func (t *Table[R]) defs() []Def {
	out := make([]Def, len(t.Fields))
	for i := range t.Fields {
		out[i] = t.Fields[i].Def
	}
	return out
}

// field returns the field of a name, nil if there is none.
func (t *Table[R]) field(name string) *Field[R] {
	f := t.index[name]
	if f == nil && t.Dynamic != nil {
		f = t.Dynamic(name)
	}
	return f
}

func (t *Table[R]) def(name string) Def {
	if f := t.field(name); f != nil {
		return f.Def
	}
	return Def{Name: name, Title: name, Kind: KindUnknown, Doc: "Unknown field '" + name + "'"}
}

// times tells whether the values of a field are moments.
func (t *Table[R]) times(name string) bool {
	f := t.field(name)
	return f != nil && f.times()
}

func (f *Field[R]) times() bool { return f.Kind == KindTimestamp || f.Mode == ModeSeconds }

// noField refuses a name that no field has, and says what may have been meant.
func (t *Table[R]) noField(name string) *Error {
	hint := t.Absent[name]
	if hint == "" {
		names := make([]string, len(t.Fields))
		for i := range t.Fields {
			names[i] = t.Fields[i].Name
		}
		hint = didYouMean(name, names)
	}
	return parameterError("Can't find field named '%s'", name).withHint(hint)
}

// column is a requested field.
type column[R any] struct {
	def Def
	get func(*View, R) Cell
}

func (t *Table[R]) columns(names []string) []column[R] {
	out := make([]column[R], len(names))
	for i, n := range names {
		out[i] = column[R]{def: t.def(n), get: unknownCell[R]}
		if f := t.field(n); f != nil {
			out[i].get = f.Get
		}
	}
	return out
}

func unknownCell[R any](*View, R) Cell { return Cell{Status: Unknown} }

// mutual reports whether the values of a field depend on other rows.
func (t *Table[R]) mutual(name string) bool {
	f := t.field(name)
	return f != nil && f.Mutual
}

// needs returns what the fields want from nodes together.
func (t *Table[R]) needs(names iter.Seq[string]) Need {
	var need Need
	for n := range names {
		if f := t.field(n); f != nil && f.From == Live {
			need |= f.Need
		}
	}
	return need
}
