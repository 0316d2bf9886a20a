package query

import (
	"encoding/json"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
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

func restoreJob(v *view, r jobRow) jobRow {
	switch r.left {
	case inTable:
		return jobRow{id: r.id, j: v.JobTable.Get(r.id)}
	case inArchive:
		return jobRow{id: r.id, j: v.read(r.id)}
	case inRow:
	}
	return r
}

var jobTable = table[jobRow]{
	what:      "job",
	nameField: "id",
	fields:    slices.Concat(jobFields(), jobOpFields(), strictly(jobNewFields()), strictly(jobTimelineFields())),
	all:       func(v *view) iter.Seq[jobRow] { return allJobs(v, v.asked["archived"]) },
	named:     jobsNamed,
	narrow:    jobPaths,
	size:      jobCount,
	compare:   compareJobs,
	identity:  func(r jobRow) string { return r.id.String() },
	shorten:   shortenJob,
	restore:   restoreJob,
	affected:  jobsOf,
	rowsOf: func(v *view, d *delta, key string) []jobRow {
		if j := jobNow(v, d, key, v.asked["archived"]); j != nil {
			return []jobRow{{id: j.ID, j: j}}
		}
		return nil
	},
}.indexed()

func jobsNamed(v *view, names []qlang.Value) ([]jobRow, bool, error) {
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
				v.failed = err
				return nil, false, v.interrupted()
			}
			out = append(out, jobRow{id: id, j: j})
		}
	}
	return out, true, nil
}

func allJobs(v *view, archived bool) iter.Seq[jobRow] {
	if v.Jobs == nil {
		return none[jobRow]
	}
	return func(yield func(jobRow) bool) {
		for j := range v.reading(v.Jobs(archived)) {
			if !yield(jobRow{id: j.ID, j: j}) {
				return
			}
		}
	}
}

func jobCount(v *view) int {
	if v.asked["archived"] {
		return math.MaxInt
	}
	return v.JobTable.Len()
}

// shownJob returns a job as a list shows it, archived or not.
func shownJob(v *view, id job.ID) (*job.Job, error) {
	if v.JobTable != nil {
		if j := v.JobTable.Get(id); j != nil {
			return j, nil
		}
	}
	return oneJob(v, id)
}

// oneJob returns a whole job, archived or not, nil if there is none.
func oneJob(v *view, id job.ID) (*job.Job, error) {
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
		return 0, genericError("parsing job id: cannot parse string '%s'", written)
	}
	if id < 0 {
		return 0, genericError("Invalid value for job ID ' %d'", id)
	}
	return job.ID(id), nil
}

