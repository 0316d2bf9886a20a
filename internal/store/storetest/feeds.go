package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

var feeds = []testCase{
	{"changes in order, whole transactions", feedOrder},
	{"resume from any revision", feedResume},
	{"values are the newest or those of the revision", feedValues},
	{"refused transactions are not in the feed", feedRefused},
	{"watch replays, then follows", watchFollows},
	{"watch wakes for each commit", watchWakes},
	{"many watchers see the same", watchMany},
	{"a slow watcher misses nothing and delays nobody", watchSlow},
	{"watch ends with its context and with the store", watchEnds},
	{"compaction", compaction},
	{"a watcher that is too slow is told", watchCompacted},
	{"a revision that was never reached", feedFuture},
}

// script commits a fixed sequence and returns the feed's description of it.
func script(f *fixture) []string {
	f.Helper()
	var want []string
	for i := range 40 {
		id := strconv.Itoa(i)
		tx := puts(put(key("job", id), "1"), put(key("instance", "i"+id), "1"))
		if i%4 == 3 {
			tx.Delete = []store.Key{key("job", strconv.Itoa(i-1)), key("job", "none")}
		}
		rev := f.commit(tx)
		want = append(want, fmt.Sprintf("%d put job/%s", rev, id), fmt.Sprintf("%d put instance/i%s", rev, id))
		if i%4 == 3 {
			want = append(want, fmt.Sprintf("%d delete job/%d", rev, i-1), fmt.Sprintf("%d delete job/none", rev))
		}
		if i%5 == 0 {
			f.commit(store.Tx{})
		}
	}
	return want
}

func feedOrder(f *fixture) {
	if got := f.changes(0, 10); len(got) != 0 {
		f.Errorf("an empty store has the changes %v", got)
	}
	want := script(f)
	for _, limit := range []int{1, 2, 3, 7, 1000} {
		if got := describe(f.changes(0, limit)); !slices.Equal(got, want) {
			f.Errorf("limit %d: got %q, want %q", limit, got, want)
		}
	}
	portion, err := f.Changes(f.ctx, 0, 3)
	if err != nil || len(portion) < 3 || len(portion) > 6 {
		f.Errorf("limit 3 gave %d changes and %v", len(portion), err)
	}
}

func feedResume(f *fixture) {
	script(f)
	all := f.changes(0, 1000)
	for after := range f.revision() + 1 {
		var want []store.Change
		for _, c := range all {
			if c.Revision > after {
				want = append(want, c)
			}
		}
		if got := f.changes(after, 5); !slices.Equal(describe(got), describe(want)) {
			f.Fatalf("after %d: got %q, want %q", after, describe(got), describe(want))
		}
		if len(want) == 0 {
			continue
		}
		got, err := f.watchUntil(after, want[len(want)-1].Revision)
		if err != nil || !slices.Equal(describe(got), describe(want)) {
			f.Fatalf("watch after %d: %v, got %q, want %q", after, err, describe(got), describe(want))
		}
	}
}

func feedValues(f *fixture) {
	k, gone := key("job", "1"), key("job", "2")
	f.commit(puts(put(k, "1"), put(gone, "1")))
	f.commit(puts(put(k, "2"), put(gone, "2")))
	last := f.commit(store.Tx{Put: []store.Put{put(k, "3")}, Delete: []store.Key{gone}})
	watched, err := f.watchUntil(0, last)
	if err != nil {
		f.Fatal(err)
	}
	f.reopen()
	replayed, err := f.watchUntil(0, last)
	if err != nil {
		f.Fatal(err)
	}
	for name, changes := range map[string][]store.Change{"watch": watched, "replay": replayed, "changes": f.changes(0, 100)} {
		for i, c := range changes {
			own := strconv.Itoa(i/2 + 1)
			value := string(c.Value)
			switch {
			case c.Key == k && value != own && value != "3":
				f.Errorf("%s: change %d has the value %q, want %q or a later one", name, i, value, own)
			case c.Key == gone && value != own && c.Value != nil:
				f.Errorf("%s: change %d has the value %q, want %q or nil", name, i, value, own)
			case c.Deleted != (c.Key == gone && c.Revision == last), c.Deleted && c.Value != nil:
				f.Errorf("%s: change %d is %+v", name, i, c)
			}
		}
		if newest := changes[len(changes)-2]; newest.Key != k || string(newest.Value) != "3" {
			f.Errorf("%s: ends with %+v", name, newest)
		}
	}
}

func feedRefused(f *fixture) {
	var txs []store.Tx
	for i := range 100 {
		tx := puts(put(key("job", strconv.Itoa(i)), "1"))
		if i%2 == 1 {
			tx.Expect = []store.Expect{{Key: key("job", "none"), Revision: 9}}
		}
		txs = append(txs, tx)
	}
	var want []string
	for i, o := range enqueueAll(f, txs) {
		if o.err == nil {
			want = append(want, fmt.Sprintf("%d put job/%d", o.rev, i))
		}
	}
	if got := describe(f.changes(0, 1000)); len(want) != 50 || !slices.Equal(got, want) {
		f.Errorf("got %q, want %q", got, want)
	}
}

func watchFollows(f *fixture) {
	want := script(f)
	got := []string{}
	for changes, err := range f.Watch(f.ctx, 0) {
		if err != nil {
			f.Fatal(err)
		}
		got = append(got, describe(changes)...)
		if len(got) < len(want) {
			continue
		}
		if !slices.Equal(got, want) {
			f.Fatalf("got %q, want %q", got, want)
		}
		if len(want) > 200 {
			return
		}
		want = append(want, script(f)...)
	}
}

