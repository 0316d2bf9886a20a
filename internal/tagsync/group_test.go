package tagsync_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/tagsync"
)

// group makes a server group.
func (r *rig) group() *server.Group {
	r.Helper()
	g, err := r.engine.AddGroup(r.ctx, server.Group{Name: "web", Project: "p", User: "u", Policy: server.AntiAffinity}, 10)
	r.check(err)
	return g
}

// in asks for a server in a group.
func (r *rig) in(g *server.Group) (*server.Server, error) {
	return r.engine.Create(r.ctx, &tagsync.Wish{Name: "web", Project: "p", User: "u", Flavor: server.DefaultFlavors()[3], Image: r.engine.Images()[0], NICs: 1, Group: g, Members: 10, Asked: r.asked()})
}

// made asks for a server in a group, and waits until it is there.
func (r *rig) made(g *server.Group) *server.Server {
	r.Helper()
	s, err := r.in(g)
	r.check(err)
	return r.until(s.ID, "is active and at rest", func(s *server.Server) bool { return s.Status() == server.Active && atRest(s) })
}

func removesGroup(tx store.Tx) bool {
	return slices.ContainsFunc(tx.Delete, func(k store.Key) bool { return k.Kind == tagsync.KindGroup })
}

// TestGroupsLast: a group and who is in it outlive the controller; what is removed is removed, and its servers and their instances know nothing of it any more, also where
// the controller died just behind the removal.
func TestGroupsLast(t *testing.T) {
	r := newRig(t)
	g := r.group()
	s := r.made(g)
	if got := r.onCluster(s); !slices.Equal(got, []string{"drover:placed:apart:" + g.ID}) {
		t.Errorf("the instance has %q", got)
	}
	r.stop()
	r.start()
	if got, err := r.engine.Group("p", g.ID); err != nil || *got != *g || !slices.Equal(r.engine.Members("p")[g.ID], []string{s.ID}) {
		t.Errorf("behind a restart it is %+v with %q, %v", got, r.engine.Members("p")[g.ID], err)
	}
	if _, err := r.engine.Group("other", g.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("another project's: %v", err)
	}
	// What is written down is all that a controller does which dies then.
	_, err := store.Commit(r.ctx, r.store, store.Tx{Delete: []store.Key{{Kind: tagsync.KindGroup, ID: g.ID}}})
	r.check(err)
	r.stop()
	r.start()
	r.until(s.ID, "has left the group", func(s *server.Server) bool { return len(s.Groups()) == 0 && len(s.Tags.Tags) == 0 && atRest(s) })
	if got := r.onCluster(s); len(got) != 0 {
		t.Errorf("the instance has %q", got)
	}
}

// TestAGroupThatCannotBeReadStays: nobody has removed it, so its servers stay in it; nobody joins it.
func TestAGroupThatCannotBeReadStays(t *testing.T) {
	r := newRig(t)
	g := r.group()
	s := r.made(g)
	_, err := store.Commit(r.ctx, r.store, store.Tx{Put: []store.Put{{Key: store.Key{Kind: tagsync.KindGroup, ID: g.ID}, Value: []byte("rubbish")}}})
	r.check(err)
	r.stop()
	r.start()
	r.check(r.engine.Attend(r.ctx, s.ID))
	if s = r.engine.Servers().Get(s.ID); !s.In(g.ID) {
		t.Errorf("it is in %v", s.Groups())
	}
	if len(r.engine.Groups("")) != 0 {
		t.Errorf("shown are %v", r.engine.Groups(""))
	}
	if _, err := r.engine.Group("p", g.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("found is %v", err)
	}
}

