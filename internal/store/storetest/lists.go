package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

var lists = []testCase{
	{"numbers in numeric order, then names", listOrder},
	{"after, limit and direction", listPages},
	{"by time", listByTime},
	{"a listing is one moment", listMoment},
	{"reading inside a listing", readInsideList},
	{"bad options and cancelled contexts", listErrors},
}

func listOrder(f *fixture) {
	want := []string{"0", "1", "2", "9", "10", "11", "99", "100", "1000000", "9223372036854775807", "-1", "007", "1.5", "Z", "a", "a1", "a10", "a2", "é", "世"}
	tx := store.Tx{Put: []store.Put{put(key("other", "5"), "1")}}
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(len(want)) {
		tx.Put = append(tx.Put, put(key("job", want[i]), "1"))
	}
	f.commit(tx)
	if got := f.list("job", store.Options{}); !slices.Equal(got, slices.SortedFunc(slices.Values(want), store.CompareIDs)) {
		f.Errorf("got %q", got)
	}
	down := f.list("job", store.Options{Desc: true})
	slices.Reverse(down)
	if got := f.list("job", store.Options{}); !slices.Equal(got, down) {
		f.Errorf("descending is not the reverse: %q", down)
	}
	if got := f.list("none", store.Options{}); len(got) != 0 {
		f.Errorf("an unknown kind has %q", got)
	}
}

func listPages(f *fixture) {
	var tx store.Tx
	for i := range 25 {
		tx.Put = append(tx.Put, put(key("job", strconv.Itoa(i)), "1"))
	}
	f.commit(tx)
	for _, tc := range []struct {
		opts store.Options
		want []string
	}{
		{store.Options{Limit: 3}, []string{"0", "1", "2"}},
		{store.Options{After: "8", Limit: 3}, []string{"9", "10", "11"}},
		{store.Options{After: "22"}, []string{"23", "24"}},
		{store.Options{After: "24"}, []string{}},
		{store.Options{After: "99999"}, []string{}},
		{store.Options{After: "zebra"}, []string{}},
		{store.Options{Desc: true, Limit: 2}, []string{"24", "23"}},
		{store.Options{Desc: true, After: "11", Limit: 3}, []string{"10", "9", "8"}},
		{store.Options{Desc: true, After: "zebra", Limit: 1}, []string{"24"}},
		{store.Options{Desc: true, After: "0"}, []string{}},
	} {
		if got := f.list("job", tc.opts); !slices.Equal(got, tc.want) {
			f.Errorf("%+v: got %q, want %q", tc.opts, got, tc.want)
		}
	}
}

func listByTime(f *fixture) {
	var tx store.Tx
	for id, at := range map[string]int64{"1": 300, "2": 100, "10": 200, "9": 200, "3": 0, "b": 200, "4": 1 << 60, "5": -5} {
		tx.Put = append(tx.Put, store.Put{Key: key("job", id), At: at, Value: []byte("1")})
	}
	f.commit(tx)
	f.commit(puts(store.Put{Key: key("other", "1"), At: 200, Value: []byte("1")}))
	for _, tc := range []struct {
		opts store.Options
		want []string
	}{
		{store.Options{ByAt: true}, []string{"5", "2", "9", "10", "b", "1", "4"}},
		{store.Options{ByAt: true, Desc: true}, []string{"4", "1", "b", "10", "9", "2", "5"}},
		{store.Options{ByAt: true, Since: 200}, []string{"9", "10", "b", "1", "4"}},
		{store.Options{ByAt: true, Since: 101, Until: 300, Limit: 2}, []string{"9", "10"}},
		{store.Options{ByAt: true, Until: 200, Desc: true, Limit: 1}, []string{"2"}},
		{store.Options{ByAt: true, Since: 1 << 61}, []string{}},
	} {
		if got := f.list("job", tc.opts); !slices.Equal(got, tc.want) {
			f.Errorf("%+v: got %q, want %q", tc.opts, got, tc.want)
		}
	}
	f.commit(puts(put(key("job", "1"), "2"))) // no At any more
	f.commit(puts(store.Put{Key: key("job", "3"), At: 1, Value: []byte("2")}))
	if got := f.list("job", store.Options{ByAt: true, Since: 1, Until: 1000}); !slices.Equal(got, []string{"3", "2", "9", "10", "b"}) {
		f.Errorf("after moving: %q", got)
	}
}

func listMoment(f *fixture) {
	var tx store.Tx
	for i := range 100 {
		tx.Put = append(tx.Put, put(key("job", strconv.Itoa(i)), "1"))
	}
	f.commit(tx)
	seen := 0
	for o, err := range f.List(f.ctx, "job", store.Options{}) {
		if err != nil {
			f.Fatal(err)
		}
		if seen == 0 {
			f.commit(store.Tx{Put: []store.Put{put(key("job", "1000"), "2"), put(key("job", "60"), "2")}, Delete: []store.Key{key("job", "99")}})
		}
		if string(o.Value) != "1" {
			f.Errorf("%s has the value %s of a later moment", o.ID, o.Value)
		}
		seen++
	}
	if seen != 100 {
		f.Errorf("saw %d objects, want 100", seen)
	}
}

func readInsideList(f *fixture) {
	f.commit(puts(put(key("a", "1"), "1"), put(key("a", "2"), "2"), put(key("b", "1"), "1")))
	n := 0
	for _, err := range f.List(f.ctx, "a", store.Options{}) {
		if err != nil {
			f.Fatal(err)
		}
		for o, err := range f.List(f.ctx, "b", store.Options{}) {
			if err != nil {
				f.Fatal(err)
			}
			f.wantObject(o.Key, "1", o.Revision)
			n++
		}
	}
	for _, err := range f.List(f.ctx, "a", store.Options{}) {
		if err != nil {
			f.Fatal(err)
		}
		n++
		break // a consumer may stop early
	}
	if n != 3 {
		f.Errorf("read %d objects, want 3", n)
	}
}

func listErrors(f *fixture) {
	f.commit(puts(put(key("job", "1"), "1")))
	for _, opts := range []store.Options{{Limit: -1}, {Since: 1}, {Until: 1}, {ByAt: true, After: "1"}} {
		if err := listError(f.ctx, f, opts); !fault.Is(err, fault.Invalid) {
			f.Errorf("%+v: %v", opts, err)
		}
	}
	if _, err := f.Changes(f.ctx, 0, 0); !fault.Is(err, fault.Invalid) {
		f.Errorf("changes without a limit: %v", err)
	}
	because := errors.New("enough")
	ctx, cancel := context.WithCancelCause(f.ctx)
	cancel(because)
	if err := listError(ctx, f, store.Options{}); !errors.Is(err, because) {
		f.Errorf("list: %v", err)
	}
	if _, err := f.Get(ctx, key("job", "1")); !errors.Is(err, because) {
		f.Errorf("get: %v", err)
	}
	if _, err := f.Changes(ctx, 0, 1); !errors.Is(err, because) {
		f.Errorf("changes: %v", err)
	}
}

// listError is the error that ends a listing.
func listError(ctx context.Context, s store.Store, opts store.Options) error {
	for _, err := range s.List(ctx, "job", opts) {
		if err != nil {
			return err
		}
	}
	return nil
}
