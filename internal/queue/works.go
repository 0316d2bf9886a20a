package queue

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue/machine"
	"github.com/drover-project/drover/internal/store"
	steps "github.com/drover-project/drover/internal/work"
)

// childKeys begin the submission keys of jobs that opcodes submit.
const childKeys = "opcode/"

func workKey(record string) store.Key { return store.Key{Kind: exec.KindWork, ID: record} }

func stepKey(record string) store.Key { return store.Key{Kind: exec.KindStep, ID: record} }

// keepWork keeps the steps of an opcode that is about to begin the first of them, and returns when that is durable.
func (q *Queue) keepWork(ctx context.Context, s machine.Start, planned *steps.Work) error {
	text, err := planned.Encode()
	if err != nil {
		return err
	}
	record := exec.RecordID(s.Job, s.Index)
	var durable <-chan error
	q.update(func(w *work) {
		if !q.m.Runs(s) {
			err = fault.New(fault.Canceled, "the job was given up meanwhile")
			return
		}
		q.works[record] = text
		w.touch(workKey(record))
		durable = w.answer()
	})
	if err != nil {
		return err
	}
	select {
	case err := <-durable:
		return err
	case <-ctx.Done():
		return fault.New(fault.Canceled, "the job was ended before it began: %w", context.Cause(ctx))
	}
}

// forgetWork removes what was kept of an opcode, with its end.
func (q *Queue) forgetWork(w *work, s machine.Start) {
	record := exec.RecordID(s.Job, s.Index)
	if _, kept := q.works[record]; kept {
		delete(q.works, record)
		w.touch(workKey(record))
	}
	delete(q.found, s.Job)
	w.touch(stepKey(record))
}

// works finds out what was kept of the opcodes that ran when the controller ended.
func (l *loader) works(ctx context.Context) error {
	running := map[string]*job.Job{}
	for _, j := range l.Jobs {
		if i := j.Next(); j.Ops[i].Status == job.Running && j.Ops[i].Stepwise {
			running[exec.RecordID(j.ID, i)] = j
		}
	}
	kept := map[string]*exec.Kept{}
	err := l.records(ctx, exec.KindWork, running, kept, func(k *exec.Kept, value []byte) (err error) {
		k.Work, err = steps.Decode(value)
		return err
	})
	if err == nil {
		err = l.records(ctx, exec.KindStep, running, kept, func(k *exec.Kept, value []byte) error {
			return json.Unmarshal(value, &k.Progress)
		})
	}
	if err != nil {
		return err
	}
	snap := l.q.cfg.Inventory.Snapshot()
	for record, k := range kept {
		id := running[record].ID
		begun := machine.Begun{Lost: l.Begun[id].Lost, Why: "what it changes was changed"}
		if err := k.Readable(); err != nil && begun.Lost == "" {
			begun.Lost = err.Error()
		}
		if w := k.Work; w != nil && begun.Lost == "" {
			begun.Locks, begun.Why, begun.Placement = w.Locks, w.Where(k.Progress.Of(w)), w.Placement
			begun.Steps = w.Shown(k.Progress.Of(w), func(uuid string) string {
				if n := snap.Node(uuid); n != nil {
					return n.Name
				}
				return uuid
			})
		}
		l.Begun[id], l.q.found[id] = begun, k
	}
	return nil
}

// records reads what is kept of one kind. What is kept of something that does not run any more is removed; of a job of which it
// cannot be read nobody can tell what it did.
func (l *loader) records(ctx context.Context, kind store.Kind, running map[string]*job.Job, kept map[string]*exec.Kept,
	read func(*exec.Kept, []byte) error,
) error {
	for o, err := range l.q.cfg.Store.List(ctx, kind, store.Options{}) {
		if err != nil {
			return err
		}
		j := running[o.ID]
		if j == nil && l.Unread[jobOf(o.ID)] {
			continue // whoever mends the job may want to know
		}
		if j == nil {
			l.q.stale = append(l.q.stale, o.Key)
			continue
		}
		k := kept[o.ID]
		if k == nil {
			k = &exec.Kept{}
			kept[o.ID] = k
		}
		if kind == exec.KindWork {
			l.q.works[o.ID] = o.Value
		}
		if err := read(k, o.Value); err != nil {
			l.unreadable(o, err)
			l.Begun[j.ID] = machine.Begun{Lost: "what it did cannot be told: " + err.Error()}
		}
	}
	return nil
}

// jobOf is the job of a record.
func jobOf(record string) job.ID {
	id, _, _ := strings.Cut(record, "/")
	n, _ := strconv.ParseInt(id, 10, 64)
	return job.ID(n)
}
