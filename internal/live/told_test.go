package live_test

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/store"
)

// changing is a node that has told what it has, and has something else by the time that this has come.
type changing struct {
	live.Node
	free    *atomic.Int64
	changes func()
}

// State is what it told last.
func (n changing) State(ctx context.Context, fresh bool) (agent.State, error) {
	s, err := n.Node.State(ctx, fresh)
	s.Node.MemoryFree = int(n.free.Load())
	n.changes()
	return s, err
}

// TestWhatANodeTellsWhileAWatchBeginsIsShown: nobody watched yet when it told that, and nothing else comes to pass.
func TestWhatANodeTellsWhileAWatchBeginsIsShown(t *testing.T) {
	for what, early := range map[string]bool{"heard before anybody watched": true, "heard later": false} {
		r := newRig(t, 0)
		var free atomic.Int64
		free.Store(1)
		hearing, stop := context.WithCancel(t.Context())
		var heard sync.WaitGroup
		hear := func() {
			heard.Go(func() {
				if err := r.HearNodes(hearing); err != nil {
					t.Error(err)
				}
			})
		}
		change := sync.OnceFunc(func() {
			free.Store(2)
			r.NodeTold()
			for range 1000 { // who hears it finds nobody who watches
				runtime.Gosched()
			}
		})
		nodes := r.Nodes
		r.Querier.Nodes = func(name string) (live.Node, error) {
			n, err := nodes(name)
			return changing{n, &free, change}, err
		}
		next := func(since store.Revision) *live.Update {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			u, err := r.Next(ctx, query.Request{What: "node", Fields: []string{"name", "mfree"}}, since)
			if err != nil {
				t.Fatal(err)
			}
			return u
		}
		if early {
			hear()
		}
		u := next(0)
		if !early {
			hear()
		}
		who := client{}
		old := func() bool {
			who.take(u)
			return slices.ContainsFunc(slices.Collect(maps.Values(who)), func(row string) bool { return strings.Contains(row, "[0,1]") })
		}
		if !old() {
			t.Fatalf("%s: at first it shows %v", what, who)
		}
		for old() {
			if u = next(u.Revision); len(u.Events) == 0 {
				t.Fatalf("%s: what a node told is shown to nobody", what)
			}
		}
		stop()
		heard.Wait()
	}
}
