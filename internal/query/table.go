package query

import (
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
)

// view is what the getters of one query see.
type view struct {
	*Source
	inv     *cluster.Snapshot
	cluster *cluster.Cluster
	live    *liveIndex
	// asked says which fields the query names, for items whose rows depend on
	// it (jobs look into the archive when asked for "archived").
	asked map[string]bool
	// nameless is the way to the instances without a name, once it was needed.
	nameless *path[instance]
	// waits is what jobs wait for, once it was needed.
	waits map[job.ID]wait
	// decided is what the rules say of the jobs, once it was needed.
	decided *verdicts
	// loaded is the job that was read last because it was brief.
	loaded *job.Job
	// failed is why rows could not be read to their end.
	failed error
}

// interrupted returns the error that is to end the query, if there is one. Who
// gave up does not hear that reading failed because of it.
func (v *view) interrupted() error {
	if err := v.Source.interrupted(); err != nil {
		return err
	}
	return v.failed
}

// reading yields jobs that may fail to be read: the first error ends them, and is
// kept for interrupted.
func (v *view) reading(jobs iter.Seq2[*job.Job, error]) iter.Seq[*job.Job] {
	return func(yield func(*job.Job) bool) {
		for j, err := range jobs {
			if j, err = despite(j, err); err != nil {
				v.failed = err
				return
			}
			if !yield(j) {
				return
			}
		}
	}
}

// whole returns all of a job that is brief. A row mostly asks for several parts of
// it.
func (v *view) whole(j *job.Job) *job.Job {
	if j.Brief() == nil {
		return j
	}
	return v.read(j.ID)
}

// read returns a job as it is stored, or what stands for one that cannot be read.
func (v *view) read(id job.ID) *job.Job {
	if v.loaded == nil || v.loaded.ID != id {
		read, err := oneJob(v, id)
		if err != nil {
			v.failed = err
		}
		if read == nil {
			read = unreadable(id)
		}
		v.loaded = read
	}
	return v.loaded
}

// wholes yields all of each job.
func (v *view) wholes(jobs iter.Seq[*job.Job]) iter.Seq[*job.Job] {
	return func(yield func(*job.Job) bool) {
		for j := range jobs {
			if !yield(v.whole(j)) || v.failed != nil {
				return
			}
		}
	}
}

// despite puts a job in the place of one that cannot be read; see damaged.
func despite(j *job.Job, err error) (*job.Job, error) {
	if d, ok := errors.AsType[*job.DamageError](err); ok {
		return unreadable(d.ID), nil
	}
	return j, err
}

// unreadable stands for a job that cannot be read.
func unreadable(id job.ID) *job.Job { return &job.Job{ID: id, Archived: true} }

// damaged reports whether a job stands for one that cannot be read: any other was
// received.
func damaged(j *job.Job) bool {
	return j.Archived && len(j.Ops) == 0 && j.Received == 0 && j.Brief() == nil
}

// mode says how a filter compares the values of a field.
type mode uint8

const (
	plain mode = iota
	// hostname: an equality test is also met by the name's first labels.
	hostname
	// seconds: a [seconds, microseconds] pair counts as its seconds.
	seconds
	// duration: a number of seconds, which a filter may write as 1h30m.
	duration
)

// field is one entry of an item's table. R is the type of the item's rows.
type field[R any] struct {
	Def
	from Origin
	mode mode
	// strict: a value that is not there meets no test. The reference's fields are
	// not strict.
	strict bool
	// mutual: the value depends on the other rows, so a watch of it runs its query
	// again whenever any of them changes.
	mutual bool
	// led: only the controller that leads knows the value.
	led bool
	// words is the field that has the value as text, where filters search that
	// instead; empty for none.
	words string
	// need is what a Live field wants from nodes.
	need Need
	get  func(*view, R) Cell
}

// table is an item: its fields and where its rows come from.
type table[R any] struct {
	what string
	// nameField is the field that names select rows by; empty for none.
	nameField string
	fields    []field[R]
	// aliases are further names of fields that are not listed.
	aliases map[string]string
	// absent are names that people look for and that no field has, with what to
	// write instead.
	absent map[string]string
	// all yields all rows in the item's order.
	all func(v *view) iter.Seq[R]
	// named returns the rows with the names, in the order of the names; ok is
	// false when all rows are to be looked at after all. nil without a
	// nameField.
	named func(v *view, names []qlang.Value) (rows []R, ok bool, err error)
	// narrow returns ways to rows by an index; see route. nil for none.
	narrow func(t *table[R], v *view, tests []qlang.Node) []path[R]
	// size is the number of all rows, which tells whether an index is worth
	// it; nil where they are always too many.
	size func(v *view) int
	// compare is the order of the rows; never nil with narrow. Without it watches
	// show rows by identity.
	compare func(a, b R) int
	// touch reads a word from each cache line that filters mostly read of a
	// row, and touchParts from what the row points to; nil for items that are
	// few or small. See fetch.
	touch      func(R) int
	touchParts func(R) int
	// shorten makes a row small that is kept until its turn in the answer comes, and
	// restore makes it what it was; nil for rows that are small.
	shorten func(R) R
	restore func(*view, R) R
	// identity tells rows apart, for page tokens.
	identity func(R) string
	// nodes returns the node that a row's live values come from, empty for
	// none. everyNode asks all nodes that can run instances instead.
	nodes     func(v *view, row R) string
	everyNode bool
	// expand turns a row into those that exist once nodes answered; always is
	// what nodes are asked for whatever the fields, because rows depend on it.
	expand func(v *view, row R) []R
	always Need
	// dynamic makes a field of a name that is not in the table; nil when the
	// name means nothing.
	dynamic func(name string) *field[R]

	// affected names the objects whose rows may be different after changes,
	// rowsOf returns the rows of one of them as it is now, and object names the
	// one that a row belongs to (nil: each is its own). Without them a watch runs
	// its query again; see depend.go.
	affected func(*delta) affected
	rowsOf   func(v *view, d *delta, key string) []R
	object   func(R) string

	index map[string]*field[R]
}

