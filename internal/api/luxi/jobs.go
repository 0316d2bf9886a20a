package luxi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/query/items"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
)

func submitJob(ctx context.Context, d *Deps, a *arguments) (any, error) {
	return submitOne(ctx, d, a, "SubmitJob", false)
}

func submitDrained(ctx context.Context, d *Deps, a *arguments) (any, error) {
	return submitOne(ctx, d, a, "SubmitJobToDrainedQueue", true)
}

func submitOne(ctx context.Context, d *Deps, a *arguments, name string, ignoreDrain bool) (any, error) {
	texts, key := a.raws(0), a.optionalStr(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	ops, err := parseOps(name, texts)
	if err != nil {
		return nil, err
	}
	if err := checkOutside(ops); err != nil {
		return nil, err
	}
	return d.Queue.Submit(ctx, queue.Submission{Ops: signed(ops, a.by.Entry(time.Now())), Key: key, IgnoreDrain: ignoreDrain})
}

// submitManyJobs takes several jobs. When an opcode cannot be parsed nothing
// is submitted at all; what else keeps a job from being taken is answered in
// its place.
func submitManyJobs(ctx context.Context, d *Deps, a *arguments) (any, error) {
	lists, keys := a.rawLists(0), a.optionalStrs(1)
	if len(keys) > 0 && len(keys) != len(lists) {
		a.fail(fault.New(fault.Invalid, "%d submission keys for %d jobs", len(keys), len(lists)).At("args[1]"))
	}
	if err := a.bad(); err != nil {
		return nil, err
	}
	subs, by := make([]queue.Submission, len(lists)), a.by.Entry(time.Now())
	for i, texts := range lists {
		ops, err := parseOps("SubmitManyJobs", texts)
		if err != nil {
			return nil, err
		}
		subs[i] = queue.Submission{Ops: signed(ops, by), Refused: checkOutside(ops)}
		if len(keys) > 0 {
			subs[i].Key = keys[i]
		}
	}
	outcomes, err := d.Queue.SubmitMany(ctx, subs)
	if err != nil {
		return nil, err
	}
	answers := make([][2]any, len(outcomes))
	for i, o := range outcomes {
		if fault.Is(o.Err, fault.Drained) { // holds for all of them
			return nil, o.Err
		}
		answers[i] = [2]any{true, o.ID}
		if o.Err != nil {
			answers[i] = [2]any{false, o.Err.Error()}
		}
	}
	return answers, nil
}

func parseOps(method string, texts []raw) ([]*opcode.Opcode, error) {
	ops := make([]*opcode.Opcode, len(texts))
	for i, text := range texts {
		if len(text) > opcode.MaxBytes {
			err := fault.New(fault.TooLarge, "an opcode has %d bytes; the limit is %d", len(text), opcode.MaxBytes)
			return nil, opcodeFault(method, i, err)
		}
		op, err := opcode.Parse(text, opcode.Options{RequireReason: true})
		if err != nil {
			return nil, opcodeFault(method, i, err)
		}
		ops[i] = op
	}
	return ops, nil
}

// opcodeFault words the fault of an opcode as clients know it.
func opcodeFault(method string, index int, err error) error {
	out := &parseError{text: method + ": " + err.Error(), err: err}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		out.text, out.err = method+": "+f.Message, f.At(fmt.Sprintf("ops[%d].%s", index, f.Field))
	}
	if p, ok := opcode.AsParamError(err); ok {
		out.text = method + ": " + p.Luxi()
	}
	return out
}

// checkOutside refuses what only the system may make: opcodes of its own, and reason entries.
func checkOutside(ops []*opcode.Opcode) error {
	for i, op := range ops {
		if by := op.Definition().MadeBy; by != "" {
			return fault.New(fault.Denied, "jobs with %s are made by %s, and cannot be submitted", op.ID, by).At(fmt.Sprintf("ops[%d].OP_ID", i))
		}
		if err := reason.CheckOutside(op.Reason, allowedSource); err != nil {
			if f, ok := errors.AsType[*fault.Error](err); ok {
				return f.At(fmt.Sprintf("ops[%d].%s", i, f.Field))
			}
			return err
		}
	}
	return nil
}

