package events

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
)

// KindCursor has how far the events of the cluster are published.
const KindCursor store.Kind = "event-cursor"

var cursorKey = store.Key{Kind: KindCursor, ID: "published"}

// cursor is how far the events are published.
type cursor struct {
	// Revision of the store: what changed up to it is published.
	Revision store.Revision `json:"revision"`
	// Ended is when the newest published opcode ended, to find those after it in the archive
	// where the store's feed does not reach back.
	Ended job.Time `json:"ended"`
	// Since is when publishing began: what is in the archive and ended before is not published.
	Since job.Time `json:"since,omitempty"`
}

// present is the place where publishing begins.
func present(revision store.Revision) cursor {
	now := job.Time(time.Now().UnixMicro())
	return cursor{Revision: revision, Ended: now, Since: now}
}

// Outbox publishes how the opcodes of a cluster ended. The store is the outbox:
// its feed says which jobs changed, and it keeps how far that is published.
type Outbox struct {
	Store   store.Store
	Epoch   int64 // of the leader lease; 0 where there is none
	Queue   *queue.Queue
	Picture *picture.Picture
	// Publish returns when the broker has taken the message for good, or ctx ends.
	Publish func(ctx context.Context, m Message) error
	Log     *slog.Logger

	at cursor
	// unsaved: at is further than the store has it.
	unsaved bool
	// looked is the revision of at, for who asks.
	looked atomic.Int64
	// told counts the opcodes that are published of each job that the feed may still tell of.
	told map[job.ID]int
	// ended are the jobs in told that came to their end, in the order in which that was published.
	ended []ending
}

// ending is a job that ended, as was seen at a revision of the store. The feed may be behind it, and tell of the job again.
type ending struct {
	job      job.ID
	revision store.Revision
}

// Looked is the revision of the store up to which everything was looked at, and published if there was an event in it; 0 before Run has begun.
func (o *Outbox) Looked() int64 { return o.looked.Load() }

// Run publishes until ctx ends, which is no error. It begins where the last run
// ended, the very first one at the present. A store that fails for a time, or has no room, is waited for.
func (o *Outbox) Run(ctx context.Context) error {
	o.told, o.ended = map[job.ID]int{}, nil
	err := o.patiently(ctx, o.resume)
	for err == nil {
		err = o.patiently(ctx, o.goOn)
	}
	if ctx.Err() != nil {
		err = nil
	}
	return err
}

// passes tells whether what keeps events from being published may be over some time, with nothing to be done to the controller.
func passes(err error) bool {
	return fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Exhausted)
}

// pauses are how long a store is left alone that failed.
var pauses = backoff.Pauses{First: 100 * time.Millisecond, Longest: 10 * time.Second}

