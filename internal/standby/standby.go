// Package standby keeps the picture of a controller that does not lead: it reads
// what the store has, and follows the store's feed.
//
// Invariants:
//   - The picture is never older than its revision says: each object is as of that
//     revision, or newer.
//   - What only the leader knows (which rule holds a job, who has which lock, who is
//     where in line) is not in it.
//   - Where something cannot be read there is no picture: it would be silently
//     shorter than the leader's, which tells what it set aside. So it is where the store has a
//     format that this program cannot read, or gets one.
package standby

import (
	"context"
	"encoding/json"
	"iter"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/inventory"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/rollout"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
)

// Feed is store.Store's Watch that also tells of transactions which changed nothing.
type Feed func(ctx context.Context, after store.Revision) iter.Seq2[store.Progress, error]

// Follower follows the changes that another controller makes.
type Follower struct {
	store  store.Store
	feed   Feed
	stored *queue.Stored
	plans  *rollout.Plans
	shown  *picture.Picture
	from   store.Revision
}

// Open reads the picture that a store holds. Run keeps it up to date.
func Open(ctx context.Context, s store.Store, feed Feed) (*Follower, error) {
	f := &Follower{store: s, feed: feed, stored: queue.NewStored(s), plans: rollout.NewPlans(s), shown: picture.New()}
	revision, err := s.Revision(ctx)
	if err != nil {
		return nil, err
	}
	f.from = revision
	n, _, err := store.PresentFormat(ctx, s)
	if err == nil {
		err = format.Own().CanRead(n)
	}
	if err != nil {
		return nil, err
	}
	if err := f.readDeployments(ctx); err != nil {
		return nil, err
	}
	if err := f.readJobs(ctx); err != nil {
		return nil, err
	}
	c := &state.Change{Revision: int64(revision)}
	if c.Inventory, err = inventory.Read(ctx, s); err != nil {
		return nil, err
	}
	for o, err := range s.List(ctx, queue.KindFilter, store.Options{}) {
		if err == nil {
			err = takeRule(c, o.ID, o.Value)
		}
		if err != nil {
			return nil, err
		}
	}
	o, err := s.Get(ctx, queue.FlagsKey)
	switch {
	case err == nil:
		err = takeFlags(c, o.Value)
	case fault.Is(err, fault.NotFound):
		err = nil
	}
	if err != nil {
		return nil, err
	}
	f.show(c)
	return f, nil
}

// Picture is what is known, with the revision up to which the feed was read.
func (f *Follower) Picture() *picture.Picture { return f.shown }

// Stored reads what the picture has not: jobs that ended long ago.
func (f *Follower) Stored() *queue.Stored { return f.stored }

// chunk is how many jobs are shown together while all are read: of most of those that
// have ended only little stays in memory.
const chunk = 2000

func (f *Follower) readJobs(ctx context.Context) error {
	read := &state.Change{}
	for o, err := range f.store.List(ctx, queue.KindJob, store.Options{}) {
		if err != nil {
			return err
		}
		j, err := f.stored.Decode(ctx, o)
		if err != nil {
			return err
		}
		if read.Jobs = append(read.Jobs, j); len(read.Jobs) == chunk {
			f.show(read)
			read = &state.Change{}
		}
	}
	f.show(read)
	return nil
}

func (f *Follower) show(c *state.Change) {
	f.shown.Committed(c)
	f.shown.Publish()
}

// Run follows the feed until it cannot, or ctx ends, and returns why. The picture
// moves no more then.
func (f *Follower) Run(ctx context.Context) error {
	for p, err := range f.feed(ctx, f.from) {
		if err != nil {
			return err
		}
		c, err := f.change(ctx, p)
		if err != nil {
			return err
		}
		f.show(c)
	}
	return nil
}

