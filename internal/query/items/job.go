package items

import (
	"encoding/json"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
)

// jobRow is a job, or the id of one that does not exist: an id that was asked
// for is a row in any case.
type jobRow struct {
	id job.ID
	j  *job.Job
	// left is where the job was left; see shortenJob.
	left refuge
}

// refuge is where the job of a row is while the row waits for its turn.
type refuge uint8

const (
	inRow refuge = iota
	inTable
	inArchive
)

// shortenJob leaves a job where it can be had again: a long list would hold ten times
// its rows, of archived jobs a hundred times. The table makes brief jobs anew each
// time; archived ones are read once more.
func shortenJob(r jobRow) jobRow {
	switch {
	case r.j == nil || damaged(r.j):
	case r.j.Brief() != nil:
		return jobRow{id: r.id, left: inTable}
	case r.j.Archived:
		return jobRow{id: r.id, left: inArchive}
	}
	return r
}

func restoreJob(v *query.View, r jobRow) jobRow {
	switch r.left {
	case inTable:
		return jobRow{id: r.id, j: v.JobTable.Get(r.id)}
	case inArchive:
		return jobRow{id: r.id, j: readJob(v, r.id)}
	case inRow:
	}
	return r
}

var jobTable = query.Table[jobRow]{
	What:      "job",
	Stored:    true,
	NameField: "id",
	Fields:    slices.Concat(jobFields(), jobOpFields(), strictly(jobNewFields()), strictly(jobWaitFields()), strictly(jobTimelineFields()), strictly(jobStepFields()), strictly(jobPlacementFields())),
	All:       func(v *query.View) iter.Seq[jobRow] { return allJobs(v, v.Asked["archived"]) },
	Named:     jobsNamed,
	Narrow:    jobPaths,
	Size:      jobCount,
	Compare:   compareJobs,
	Identity:  func(r jobRow) string { return r.id.String() },
	Shorten:   shortenJob,
	Restore:   restoreJob,
	Affected:  jobsOf,
	RowsOf: func(v *query.View, d *query.Delta, key string) []jobRow {
		if j := jobNow(v, d, key, v.Asked["archived"]); j != nil {
			return []jobRow{{id: j.ID, j: j}}
		}
		return nil
	},
}.Indexed()

func jobsNamed(v *query.View, names []qlang.Value) ([]jobRow, bool, error) {
	out := make([]jobRow, 0, len(names))
	seen := make(map[job.ID]bool, len(names))
	for _, n := range names {
		id, err := jobID(n)
		if err != nil {
			return nil, false, err
		}
		if !seen[id] {
			seen[id] = true
			j, err := shownJob(v, id)
			if err != nil {
				v.Failed = err
				return nil, false, v.Err()
			}
			out = append(out, jobRow{id: id, j: j})
		}
	}
	return out, true, nil
}

func allJobs(v *query.View, archived bool) iter.Seq[jobRow] {
	if v.Jobs == nil {
		return none[jobRow]
	}
	return func(yield func(jobRow) bool) {
		for j := range reading(v, v.Jobs(archived)) {
			if !yield(jobRow{id: j.ID, j: j}) {
				return
			}
		}
	}
}

func jobCount(v *query.View) int {
	if v.Asked["archived"] {
		return math.MaxInt
	}
	return v.JobTable.Len()
}

// shownJob returns a job as a list shows it, archived or not.
func shownJob(v *query.View, id job.ID) (*job.Job, error) {
	if v.JobTable != nil {
		if j := v.JobTable.Get(id); j != nil {
			return j, nil
		}
	}
	return oneJob(v, id)
}

// oneJob returns a whole job, archived or not, nil if there is none.
func oneJob(v *query.View, id job.ID) (*job.Job, error) {
	if v.Job == nil {
		return nil, nil
	}
	return despite(v.Job(id))
}

// jobID reads a job id out of a filter, a number or a numeric text.
func jobID(n qlang.Value) (job.ID, error) {
	written := n.Text
	if n.IsInt() {
		written = n.Int.String()
	}
	id, err := strconv.ParseInt(strings.TrimSpace(written), 10, 64)
	if err != nil {
		return 0, query.GenericError("parsing job id: cannot parse string '%s'", written)
	}
	if id < 0 {
		return 0, query.GenericError("Invalid value for job ID ' %d'", id)
	}
	return job.ID(id), nil
}

