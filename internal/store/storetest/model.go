package storetest

import (
	"maps"
	"slices"
	"strconv"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

var models = []testCase{
	{"random histories agree with a map", randomHistories},
}

// model is what a store should be: a map, and the list of its changes.
type model struct {
	objects map[store.Key]store.Object
	feed    []string
}

func (m *model) accepts(tx store.Tx) bool {
	for _, e := range tx.Expect {
		if m.objects[e.Key].Revision != e.Revision {
			return false
		}
	}
	return true
}

func (m *model) apply(tx store.Tx, rev store.Revision) {
	var changes []store.Change
	for _, p := range tx.Put {
		m.objects[p.Key] = store.Object{Key: p.Key, Revision: rev, At: p.At, Value: p.Value}
		changes = append(changes, store.Change{Revision: rev, Key: p.Key})
	}
	for _, k := range tx.Delete {
		delete(m.objects, k)
		changes = append(changes, store.Change{Revision: rev, Key: k, Deleted: true})
	}
	m.feed = append(m.feed, describe(changes)...)
}

// list is what the store should list of a kind.
func (m *model) list(kind store.Kind) []string {
	ids := []string{}
	for k := range maps.Keys(m.objects) {
		if k.Kind == kind {
			ids = append(ids, k.ID)
		}
	}
	slices.SortFunc(ids, store.CompareIDs)
	return ids
}

// randomHistories runs one random history after the other on the same store,
// each history upon what the ones before have left.
func randomHistories(f *fixture) {
	m := &model{objects: map[store.Key]store.Object{}}
	rapid.Check(f.T, func(t *rapid.T) {
		for range rapid.IntRange(1, 4).Draw(t, "groups") {
			txs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) store.Tx { return randomTx(t, m) }), 1, 12).Draw(t, "txs")
			if !m.follow(f, txs) {
				t.Fatal("the store and the model part")
			}
			if rapid.IntRange(0, 19).Draw(t, "reopen") == 0 {
				f.reopen()
			}
		}
		for _, kind := range []store.Kind{"job", "instance"} {
			if got, want := f.list(kind, store.Options{}), m.list(kind); !slices.Equal(got, want) {
				t.Fatalf("list %s: got %q, want %q", kind, got, want)
			}
		}
	})
	if got := describe(f.changes(0, 100)); !slices.Equal(got, m.feed) {
		f.Errorf("the feed has %d changes, the model %d, or they differ", len(got), len(m.feed))
	}
}

// follow enqueues transactions together and checks that the store decided each as the model does.
func (m *model) follow(f *fixture, txs []store.Tx) bool {
	for i, o := range enqueueAll(f, txs) {
		want := fault.Code("")
		if !m.accepts(txs[i]) {
			want = fault.Conflict
		}
		if fault.CodeOf(o.err) != want {
			f.Errorf("transaction %+v: %v, want code %q", txs[i], o.err, want)
			return false
		}
		if o.err == nil {
			m.apply(txs[i], o.rev)
		}
	}
	for k, o := range m.objects {
		f.wantObject(k, string(o.Value), o.Revision)
	}
	return true
}

func randomKey(t *rapid.T) store.Key {
	return key(rapid.SampledFrom([]string{"job", "instance"}).Draw(t, "kind"),
		rapid.SampledFrom([]string{"1", "2", "9", "10", "11", "a", "é"}).Draw(t, "id"))
}

func randomTx(t *rapid.T, m *model) store.Tx {
	var tx store.Tx
	used := map[store.Key]bool{}
	for range rapid.IntRange(0, 4).Draw(t, "changes") {
		k := randomKey(t)
		if used[k] {
			continue
		}
		used[k] = true
		if rapid.IntRange(0, 2).Draw(t, "delete") == 0 {
			tx.Delete = append(tx.Delete, k)
			continue
		}
		tx.Put = append(tx.Put, put(k, strconv.Itoa(rapid.IntRange(0, 1000).Draw(t, "value"))))
	}
	for range rapid.IntRange(0, 1).Draw(t, "expectations") {
		k := randomKey(t)
		rev := m.objects[k].Revision
		if rapid.Bool().Draw(t, "absent") {
			rev = 0
		}
		tx.Expect = append(tx.Expect, store.Expect{Key: k, Revision: rev})
	}
	return tx
}
