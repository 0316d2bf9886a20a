package items

import (
	"iter"
	"slices"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/reason"
)

// reasonRow is one entry of an opcode's reason trail.
type reasonRow struct {
	opcodeRow
	place int
}

func (r reasonRow) entry() reason.Entry { return r.op().Input.Reason[r.place] }

var reasonTable = query.Table[reasonRow]{
	What:     "reason",
	Fields:   strictly(reasonFields()),
	All:      reasonRows,
	Narrow:   reasonPaths,
	Compare:  compareReasons,
	Shorten:  func(r reasonRow) reasonRow { return reasonRow{r.shortened(), r.place} },
	Restore:  func(v *query.View, r reasonRow) reasonRow { return reasonRow{r.restored(v), r.place} },
	Identity: func(r reasonRow) string { return r.identity() + "." + itoa(int64(r.place)) },
	Affected: jobsOf,
	RowsOf:   func(v *query.View, d *query.Delta, key string) []reasonRow { return rowsNow(v, d, key, reasonsOf) },
	Object:   func(r reasonRow) string { return r.opcodeRow.object() },
}.Indexed()

func reasonRows(v *query.View) iter.Seq[reasonRow] {
	return func(yield func(reasonRow) bool) {
		for r := range allJobs(v, true) {
			for row := range reasonsOf(whole(v, r.j)) {
				if !yield(row) {
					return
				}
			}
		}
	}
}

func reasonsOf(j *job.Job) iter.Seq[reasonRow] {
	return func(yield func(reasonRow) bool) {
		if damaged(j) {
			yield(reasonRow{opcodeRow{id: j.ID, j: j}, 0})
			return
		}
		for r := range opcodesOf(j) {
			for n := range r.op().Input.Reason {
				if !yield(reasonRow{r, n}) {
					return
				}
			}
		}
	}
}

func reasonPaths(t *query.Table[reasonRow], v *query.View, tests []qlang.Node) []query.Path[reasonRow] {
	return pathsToOpcodes(t, v, tests, reasonsOf, func(r opcodeRow) reasonRow { return reasonRow{r, 0} })
}

// ofEntry makes a getter of a reason row, NoData for a job that cannot be read.
func ofEntry(get func(reasonRow) query.Cell) func(*query.View, reasonRow) query.Cell {
	return func(_ *query.View, r reasonRow) query.Cell {
		if damaged(r.j) {
			return query.Cell{Status: query.NoData}
		}
		return get(r)
	}
}

func reasonFields() []query.Field[reasonRow] {
	return slices.Concat(jobSideFields(func(r reasonRow) opcodeRow { return r.opcodeRow }), []query.Field[reasonRow]{
		{Def: def("source", "Source", query.KindText, "Who gave the reason"), From: query.InMemory,
			Get: ofEntry(func(r reasonRow) query.Cell { return text(r.entry().Source) })},
		{Def: def("reason", "Reason", query.KindText, "The reason that was given, possibly empty"), From: query.InMemory,
			Get: ofEntry(func(r reasonRow) query.Cell { return text(r.entry().Reason) })},
		{Def: def("timestamp", "Time", query.KindTimestamp, "When the reason was given, to the nanosecond; a filter may give seconds, nanoseconds or a date"), From: query.InMemory,
			Get: ofEntry(func(r reasonRow) query.Cell { return known(query.Nanos(r.entry().Time)) })},
		{Def: def("hop", "Hop", query.KindNumber, "Place of the entry in the trail, counted from zero"), From: query.InMemory,
			Get: ofEntry(func(r reasonRow) query.Cell { return known(int64(r.place)) })},
	})
}
