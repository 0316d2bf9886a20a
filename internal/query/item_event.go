package query

import (
	"encoding/json"
	"iter"

	"github.com/drover-project/drover/internal/audit"
)

// The item "event" tells what was done to the queue that is no job, by whom and
// why. The reference has nothing like it.

type event = *audit.Event

var eventTable = table[event]{
	what:      "event",
	nameField: "",
	fields: strictly([]field[event]{
		{Def: Def{"id", "ID", KindNumber, "Number of the event"}, get: func(_ *view, e event) Cell { return known(e.ID) }},
		{Def: Def{"timestamp", "Time", KindTimestamp, "When it was done"}, get: func(_ *view, e event) Cell { return timestamp(e.Time) }},
		{Def: Def{"what", "What", KindText, "What was done, for example filter.add or job.cancel"},
			get: func(_ *view, e event) Cell { return text(string(e.What)) }},
		{Def: Def{"object", "Object", KindText, "UUID of the rule or number of the job that it was done to"},
			get: func(_ *view, e event) Cell { return textOrUnavail(e.Object) }},
		{Def: Def{"name", "Name", KindText, "Name of the rule"}, get: func(_ *view, e event) Cell { return textOrUnavail(e.Name) }},
		{Def: Def{"who", "Who", KindText, "Account that did it"}, get: func(_ *view, e event) Cell { return textOrUnavail(e.Who) }},
		{Def: Def{"surface", "Surface", KindText, "Interface by which it was done: luxi, rapi, or the controller itself"},
			get: func(_ *view, e event) Cell { return textOrUnavail(e.Surface) }},
		{Def: Def{"from", "From", KindText, "Address or process that it came from"}, get: func(_ *view, e event) Cell { return textOrUnavail(e.From) }},
		{Def: Def{"reason", "Reason", KindText, "Why, in the words of the last hop that gave any"},
			get: func(_ *view, e event) Cell { return textOrUnavail(e.Why()) }},
		{Def: Def{"reason_trail", "Reason_trail", KindOther, "Why, hop by hop: source, reason and nanoseconds since the epoch"}, words: "reason",
			get: func(_ *view, e event) Cell { return known(e.Trail) }},
		{Def: Def{"before", "Before", KindOther, "The rule, or what was changed of the job or the queue, before"},
			get: func(_ *view, e event) Cell { return jsonOrUnavail(e.Before) }},
		{Def: Def{"after", "After", KindOther, "The same after it"}, get: func(_ *view, e event) Cell { return jsonOrUnavail(e.After) }},
	}),
	all: func(v *view) iter.Seq[event] {
		if v.Events == nil {
			return none[event]
		}
		return func(yield func(event) bool) {
			for e, err := range v.Events() {
				if err != nil {
					v.failed = err
					return
				}
				if !yield(e) {
					return
				}
			}
		}
	},
	identity: func(e event) string { return e.Key() },
	affected: eventsOf,
	rowsOf:   eventNow,
}.indexed()

func jsonOrUnavail(text []byte) Cell {
	if text == nil {
		return Cell{Status: Unavail}
	}
	return known(json.RawMessage(text))
}

// eventsOf names the events that are new.
func eventsOf(d *delta) (a affected) {
	for _, c := range d.changes {
		for _, e := range c.Events {
			a.add(e.Key())
		}
	}
	return a
}

func eventNow(_ *view, d *delta, key string) []event {
	for _, c := range d.changes {
		for _, e := range c.Events {
			if e.Key() == key {
				return []event{e}
			}
		}
	}
	return nil
}
