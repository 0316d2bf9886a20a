package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/health"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/watcher"
)

// lookout is what the watcher of a term remembers. Who leads next begins anew: an instance that does not stay up has its attempts once more.
type lookout struct {
	mu   sync.Mutex
	book watcher.Book
}

// keepWatch looks at each interval for instances that are to run and do not, and has jobs do what they need, until ctx ends; never with an interval of 0. It does
// nothing while watchers are paused, or the queue takes no jobs.
func (c *controller) keepWatch(ctx context.Context, every time.Duration) error {
	if every == 0 {
		return nil
	}
	return regularly(ctx, every, func() error {
		now := time.Now()
		if flags := c.picture.Load().Flags; flags.Drained || flags.PausedUntil(now) != nil {
			return nil
		}
		if err := c.seeToInstances(ctx, every, now); err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "it could not be looked for instances that are to run and do not", "error", err)
		}
		return nil
	})
}

// unwell are the instances that the watcher has to know of: which do not do what they are to.
var unwell = func() qlang.Node {
	n, err := qlang.ParseJSON([]byte(`["&", ["==", "admin_state", "up"], ["!", ["==", "status", "running"]]]`))
	if err != nil {
		panic(err)
	}
	return n
}()

// seeToInstances looks once, and has jobs do what is needed.
func (c *controller) seeToInstances(ctx context.Context, every time.Duration, now time.Time) error {
	seen, err := c.lookAround(ctx)
	if err != nil {
		return err
	}
	c.lookout.mu.Lock()
	before := c.lookout.book
	c.lookout.mu.Unlock()
	for uuid, tried := range before { // those that are as they should be are not among them, nor those that nobody wants to run any more
		if i := c.keeper.Snapshot().Instance(uuid); i != nil && i.AdminState == cluster.AdminUp && !slices.ContainsFunc(seen, func(s watcher.Instance) bool { return s.UUID == uuid }) {
			seen = append(seen, watcher.Instance{UUID: uuid, Name: tried.Name, Status: "running", Wanted: true})
		}
	}
	ended := func(id int64) bool {
		j := c.queue.Jobs().Get(job.ID(id))
		return j == nil || j.Final() // one that is gone has been archived
	}
	tasks, notes, next := watcher.Look(before, seen, ended, every, now)
	for _, n := range notes {
		if n.GaveUp {
			c.log.ErrorContext(ctx, "an instance that is to run does not stay up; it is left alone now", "instance", n.Name, "why", n.Text)
		} else {
			c.log.InfoContext(ctx, "an instance is as it should be again", "instance", n.Name, "why", n.Text)
		}
	}
	for _, t := range tasks {
		id, err := c.submitTask(ctx, t, now)
		if err != nil { // it was not tried
			next.Untried(t, before)
			if ctx.Err() == nil && !fault.Is(err, fault.Drained) {
				c.log.WarnContext(ctx, "an instance that does not run as it should could not be seen to; it is tried again", "instance", t.Name, "error", err)
			}
			continue
		}
		tried := next[t.UUID]
		tried.Job = int64(id)
		next[t.UUID] = tried
		c.log.InfoContext(ctx, "an instance does not run as it should; a job sees to it", "instance", t.Name, "job", int64(id), "why", t.Why)
	}
	c.lookout.mu.Lock()
	c.lookout.book = next
	c.lookout.mu.Unlock()
	return nil
}

// lookAround asks which instances do not do what they are to, by what nodes told last, and which of them jobs work on. A job asks the node itself.
func (c *controller) lookAround(ctx context.Context) ([]watcher.Instance, error) {
	var locks []lock.State
	if held := c.querier.Source(ctx).Locks; held != nil {
		locks = held()
	}
	busy := instancesIn(locks)
	found, err := c.querier.Query(ctx, query.Request{What: "instance", Fields: []string{"uuid", "name", "status"}, Filter: unwell})
	if err != nil {
		return nil, err
	}
	row := make([]query.Cell, len(found.Fields))
	seen := make([]watcher.Instance, found.Len())
	for n := range seen {
		found.Row(n, row)
		i := &seen[n]
		i.UUID, _ = row[0].Value.(string)
		i.Name, _ = row[1].Value.(string)
		i.Status, _ = row[2].Value.(string)
		i.Wanted, i.Busy = true, busy[i.Name]
	}
	return seen, nil
}

// instancesIn are the names of instances whose locks jobs have, or wait for.
func instancesIn(locks []lock.State) map[string]bool {
	busy := map[string]bool{}
	for _, l := range locks {
		if l.Name.Level == lock.Instance {
			busy[l.Name.Item] = true
		}
	}
	return busy
}

// submitTask submits the job of a task.
func (c *controller) submitTask(ctx context.Context, t watcher.Task, now time.Time) (job.ID, error) {
	trail := reason.Trail{{Source: reason.SourceWatcher, Reason: t.Why, Time: now.UnixNano()}}
	id, params := "OP_INSTANCE_STARTUP", map[string]any{"instance_name": t.Name, "reason": trail}
	if t.Do == watcher.Cleanup {
		id, params["admin_state_source"] = "OP_INSTANCE_SHUTDOWN", cluster.SourceUser
	}
	op, err := opcode.FromMap(id, params)
	if err != nil {
		return 0, err
	}
	return c.queue.Submit(ctx, queue.Submission{Ops: []*opcode.Opcode{op}})
}

// tellWatch tells which instances do not stay up.
func (c *controller) tellWatch() (out health.Watch) {
	c.lookout.mu.Lock()
	defer c.lookout.mu.Unlock()
	for _, tried := range c.lookout.book {
		switch {
		case tried.GaveUp:
			out.GaveUp = append(out.GaveUp, tried.Name)
		case tried.Do == watcher.Start:
			out.Trying = append(out.Trying, fmt.Sprintf("%s (job %d)", tried.Name, tried.Job))
		}
	}
	slices.SortFunc(out.GaveUp, cluster.CompareNames)
	slices.SortFunc(out.Trying, strings.Compare)
	return out
}
