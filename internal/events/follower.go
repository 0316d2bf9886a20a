package events

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/store"
)

// Remote is a cluster that tells nothing of itself: it has to be asked.
type Remote interface {
	// Name is what the cluster calls itself.
	Name(ctx context.Context) (string, error)
	// Jobs returns the ids of all jobs that are not archived, in any order.
	Jobs(ctx context.Context) ([]job.ID, error)
	// Job returns a job. fault.NotFound when it is not known any more, fault.TooLarge and fault.Invalid for one of which the cluster tells what cannot be
	// taken, however often it is asked.
	Job(ctx context.Context, id job.ID) (*job.Job, error)
	// Machine tells of an instance; nil if it is not there. The errors are those of Job, but for fault.NotFound.
	Machine(ctx context.Context, instance string) (*Machine, error)
}

// Follower publishes how the opcodes of a remote cluster ended. It asks for the
// jobs again and again; how far it got is kept in the store. Jobs that were
// archived before it asked for their ends are not told of.
type Follower struct {
	Remote Remote
	// Cluster is what the cluster is called here.
	Cluster string
	Store   store.Store
	Epoch   int64 // of the leader lease; 0 where there is none
	// Every is how often it asks.
	Every   time.Duration
	Publish func(ctx context.Context, m Message) error
	Log     *slog.Logger

	at   remoteCursor
	name string // of the cluster, once it is known
}

// remoteCursor is how far the events of a remote cluster are published.
type remoteCursor struct {
	// Begun: jobs up to Newest are dealt with, but for those that are open.
	Begun  bool   `json:"begun"`
	Newest job.ID `json:"newest"`
	// Open are the unfinished jobs, with how many of their opcodes are published.
	Open map[job.ID]int `json:"open"`
}

// Key is where the store has how far the events are published.
func (f *Follower) Key() store.Key { return store.Key{Kind: KindCursor, ID: "cluster/" + f.Cluster} }

// Run publishes until ctx ends, which is no error. It begins where the last run
// ended, the very first one at the present. A cluster that does not answer is
// asked again, and a store that fails for a time, or has no room, is waited for.
func (f *Follower) Run(ctx context.Context) error {
	tick := time.NewTicker(f.Every)
	defer tick.Stop()
	var kept remoteCursor // as the store has it
	for begun, away, failing := false, false, false; ; {
		err := error(nil)
		if !begun {
			if err = f.resume(ctx); err == nil {
				begun, kept = true, f.at.clone()
			}
		}
		if begun {
			asked := f.step(ctx)
			if asked != nil && !away && ctx.Err() == nil {
				f.Log.Warn("a cluster cannot be asked how its jobs ended; it is asked again", "cluster", f.Cluster, "error", asked)
			}
			away = asked != nil
			if !f.at.same(kept) {
				if err = f.save(ctx); err == nil {
					kept = f.at.clone()
				}
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !passes(err) {
			return err
		}
		if err != nil && !failing {
			f.Log.Warn("the store keeps events from being published; it is tried again", "cluster", f.Cluster, "error", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// resume finds out where to go on.
func (f *Follower) resume(ctx context.Context) error {
	f.at = remoteCursor{Open: map[job.ID]int{}}
	stored, err := f.Store.Get(ctx, f.Key())
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err = json.Unmarshal(stored.Value, &f.at); err != nil || f.at.Open == nil {
		f.Log.Error("the stored place up to which events are published cannot be read: what ended since is not published, it goes on with the present",
			"kind", KindCursor, "id", f.Key().ID, "error", err)
		f.at = remoteCursor{Open: map[job.ID]int{}}
	}
	return nil
}

func (c remoteCursor) clone() remoteCursor {
	c.Open = maps.Clone(c.Open)
	return c
}

func (c remoteCursor) same(o remoteCursor) bool {
	return c.Begun == o.Begun && c.Newest == o.Newest && maps.Equal(c.Open, o.Open)
}

func (f *Follower) save(ctx context.Context) error {
	text, err := json.Marshal(f.at)
	if err != nil {
		return fault.New(fault.Internal, "writing down how far events are published: %w", err)
	}
	_, err = store.Commit(ctx, f.Store, store.Tx{Epoch: f.Epoch, Put: []store.Put{{Key: f.Key(), Value: text}}})
	return err
}

// step asks once, and publishes what is new.
func (f *Follower) step(ctx context.Context) error {
	var err error
	if f.name == "" {
		if f.name, err = f.Remote.Name(ctx); err != nil {
			return err
		}
	}
	ids, err := f.Remote.Jobs(ctx)
	if err != nil {
		return err
	}
	if newest := slices.Max(append(ids, 0)); 0 < newest && newest < f.at.Newest && len(f.at.Open) == 0 {
		f.Log.Info("a cluster has no job that is as new as those which it had: it was set up anew, or these are archived; its jobs are told of from now on",
			"cluster", f.Cluster, "newest", newest, "had", f.at.Newest)
		f.at.Newest = newest
	}
	for _, id := range ids {
		if f.at.Begun && id > f.at.Newest {
			f.at.Open[id] = 0
		}
	}
	f.at.Newest, f.at.Begun = max(f.at.Newest, slices.Max(append(ids, 0))), true
	for _, id := range slices.Sorted(maps.Keys(f.at.Open)) {
		if err := f.tell(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// tell publishes the opcodes of a job that ended and are not published yet.
func (f *Follower) tell(ctx context.Context, id job.ID) error {
	j, err := f.Remote.Job(ctx, id)
	if fault.Is(err, fault.NotFound) {
		delete(f.at.Open, id)
		return nil
	}
	if useless(err) {
		f.Log.Error("no event can tell how a job of a cluster ended: what that tells of it cannot be taken", "cluster", f.Cluster, "job", id, "error", err)
		delete(f.at.Open, id)
		return nil
	}
	if err != nil {
		return err
	}
	for i := f.at.Open[id]; i < len(j.Ops); i++ {
		var machine *Machine
		if name, tells := tellsMachine(&j.Ops[i]); tells {
			if machine, err = f.Remote.Machine(ctx, name); err != nil && !useless(err) {
				return err
			}
		}
		m, ended := Of(f.name, j, i, machine)
		if !ended {
			break
		}
		if err := f.Publish(ctx, m); err != nil {
			return err
		}
		f.at.Open[id] = i + 1
	}
	if j.Final() {
		delete(f.at.Open, id)
	}
	return nil
}

// useless tells whether an answer is one that cannot be taken, however often it is asked for.
func useless(err error) bool { return fault.Is(err, fault.TooLarge) || fault.Is(err, fault.Invalid) }
