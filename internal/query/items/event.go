package items

import (
	"encoding/json"
	"iter"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/query"
)

// The item "event" tells what was done to the queue that is no job, by whom and
// why. The reference has nothing like it.

type event = *audit.Event

var eventTable = query.Table[event]{
	What:      "event",
	NameField: "",
	Fields: strictly([]query.Field[event]{
		{Def: def("id", "ID", query.KindNumber, "Number of the event"), Get: func(_ *query.View, e event) query.Cell { return known(e.ID) }},
		{Def: def("timestamp", "Time", query.KindTimestamp, "When it was done"), Get: func(_ *query.View, e event) query.Cell { return timestamp(e.Time) }},
		{Def: def("what", "What", query.KindText, "What was done, for example filter.add or job.cancel"),
			Get: func(_ *query.View, e event) query.Cell { return text(string(e.What)) }},
		{Def: def("object", "Object", query.KindText, "UUID of the rule or number of the job that it was done to"),
			Get: func(_ *query.View, e event) query.Cell { return textOrUnavail(e.Object) }},
		{Def: def("name", "Name", query.KindText, "Name of the rule"), Get: func(_ *query.View, e event) query.Cell { return textOrUnavail(e.Name) }},
		{Def: def("who", "Who", query.KindText, "Account that did it"), Get: func(_ *query.View, e event) query.Cell { return textOrUnavail(e.Who) }},
		{Def: def("surface", "Surface", query.KindText, "Interface by which it was done: luxi, rapi, or the controller itself"),
			Get: func(_ *query.View, e event) query.Cell { return textOrUnavail(e.Surface) }},
		{Def: def("from", "From", query.KindText, "Address or process that it came from"), Get: func(_ *query.View, e event) query.Cell { return textOrUnavail(e.From) }},
		{Def: def("reason", "Reason", query.KindText, "Why, in the words of the last hop that gave any"),
			Get: func(_ *query.View, e event) query.Cell { return textOrUnavail(e.Why()) }},
		{Def: def("reason_trail", "Reason_trail", query.KindOther, "Why, hop by hop: source, reason and nanoseconds since the epoch"), Words: "reason",
			Get: func(_ *query.View, e event) query.Cell { return known(e.Trail) }},
		{Def: def("before", "Before", query.KindOther, "The rule, or what was changed of the job or the queue, before"),
			Get: func(_ *query.View, e event) query.Cell { return jsonOrUnavail(e.Before) }},
		{Def: def("after", "After", query.KindOther, "The same after it"), Get: func(_ *query.View, e event) query.Cell { return jsonOrUnavail(e.After) }},
	}),
	All: func(v *query.View) iter.Seq[event] {
		if v.Events == nil {
			return none[event]
		}
		return func(yield func(event) bool) {
			for e, err := range v.Events() {
				if err != nil {
					v.Failed = err
					return
				}
				if !yield(e) {
					return
				}
			}
		}
	},
	Identity: func(e event) string { return e.Key() },
	Affected: eventsOf,
	RowsOf:   eventNow,
}.Indexed()

func jsonOrUnavail(text []byte) query.Cell {
	if text == nil {
		return query.Cell{Status: query.Unavail}
	}
	return known(json.RawMessage(text))
}

// eventsOf names the events that are new.
func eventsOf(d *query.Delta) (a query.Affected) {
	for _, c := range d.Changes {
		for _, e := range c.Events {
			a.Add(e.Key())
		}
	}
	return a
}

func eventNow(_ *query.View, d *query.Delta, key string) []event {
	for _, c := range d.Changes {
		for _, e := range c.Events {
			if e.Key() == key {
				return []event{e}
			}
		}
	}
	return nil
}
