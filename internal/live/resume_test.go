package live_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/store"
)

// client is what somebody who follows a query knows of it.
type client map[string]string

func (c client) take(u *live.Update) {
	if u.Reset {
		clear(c)
	}
	for _, e := range u.Events {
		if e.Type == "leave" {
			delete(c, e.ID)
			continue
		}
		c[e.ID] = string(e.Row)
	}
}

// many makes changes of n instances.
func many(n int, state string) []cluster.Change {
	out := make([]cluster.Change, n)
	for i := range out {
		out[i] = put(fmt.Sprint("many", i), state)
	}
	return out
}

// knows tells whether a client who goes on from a revision knows what a new one is
// told.
func (r *rig) knows(who client, u *live.Update) {
	r.Helper()
	who.take(u)
	want := client{}
	want.take(nextOf(r, r.restarted(), 0))
	if !maps.Equal(who, want) {
		r.Errorf("knows %d rows, and there are %d; reset: %v, %d events", len(who), len(want), u.Reset, len(u.Events))
	}
}

// Who comes back after more changes than are read of the feed is told of all of them,
// by a controller that does not know him: also where those that are read end with a transaction.
func TestResumeAfterManyChanges(t *testing.T) {
	for _, read := range []int{6_000, 5_000} {
		r := newRig(t, 0)
		r.change(put("a", "up"), put("b", "up"))
		first := r.next(0)
		who := client{}
		who.take(first)
		r.change(many(read, "up")...)
		r.change(put("a", "down"), cluster.Delete(cluster.KindInstance, "uuid-b"))
		r.knows(who, nextOf(r, r.restarted(), first.Revision))
	}
}

// A watch keeps so many events for those who follow it. Who comes back from before
// them is told everything, not only what is kept.
func TestResumeFromBeforeWhatIsKept(t *testing.T) {
	r := newRig(t, 0)
	r.change(put("a", "up"), put("b", "up"))
	u := r.next(0)
	first, who, there := u.Revision, client{}, client{}
	who.take(u)
	there.take(u)
	r.change(put("a", "down"), cluster.Delete(cluster.KindInstance, "uuid-b"))
	u = r.next(u.Revision)
	there.take(u)
	for round := range 3 {
		r.change(many(7_000, fmt.Sprint("round", round))...)
		u = r.next(u.Revision)
		if u.Reset || len(u.Events) != 7_000 {
			t.Fatalf("round %d: %d events, reset: %v", round, len(u.Events), u.Reset)
		}
		r.knows(there, u)
	}
	r.knows(who, r.next(first))
}

// nextOfLimited is next of a query with a limit.
func (r *rig) nextOfLimited(ctx context.Context, since store.Revision) *live.Update {
	r.Helper()
	limited := instances
	limited.Limit = 10
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	u, err := r.Next(ctx, limited, since)
	if err != nil {
		r.Fatal(err)
	}
	return u
}

// TestAWatchThatIsGoneOnWithStays: a client that asks again each time has the watch of before, however often he does, and is told what is new. A
// watch that begins anew could not tell that of a query with a limit.
func TestAWatchThatIsGoneOnWithStays(t *testing.T) {
	r := newRig(t, 0)
	r.change(put("a", "up"))
	u := r.nextOfLimited(t.Context(), 0)
	for i := range 40 {
		r.change(put("a", fmt.Sprint("state", i)))
		if u = r.nextOfLimited(t.Context(), u.Revision); u.Reset || len(u.Events) != 1 {
			t.Fatalf("asked for the %d. time it is told: %s", i+1, words(u))
		}
	}
}

// TestWhatSomebodyGaveUpIsToldToOthers: who leaves while a watch takes changes in takes them from nobody who shares it.
func TestWhatSomebodyGaveUpIsToldToOthers(t *testing.T) {
	r := newRig(t, 0)
	r.change(put("a", "up"))
	u := r.nextOfLimited(t.Context(), 0)
	r.change(put("b", "up"))
	gone, leave := context.WithCancel(t.Context())
	leave()
	if nothing := r.nextOfLimited(gone, u.Revision); nothing.Reset || len(nothing.Events) != 0 || nothing.Revision != u.Revision {
		t.Errorf("who is gone is told of revision %d: %s", nothing.Revision, words(nothing))
	}
	if u = r.nextOfLimited(t.Context(), u.Revision); words(u) != "enter uuid-b" {
		t.Errorf("the other one is told: %s", words(u))
	}
}
