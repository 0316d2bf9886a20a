// Package job holds what a job is and how it may change: several opcodes in a
// row, each with a status, a result and a log.
//
// A *Job and everything it points to is immutable once made. Each transition
// (transition.go) returns a new value that shares the unchanged parts, so
// readers need no locks and the store, the scheduler and every watcher may
// hold the same value.
//
// Invariants:
//   - The status of a job is derived from its opcodes, never stored.
//   - An opcode's status only moves forward: queued, waiting, running, then one
//     of success, error, canceled. It goes back to queued, with no times, only
//     from waiting when the job is held before the opcode began to run, or the
//     controller ended. What ran then and goes on is running all the time; it has
//     no time of execution while it waits for its locks again.
//   - The opcodes before the first unfinished one all succeeded.
//   - Log serials count up from 1 within the job, over all its opcodes.
package job

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
)

// ID numbers jobs from 1, in the order of submission.
type ID int64

// String returns the decimal form.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// ParseID reads the decimal form of a job id.
func ParseID(text string) (ID, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fault.New(fault.Invalid, "a job id must be a whole number that is not negative, got %q", text)
	}
	return ID(n), nil
}

// Time is a moment in microseconds since the epoch; 0 means "not yet".
type Time int64

// Never is later than every moment.
const Never Time = math.MaxInt64

// At returns the moment of t, rounded down to microseconds.
func At(t time.Time) Time { return Time(t.UnixMicro()) }

// Pair returns the moment as clients see it: [seconds, microseconds], or nil
// for "not yet".
func (t Time) Pair() any {
	if t == 0 {
		return nil
	}
	return [2]int64{int64(t) / 1e6, int64(t) % 1e6}
}

// Status is the state of a job or of one of its opcodes.
type Status string

// The statuses, in the order in which clients compare them.
const (
	Queued    Status = "queued"
	Waiting   Status = "waiting"
	Canceling Status = "canceling"
	Running   Status = "running"
	Canceled  Status = "canceled"
	Success   Status = "success"
	Error     Status = "error"
)

// Statuses lists all statuses in order.
var Statuses = [...]Status{Queued, Waiting, Canceling, Running, Canceled, Success, Error}

// Final reports whether nothing changes any more after this status.
func (s Status) Final() bool { return s == Canceled || s == Success || s == Error }

// Job is one job.
type Job struct {
	ID  ID
	Ops []Op
	// Received is when the job was submitted, Started when its first opcode
	// began to wait for locks, Ended when it reached a final status.
	Received, Started, Ended Time
	// Key is the submission key that the client chose, or empty.
	Key string
	// CancelReason is set when a cancel came while an opcode was running: that
	// opcode completes, the rest is cancelled for this reason (ByRequest, Killed, or
	// what a filter rule has to say).
	CancelReason string
	// Waits are the stretches of time in which something else than the number of
	// slots kept the job from going on, in order, as far as they are over.
	Waits []*Span
	// Archived is set on jobs that were read from the archive.
	Archived bool
	// Hold says which rule or node keeps the job from going on; nil when none does. It
	// follows from what is, and is not stored with the job.
	Hold *Hold
	// whole: the job was read from a store that had it in one object, though it
	// has other parts by now; see Parts.
	whole bool
	// brief is set in place of Ops on jobs of which only that is in memory.
	brief *Brief
}

// Hold says by what a job is held, and since when: a filter rule, or a node that has to come.
type Hold struct {
	Rule  string // UUID of the filter rule, or empty
	Node  string // the node's name, or empty
	Since Time
}

// By tells whether it is the same that holds the job.
func (h *Hold) By(other Hold) bool { return h.Rule == other.Rule && h.Node == other.Node }

// Op is one opcode of a job with its fate.
type Op struct {
	Input  *opcode.Opcode
	Status Status
	// Result is the opcode's result as JSON, null until it is final. What it
	// looks like after a failure is told in result.go.
	Result json.RawMessage
	Log    []LogEntry
	// Priority is the present one; it may differ from the one submitted.
	Priority int
	// Start is when the opcode began to wait for its locks, Exec when it had
	// them and began to run, End when it became final.
	Start, Exec, End Time
	// Nodes are those that the opcode worked with, once it is final.
	Nodes []string
	// Stepwise: the program that began the opcode keeps what it does and did (package work), so another one can go on with it.
	Stepwise bool
	// Steps are what the opcode does and did, in order, if that is several things.
	Steps []Step
	// Placement is how the node of a new instance was chosen, as package placement keeps it; nil where none was to be.
	Placement json.RawMessage
}