// ofJob makes a getter that is Unavail for a job that does not exist, and NoData
// for one that cannot be read.
func ofJob(get func(*job.Job) query.Cell) func(*query.View, jobRow) query.Cell {
	return func(_ *query.View, r jobRow) query.Cell {
		switch {
		case r.j == nil:
			return query.Cell{Status: query.Unavail}
		case damaged(r.j):
			return query.Cell{Status: query.NoData}
		}
		return get(r.j)
	}
}

// statusValues are the words of the statuses as values, made once: lists of
// many jobs ask for them for each.
var statusValues = makeStatusValues()

func makeStatusValues() map[job.Status]any {
	out := map[job.Status]any{}
	for _, s := range job.Statuses {
		out[s] = string(s)
	}
	return out
}

func statusText(s job.Status) query.Cell { return query.Cell{Value: statusValues[s]} }

// moment shows a time that may not have come yet.
func moment(t job.Time) query.Cell {
	if t == 0 {
		return query.Cell{Status: query.Unavail}
	}
	return known(pair(t))
}

func pair(t job.Time) [2]int64 { return [2]int64{int64(t) / 1e6, int64(t) % 1e6} }

func jobFields() []query.Field[jobRow] {
	return []query.Field[jobRow]{
		{Def: def("id", "ID", query.KindNumber, "Number of the job"), From: query.InMemory,
			Get: func(_ *query.View, r jobRow) query.Cell { return known(int64(r.id)) }},
		{Def: def("status", "Status", query.KindText, "State of the job: queued, waiting, canceling, running, canceled, success or error"), From: query.InMemory,
			Get: ofJob(func(j *job.Job) query.Cell { return statusText(j.Status()) })},
		{Def: def("priority", "Priority", query.KindNumber, "Most urgent priority among its unfinished opcodes, where smaller is more urgent"), From: query.InMemory,
			Get: ofJob(func(j *job.Job) query.Cell { return known(int64(j.Priority())) })},
		{Def: def("archived", "Archived", query.KindBool, "Whether it was moved to the archive; asking for it lists archived jobs, too"), From: query.InMemory,
			Get: ofJob(func(j *job.Job) query.Cell { return truth(j.Archived) })},
		{Def: def("received_ts", "Received", query.KindOther, "When it was submitted, in seconds and microseconds"), From: query.InMemory, Mode: query.ModeSeconds,
			Get: ofJob(func(j *job.Job) query.Cell { return moment(j.Received) })},
		{Def: def("start_ts", "Start", query.KindOther, "When its first opcode was begun, in seconds and microseconds"), From: query.InMemory, Mode: query.ModeSeconds,
			Get: ofJob(func(j *job.Job) query.Cell { return moment(j.Started) })},
		{Def: def("begun_after", "Begun_after", query.KindFloat, "Seconds from when it came until its first opcode was begun; a filter may give 90s or 1h30m"), From: query.InMemory, Mode: query.ModeDuration,
			Get: ofJob(func(j *job.Job) query.Cell {
				if j.Started == 0 {
					return query.Cell{Status: query.Unavail}
				}
				return known(float64(j.Started-j.Received) / 1e6)
			})},
		{Def: def("end_ts", "End", query.KindOther, "When it ended, in seconds and microseconds"), From: query.InMemory, Mode: query.ModeSeconds,
			Get: ofJob(func(j *job.Job) query.Cell { return moment(j.Ended) })},
		{Def: def("summary", "Summary", query.KindOther, "One short text for each opcode"), From: query.InMemory,
			Get: keptText((*job.Brief).Summary, func(s string) query.Cell { return known([]string{s}) }, eachOp(func(op *job.Op) string { return op.Input.Summary() }))},
	}
}

// ofWhole makes a getter of what is not kept in memory of jobs that have ended:
// they are read from the store for it.
func ofWhole(get func(*job.Job) query.Cell) func(*query.View, jobRow) query.Cell {
	of := ofJob(get)
	return func(v *query.View, r jobRow) query.Cell {
		if r.j != nil && r.j.Brief() != nil {
			r.j = whole(v, r.j)
		}
		return of(v, r)
	}
}

// keptText makes a getter of a text that mostly is kept in memory.
func keptText(brief func(*job.Brief) (string, bool), cell func(string) query.Cell, get func(*job.Job) query.Cell) func(*query.View, jobRow) query.Cell {
	of := ofWhole(get)
	return func(v *query.View, r jobRow) query.Cell {
		if r.j != nil && r.j.Brief() != nil {
			if text, known := brief(r.j.Brief()); known {
				return cell(text)
			}
		}
		return of(v, r)
	}
}

