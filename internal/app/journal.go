package app

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/health"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/state"
)

// journal counts what becomes of jobs, and writes it and changes of rules into
// the log, until ctx ends. It follows the picture, so it holds up nobody.
func (c *controller) journal(ctx context.Context) error {
	follower, was := c.picture.Follow()
	defer follower.Close()
	c.figures.expectJobs()
	for {
		changed := c.picture.Changed()
		now, changes, complete := follower.Next()
		if !complete {
			c.figures.missed.Inc()
			c.log.Warn("jobs change faster than the log can tell; some changes are left out")
		}
		c.tell(ctx, was, changes)
		was = now
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// tell goes through changes that were made to a state, in order.
func (c *controller) tell(ctx context.Context, was *state.State, changes []*state.Change) {
	newer, drained := map[job.ID]*job.Job{}, was.Flags.Drained
	for _, change := range changes {
		if f := change.Flags; f != nil && f.Drained != drained {
			if drained = f.Drained; drained {
				c.log.InfoContext(ctx, "the queue takes no new jobs", "why", f.Drain.String(), "revision", change.Revision)
			} else {
				c.log.InfoContext(ctx, "the queue takes jobs again", "revision", change.Revision)
			}
		}
		for _, r := range change.Rules {
			c.log.InfoContext(ctx, "a filter rule was put", "rule", r.UUID, "priority", r.Priority, "action", r.Action.Kind, "revision", change.Revision)
		}
		for _, uuid := range change.RulesRemoved {
			c.log.InfoContext(ctx, "a filter rule was deleted", "rule", uuid, "revision", change.Revision)
		}
		for _, j := range change.Jobs {
			before := newer[j.ID]
			if before == nil {
				before = was.Jobs.Get(j.ID)
			}
			newer[j.ID] = j
			c.tellJob(ctx, before, j, change.Revision)
		}
	}
}

// tellJob tells what is new about a job; before is nil for one that is new.
func (c *controller) tellJob(ctx context.Context, before, j *job.Job, revision int64) {
	first := "none"
	if len(j.Ops) > 0 {
		first = j.Ops[0].Input.ID
	}
	for i := range j.Ops {
		had := job.Op{}
		if before != nil && i < len(before.Ops) {
			had = before.Ops[i]
		}
		c.tellOpcode(ctx, j, i, &had)
	}
	now, had := j.Status(), job.Status("")
	if before != nil {
		had = before.Status()
	} else {
		c.figures.submitted.WithLabelValues(first).Inc()
	}
	if now == had {
		return
	}
	if now.Final() {
		c.figures.ended.WithLabelValues(first, string(now)).Inc()
	}
	text, level := "", slog.LevelDebug // but for its end: a line a job
	switch {
	case now == job.Running:
		text = "a job began"
	case now == job.Error: // which is a matter of whoever asked for it
		text, level = "a job failed", slog.LevelInfo
	case now.Final():
		text, level = "a job ended", slog.LevelInfo
	case now == job.Queued && before == nil:
		text = "a job was taken"
	}
	if text == "" || !c.log.Enabled(ctx, level) {
		return
	}
	what := "?"
	if len(j.Ops) > 0 {
		what = fault.Clip(j.Ops[0].Input.Summary(), 200)
	}
	told := []any{"job", j.ID, "what", what, "opcodes", len(j.Ops), "status", now, "revision", revision}
	if now.Final() {
		told = append(told, durations(j)...)
	}
	if now == job.Error {
		told = append(told, "error", failure(j))
	}
	c.log.Log(ctx, level, text, told...)
}

// durations are for how long a job that has ended waited, and ran; one that never ran waited alone.
func durations(j *job.Job) []any {
	if len(j.Ops) == 0 || j.Ops[0].Exec == 0 {
		return []any{"waited", between(j.Received, j.Ended)}
	}
	began := j.Ops[0].Exec
	return []any{"waited", between(j.Received, began), "took", between(began, j.Ended)}
}

// failure is what a job failed with, in one line.
func failure(j *job.Job) string {
	for i := range j.Ops {
		if _, text, failed := job.DecodeError(j.Ops[i].Result); failed {
			return fault.Clip(strings.Join(strings.Fields(text), " "), 500)
		}
	}
	return ""
}

// tellOpcode tells what is new about an opcode of a job.
func (c *controller) tellOpcode(ctx context.Context, j *job.Job, i int, had *job.Op) {
	op := &j.Ops[i]
	if op.Exec != 0 && had.Exec == 0 {
		since := j.Received
		if i > 0 {
			since = j.Ops[i-1].End
		}
		waited := between(since, op.Exec)
		c.figures.opcodeWait.WithLabelValues(op.Input.ID).Observe(waited.Seconds())
		c.log.DebugContext(ctx, "an opcode began", "job", j.ID, "opcode", op.Input.ID, "index", i, "waited", waited)
	}
	if op.Status.Final() && !had.Status.Final() && op.Exec != 0 {
		took := between(op.Exec, op.End)
		c.figures.opcodeTime.WithLabelValues(op.Input.ID, string(op.Status)).Observe(took.Seconds())
		c.log.DebugContext(ctx, "an opcode ended", "job", j.ID, "opcode", op.Input.ID, "index", i, "status", op.Status, "took", took)
	}
}

// leftBehind counts and tells what a job could not take back.
func (c *controller) leftBehind(id job.ID, what string, err error) {
	c.figures.left.Inc()
	for {
		was, is := c.behind.Load(), health.Jobs{Count: 1, Oldest: int64(id), Since: c.now().UTC()}
		if was != nil && was.Oldest != is.Oldest {
			is.Count += was.Count
		} else if was != nil {
			is.Count = was.Count
		}
		if c.behind.CompareAndSwap(was, &is) {
			break
		}
	}
	c.log.Error("something that a job did could not be taken back", "job", id, "what", what, "error", err)
}

// between is the time from one moment of a job to a later one; clocks may have
// been set back.
func between(from, until job.Time) time.Duration {
	return time.Duration(max(0, until-from)) * time.Microsecond
}
