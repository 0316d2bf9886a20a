package tagsync_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/tagsync"
)

// deafMute hears nothing of its cluster, which can be asked unless it is out of reach.
type deafMute struct {
	tagsync.Backend
	away atomic.Bool
}

func (d *deafMute) Follow(ctx context.Context, _ func(server.Ref)) error {
	<-ctx.Done()
	return nil
}

func (d *deafMute) Look(ctx context.Context, instance server.Ref, jobs []job.ID) (server.Sight, error) {
	if d.away.Load() {
		return server.Sight{}, errors.New("no route to host")
	}
	return d.Backend.Look(ctx, instance, jobs)
}

// TestReconciliation: what an engine did not hear of is told with its reason,
// changed by nothing but fixing, and gone then.
func TestReconciliation(t *testing.T) {
	var ear *deafMute
	r := newRigAround(t, func(b tagsync.Backend) tagsync.Backend {
		ear = &deafMute{Backend: b}
		return ear
	})
	s := r.createDeaf("a", "b")
	r.finish("OP_TAGS_DEL", tagParams(s, "cyclades:user:a"))
	r.finish("OP_TAGS_SET", tagParams(s, "cyclades:user:new", "cyclades:user:od_d", "foreign"))
	want := map[string]servertag.Kind{"a": servertag.TakenAway, "new": servertag.Stranger, "": servertag.Misspelt}
	for range 2 { // the report alone changes nothing
		found := r.examine(s.ID, false)
		if !found.Drift || len(found.Findings) != 1 || len(found.Findings[0].Differences) != len(want) {
			t.Fatalf("found is %+v", found)
		}
		for _, d := range found.Findings[0].Differences {
			if want[d.Name] != d.What {
				t.Errorf("%+v, want %s", d, want[d.Name])
			}
		}
	}
	ear.away.Store(true)
	if found := r.examine("", true); !found.Drift || found.Fixed || found.Findings[0].Unreachable == "" {
		t.Errorf("of a cluster that is away: %+v", found)
	}
	ear.away.Store(false)
	if found := r.examine("", true); !found.Fixed || found.Looked != 1 || !found.Left {
		t.Errorf("fixing, with a tag that somebody has to look at: %+v", found)
	}
	if got := r.engine.Servers().Get(s.ID).Tags.Names(user); !slices.Equal(got, []string{"b", "new"}) {
		t.Errorf("after fixing the tags are %q", got)
	}
	r.finish("OP_TAGS_DEL", tagParams(s, "cyclades:user:od_d"))
	if found := r.examine(s.ID, false); found.Drift || len(found.Findings) != 0 {
		t.Errorf("at last: %+v", found)
	}
	r.finish("OP_INSTANCE_REMOVE", map[string]any{"instance_name": s.Instance})
	if found := r.examine("", true); !found.Drift || !found.Findings[0].Missing || found.Left {
		t.Errorf("without the instance: %+v", found)
	}
	if got := r.engine.Servers().Get(s.ID).Status(); got != server.Gone {
		t.Errorf("the server is %s", got)
	}
	if _, err := r.engine.Examine(t.Context(), "nosuch", false); !fault.Is(err, fault.NotFound) {
		t.Errorf("of no server: %v", err)
	}
}

// TestWhatIsLeftOfOneIsTold though all that come behind it are in order.
func TestWhatIsLeftOfOneIsTold(t *testing.T) {
	r := newRig(t)
	first, second := r.create("a"), r.create("b")
	r.finish("OP_TAGS_SET", tagParams(first, "cyclades:user:od_d")) // which somebody has to look at
	r.finish("OP_TAGS_DEL", tagParams(second, "cyclades:user:b"))
	if found := r.examine("", true); !found.Left || found.Looked != 2 {
		t.Errorf("of both: %+v", found)
	}
}

func (r *rig) examine(id string, fix bool) *tagsync.Report {
	r.Helper()
	found, err := r.engine.Examine(r.ctx, id, fix)
	r.check(err)
	return found
}

// createDeaf makes a server where no event tells of the end of its job.
func (r *rig) createDeaf(tags ...string) *server.Server {
	r.Helper()
	s, err := r.engine.Create(r.ctx, &tagsync.Wish{Name: "web", Project: "p", User: "u", Flavor: server.DefaultFlavors()[3], Image: r.engine.Images()[0],
		Tags: tags, Asked: r.asked()})
	r.check(err)
	s = r.until(s.ID, "is submitted", func(s *server.Server) bool { return s.Doing() != nil && s.Doing().Job != 0 })
	_, err = r.queue.Wait(r.ctx, s.Doing().Job, (*job.Job).Final)
	r.check(err)
	r.check(r.engine.Attend(r.ctx, s.ID))
	return r.settled(s.ID)
}