// eachOp makes a value of the list of a value of each opcode.
func eachOp[T any](get func(*job.Op) T) func(*job.Job) query.Cell {
	return func(j *job.Job) query.Cell {
		out := make([]T, len(j.Ops))
		for i := range j.Ops {
			out[i] = get(&j.Ops[i])
		}
		return known(out)
	}
}

func jobOpFields() []query.Field[jobRow] {
	return []query.Field[jobRow]{
		{Def: def("ops", "OpCodes", query.KindOther, "Its opcodes as they were submitted"), From: query.InMemory,
			Get: ofWhole(eachOp(func(op *job.Op) json.RawMessage { return op.Input.ForDisplay().AppendJSON(nil) }))},
		{Def: def("opresult", "OpCode_result", query.KindOther, "Result of each opcode"), From: query.InMemory,
			Get: ofWhole(eachOp(opResult))},
		{Def: def("opstatus", "OpCode_status", query.KindOther, "State of each opcode"), From: query.InMemory,
			Get: ofWhole(eachOp(func(op *job.Op) string { return string(op.Status) }))},
		{Def: def("oplog", "OpCode_log", query.KindOther, "Log of each opcode: entries of serial number, time, type and message"), From: query.InMemory,
			Get: ofWhole(eachOp(opLog))},
		{Def: def("opstart", "OpCode_start", query.KindOther, "When each opcode began to wait for its locks"), From: query.InMemory,
			Get: ofWhole(eachOp(func(op *job.Op) any { return opTime(op.Start) }))},
		{Def: def("opexec", "OpCode_exec", query.KindOther, "When each opcode had its locks and began to run"), From: query.InMemory,
			Get: ofWhole(eachOp(func(op *job.Op) any { return opTime(op.Exec) }))},
		{Def: def("opend", "OpCode_end", query.KindOther, "When each opcode ended"), From: query.InMemory,
			Get: ofWhole(eachOp(func(op *job.Op) any { return opTime(op.End) }))},
		{Def: def("oppriority", "OpCode_prio", query.KindOther, "Priority of each opcode"), From: query.InMemory,
			Get: ofWhole(eachOp(func(op *job.Op) any { return int64(op.Priority) }))},
	}
}

func opTime(t job.Time) any {
	if t == 0 {
		return nil
	}
	return pair(t)
}

func opResult(op *job.Op) json.RawMessage {
	if op.Result == nil {
		return json.RawMessage("null")
	}
	return op.Result
}

func opLog(op *job.Op) any {
	out := make([]any, len(op.Log))
	for i, e := range op.Log {
		out[i] = []any{e.Serial, pair(e.Time), e.Type, e.Payload}
	}
	return out
}

// jobNewFields are fields that the reference does not have.
func jobNewFields() []query.Field[jobRow] {
	return []query.Field[jobRow]{
		{Def: def("reason_trail", "Reason_trail", query.KindOther, "Who wanted the job and why, hop by hop, of all its opcodes: source, reason and nanoseconds since the epoch"), From: query.InMemory, Words: "reason",
			Get: ofWhole(func(j *job.Job) query.Cell { return known(j.Trail()) })},
		{Def: def("reason", "Reason", query.KindText, "The reason trails of all opcodes as one text, without what the system itself added"), From: query.InMemory,
			Get: keptText((*job.Brief).Reason, text, func(j *job.Job) query.Cell { return text(j.Trail().Text()) })},
		{Def: def("dry_run", "Dry_run", query.KindBool, "Whether its opcodes only check what they would do"), From: query.InMemory,
			Get: ofJob(func(j *job.Job) query.Cell { return truth(j.DryRun()) })},
		{Def: def("held_by", "Held_by", query.KindText, "UUID of the filter rule that keeps the job from going on"), From: query.InMemory, Led: true,
			Get: ofJob(func(j *job.Job) query.Cell {
				if j.Hold == nil || j.Hold.Rule == "" {
					return query.Cell{Status: query.Unavail}
				}
				return text(j.Hold.Rule)
			})},
		{Def: def("held_since", "Held_since", query.KindOther, "Since when a filter rule holds the job, in seconds and microseconds"), From: query.InMemory, Led: true, Mode: query.ModeSeconds,
			Get: ofJob(func(j *job.Job) query.Cell {
				if j.Hold == nil || j.Hold.Rule == "" {
					return query.Cell{Status: query.Unavail}
				}
				return moment(j.Hold.Since)
			})},
	}
}