// patiently does something until it ends well, ctx ends, or it fails for good.
func (o *Outbox) patiently(ctx context.Context, step func(context.Context) error) error {
	for failures := 1; ; failures++ {
		began := o.at
		err := step(ctx)
		if ctx.Err() != nil || !passes(err) {
			return err
		}
		if o.at != began { // it had come on
			failures = 1
		}
		if failures == 1 {
			o.Log.Warn("the store keeps events from being published; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pauses.After(failures)):
		}
	}
}

// goOn publishes what comes, until something fails.
func (o *Outbox) goOn(ctx context.Context) error {
	if o.unsaved {
		if err := o.save(ctx); err != nil {
			return err
		}
	}
	err := o.follow(ctx)
	if fault.Is(err, fault.Compacted) { // it was away for longer than the feed reaches back
		err = o.catchUp(ctx)
	}
	return err
}

// resume finds out where to go on.
func (o *Outbox) resume(ctx context.Context) error {
	o.at = cursor{}
	stored, err := o.Store.Get(ctx, cursorKey)
	switch {
	case err == nil:
		err = json.Unmarshal(stored.Value, &o.at)
		if err == nil {
			break
		}
		o.Log.Error("the stored place up to which events are published cannot be read: what ended since is not published, it goes on with the present",
			"kind", KindCursor, "id", cursorKey.ID, "error", err)
		fallthrough
	case fault.Is(err, fault.NotFound):
		var revision store.Revision
		if revision, err = o.Store.Revision(ctx); err != nil {
			return err
		}
		o.at, o.unsaved = present(revision), true
	default:
		return err
	}
	if o.at.Ended == 0 { // nothing was published, and it is not known since when it was to be
		o.at, o.unsaved = present(o.at.Revision), true
	}
	o.looked.Store(int64(o.at.Revision))
	return nil
}

func (o *Outbox) save(ctx context.Context) error {
	text, err := json.Marshal(o.at)
	if err != nil {
		return fault.New(fault.Internal, "writing down how far events are published: %w", err)
	}
	o.unsaved = true
	_, err = store.Commit(ctx, o.Store, store.Tx{Epoch: o.Epoch, Put: []store.Put{{Key: cursorKey, Value: text}}})
	o.unsaved = err != nil
	return err
}

// follow publishes what the feed tells.
func (o *Outbox) follow(ctx context.Context) error {
	for changes, err := range o.Store.Watch(ctx, o.at.Revision) {
		if err != nil {
			return err
		}
		published := 0
		ids, newest := jobsOf(changes)
		// The feed tells of a job before the queue shows it.
		if _, err := o.Picture.Wait(ctx, int64(newest)); err != nil {
			return err
		}
		for _, id := range ids {
			n, err := o.tell(ctx, id)
			if err != nil {
				return err
			}
			published += n
		}
		o.at.Revision = changes[len(changes)-1].Revision
		o.forget()
		o.looked.Store(int64(o.at.Revision))
		if published > 0 { // else the cursor's own change would be one to write down
			if err := o.save(ctx); err != nil {
				return err
			}
		}
	}
	return context.Cause(ctx)
}

// jobsOf returns the jobs that changed, each once, in the order of their first
// change, and the revision of the newest change of one.
func jobsOf(changes []store.Change) (out []job.ID, newest store.Revision) {
	seen := map[job.ID]bool{}
	for _, c := range changes {
		if c.Deleted || c.Kind != queue.KindJob && c.Kind != queue.KindPart {
			continue
		}
		newest = c.Revision
		text, _, _ := strings.Cut(c.ID, "/")
		if id, err := job.ParseID(text); err == nil && !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out, newest
}

// tell publishes the opcodes of a job that ended and are not published yet.
func (o *Outbox) tell(ctx context.Context, id job.ID) (published int, err error) {
	j, err := o.Queue.Job(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return 0, nil
	}
	if _, damaged := errors.AsType[*job.DamageError](err); damaged {
		o.Log.Error("no event can tell how a job ended that cannot be read", "job", id, "error", err)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	inventory := o.Picture.Load().Inventory
	for i := o.told[id]; i < len(j.Ops); i++ {
		var machine *Machine
		if name, tells := tellsMachine(&j.Ops[i]); tells {
			machine = machineOf(inventory, name)
		}
		m, ended := Of(inventory.Cluster().Name, j, i, machine)
		if !ended {
			break
		}
		if err := o.Publish(ctx, m); err != nil {
			return published, err
		}
		published++
		o.told[id] = i + 1
		o.at.Ended = max(o.at.Ended, j.Ops[i].End)
	}
	if j.Final() {
		o.ended = append(o.ended, ending{job: id, revision: store.Revision(o.Picture.Load().Revision)})
	}
	return published, nil
}

// forget drops what was told of the jobs that the feed tells of no more: it is behind their end.
func (o *Outbox) forget() {
	for len(o.ended) > 0 && o.ended[0].revision <= o.at.Revision {
		delete(o.told, o.ended[0].job)
		o.ended = o.ended[1:]
	}
}

// lateness is how long before the newest published event something may have ended that became
// durable after it. What ended so long ago is looked at again when it is in the archive.
const lateness = job.Time(time.Hour / time.Microsecond)

// catchUp publishes what the feed does not tell of any more.
func (o *Outbox) catchUp(ctx context.Context) error {
	revision, err := o.Store.Revision(ctx)
	if err != nil {
		return err
	}
	ids, newest, err := o.changed(ctx)
	if err != nil {
		return err
	}
	for j, err := range o.Queue.Archived(ctx, max(o.at.Ended-lateness, o.at.Since), job.Never) {
		if err != nil {
			damage, damaged := errors.AsType[*job.DamageError](err)
			if !damaged {
				return err
			}
			ids = append(ids, damage.ID) // which tell has the log say
			continue
		}
		ids = append(ids, j.ID)
	}
	if _, err := o.Picture.Wait(ctx, int64(newest)); err != nil { // as in follow
		return err
	}
	for _, id := range ids {
		if _, err := o.tell(ctx, id); err != nil {
			return err
		}
	}
	o.at.Revision = revision
	o.looked.Store(int64(revision))
	return o.save(ctx)
}

// changed are the jobs that are not in the archive and changed behind what is published, in that order, and the revision of
// the newest change. When they ended does not tell: another that ended later may have become durable before.
func (o *Outbox) changed(ctx context.Context) (ids []job.ID, newest store.Revision, err error) {
	var since []store.Object
	for head, err := range o.Store.List(ctx, queue.KindJob, store.Options{}) {
		if err != nil {
			return nil, 0, err
		}
		if head.Revision > o.at.Revision {
			head.Value = nil
			since = append(since, head)
		}
	}
	slices.SortFunc(since, func(a, b store.Object) int { return cmp.Compare(a.Revision, b.Revision) })
	for _, head := range since {
		if id, err := job.ParseID(head.ID); err == nil {
			ids, newest = append(ids, id), head.Revision
		}
	}
	return ids, newest, nil
}
