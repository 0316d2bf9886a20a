package lock_test

import (
	"fmt"
	"iter"
	"math"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/lock"
)

func inst(item string, m lock.Mode) lock.Want {
	return lock.Want{Name: lock.Name{Level: lock.Instance, Item: item}, Mode: m}
}

func bgl(m lock.Mode) lock.Want {
	return lock.Want{Name: lock.Name{Level: lock.Cluster, Item: lock.BGL}, Mode: m}
}

func TestSharedTogetherExclusiveAlone(t *testing.T) {
	tab := lock.NewTable()
	if !tab.Acquire(1, 0, lock.Request{bgl(lock.Shared), inst("web1", lock.Exclusive)}) {
		t.Fatal("first owner waits")
	}
	if !tab.Acquire(2, 0, lock.Request{bgl(lock.Shared), inst("web2", lock.Exclusive)}) {
		t.Fatal("another instance waits")
	}
	if tab.Acquire(3, 0, lock.Request{bgl(lock.Shared), inst("web1", lock.Shared)}) {
		t.Fatal("an exclusive lock was shared")
	}
	wait, ok := tab.Waiting(3, math.MaxInt)
	if !ok || wait.Name.String() != "instance/web1" || !reflect.DeepEqual(wait.Holders, []lock.Owner{1}) {
		t.Fatalf("Waiting = %+v, %v", wait, ok)
	}
	if got := tab.Release(1); !reflect.DeepEqual(got, []lock.Owner{3}) {
		t.Fatalf("Release = %v", got)
	}
}

func TestLocksetImpliesMembers(t *testing.T) {
	tab := lock.NewTable()
	tab.Acquire(1, 0, lock.Request{inst("web1", lock.Exclusive)})
	if tab.Acquire(2, 0, lock.Request{inst(lock.All, lock.Exclusive)}) {
		t.Fatal("the lockset was granted beside a member")
	}
	if tab.Acquire(3, 0, lock.Request{inst("web2", lock.Shared)}) {
		t.Fatal("a member overtook the lockset's waiter")
	}
	if got := tab.Release(1); !reflect.DeepEqual(got, []lock.Owner{2}) {
		t.Fatalf("Release = %v", got)
	}
	if got := tab.Release(2); !reflect.DeepEqual(got, []lock.Owner{3}) {
		t.Fatalf("Release = %v", got)
	}
}

func TestPriorityThenArrival(t *testing.T) {
	tab := lock.NewTable()
	want := lock.Request{inst("web1", lock.Exclusive)}
	tab.Acquire(1, 0, want)
	tab.Acquire(2, 0, want)
	tab.Acquire(3, 0, want)
	tab.Acquire(4, -10, want)
	tab.SetPriority(3, -20)
	var served []lock.Owner
	for next := lock.Owner(1); next != 0; {
		granted := tab.Release(next)
		next = 0
		if len(granted) > 0 {
			served, next = append(served, granted[0]), granted[0]
		}
	}
	if want := []lock.Owner{3, 4, 2}; !reflect.DeepEqual(served, want) {
		t.Errorf("served %v, want %v", served, want)
	}
	if left := tab.States(); len(left) != 0 {
		t.Errorf("locks left behind: %v", left)
	}
}

func TestReleaseSome(t *testing.T) {
	tab := lock.NewTable()
	tab.Acquire(1, 0, lock.Request{inst("web1", lock.Exclusive), inst("web2", lock.Exclusive)})
	tab.Acquire(2, 0, lock.Request{inst("web2", lock.Shared)})
	if got := tab.ReleaseSome(1, lock.Name{Level: lock.Instance, Item: "web2"}); !reflect.DeepEqual(got, []lock.Owner{2}) {
		t.Fatalf("ReleaseSome = %v", got)
	}
	if held := tab.Held(1); len(held) != 1 || held[0].Name.Item != "web1" {
		t.Errorf("Held = %v", held)
	}
}

// TestModel drives random owners through random requests and checks after each
// step that no two holders exclude one another, that every grant is announced
// exactly once, that nobody waits for a lock that is free to take, and that a
// view kept by the changes is what the table tells as a whole.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := lock.NewTable()
		var view lock.View
		granted := map[lock.Owner]bool{} // present: known to the table
		next := lock.Owner(1)
		note := func(owners []lock.Owner) {
			for _, o := range owners {
				if done, ok := granted[o]; !ok || done {
					t.Fatalf("owner %d announced twice or unknown", o)
				}
				granted[o] = true
			}
		}
		owner := func() lock.Owner {
			var all []lock.Owner
			for o := lock.Owner(1); o < next; o++ {
				if _, ok := granted[o]; ok {
					all = append(all, o)
				}
			}
			if len(all) == 0 {
				return 0
			}
			return rapid.SampledFrom(all).Draw(t, "owner")
		}
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				req := drawRequest(t)
				granted[next] = false
				granted[next] = tab.Acquire(next, rapid.IntRange(-1, 1).Draw(t, "priority"), req)
				next++
			},
			"release": func(*rapid.T) {
				if o := owner(); o != 0 {
					delete(granted, o)
					note(tab.Release(o))
				}
			},
			"release some": func(*rapid.T) {
				if o := owner(); o != 0 && granted[o] {
					note(releaseMember(tab, o))
				}
			},
			"hurry": func(t *rapid.T) {
				if o := owner(); o != 0 {
					note(tab.SetPriority(o, rapid.IntRange(-3, 3).Draw(t, "priority")))
				}
			},
			"": func(t *rapid.T) {
				checkTable(t, tab, granted)
				view = checkView(t, tab, view)
			},
		})
		for o := range granted {
			delete(granted, o)
			note(tab.Release(o))
		}
		if left := tab.States(); len(left) != 0 {
			t.Fatalf("locks left behind: %v", left)
		}
	})
}

