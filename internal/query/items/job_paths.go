package items

import (
	"cmp"
	"iter"
	"math"
	"math/big"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
)

// jobClocks are the times of jobs by their fields.
var jobClocks = []struct {
	field string
	clock job.Clock
}{{"received_ts", job.ByReceived}, {"start_ts", job.ByStarted}, {"end_ts", job.ByEnded}}

// jobPaths are the ways to jobs by an index. The archive has one by the time of
// the end alone; beyond that nothing but a number or a status that no archived
// job has spares a query reading all of it.
func jobPaths(t *query.Table[jobRow], v *query.View, tests []qlang.Node) []query.Path[jobRow] {
	if v.JobTable == nil {
		return nil
	}
	archived := v.Asked["archived"]
	ways := idPaths(v, tests, "id", archived)
	for _, test := range tests {
		if only(test, "status") {
			holds := t.Compile(test, false)
			ways = append(ways, statusPath(v, archived, func(j *job.Job) (query.Verdict, error) { return holds(v, jobRow{id: j.ID, j: j}) })...)
		}
	}
	for _, c := range jobClocks {
		if from, until, bounded := bounds(tests, c.field); bounded && (!archived || c.clock == job.ByEnded && v.Archived != nil) {
			ways = append(ways, timePath(v, c.field, c.clock, from, until, archived))
		}
	}
	return lift(ways, func(j *job.Job) iter.Seq[jobRow] {
		return func(yield func(jobRow) bool) { yield(jobRow{id: j.ID, j: j}) }
	})
}

// lift turns ways to jobs into ways to what belongs to them.
func lift[R any](ways []query.Path[*job.Job], rows func(*job.Job) iter.Seq[R]) []query.Path[R] {
	out := make([]query.Path[R], len(ways))
	for i, w := range ways {
		out[i] = query.Path[R]{Index: w.Index, Count: w.Count, Sorted: w.Sorted, Rows: func(yield func(R) bool) {
			for j := range w.Rows {
				for r := range rows(j) {
					if !yield(r) {
						return
					}
				}
			}
		}}
	}
	return out
}

// idPaths are the ways to the job with a number.
func idPaths(v *query.View, tests []qlang.Node, field string, archived bool) []query.Path[*job.Job] {
	var out []query.Path[*job.Job]
	for _, test := range tests {
		c, ok := test.(*qlang.Compare)
		if !ok || c.Op != qlang.Eq || c.Field != field || !c.Value.IsInt() {
			continue
		}
		var found *job.Job
		if c.Value.Int.IsInt64() {
			found = knownJob(v, job.ID(c.Value.Int.Int64()), archived)
		}
		out = append(out, query.Path[*job.Job]{Index: field, Count: 1, Sorted: true, Rows: oneOrNone(found)})
	}
	return out
}

// knownJob returns the job with a number as a scan would find it.
func knownJob(v *query.View, id job.ID, archived bool) *job.Job {
	if j := v.JobTable.Get(id); j != nil || !archived {
		return j
	}
	return archivedJob(v, id)
}

// statusPath is the way to the jobs with the statuses for which a test of the
// status alone holds; none if it fails for one of them, or holds for one that
// archived jobs have.
func statusPath(v *query.View, archived bool, holds func(*job.Job) (query.Verdict, error)) []query.Path[*job.Job] {
	var parts []query.Path[*job.Job]
	for _, s := range job.Statuses {
		verdict, err := holds(&job.Job{Ops: []job.Op{{Status: s}}})
		switch {
		case err != nil, verdict != query.No && archived && s.Final():
			return nil
		case verdict != query.No:
			parts = append(parts, query.Path[*job.Job]{Count: v.JobTable.CountIn(s), Rows: v.JobTable.In(s), Sorted: true})
		}
	}
	return []query.Path[*job.Job]{query.Join("status", parts...)}
}

// manyArchived stands for a number of archived jobs, which nobody counts.
const manyArchived = 1 << 40

// timePath is the way to the jobs with from <= time < until, and to those whose
// time has not come: tests hold for what is not there.
func timePath(v *query.View, field string, c job.Clock, from, until job.Time, archived bool) query.Path[*job.Job] {
	span := func(from, until job.Time) query.Path[*job.Job] {
		return query.Path[*job.Job]{Count: v.JobTable.CountBetween(c, from, until), Rows: v.JobTable.Between(c, from, until)}
	}
	live := query.Join(field, span(0, 1), span(from, until))
	if !archived || from >= until {
		return live
	}
	return query.Path[*job.Job]{Index: field, Count: live.Count + manyArchived, Rows: func(yield func(*job.Job) bool) {
		for _, part := range []iter.Seq[*job.Job]{reading(v, v.Archived(from, until)), live.Rows} {
			for j := range part {
				if !yield(j) {
					return
				}
			}
		}
	}}
}

// bounds returns the times for which the comparisons of a field with numbers
// hold; bounded is false if there is none.
func bounds(tests []qlang.Node, field string) (from, until job.Time, bounded bool) {
	from, until = 1, job.Never // 0 is "not yet"
	for _, test := range tests {
		c, ok := test.(*qlang.Compare)
		if !ok || c.Field != field || !c.Value.IsInt() || c.Op == qlang.Ne {
			continue
		}
		bounded = true
		second := wholeSecond(c.Value.Int)
		if c.Op == qlang.Ge || c.Op == qlang.Eq {
			from = max(from, second)
		}
		if c.Op == qlang.Gt {
			from = max(from, second+1e6)
		}
		if c.Op == qlang.Lt {
			until = min(until, second)
		}
		if c.Op == qlang.Le || c.Op == qlang.Eq {
			until = min(until, second+1e6)
		}
	}
	return from, until, bounded
}

// wholeSecond returns when a second begins; one beyond all times is the last.
func wholeSecond(n *big.Int) job.Time {
	const last = math.MaxInt64/1_000_000 - 1
	switch {
	case n.Sign() < 0:
		return -1e6
	case !n.IsInt64() || n.Int64() > last:
		return last * 1_000_000
	}
	return job.Time(n.Int64()) * 1e6
}

// pathsToOpcodes are the ways to what belongs to the opcodes of jobs, archived
// or not: by the number of the job, or a status that no archived job has.
func pathsToOpcodes[R any](t *query.Table[R], v *query.View, tests []qlang.Node, rows func(*job.Job) iter.Seq[R], probe func(opcodeRow) R) []query.Path[R] {
	if v.JobTable == nil {
		return nil
	}
	ways := idPaths(v, tests, "job", true)
	for _, test := range tests {
		if only(test, "job_status") {
			holds := t.Compile(test, false)
			ways = append(ways, statusPath(v, true, func(j *job.Job) (query.Verdict, error) { return holds(v, probe(opcodeRow{id: j.ID, j: j})) })...)
		}
	}
	for i := range ways {
		ways[i].Rows = wholes(v, ways[i].Rows)
	}
	return lift(ways, rows)
}

func compareJobs(a, b jobRow) int { return cmp.Compare(a.id, b.id) }

func compareOpcodes(a, b opcodeRow) int {
	return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.index, b.index))
}

func compareReasons(a, b reasonRow) int {
	return cmp.Or(compareOpcodes(a.opcodeRow, b.opcodeRow), cmp.Compare(a.place, b.place))
}
