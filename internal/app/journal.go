package app

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
)

// journal writes into the log what the store's feed tells of jobs and rules
// since the controller was opened, until ctx ends. It follows only while somebody wants to read it: reading every
// job that is written costs something.
func (c *controller) journal(ctx context.Context) error {
	if !c.log.Enabled(ctx, slog.LevelInfo) {
		return nil
	}
	seen := map[string]job.Status{}
	for changes, err := range c.store.Watch(ctx, c.opened) {
		if err != nil {
			if ctx.Err() == nil { // trouble of the store is told by others
				c.log.Warn("the log no longer follows the jobs", "error", err)
			}
			return nil
		}
		for i := range changes {
			c.tell(seen, &changes[i])
		}
	}
	return nil
}

// tell writes one change. A job is told of when it is taken, when it begins and
// when it ends; seen is what was told of it last.
func (c *controller) tell(seen map[string]job.Status, change *store.Change) {
	switch {
	case change.Kind == queue.KindFilter && change.Deleted:
		c.log.Info("a filter rule was deleted", "rule", change.ID, "revision", change.Revision)
	case change.Kind == queue.KindFilter && change.Value != nil:
		var rule jobfilter.Rule
		if err := json.Unmarshal(change.Value, &rule); err != nil {
			c.log.Warn("a filter rule cannot be read", "rule", change.ID, "error", err)
			return
		}
		c.log.Info("a filter rule was put", "rule", rule.UUID, "priority", rule.Priority, "action", rule.Action.Kind, "revision", change.Revision)
	case change.Kind == queue.KindJob && change.Deleted:
		delete(seen, change.ID)
	case change.Kind == queue.KindJob && change.Value != nil:
		j, err := job.Decode(change.Value)
		if err != nil {
			c.log.Warn("a job cannot be read", "job", change.ID, "error", err)
			return
		}
		c.tellJob(seen, j, change)
	}
}

func (c *controller) tellJob(seen map[string]job.Status, j *job.Job, change *store.Change) {
	now := j.Status()
	if seen[change.ID] == now {
		return
	}
	seen[change.ID] = now
	what := "?"
	if len(j.Ops) > 0 {
		what = fault.Clip(j.Ops[0].Input.Summary(), 200)
	}
	words := []any{"job", j.ID, "what", what, "opcodes", len(j.Ops), "status", now, "revision", change.Revision}
	switch {
	case now == job.Running:
		c.log.Info("a job began", words...)
	case now == job.Error:
		c.log.Warn("a job failed", words...)
	case now.Final():
		c.log.Info("a job ended", words...)
	case now == job.Queued:
		c.log.Info("a job was taken", words...)
	}
}
