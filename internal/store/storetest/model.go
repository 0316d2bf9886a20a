package storetest

import (
	"bytes"
	"cmp"
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
	// revisions are those of the changes in feed.
	revisions []store.Revision
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
	for range changes {
		m.revisions = append(m.revisions, rev)
	}
}

// list is what the store should list of a kind.
func (m *model) list(kind store.Kind, opts store.Options) []string {
	var found []store.Object
	for k, o := range m.objects {
		after := opts.After == "" || store.CompareIDs(k.ID, opts.After) != 0 && (store.CompareIDs(k.ID, opts.After) > 0) != opts.Desc
		if k.Kind == kind && after && (!opts.ByAt || o.At != 0 && o.At >= opts.Since && (opts.Until == 0 || o.At < opts.Until)) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b store.Object) int {
		if opts.Desc {
			a, b = b, a
		}
		if opts.ByAt && a.At != b.At {
			return cmp.Compare(a.At, b.At)
		}
		return store.CompareIDs(a.ID, b.ID)
	})
	ids := []string{}
	for _, o := range found {
		if opts.Limit == 0 || len(ids) < opts.Limit {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

func randomOptions(t *rapid.T) store.Options {
	opts := store.Options{Desc: rapid.Bool().Draw(t, "desc"), Limit: rapid.IntRange(0, 4).Draw(t, "limit")}
	if opts.ByAt = rapid.Bool().Draw(t, "by at"); opts.ByAt {
		opts.Since = rapid.Int64Range(0, 3).Draw(t, "since")
		opts.Until = rapid.Int64Range(0, 4).Draw(t, "until")
	} else if rapid.Bool().Draw(t, "page") {
		opts.After = randomKey(t).ID
	}
	return opts
}

// checkFeed reads the end of the feed from a random change on, in portions of random size.
func (m *model) checkFeed(t *rapid.T, f *fixture) {
	if len(m.feed) == 0 {
		return
	}
	const end = 50
	from := rapid.IntRange(max(0, len(m.feed)-end), len(m.feed)-1).Draw(t, "from")
	from = slices.Index(m.revisions, m.revisions[from])
	got := describe(f.changes(m.revisions[from]-1, rapid.IntRange(1, 9).Draw(t, "portion")))
	if !slices.Equal(got, m.feed[from:]) {
		t.Fatalf("after revision %d: got %q, want %q", m.revisions[from]-1, got, m.feed[from:])
	}
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
			for _, opts := range []store.Options{{}, randomOptions(t)} {
				if got, want := f.list(kind, opts), m.list(kind, opts); !slices.Equal(got, want) {
					t.Fatalf("list %s with %+v: got %q, want %q", kind, opts, got, want)
				}
			}
		}
		m.checkFeed(t, f)
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

// largeValue is more than a page of a database has room for.
const largeValue = 10_000

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
		p := put(k, strconv.Itoa(rapid.IntRange(0, 1000).Draw(t, "value")))
		p.At = rapid.Int64Range(0, 4).Draw(t, "at")
		if rapid.IntRange(0, 9).Draw(t, "large") == 0 { // a store may treat these differently
			p.Value = bytes.Repeat([]byte("1"), largeValue)
		}
		tx.Put = append(tx.Put, p)
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
