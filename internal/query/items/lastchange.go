package items

import (
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/query"
)

// lastChangeFields tell who changed an object last, and why: its settings or
// what it does. What changed nothing, and what only checked, is not told of.
func lastChangeFields[R any](last func(R) *cluster.LastChange) []query.Field[R] {
	of := func(get func(*cluster.LastChange) query.Cell) func(*query.View, R) query.Cell {
		return func(_ *query.View, r R) query.Cell {
			if l := last(r); l != nil {
				return get(l)
			}
			return query.Cell{Status: query.Unavail}
		}
	}
	return strictly([]query.Field[R]{
		{Def: def("last_change", "Last_change", query.KindTimestamp, "When a job last changed the settings of the object or what it does"),
			Get: of(func(l *cluster.LastChange) query.Cell { return timestamp(l.At) })},
		{Def: def("last_change_job", "Last_change_job", query.KindNumber, "Number of the job that changed it last"),
			Get: of(func(l *cluster.LastChange) query.Cell { return known(l.Job) })},
		{Def: def("last_change_reason", "Last_change_reason", query.KindText, "Why it was changed last: the reason trail as text, without what the system itself added"),
			Get: of(func(l *cluster.LastChange) query.Cell { return text(l.Trail.Text()) })},
		{Def: def("last_change_trail", "Last_change_trail", query.KindOther, "Why it was changed last, hop by hop: source, reason and nanoseconds since the epoch"), Words: "last_change_reason",
			Get: of(func(l *cluster.LastChange) query.Cell { return known(l.Trail) })},
	})
}
