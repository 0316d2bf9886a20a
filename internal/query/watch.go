package query

import (
	"encoding/json"
	"slices"
)

// Watch follows a query over time: it tells how each answer differs from the
// one before.
type Watch struct {
	rows map[string]seen
	turn int
}

type seen struct {
	data string
	turn int
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

// Step takes the next answer in and returns what is different: rows in the
// order of the answer, then those that left. The first answer is all entries.
func (w *Watch) Step(r *Result) []Event {
	if w.rows == nil {
		w.rows = map[string]seen{}
	}
	w.turn++
	var out []Event
	i := 0
	for row := range r.Rows() {
		id, data := r.Identity(i), string(appendList(nil, row, appendCell))
		i++
		before, known := w.rows[id]
		w.rows[id] = seen{data, w.turn}
		switch {
		case !known:
			out = append(out, Event{"enter", id, json.RawMessage(data)})
		case before.data != data:
			out = append(out, Event{"change", id, json.RawMessage(data)})
		}
	}
	return append(out, w.gone()...)
}

// gone forgets the rows that were not in the last answer, in order.
func (w *Watch) gone() []Event {
	var out []Event
	for id, s := range w.rows {
		if s.turn != w.turn {
			delete(w.rows, id)
			out = append(out, Event{Type: "leave", ID: id})
		}
	}
	slices.SortFunc(out, func(a, b Event) int { return compareIdentities(a.ID, b.ID) })
	return out
}