// releaseMember gives back one of the locks that are no locksets.
func releaseMember(tab *lock.Table, o lock.Owner) []lock.Owner {
	held := tab.Held(o)
	i := slices.IndexFunc(held, func(w lock.Want) bool { return w.Name.Item != lock.All })
	if i < 0 {
		return nil
	}
	return tab.ReleaseSome(o, held[i].Name)
}

// checkView carries a view on by what changed, and compares it with the table.
func checkView(t *rapid.T, tab *lock.Table, view lock.View) lock.View {
	earlier := looks(view.All())
	next := view.With(tab.Changed())
	if got, want := looks(next.All()), looks(slices.Values(tab.States())); !slices.Equal(got, want) {
		t.Fatalf("the view shows %v, the table %v", got, want)
	}
	if still := looks(view.All()); !slices.Equal(still, earlier) {
		t.Fatalf("an earlier view changed from %v to %v", earlier, still)
	}
	return next
}

// looks tells locks as texts.
func looks(states iter.Seq[lock.State]) (out []string) {
	for s := range states {
		out = append(out, fmt.Sprint(s.Name, s.Mode, slices.Collect(s.Holders.All()), s.Pending))
	}
	return out
}

// TestAHolderMoreCostsTheSame: nearly every opcode shares one lock, so what a
// change of it costs must not grow with those who hold it. The unit is bytes that are allocated, which do not depend on what
// else the machine does.
func TestAHolderMoreCostsTheSame(t *testing.T) {
	cost := func(holders lock.Owner) float64 {
		tab, share := lock.NewTable(), lock.Request{bgl(lock.Shared)}
		for o := range holders {
			tab.Acquire(o, 0, share)
		}
		var view lock.View
		return allocated(func() {
			const changes = 1000
			for o := range lock.Owner(changes) {
				tab.Acquire(holders+o, 0, share)
				view = view.With(tab.Changed())
				tab.Release(o)
				view = view.With(tab.Changed())
			}
		})
	}
	few, many := cost(1000), cost(20_000)
	if many > 2*few {
		t.Errorf("beside 20,000 holders changes cost %.0f bytes, beside 1,000 %.0f", many, few)
	}
}

// allocated is how many bytes f allocates.
func allocated(f func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc - before.TotalAlloc)
}

func drawRequest(t *rapid.T) lock.Request {
	var req lock.Request
	for range rapid.IntRange(0, 4).Draw(t, "wants") {
		req = append(req, lock.Want{
			Name: lock.Name{
				Level: rapid.SampledFrom([]lock.Level{lock.Cluster, lock.Instance, lock.Node}).Draw(t, "level"),
				Item:  rapid.SampledFrom([]string{lock.All, "a", "b"}).Draw(t, "item"),
			},
			Mode: rapid.SampledFrom([]lock.Mode{lock.Shared, lock.Exclusive}).Draw(t, "mode"),
		})
	}
	return req
}

func checkTable(t *rapid.T, tab *lock.Table, granted map[lock.Owner]bool) {
	holds := map[string][]lock.Want{}
	for o, done := range granted {
		wait, waits := tab.Waiting(o, math.MaxInt)
		if waits == done {
			t.Fatalf("owner %d: waiting %v, granted %v", o, waits, done)
		}
		if waits && len(wait.Holders) == 0 && len(wait.Ahead) == 0 {
			t.Fatalf("owner %d waits for the free lock %v", o, wait.Name)
		}
		for _, w := range tab.Held(o) {
			key := fmt.Sprint(w.Name)
			for _, other := range holds[key] {
				if w.Mode == lock.Exclusive || other.Mode == lock.Exclusive {
					t.Fatalf("two holders of %v", w.Name)
				}
			}
			holds[key] = append(holds[key], w)
		}
	}
	for name, wants := range holds {
		for other, others := range holds {
			if name != other && covers(wants[0].Name, others[0].Name) && (wants[0].Mode == lock.Exclusive || others[0].Mode == lock.Exclusive) &&
				!sameSingleHolder(tab, granted, wants[0].Name, others[0].Name) {
				t.Fatalf("lockset %v held beside member %v", name, other)
			}
		}
	}
}

func covers(set, member lock.Name) bool {
	return set.Item == lock.All && set.Level == member.Level && set.Level != lock.Cluster
}

// sameSingleHolder reports whether one and the same owner holds both names.
func sameSingleHolder(tab *lock.Table, granted map[lock.Owner]bool, a, b lock.Name) bool {
	who := map[lock.Name][]lock.Owner{}
	for o := range granted {
		for _, w := range tab.Held(o) {
			who[w.Name] = append(who[w.Name], o)
		}
	}
	return len(who[a]) == 1 && reflect.DeepEqual(who[a], who[b])
}