// restored returns a row that was kept as it was.
func (t *table[R]) restored(v *view, row R) R {
	if t.restore == nil {
		return row
	}
	return t.restore(v, row)
}

// objectOf names the object that a row belongs to.
func (t *table[R]) objectOf(r R) string {
	if t.object == nil {
		return t.identity(r)
	}
	return t.object(r)
}

// item is a table without its row type.
type item interface {
	name() string
	defs() []Def
	def(name string) Def
	prepare(src *Source, r Request) (*Plan, error)
	follower(r Request, now time.Time) (f follower, live bool, err error)
	stored(r Request, now time.Time) (bool, error)
}

// indexed returns the table ready for use: fields in nice order and found by
// name.
func (t table[R]) indexed() *table[R] {
	slices.SortStableFunc(t.fields, func(a, b field[R]) int { return cluster.CompareNames(a.Name, b.Name) })
	t.index = make(map[string]*field[R], len(t.fields)+len(t.aliases))
	for i := range t.fields {
		t.index[t.fields[i].Name] = &t.fields[i]
	}
	for alias, target := range t.aliases {
		f := *t.index[target]
		f.Name = alias
		t.index[alias] = &f
	}
	return &t
}

func (t *table[R]) name() string { return t.what }

func (t *table[R]) defs() []Def {
	out := make([]Def, len(t.fields))
	for i := range t.fields {
		out[i] = t.fields[i].Def
	}
	return out
}

// field returns the field of a name, nil if there is none.
func (t *table[R]) field(name string) *field[R] {
	f := t.index[name]
	if f == nil && t.dynamic != nil {
		f = t.dynamic(name)
	}
	return f
}

func (t *table[R]) def(name string) Def {
	if f := t.field(name); f != nil {
		return f.Def
	}
	return Def{Name: name, Title: name, Kind: KindUnknown, Doc: "Unknown field '" + name + "'"}
}

// noField refuses a name that no field has, and says what may have been meant.
func (t *table[R]) noField(name string) *Error {
	hint := t.absent[name]
	if hint == "" {
		names := make([]string, len(t.fields))
		for i := range t.fields {
			names[i] = t.fields[i].Name
		}
		hint = didYouMean(name, names)
	}
	return parameterError("Can't find field named '%s'", name).withHint(hint)
}

// strictly makes fields strict: those of items, and further fields of items,
// that the reference does not have.
func strictly[R any](fields []field[R]) []field[R] {
	for i := range fields {
		fields[i].strict = true
	}
	return fields
}

// column is a requested field.
type column[R any] struct {
	def Def
	get func(*view, R) Cell
}

func (t *table[R]) columns(names []string) []column[R] {
	out := make([]column[R], len(names))
	for i, n := range names {
		out[i] = column[R]{def: t.def(n), get: unknownCell[R]}
		if f := t.field(n); f != nil {
			out[i].get = f.get
		}
	}
	return out
}

func unknownCell[R any](*view, R) Cell { return Cell{Status: Unknown} }

// mutual reports whether the values of a field depend on other rows.
func (t *table[R]) mutual(name string) bool {
	f := t.field(name)
	return f != nil && f.mutual
}

// needs returns what the fields want from nodes together.
func (t *table[R]) needs(names iter.Seq[string]) Need {
	var need Need
	for n := range names {
		if f := t.field(n); f != nil && f.from == Live {
			need |= f.need
		}
	}
	return need
}

// Shorthands of the field tables.

func known(v any) Cell { return Cell{Value: v} }

func text(s string) Cell { return Cell{Value: s} }

// textOrUnavail is Unavail for an empty text.
func textOrUnavail(s string) Cell {
	if s == "" {
		return Cell{Status: Unavail}
	}
	return Cell{Value: s}
}

// textOrNoData is NoData for an empty text: the item lacks what it should have.
func textOrNoData(s string) Cell {
	if s == "" {
		return Cell{Status: NoData}
	}
	return Cell{Value: s}
}

// seconds since the epoch as clients see times.
func timestamp(ns int64) Cell { return Cell{Value: float64(ns) / 1e9} }

// truth is the cell of a bool. The constants are boxed once, not for each value.
func truth(b bool) Cell {
	if b {
		return Cell{Value: true}
	}
	return Cell{Value: false}
}
