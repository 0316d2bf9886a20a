package query

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/state"
)

// Watch follows a query over time: it holds the answer as of one state and
// tells how that of the next one differs. Where rows are known to belong to objects
// (depend.go) a step costs what changed, else what the query costs. It is not
// safe for concurrent use.
type Watch struct {
	fields []Def
	follow follower
	inv    *cluster.Snapshot // of the state that the answer is of
	broken bool              // after an error: the answer is to be made anew
	live   bool
}

// follower is how a watch keeps its answer: a tracker or a rerun.
type follower interface {
	restart(src *Source) ([]Event, error)
	step(src *Source, d *Delta) ([]Event, error)
	all() []Event
}

// Event is one difference between two answers.
type Event struct {
	// Type is "enter", "change" or "leave".
	Type string `json:"type"`
	// ID is what tells the row apart over time: a UUID, a job id.
	ID string `json:"id"`
	// Row holds the row's cells, each [status, value]; none for "leave".
	Row json.RawMessage `json:"row,omitempty"`
}

// Watch begins to follow a query from a state on.
func (c Catalog) Watch(src *Source, r Request) (*Watch, error) {
	it, r, err := c.checked(r)
	if err != nil {
		return nil, err
	}
	w := &Watch{fields: make([]Def, len(r.Fields))}
	for i, name := range r.Fields {
		w.fields[i] = it.def(name)
	}
	if w.follow, w.live, err = it.follower(r, src.Now); err != nil {
		return nil, err
	}
	_, err = w.Again(src)
	return w, err
}

// Fields describes the columns.
func (w *Watch) Fields() []Def { return w.fields }

// AsOf returns a request in which distances from now (-1h) are what they are at one moment, and whether there are any:
// then the answer changes as time goes by, too.
func (c Catalog) AsOf(r Request, now time.Time) (at Request, moves bool, err error) {
	it, r, err := c.checked(r)
	if err != nil || r.Filter == nil {
		return r, false, err
	}
	at = r
	at.Filter = it.resolve(r.Filter, now)
	later := it.resolve(r.Filter, now.Add(time.Hour))
	if bytes.Equal(qlang.JSON(at.Filter), qlang.JSON(later)) {
		return r, false, nil
	}
	return at, true, nil
}

// Live reports whether some values are known to nodes only: they may change
// without a change of state, and only Again sees it.
func (w *Watch) Live() bool { return w.live }

// Incremental reports whether a step looks only at what changed.
func (w *Watch) Incremental() bool {
	_, again := w.follow.(*rerun)
	return !again
}

// Rows returns the rows of the answer, in order, as entries.
func (w *Watch) Rows() []Event { return w.follow.all() }

// Step goes on to a newer state, to which the changes lead from the one before,
// and tells what is different in the answer: rows that entered or changed, then
// those that left.
func (w *Watch) Step(src *Source, changes []*state.Change) ([]Event, error) {
	if w.broken {
		return w.Again(src)
	}
	events, err := w.follow.step(src, &Delta{Changes: changes, Was: w.inv, Now: src.Inventory, Jobs: src.JobTable})
	w.inv, w.broken = src.Inventory, err != nil
	return events, err
}

// Again looks at all rows in a state, whatever led to it, and tells what is
// different.
func (w *Watch) Again(src *Source) ([]Event, error) {
	events, err := w.follow.restart(src)
	w.inv, w.broken = src.Inventory, err != nil
	return events, err
}

// follower returns what keeps the answer of a query, and whether nodes are asked.
// Distances in its filter (-1h) are counted from now on.
func (t *Table[R]) follower(r Request, now time.Time) (f follower, live bool, err error) {
	r.Filter = t.resolve(r.Filter, now)
	p, err := t.parse(r)
	if err != nil {
		return nil, false, err
	}
	if t.trackable(r, p) {
		return &tracker[R]{t: t, r: r, order: p.order, test: t.Compile(r.Filter, true), columns: t.columns(r.Fields)}, false, nil
	}
	again := &rerun{item: t, r: r, live: p.need != 0, affected: t.Affected}
	if slices.ContainsFunc(p.used, t.mutual) {
		again.affected = nil // whatever changes may concern it
	}
	return again, again.live, nil
}

// rerun keeps an answer by running the query again whenever something changed
// that may concern it.
type rerun struct {
	item     Item
	r        Request
	live     bool
	affected func(*Delta) Affected
	answer   []Event           // the rows, in order
	rows     map[string]string // their cells, by identity
}

func (f *rerun) all() []Event { return slices.Clone(f.answer) }

func (f *rerun) step(src *Source, d *Delta) ([]Event, error) {
	if f.affected != nil {
		if a := f.affected(d); a.none() && !(f.live && jobsChanged(d)) {
			return nil, nil
		}
	}
	return f.restart(src)
}

// jobsChanged reports whether a job did: jobs change what nodes know.
func jobsChanged(d *Delta) bool {
	return slices.ContainsFunc(d.Changes, func(c *state.Change) bool { return len(c.Jobs)+len(c.Holds)+len(c.Archived)+len(c.Pruned) > 0 })
}

func (f *rerun) restart(src *Source) ([]Event, error) {
	result, err := carryOut(src, f.item, f.r)
	if err != nil {
		return nil, err
	}
	before := f.rows
	f.answer, f.rows = make([]Event, 0, result.Len()), make(map[string]string, result.Len())
	var out []Event
	i := 0
	for row := range result.Rows() {
		id, data := result.Identity(i), string(appendList(nil, row, appendCell))
		i++
		if _, twice := f.rows[id]; twice { // a name that was asked for twice
			continue
		}
		f.rows[id] = data
		e := Event{"enter", id, json.RawMessage(data)}
		f.answer = append(f.answer, e)
		was, known := before[id]
		if known && was != data {
			e.Type = "change"
		}
		if !known || was != data {
			out = append(out, e)
		}
	}
	first := len(out)
	for id := range before {
		if _, stays := f.rows[id]; !stays {
			out = append(out, Event{Type: "leave", ID: id})
		}
	}
	slices.SortFunc(out[first:], func(a, b Event) int { return CompareIdentities(a.ID, b.ID) })
	return out, nil
}