// TestARemovalOfAGroupThatTheStoreRefuses leaves it as it is, and its servers in it; one of which nobody knows what became of it is known when the store tells.
func TestARemovalOfAGroupThatTheStoreRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		fault faultstore.Fault
		gone  bool
	}{
		"refused":              {faultstore.Fault{Do: faultstore.FailBefore, Err: fault.New(fault.Fenced, "another leads")}, false},
		"not there, not known": {faultstore.Fault{Do: faultstore.FailBefore, Err: fault.New(fault.Unavailable, "no answer")}, false},
		"there, not known":     {faultstore.Fault{Do: faultstore.FailAfter, Err: fault.New(fault.Unavailable, "no answer")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			g := r.group()
			s := r.made(g)
			test.fault.When = removesGroup
			r.store.Inject(test.fault)
			if err := r.engine.RemoveGroup(r.ctx, "p", g.ID); err == nil {
				t.Fatal("it is removed")
			}
			if test.gone {
				r.until(s.ID, "has left the group", func(s *server.Server) bool { return len(s.Groups()) == 0 && atRest(s) })
				if _, err := r.in(g); !fault.Is(err, fault.Invalid) {
					t.Errorf("joined: %v", err)
				}
				return
			}
			r.check(r.engine.Attend(r.ctx, s.ID))
			if s = r.engine.Servers().Get(s.ID); !s.In(g.ID) {
				t.Errorf("it is in %v", s.Groups())
			}
			other, err := r.in(g)
			r.check(err)
			r.until(other.ID, "is told that there is one node alone", func(s *server.Server) bool {
				return s.Fault != nil && strings.Contains(s.Fault.Text, "of 1 candidates 1 that have as many of its group as may be on one node")
			})
			r.check(r.engine.RemoveGroup(r.ctx, "p", g.ID))
			r.until(s.ID, "has left the group", func(s *server.Server) bool { return len(s.Groups()) == 0 && atRest(s) })
		})
	}
}

// TestWhoIsTakenOutOfAGroupOnItsClusterIsInNone: the cluster is right about what nobody asked to change.
func TestWhoIsTakenOutOfAGroupOnItsClusterIsInNone(t *testing.T) {
	r := newRig(t)
	g := r.group()
	s := r.made(g)
	r.finish("OP_TAGS_DEL", tagParams(s, "drover:placed:apart:"+g.ID))
	r.until(s.ID, "has left the group", func(s *server.Server) bool { return len(s.Groups()) == 0 })
	if got := r.engine.Members("p")[g.ID]; len(got) != 0 {
		t.Errorf("in it are %q", got)
	}
}

// TestGroupsAreOfTheOwnCluster, and wait for the format: a program of before would place their servers anywhere.
func TestGroupsAreOfTheOwnCluster(t *testing.T) {
	r := newRig(t)
	present := format.Groups - 1
	r.format = func() int { return present }
	r.more = map[string]tagsync.Backend{"far": r.local()}
	r.stop()
	r.start()
	if _, err := r.engine.AddGroup(r.ctx, server.Group{Name: "web", Project: "p", Policy: server.Affinity}, 10); !fault.Is(err, fault.WrongState) {
		t.Errorf("before the format: %v", err)
	}
	present = format.Groups
	g := r.group()
	_, err := r.engine.Create(r.ctx, &tagsync.Wish{Name: "web", Project: "p", User: "u", Backend: "far", Flavor: server.DefaultFlavors()[3], Image: r.engine.Images()[0], Group: g, Members: 10, Asked: r.asked()})
	if !fault.Is(err, fault.Invalid) || r.engine.Servers().Len() != 0 {
		t.Errorf("on a further cluster: %v", err)
	}
	for range 2 {
		if _, _, err := r.both(g); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(r.engine.Members("p")[g.ID]); got != 4 {
		t.Errorf("%d are in it", got)
	}
}

// both asks for two servers of a group at one moment.
func (r *rig) both(g *server.Group) (a, b *server.Server, err error) {
	made, err := r.engine.CreateMany(r.ctx, &tagsync.Wish{Name: "web", Project: "p", User: "u", Flavor: server.DefaultFlavors()[3], Image: r.engine.Images()[0], Group: g, Members: -1, Asked: servertag.Asked{User: "u", Time: r.engine.Now()}}, 2, 2)
	if err != nil {
		return nil, nil, err
	}
	return made[0], made[1], nil
}
