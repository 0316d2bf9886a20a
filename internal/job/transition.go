package job

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
)

// New returns a queued job. Each opcode's trail gains the entry that says by
// which job it was taken up, at the time of submission. A job without opcodes
// is a success at once.
func New(id ID, ops []*opcode.Opcode, key string, now time.Time) *Job {
	j := &Job{ID: id, Key: key, Received: At(now), Ops: make([]Op, len(ops))}
	for i, in := range ops {
		entry := reason.Entry{
			Source: in.ReasonSource(),
			Reason: "job=" + id.String() + ";index=" + strconv.Itoa(i),
			Time:   now.UnixNano(),
		}
		j.Ops[i] = Op{Input: in.WithReason(in.Reason.Then(entry)), Status: Queued, Priority: in.Priority}
	}
	if len(ops) == 0 {
		j.Started, j.Ended = j.Received, j.Received
	}
	return j
}

// with returns a copy of j whose opcode i was changed by f.
func (j *Job) with(i int, f func(*Op)) *Job {
	c := *j
	c.Ops = slices.Clone(j.Ops)
	f(&c.Ops[i])
	return &c
}

// BeginWait marks opcode i as waiting for its locks.
func (j *Job) BeginWait(i int, now Time) *Job {
	c := j.with(i, func(op *Op) { op.Status, op.Start = Waiting, now })
	if c.Started == 0 {
		c.Started = now
	}
	return c
}

// BeginRun marks opcode i as running: it has its locks and a slot.
func (j *Job) BeginRun(i int, now Time) *Job {
	return j.with(i, func(op *Op) { op.Status, op.Exec = Running, now })
}

// BeginSteps is BeginRun by a program that keeps what the opcode does (Op.Stepwise).
func (j *Job) BeginSteps(i int, now Time) *Job {
	return j.with(i, func(op *Op) { op.Status, op.Exec, op.Stepwise = Running, now, true })
}

// WithSteps returns the job with the steps of opcode i as they are now.
func (j *Job) WithSteps(i int, steps []Step) *Job {
	return j.with(i, func(op *Op) { op.Steps = steps })
}

// WithPlacement returns the job with how the node of a new instance was chosen by opcode i.
func (j *Job) WithPlacement(i int, decision json.RawMessage) *Job {
	return j.with(i, func(op *Op) { op.Placement = decision })
}

// Resume says that opcode i, which ran when the controller ended, waits for its
// locks to run on.
func (j *Job) Resume(i int) *Job {
	return j.with(i, func(op *Op) { op.Exec = 0 })
}

// Requeue puts opcode i, which waited for locks or was to begin and had not, back
// into the queue: a rule holds the job now, or the controller ended.
func (j *Job) Requeue(i int) *Job {
	return j.with(i, func(op *Op) { op.Status, op.Start, op.Exec, op.Stepwise, op.Placement = Queued, 0, 0, false, nil })
}

// Succeed ends opcode i with its result. With the last opcode the job ends.
func (j *Job) Succeed(i int, result json.RawMessage, now Time) *Job {
	c := j.with(i, func(op *Op) { op.Status, op.Result, op.End = Success, clipResult(result), now })
	if i == len(c.Ops)-1 {
		c.Ended = now
	}
	return c
}

// Fail ends opcode i, and with it the job, by an error. The opcodes behind it
// become errors that say so.
func (j *Job) Fail(i int, err error, now Time) *Job {
	return j.finish(i, now, Error, EncodeError(err), precedingFailed)
}

// Dequeue ends a job that no opcode of has begun as canceled, without a result:
// a client asked for it before anything happened.
func (j *Job) Dequeue(now Time) *Job { return j.finish(j.Next(), now, Canceled, nil, nil) }

// Cancel ends every opcode that is not final yet as canceled, with a result
// that says why. ByRequest and Killed are reasons of clients; any other one is also left
// in the log of the first of these opcodes, since nobody asked for it.
func (j *Job) Cancel(why string, now Time) *Job {
	result := quote(why)
	if why == ByRequest || why == Killed {
		return j.finish(j.Next(), now, Canceled, result, result)
	}
	result = EncodeText(why)
	return j.finish(j.Next(), now, Canceled, result, result).AddMessage(j.Next(), why, now)
}

// finish ends opcode i with one result and those behind it with another.
func (j *Job) finish(i int, now Time, status Status, first, rest json.RawMessage) *Job {
	c := *j
	c.Ops = slices.Clone(j.Ops)
	for k := i; k < len(c.Ops); k++ {
		op := &c.Ops[k]
		op.Status, op.Result, op.End = status, rest, now
		if k == i {
			op.Result = first
		}
	}
	c.Ended, c.Hold = now, nil
	return &c
}

// RequestCancel notes that the opcodes behind the running one shall not start,
// and why.
func (j *Job) RequestCancel(why string) *Job {
	c := *j
	c.CancelReason = why
	return &c
}

// Lost ends a job whose opcode i was running when the controller died, and
// which cannot be resumed. The trail of each opcode that had not ended gains
// an entry that says why. Opcodes that had succeeded keep their results.
func (j *Job) Lost(i int, why string, now time.Time) *Job {
	c := j.finish(i, At(now), Error, EncodeText(why), precedingFailed)
	for k := i; k < len(c.Ops); k++ {
		in := c.Ops[k].Input
		entry := reason.Entry{Source: "gnt:daemon:luxid:deathdetection", Reason: why, Time: now.UnixNano()}
		c.Ops[k].Input = in.WithReason(in.Reason.Then(entry))
	}
	return c
}

// AddLog appends a log entry to opcode i.
func (j *Job) AddLog(i int, kind string, payload json.RawMessage, now Time) *Job {
	return j.AddLogs(i, LogEntry{Time: now, Type: kind, Payload: payload})
}

// AddLogs appends log entries to opcode i and gives them their serials. Behind
// MaxLog entries there is one that says so, and what comes after is left out.
func (j *Job) AddLogs(i int, entries ...LogEntry) *Job {
	room := MaxLog + 1 - len(j.Ops[i].Log)
	if room <= 0 || len(entries) == 0 {
		return j
	}
	log := slices.Grow(slices.Clip(j.Ops[i].Log), min(len(entries), room))
	serial := j.LastSerial()
	for _, e := range entries[:min(len(entries), room)] {
		if len(log) == MaxLog {
			e.Type, e.Payload = LogMessage, quote(fmt.Sprintf("an opcode may leave %d log entries; what came after is left out", MaxLog))
		}
		serial++
		e.Serial, e.Payload = serial, clipPayload(e.Payload)
		log = append(log, e)
	}
	return j.with(i, func(op *Op) { op.Log = slices.Clip(log) })
}

// AddMessage appends a text to the log of opcode i.
func (j *Job) AddMessage(i int, text string, now Time) *Job {
	return j.AddLog(i, LogMessage, quote(text), now)
}

// SetPriority changes the priority of every opcode that is not final.
func (j *Job) SetPriority(priority int) *Job {
	c := *j
	c.Ops = slices.Clone(j.Ops)
	for i := range c.Ops {
		if !c.Ops[i].Status.Final() {
			c.Ops[i].Priority = priority
		}
	}
	return &c
}

// WithHold returns the job with its hold changed, nil when nothing holds it.
func (j *Job) WithHold(h *Hold) *Job { return j.WithWaits(j.Waits, h) }

// WithWaits returns the job with its waits as they are now (AddWait), and with what
// holds it by that.
func (j *Job) WithWaits(waits []*Span, h *Hold) *Job {
	c := *j
	c.Waits, c.Hold = waits, h
	return &c
}
