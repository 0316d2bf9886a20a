package query

import "github.com/drover-project/drover/internal/cluster"

// lastChangeFields tell who changed an object last, and why: its settings or
// what it does. What changed nothing, and what only checked, is not told of.
func lastChangeFields[R any](last func(R) *cluster.LastChange) []field[R] {
	of := func(get func(*cluster.LastChange) Cell) func(*view, R) Cell {
		return func(_ *view, r R) Cell {
			if l := last(r); l != nil {
				return get(l)
			}
			return Cell{Status: Unavail}
		}
	}
	return strictly([]field[R]{
		{Def: Def{"last_change", "Last_change", KindTimestamp, "When a job last changed the settings of the object or what it does"},
			get: of(func(l *cluster.LastChange) Cell { return timestamp(l.At) })},
		{Def: Def{"last_change_job", "Last_change_job", KindNumber, "Number of the job that changed it last"},
			get: of(func(l *cluster.LastChange) Cell { return known(l.Job) })},
		{Def: Def{"last_change_reason", "Last_change_reason", KindText, "Why it was changed last: the reason trail as text, without what the system itself added"},
			get: of(func(l *cluster.LastChange) Cell { return text(l.Trail.Text()) })},
		{Def: Def{"last_change_trail", "Last_change_trail", KindOther, "Why it was changed last, hop by hop: source, reason and nanoseconds since the epoch"}, words: "last_change_reason",
			get: of(func(l *cluster.LastChange) Cell { return known(l.Trail) })},
	})
}