// watchWakes commits only after the watcher has seen the commit before, so that
// a wake-up that gets lost stops the test.
func watchWakes(f *fixture) {
	f.commit(puts(put(key("job", "0"), "0")))
	n := 0
	for changes, err := range f.Watch(f.ctx, 0) {
		if err != nil {
			f.Fatal(err)
		}
		if got := string(changes[len(changes)-1].Value); got != strconv.Itoa(n) || len(changes) != 1 {
			f.Fatalf("step %d: got %d changes, the last %s", n, len(changes), got)
		}
		n++
		if n == 100 {
			return
		}
		f.commit(puts(put(key("job", "0"), strconv.Itoa(n))))
	}
}

func watchMany(f *fixture) {
	const writers, each = 4, 250
	var all sync.WaitGroup
	seen := make([][]string, 5)
	for i := range seen {
		all.Go(func() {
			n := 0
			for changes, err := range f.Watch(f.ctx, 0) {
				if err != nil {
					f.Error(err)
					return
				}
				seen[i] = append(seen[i], describe(changes)...)
				if n += len(changes); n == writers*each {
					return
				}
			}
		})
	}
	for w := range writers {
		all.Go(func() {
			for i := range each {
				f.Enqueue(puts(put(key("job", fmt.Sprintf("%d-%d", w, i)), "1")), nil)
			}
		})
	}
	all.Wait()
	want := describe(f.changes(0, 100))
	for i := range seen {
		if !slices.Equal(seen[i], want) {
			f.Errorf("watcher %d saw another feed", i)
		}
	}
}

func watchSlow(f *fixture) {
	f.commit(puts(put(key("job", "first"), "1")))
	var got []string
	const n = 2000
	for changes, err := range f.Watch(f.ctx, 0) {
		if err != nil {
			f.Fatal(err)
		}
		if len(got) == 0 {
			// While this reader does not read, everything commits.
			for i := range n {
				f.Enqueue(puts(put(key("job", strconv.Itoa(i)), "1")), nil)
			}
			f.commit(store.Tx{})
		}
		if got = append(got, describe(changes)...); len(got) == n+1 {
			break
		}
	}
	if want := describe(f.changes(0, 1000)); !slices.Equal(got, want) {
		f.Error("the slow watcher saw another feed")
	}
}

func watchEnds(f *fixture) {
	because := errors.New("seen enough")
	ctx, cancel := context.WithCancelCause(f.ctx)
	ended := make(chan error, 2)
	watch := func(ctx context.Context) {
		for changes, err := range f.Store.Watch(ctx, 0) {
			if err != nil {
				ended <- err
				return
			}
			if changes[0].ID == "1" {
				cancel(because)
			}
		}
		ended <- errors.New("no error at the end")
	}
	old := f.Store
	go watch(ctx)
	f.commit(puts(put(key("job", "1"), "1")))
	if err := <-ended; !errors.Is(err, because) {
		f.Errorf("the context's end: %v", err)
	}
	following := make(chan struct{})
	go func() {
		first := true
		for _, err := range old.Watch(f.ctx, 0) {
			if err != nil {
				ended <- err
				return
			}
			if first {
				first = false
				close(following)
			}
		}
	}()
	<-following
	f.reopen()
	if err := <-ended; !fault.Is(err, fault.Unavailable) {
		f.Errorf("the store's end: %v", err)
	}
}

// keepFew reopens the store so that it keeps few revisions, and writes many.
func keepFew(f *fixture) (newest store.Revision) {
	f.Helper()
	f.setting.Keep = 100
	f.reopen()
	for i := range 2000 {
		newest = f.commit(puts(put(key("job", strconv.Itoa(i%10)), strconv.Itoa(i))))
	}
	return newest
}

func compaction(f *fixture) {
	f.commit(puts(put(key("job", "old"), "1")))
	newest := keepFew(f)
	for _, after := range []store.Revision{0, 1, newest - 1900} {
		if got, err := f.Changes(f.ctx, after, 10); !fault.Is(err, fault.Compacted) {
			f.Errorf("after %d: %d changes and %v", after, len(got), err)
		}
	}
	if got := f.changes(newest-100, 7); len(got) != 100 {
		f.Errorf("the last 100 revisions have %d changes", len(got))
	}
	f.wantObject(key("job", "old"), "1", 1)
	f.reopen()
	if got := f.revision(); got != newest {
		f.Errorf("the newest revision is %d, was %d", got, newest)
	}
	if _, err := f.Changes(f.ctx, 0, 10); !fault.Is(err, fault.Compacted) {
		f.Errorf("reopened: %v", err)
	}
}

func watchCompacted(f *fixture) {
	f.setting.Keep = 100
	f.reopen()
	f.commit(puts(put(key("job", "1"), "1")))
	var end error
	first := true
	for _, err := range f.Watch(f.ctx, 0) {
		if err != nil {
			end = err
			break
		}
		if !first {
			continue
		}
		first = false
		for i := range 3000 {
			f.Enqueue(puts(put(key("job", strconv.Itoa(i)), "1")), nil)
			if i%3 == 0 {
				f.commit(store.Tx{})
			}
		}
		f.commit(store.Tx{})
	}
	if !fault.Is(end, fault.Compacted) {
		f.Errorf("the watch ended with %v", end)
	}
}

func feedFuture(f *fixture) {
	rev := f.commit(puts(put(key("job", "1"), "1")))
	if _, err := f.Changes(f.ctx, rev+1, 10); !fault.Is(err, fault.Compacted) {
		f.Errorf("changes: %v", err)
	}
	for _, err := range f.Watch(f.ctx, rev+1) {
		if !fault.Is(err, fault.Compacted) {
			f.Errorf("watch: %v", err)
		}
	}
}