// change tells what a step of the feed changes in the picture.
func (f *Follower) change(ctx context.Context, p store.Progress) (*state.Change, error) {
	c := &state.Change{Revision: int64(p.Revision)}
	jobs := map[string]*store.Change{} // by id: the head, nil where only other parts changed
	var objects []cluster.Change
	var records []store.Change
	for _, last := range newest(p.Changes) {
		var err error
		switch {
		case last.Kind == queue.KindJob:
			jobs[last.ID] = &last
		case last.Kind == queue.KindArchived && last.Value == nil:
			if id, err := job.ParseID(last.ID); err == nil {
				c.Pruned = append(c.Pruned, id)
			}
		case last.Kind == queue.KindPart:
			id, _, _ := strings.Cut(last.ID, "/")
			if _, known := jobs[id]; !known {
				jobs[id] = nil
			}
		case last.Kind == queue.KindFilter && last.Value == nil:
			c.RulesRemoved = append(c.RulesRemoved, last.ID)
		case last.Kind == queue.KindFilter:
			err = takeRule(c, last.ID, last.Value)
		case last.Key == queue.FlagsKey && last.Value != nil:
			err = takeFlags(c, last.Value)
		case last.Key == store.FormatKey:
			err = readable(last.Value)
		case last.Kind == rollout.KindRecord:
			records = append(records, last)
		case deployed[last.Kind] != nil:
			err = deployed[last.Kind](c, last.ID, last.Value)
		case inventory.Has(last.Kind):
			objects, err = takeObject(objects, last)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(objects) > 0 {
		c.Inventory = f.shown.Load().Inventory.With(objects...)
	}
	if err := f.takeTasks(ctx, c, records); err != nil {
		return nil, err
	}
	for id, head := range jobs {
		if err := f.takeJob(ctx, c, id, head); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// newest leaves the last change of each object, in order: values are those of now,
// whichever change they come with.
func newest(changes []store.Change) []store.Change {
	at := make(map[store.Key]int, len(changes))
	for i := range changes {
		at[changes[i].Key] = i
	}
	out := make([]store.Change, 0, len(at))
	for i := range changes {
		if at[changes[i].Key] == i {
			out = append(out, changes[i])
		}
	}
	return out
}

// takeJob adds what became of a job. Without the head, other parts of it changed.
func (f *Follower) takeJob(ctx context.Context, c *state.Change, text string, head *store.Change) error {
	id, err := job.ParseID(text)
	if err != nil {
		return err
	}
	o := store.Object{Key: store.Key{Kind: queue.KindJob, ID: text}}
	if head != nil {
		o.Value = head.Value
	} else if o, err = f.store.Get(ctx, o.Key); err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	if o.Value == nil { // it is in the archive, or was never taken
		c.Archived = append(c.Archived, &job.Job{ID: id})
		return nil
	}
	j, err := f.stored.Decode(ctx, o)
	if err == nil {
		c.Jobs = append(c.Jobs, j)
	}
	return err
}

func takeRule(c *state.Change, uuid string, value []byte) error {
	r := &jobfilter.Rule{}
	if err := json.Unmarshal(value, r); err != nil {
		return fault.New(fault.Internal, "the stored rule %s cannot be read: %w", uuid, err)
	}
	c.Rules = append(c.Rules, r)
	return nil
}

// readable refuses a format that this program cannot read.
func readable(value []byte) error {
	n, err := format.Parse(value)
	if err == nil {
		err = format.Own().CanRead(n)
	}
	return err
}

func takeFlags(c *state.Change, value []byte) error {
	c.Flags = &state.Flags{}
	return json.Unmarshal(value, c.Flags)
}

func takeObject(objects []cluster.Change, last store.Change) ([]cluster.Change, error) {
	if last.Value == nil {
		return append(objects, cluster.Delete(cluster.Kind(last.Kind), last.ID)), nil
	}
	o, err := cluster.Decode(string(last.Kind), last.Value)
	if err != nil {
		return nil, err
	}
	return append(objects, cluster.Put(o)), nil
}