// Step is one of the things that an opcode does.
type Step struct {
	// Verb is the kind of thing, Of the UUID of what it is done to, Node the name of the node that does it (empty for a change of the
	// inventory), Text what it is called for people.
	Verb, Node, Of, Text string
	State                StepState
	// From is when it began, To when it came to its state; 0 for not yet. One that was taken back came to that at To.
	From, To Time
}

// StepState says what became of a step.
type StepState string

// The states of steps.
const (
	StepPlanned StepState = "planned"
	StepRunning StepState = "running"
	StepDone    StepState = "done"
	StepUndone  StepState = "undone" // it was taken back, or failed and left nothing
	StepLeft    StepState = "left"   // it failed, and what it did by half, or all of it, is left as it is
)

// LogEntry is a message that an opcode left while it ran.
type LogEntry struct {
	Serial int64
	Time   Time
	// Type says how to read the payload; nearly always "message".
	Type    string
	Payload json.RawMessage
}

// The types of log entries. The payload of LogMessage is a string.
const (
	LogMessage   = "message"
	LogDelayTest = "delay-test"
	LogQueueTest = "jqueue-test"
)

// Status derives the job's status from its opcodes, as the reference does: a
// job of several opcodes reads "queued" between two of them.
func (j *Job) Status() Status {
	if j.brief != nil {
		return Statuses[j.brief.entry.status]
	}
	status, successes := Queued, 0
	for i := range j.Ops {
		switch s := j.Ops[i].Status; s {
		case Error, Canceling, Canceled:
			return s
		case Waiting, Running:
			status = s
		case Success:
			successes++
		}
	}
	if successes == len(j.Ops) {
		return Success
	}
	return status
}

// Final reports whether the job has ended.
func (j *Job) Final() bool { return j.Status().Final() }

// Next returns the index of the first opcode that is not final, or len(Ops).
func (j *Job) Next() int {
	for i := range j.Ops {
		if !j.Ops[i].Status.Final() {
			return i
		}
	}
	return len(j.Ops)
}

// Busy reports whether an opcode is in flight: waiting for locks or running.
func (j *Job) Busy() bool {
	n := j.Next()
	return n < len(j.Ops) && j.Ops[n].Status != Queued
}

// Priority is the most urgent priority of the opcodes that are not final, and
// 0 when there are none. Smaller is more urgent.
func (j *Job) Priority() int {
	priority, found := 0, false
	for i := range j.Ops {
		if op := &j.Ops[i]; !op.Status.Final() && (!found || op.Priority < priority) {
			priority, found = op.Priority, true
		}
	}
	return priority
}

// Inputs returns the opcodes that the job was made of.
func (j *Job) Inputs() []*opcode.Opcode {
	out := make([]*opcode.Opcode, len(j.Ops))
	for i := range j.Ops {
		out[i] = j.Ops[i].Input
	}
	return out
}

// MadeOf reports whether the opcodes ask for what the job was made of, whoever asks
// and however urgently.
func (j *Job) MadeOf(ops []*opcode.Opcode) bool {
	return slices.EqualFunc(j.Inputs(), ops, (*opcode.Opcode).SameWork)
}

// Summary returns one short text per opcode.
func (j *Job) Summary() []string {
	out := make([]string, len(j.Ops))
	for i := range j.Ops {
		out[i] = j.Ops[i].Summary()
	}
	return out
}

// DryRunMark stands behind the summaries of what only checks, so that nobody
// takes it for done.
const DryRunMark = " [dry run]"

// Summary is the opcode's short text, with a mark if it only checks. Clients of
// the reference get the text without a mark (opcode.Opcode.Summary).
func (op *Op) Summary() string {
	if op.Input.DryRun {
		return op.Input.Summary() + DryRunMark
	}
	return op.Input.Summary()
}

// LastSerial is the serial of the newest log entry, 0 when there is none.
func (j *Job) LastSerial() int64 {
	var last int64
	for i := range j.Ops {
		if n := len(j.Ops[i].Log); n > 0 {
			last = max(last, j.Ops[i].Log[n-1].Serial)
		}
	}
	return last
}

// LogAfter returns the log entries with a serial above the given one.
func (j *Job) LogAfter(serial int64) []LogEntry {
	var out []LogEntry
	for i := range j.Ops {
		for _, e := range j.Ops[i].Log {
			if e.Serial > serial {
				out = append(out, e)
			}
		}
	}
	return out
}