func cancelJob(ctx context.Context, d *Deps, a *arguments) (any, error) {
	id, kill, by := a.jobID(), a.optionalBool(1), a.as(2)
	if err := a.bad(); err != nil {
		return nil, err
	}
	answer, err := d.Queue.Cancel(ctx, id, kill, by)
	return [2]any{answer.OK, answer.Message}, err
}

func changeJobPriority(ctx context.Context, d *Deps, a *arguments) (any, error) {
	id, priority, by := a.jobID(), a.integer(1), a.as(2)
	if err := a.bad(); err != nil {
		return nil, err
	}
	answer, err := d.Queue.ChangePriority(ctx, id, int(priority), by)
	return [2]any{answer.OK, answer.Message}, err
}

func archiveJob(ctx context.Context, d *Deps, a *arguments) (any, error) {
	id, by := a.jobID(), a.as(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Queue.Archive(ctx, id, by)
}

func autoArchiveJobs(ctx context.Context, d *Deps, a *arguments) (any, error) {
	age, limit, by := a.number(0), a.number(1), a.as(2)
	if err := a.bad(); err != nil {
		return nil, err
	}
	archived, left, err := d.Queue.AutoArchive(ctx, job.Seconds(age), min(job.Seconds(limit), luxiwire.MaxWait), by)
	return [2]int{archived, left}, err
}

// prunedJobs is what the answer to PruneArchive says.
type prunedJobs struct {
	Jobs       int        `json:"jobs"`
	FirstEnded *time.Time `json:"first_ended"`
	LastEnded  *time.Time `json:"last_ended"`
	Bytes      int64      `json:"bytes"`
	Spared     int        `json:"spared"`
	More       bool       `json:"more"`
}

func pruneArchive(ctx context.Context, d *Deps, a *arguments) (any, error) {
	before, keep, limit, by, dry := job.Never, int64(0), a.number(2), a.as(3), a.optionalBool(4)
	if a.has(0) {
		before = job.Time(job.Seconds(a.number(0)) / time.Microsecond)
	}
	if a.has(1) {
		if keep = a.integer(1); keep < 1 {
			a.fail(fault.New(fault.Invalid, "so many newest jobs are kept as there are at least: 1, not %d", keep).At("keep"))
		}
	} else if before == job.Never {
		a.fail(fault.New(fault.Invalid, "neither a time is given, nor how many jobs are kept: that would be all of them"))
	}
	if err := a.bad(); err != nil {
		return nil, err
	}
	r := queue.Retention{Before: before, Keep: int(min(keep, math.MaxInt32))}
	if dry {
		p, err := d.Queue.Prunable(ctx, r)
		return answerOf(p), err
	}
	p, err := d.Queue.Prune(ctx, r, min(job.Seconds(limit), luxiwire.MaxWait), by)
	return answerOf(p), err
}

// prunedEvents is what the answer to PruneEvents says.
type prunedEvents struct {
	Events int        `json:"events"`
	First  *time.Time `json:"first"`
	Last   *time.Time `json:"last"`
	Bytes  int64      `json:"bytes"`
	More   bool       `json:"more"`
}

func pruneEvents(ctx context.Context, d *Deps, a *arguments) (any, error) {
	before, limit, by, dry := a.number(0), a.number(1), a.as(2), a.optionalBool(3)
	if err := a.bad(); err != nil {
		return nil, err
	}
	until := time.Unix(0, 0).Add(job.Seconds(before))
	var p queue.EventPruning
	var err error
	if dry {
		p, err = d.Queue.PrunableEvents(ctx, until)
	} else {
		p, err = d.Queue.PruneEvents(ctx, until, min(job.Seconds(limit), luxiwire.MaxWait), &by)
	}
	out := prunedEvents{Events: p.Events, Bytes: p.Bytes, More: p.More}
	if p.Events > 0 {
		first, last := p.First.UTC(), p.Last.UTC()
		out.First, out.Last = &first, &last
	}
	return out, err
}

func answerOf(p queue.Pruning) prunedJobs {
	out := prunedJobs{Jobs: p.Jobs, Bytes: p.Bytes, Spared: p.Spared, More: p.More}
	if p.Jobs > 0 {
		first, last := time.UnixMicro(int64(p.First)).UTC(), time.UnixMicro(int64(p.Last)).UTC()
		out.FirstEnded, out.LastEnded = &first, &last
	}
	return out
}

func pickupJob(_ context.Context, _ *Deps, a *arguments) (any, error) {
	a.jobID()
	if err := a.bad(); err != nil {
		return nil, err
	}
	return nil, luxiwire.Generic("Luxi call 'PickupJob' is for internal use only")
}

func setDrainFlag(ctx context.Context, d *Deps, a *arguments) (any, error) {
	on, by := a.boolean(0), a.as(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return true, d.Queue.SetDrained(ctx, on, by)
}

// endOfTime is the year 10000, which dates cannot be written of, in seconds since the epoch.
const endOfTime = 253402300800

func setWatcherPause(ctx context.Context, d *Deps, a *arguments) (any, error) {
	var until *float64
	by := a.as(1)
	if a.has(0) {
		t := a.number(0)
		until = &t
	}
	if err := a.bad(); err != nil {
		return nil, err
	}
	if until != nil && *until >= endOfTime {
		return nil, fault.New(fault.Invalid, "watchers cannot be paused until %g: it is beyond the year 9999", *until).At("args[0]").WithHint("it is in seconds since the epoch")
	}
	return a.items[0], d.Queue.SetWatcherPause(ctx, until, by)
}

func explainJob(ctx context.Context, d *Deps, a *arguments) (any, error) {
	id := a.jobID()
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Queue.Explain(ctx, id)
}

// waitForJobChange returns the values of some fields and the log entries that
// are new, as soon as the job has ended, the values differ from those that the
// client knows, or there are new entries; else when the time is up.
func waitForJobChange(ctx context.Context, d *Deps, a *arguments) (any, error) {
	id, fields, timeout := a.jobID(), a.strs(1), a.number(4)
	if err := a.bad(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, min(job.Seconds(timeout), luxiwire.MaxWait))
	defer cancel()
	// Of fields that there are not the values never change, and no log is told.
	serial, news := int64(math.MaxInt64), func(*job.Job) bool { return true }
	values := func(*job.Job) any { return make([]any, len(fields)) }
	if items.All.CheckFields("job", fields) == nil {
		known, row := canonical(a.items[2]), items.JobValues(fields)
		serial = lastKnownSerial(a.items[3])
		values = func(j *job.Job) any { return raw(row(nil, j)) }
		news = func(j *job.Job) bool {
			return j.Final() || j.LastSerial() > serial || !bytes.Equal(canonical(row(nil, j)), known)
		}
	}
	j, err := d.Queue.Wait(ctx, id, news)
	if fault.Is(err, fault.NotFound) {
		return nil, &luxiwire.Error{Class: "JobLost", Args: []any{"Can't load job file"}}
	}
	if err != nil {
		return nil, err
	}
	return [2]any{values(j), logRows(j.LogAfter(serial))}, nil
}

// lastKnownSerial reads the serial of the newest entry that a client has;
// anything but a number means none.
func lastKnownSerial(text raw) int64 {
	var n int64
	if json.Unmarshal(text, &n) != nil {
		return 0
	}
	return n
}

// canonical writes JSON in one form, so that equal values have equal texts.
func canonical(text raw) raw {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return text
	}
	out, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return out
}

// logRows writes log entries as clients know them: [serial, [seconds,
// microseconds], type, payload].
func logRows(entries []job.LogEntry) [][4]any {
	out := make([][4]any, len(entries))
	for i, e := range entries {
		out[i] = [4]any{e.Serial, e.Time.Pair(), e.Type, e.Payload}
	}
	return out
}