// ofJob makes a getter that is Unavail for a job that does not exist, and NoData
// for one that cannot be read.
func ofJob(get func(*job.Job) Cell) func(*view, jobRow) Cell {
	return func(_ *view, r jobRow) Cell {
		switch {
		case r.j == nil:
			return Cell{Status: Unavail}
		case damaged(r.j):
			return Cell{Status: NoData}
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

func statusText(s job.Status) Cell { return Cell{Value: statusValues[s]} }

// moment shows a time that may not have come yet.
func moment(t job.Time) Cell {
	if t == 0 {
		return Cell{Status: Unavail}
	}
	return known(pair(t))
}

func pair(t job.Time) [2]int64 { return [2]int64{int64(t) / 1e6, int64(t) % 1e6} }

func jobFields() []field[jobRow] {
	return []field[jobRow]{
		{Def: Def{"id", "ID", KindNumber, "Number of the job"}, from: InMemory,
			get: func(_ *view, r jobRow) Cell { return known(int64(r.id)) }},
		{Def: Def{"status", "Status", KindText, "State of the job: queued, waiting, canceling, running, canceled, success or error"}, from: InMemory,
			get: ofJob(func(j *job.Job) Cell { return statusText(j.Status()) })},
		{Def: Def{"priority", "Priority", KindNumber, "Most urgent priority among its unfinished opcodes, where smaller is more urgent"}, from: InMemory,
			get: ofJob(func(j *job.Job) Cell { return known(int64(j.Priority())) })},
		{Def: Def{"archived", "Archived", KindBool, "Whether it was moved to the archive; asking for it lists archived jobs, too"}, from: InMemory,
			get: ofJob(func(j *job.Job) Cell { return truth(j.Archived) })},
		{Def: Def{"received_ts", "Received", KindOther, "When it was submitted, in seconds and microseconds"}, from: InMemory, mode: seconds,
			get: ofJob(func(j *job.Job) Cell { return moment(j.Received) })},
		{Def: Def{"start_ts", "Start", KindOther, "When its first opcode was begun, in seconds and microseconds"}, from: InMemory, mode: seconds,
			get: ofJob(func(j *job.Job) Cell { return moment(j.Started) })},
		{Def: Def{"end_ts", "End", KindOther, "When it ended, in seconds and microseconds"}, from: InMemory, mode: seconds,
			get: ofJob(func(j *job.Job) Cell { return moment(j.Ended) })},
		{Def: Def{"summary", "Summary", KindOther, "One short text for each opcode"}, from: InMemory,
			get: keptText((*job.Brief).Summary, func(s string) Cell { return known([]string{s}) }, eachOp(func(op *job.Op) string { return op.Input.Summary() }))},
	}
}

// ofWhole makes a getter of what is not kept in memory of jobs that have ended:
// they are read from the store for it.
func ofWhole(get func(*job.Job) Cell) func(*view, jobRow) Cell {
	of := ofJob(get)
	return func(v *view, r jobRow) Cell {
		if r.j != nil && r.j.Brief() != nil {
			r.j = v.whole(r.j)
		}
		return of(v, r)
	}
}

// keptText makes a getter of a text that mostly is kept in memory.
func keptText(brief func(*job.Brief) (string, bool), cell func(string) Cell, get func(*job.Job) Cell) func(*view, jobRow) Cell {
	of := ofWhole(get)
	return func(v *view, r jobRow) Cell {
		if r.j != nil && r.j.Brief() != nil {
			if text, known := brief(r.j.Brief()); known {
				return cell(text)
			}
		}
		return of(v, r)
	}
}

// eachOp makes a value of the list of a value of each opcode.
func eachOp[T any](get func(*job.Op) T) func(*job.Job) Cell {
	return func(j *job.Job) Cell {
		out := make([]T, len(j.Ops))
		for i := range j.Ops {
			out[i] = get(&j.Ops[i])
		}
		return known(out)
	}
}

func jobOpFields() []field[jobRow] {
	return []field[jobRow]{
		{Def: Def{"ops", "OpCodes", KindOther, "Its opcodes as they were submitted"}, from: InMemory,
			get: ofWhole(eachOp(func(op *job.Op) json.RawMessage { return op.Input.ForDisplay().AppendJSON(nil) }))},
		{Def: Def{"opresult", "OpCode_result", KindOther, "Result of each opcode"}, from: InMemory,
			get: ofWhole(eachOp(opResult))},
		{Def: Def{"opstatus", "OpCode_status", KindOther, "State of each opcode"}, from: InMemory,
			get: ofWhole(eachOp(func(op *job.Op) string { return string(op.Status) }))},
		{Def: Def{"oplog", "OpCode_log", KindOther, "Log of each opcode: entries of serial number, time, type and message"}, from: InMemory,
			get: ofWhole(eachOp(opLog))},
		{Def: Def{"opstart", "OpCode_start", KindOther, "When each opcode began to wait for its locks"}, from: InMemory,
			get: ofWhole(eachOp(func(op *job.Op) any { return opTime(op.Start) }))},
		{Def: Def{"opexec", "OpCode_exec", KindOther, "When each opcode had its locks and began to run"}, from: InMemory,
			get: ofWhole(eachOp(func(op *job.Op) any { return opTime(op.Exec) }))},
		{Def: Def{"opend", "OpCode_end", KindOther, "When each opcode ended"}, from: InMemory,
			get: ofWhole(eachOp(func(op *job.Op) any { return opTime(op.End) }))},
		{Def: Def{"oppriority", "OpCode_prio", KindOther, "Priority of each opcode"}, from: InMemory,
			get: ofWhole(eachOp(func(op *job.Op) any { return int64(op.Priority) }))},
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
func jobNewFields() []field[jobRow] {
	return []field[jobRow]{
		{Def: Def{"reason_trail", "Reason_trail", KindOther, "Who wanted the job and why, hop by hop, of all its opcodes: source, reason and nanoseconds since the epoch"}, from: InMemory, words: "reason",
			get: ofWhole(func(j *job.Job) Cell { return known(j.Trail()) })},
		{Def: Def{"reason", "Reason", KindText, "The reason trails of all opcodes as one text, without what the system itself added"}, from: InMemory,
			get: keptText((*job.Brief).Reason, text, func(j *job.Job) Cell { return text(j.Trail().Text()) })},
		{Def: Def{"dry_run", "Dry_run", KindBool, "Whether its opcodes only check what they would do"}, from: InMemory,
			get: ofJob(func(j *job.Job) Cell { return truth(j.DryRun()) })},
		{Def: Def{"held_by", "Held_by", KindText, "UUID of the filter rule that keeps the job from going on"}, from: InMemory, led: true,
			get: ofJob(func(j *job.Job) Cell {
				if j.Hold == nil {
					return Cell{Status: Unavail}
				}
				return text(j.Hold.Rule)
			})},
		{Def: Def{"held_since", "Held_since", KindOther, "Since when a filter rule holds the job, in seconds and microseconds"}, from: InMemory, led: true, mode: seconds,
			get: ofJob(func(j *job.Job) Cell {
				if j.Hold == nil {
					return Cell{Status: Unavail}
				}
				return moment(j.Hold.Since)
			})},
		{Def: Def{"wait_reason", "Wait_reason", KindText, "What keeps a job from going on: a filter rule, another job, a full limit, a lock, or that there is no slot"},
			from: InMemory, mutual: true, get: waitReason},
		{Def: Def{"place", "Place", KindNumber, "Place of the job in the line that it waits in, from 1"}, from: InMemory, mutual: true, get: waitPlace},
	}
}
