package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
)

var transactions = []testCase{
	{"put, get, replace, delete", putGetReplaceDelete},
	{"one revision for all objects", oneRevision},
	{"all or nothing", allOrNothing},
	{"expectations", expectations},
	{"expectations see what was enqueued before", expectationsInOrder},
	{"a refusal leaves others alone", refusalAmongOthers},
	{"bad transactions", badTransactions},
	{"empty transaction is a barrier", emptyTransaction},
	{"values come back as they were", values},
	{"big values", bigValues},
	{"done in order, once, with growing revisions", doneOrder},
	{"done may enqueue", doneEnqueues},
	{"concurrent writers count without loss", concurrentWriters},
	{"concurrent readers see whole transactions", wholeForReaders},
	{"everything survives a reopen", reopenKeeps},
	{"the format is raised with what else changes", formatRaised},
	{"close commits what is enqueued", closeCommits},
	{"a closed store refuses", closedRefuses},
	{"commit gives up with its context", commitGivesUp},
}

// formatRaised: the format of a store is an object like others, but for what it may be.
func formatRaised(f *fixture) {
	to := func(n int) store.Put { return store.Put{Key: store.FormatKey, Value: format.Encode(n)} }
	k := key("job", "1")
	f.refused(puts(put(k, "1"), to(format.Newest+1)), fault.Unsupported)
	f.refused(puts(put(k, "1"), put(store.FormatKey, "2")), fault.Unsupported)
	f.refused(store.Tx{Put: []store.Put{to(format.Newest)}, Expect: []store.Expect{{Key: k, Revision: 1}}}, fault.Conflict)
	f.refused(store.Tx{Delete: []store.Key{store.FormatKey}}, fault.Invalid)
	f.wantObject(store.FormatKey, "", 0)
	answers := make(chan error, 3)
	for _, tx := range []store.Tx{puts(put(key("job", "2"), "2")), puts(put(k, "1"), to(format.Newest)), puts(put(key("job", "3"), "3"))} {
		f.Enqueue(tx, func(_ store.Revision, err error) { answers <- err })
	}
	for range cap(answers) {
		if err := <-answers; err != nil {
			f.Fatal(err)
		}
	}
	last := f.revision()
	for range 2 {
		f.wantObject(store.FormatKey, string(format.Encode(format.Newest)), last-1)
		f.wantObject(k, "1", last-1)
		f.wantObject(key("job", "3"), "3", last)
		f.reopen()
	}
	again := f.commit(puts(to(format.Newest)))
	f.wantObject(store.FormatKey, string(format.Encode(format.Newest)), again)
}

func putGetReplaceDelete(f *fixture) {
	k := key("job", "1")
	f.wantObject(k, "", 0)
	r1 := f.commit(puts(put(k, `{"v":1}`)))
	f.wantObject(k, `{"v":1}`, r1)
	f.wantObject(key("archived-job", "1"), "", 0)
	r2 := f.commit(puts(put(k, `{"v":2}`)))
	f.wantObject(k, `{"v":2}`, r2)
	r3 := f.commit(store.Tx{Delete: []store.Key{k}})
	f.wantObject(k, "", 0)
	r4 := f.commit(store.Tx{Delete: []store.Key{k}})
	if r1 < 1 || r2 <= r1 || r3 <= r2 || r4 <= r3 {
		f.Errorf("revisions do not grow: %d %d %d %d", r1, r2, r3, r4)
	}
	f.commit(puts(store.Put{Key: k, At: 77, Value: []byte("3")}))
	if o, err := f.Get(f.ctx, k); err != nil || o.At != 77 {
		f.Errorf("got At %d and %v, want 77", o.At, err)
	}
}

func oneRevision(f *fixture) {
	f.commit(puts(put(key("job", "9"), "0")))
	rev := f.commit(store.Tx{
		Put:    []store.Put{put(key("job", "1"), "1"), put(key("instance", "web"), "2")},
		Delete: []store.Key{key("job", "9")},
	})
	f.wantObject(key("job", "1"), "1", rev)
	f.wantObject(key("instance", "web"), "2", rev)
	f.wantObject(key("job", "9"), "", 0)
	if got := f.revision(); got != rev {
		f.Errorf("the newest revision is %d, want %d", got, rev)
	}
}

func allOrNothing(f *fixture) {
	kept := f.commit(puts(put(key("job", "3"), "3")))
	f.refused(store.Tx{
		Put:    []store.Put{put(key("job", "1"), "1"), put(key("job", "2"), "2")},
		Delete: []store.Key{key("job", "3")},
		Expect: []store.Expect{{Key: key("job", "4"), Revision: 1}},
	}, fault.Conflict)
	f.wantObject(key("job", "1"), "", 0)
	f.wantObject(key("job", "2"), "", 0)
	f.wantObject(key("job", "3"), "3", kept)
}

func expectations(f *fixture) {
	k := key("job", "1")
	expect := func(rev store.Revision) store.Tx {
		return store.Tx{Put: []store.Put{put(k, "1")}, Expect: []store.Expect{{Key: k, Revision: rev}}}
	}
	f.refused(expect(1), fault.Conflict)
	first := f.commit(expect(0))
	f.refused(expect(0), fault.Conflict)
	f.refused(expect(first+1), fault.Conflict)
	second := f.commit(expect(first))
	f.refused(expect(first), fault.Conflict)
	f.commit(store.Tx{Delete: []store.Key{k}, Expect: []store.Expect{{Key: k, Revision: second}}})
	f.refused(expect(second), fault.Conflict)
	f.commit(expect(0))
	f.commit(store.Tx{Expect: []store.Expect{{Key: key("job", "none")}}})
}

// expectationsInOrder enqueues without waiting, so that several transactions
// are likely to be committed together; each must see those before it.
func expectationsInOrder(f *fixture) {
	k := key("job", "1")
	create := store.Tx{Put: []store.Put{put(k, "1")}, Expect: []store.Expect{{Key: k}}}
	remove := store.Tx{Delete: []store.Key{k}}
	var want []bool
	var txs []store.Tx
	for range 200 {
		txs = append(txs, create, create, remove)
		want = append(want, true, false, true)
	}
	got := make([]bool, len(txs))
	for i, o := range enqueueAll(f, txs) {
		got[i] = o.err == nil
		if o.err != nil && !fault.Is(o.err, fault.Conflict) {
			f.Fatalf("transaction %d: %v", i, o.err)
		}
	}
	if !slices.Equal(got, want) {
		f.Errorf("accepted: %v", got)
	}
	f.wantObject(k, "", 0)
}

type outcome struct {
	rev store.Revision
	err error
}

// enqueueAll enqueues transactions without waiting in between, and returns
// their outcomes once all are known.
func enqueueAll(f *fixture, txs []store.Tx) []outcome {
	f.Helper()
	out := make([]outcome, len(txs))
	var all sync.WaitGroup
	all.Add(len(txs))
	for i, tx := range txs {
		f.Enqueue(tx, func(rev store.Revision, err error) {
			out[i] = outcome{rev, err}
			all.Done()
		})
	}
	all.Wait()
	return out
}

func refusalAmongOthers(f *fixture) {
	never := []store.Expect{{Key: key("job", "none"), Revision: 12345}}
	var txs []store.Tx
	for i := range 300 {
		tx := puts(put(key("job", strconv.Itoa(i)), "1"))
		switch i % 3 {
		case 1:
			tx.Expect = never
		case 2:
			tx.Put[0].Value = nil
		}
		txs = append(txs, tx)
	}
	for i, o := range enqueueAll(f, txs) {
		want := []fault.Code{"", fault.Conflict, fault.Invalid}[i%3]
		if fault.CodeOf(o.err) != want || (o.rev == 0) != (want != "") {
			f.Fatalf("transaction %d: revision %d and %v, want code %q", i, o.rev, o.err, want)
		}
	}
	if n := len(f.list("job", store.Options{})); n != 100 {
		f.Errorf("%d objects, want 100", n)
	}
}

func badTransactions(f *fixture) {
	good := put(key("job", "1"), "1")
	for name, tx := range map[string]store.Tx{
		"empty kind":       puts(good, put(key("", "1"), "1")),
		"empty id":         {Put: []store.Put{good}, Delete: []store.Key{key("job", "")}},
		"control":          puts(good, put(key("job", "a\nb"), "1")),
		"not UTF-8":        puts(good, put(key("job", "\xff"), "1")),
		"no value":         puts(good, put(key("job", "2"), "")),
		"twice":            puts(good, good),
		"put and deletion": {Put: []store.Put{good}, Delete: []store.Key{good.Key}},
	} {
		f.refused(tx, fault.Invalid)
		if ids := f.list("job", store.Options{}); len(ids) != 0 {
			f.Fatalf("%s: left %v", name, ids)
		}
	}
	f.refused(puts(good, put(key("job", strings.Repeat("x", store.MaxID+1)), "1")), fault.TooLarge)
	f.refused(puts(good, store.Put{Key: key("job", "2"), Value: make([]byte, store.MaxValue+1)}), fault.TooLarge)
}

func emptyTransaction(f *fixture) {
	answered := make(chan store.Revision, 1)
	f.Enqueue(puts(put(key("job", "1"), "1")), func(rev store.Revision, _ error) { answered <- rev })
	barrier := f.commit(store.Tx{})
	select {
	case rev := <-answered:
		if rev >= barrier {
			f.Errorf("the barrier has revision %d, what was before it %d", barrier, rev)
		}
	default:
		f.Error("the barrier was answered before what was enqueued before it")
	}
	f.Enqueue(store.Tx{}, nil)
	f.commit(store.Tx{})
}

func values(f *fixture) {
	for i, value := range []string{
		"null", "0", `""`, `"x"`, ` { "a" : [ 1 , 2.50 ] } `, `{"b":1,"a":2,"b":3}`, "12345678901234567890.0e-7",
		`"Grüße, 世界 🐂 \u0000 \ud83d\ude00"`, `"` + "é" + "é" + `"`, `"'; DROP TABLE object; --"`, "[\n\t1\r\n]",
		`{"keys":{"ключ":"мир","مفتاح":"سلام"}}`, "2030-01-02", "2030-01-02 03:04:05", "true", "0x1F", "1e400",
	} {
		k := key("value", strconv.Itoa(i))
		rev := f.commit(puts(put(k, value)))
		f.wantObject(k, value, rev)
	}
	for _, id := range []string{"ümlaut", "世界", "🐂", "a'b\"c`d", "a b", "%", "_", `a\b`, "a/b:c?d=e&f#g", "-1", "007", "1.5"} {
		k := key("kind with spaces and ä", id)
		rev := f.commit(puts(put(k, strconv.Quote(id))))
		f.wantObject(k, strconv.Quote(id), rev)
	}
	after := f.revision()
	rev := f.commit(puts(put(key("ключ", "мир"), "1")))
	if got := describe(f.changes(after, 10)); !slices.Equal(got, []string{fmt.Sprintf("%d put ключ/мир", rev)}) {
		f.Errorf("the feed says %q", got)
	}
}

func bigValues(f *fixture) {
	const size = 9 << 20
	big := `"` + strings.Repeat("0123456789abcdef", size/16) + `"`
	rev := f.commit(puts(put(key("job", "1"), big), put(key("job", "2"), "2")))
	f.wantObject(key("job", "1"), big, rev)
	many := store.Tx{}
	for i := range 20000 {
		many.Put = append(many.Put, put(key("instance", "i"+strconv.Itoa(i)), `{"some":"thing"}`))
	}
	rev = f.commit(many)
	f.wantObject(key("instance", "i19999"), `{"some":"thing"}`, rev)
	changes := f.changes(0, 1)
	if len(changes) != 20002 {
		f.Errorf("the feed has %d changes, want 20002", len(changes))
	}
	if !bytes.Equal(changes[0].Value, []byte(big)) {
		f.Error("the feed does not give the big value back")
	}
}

func doneOrder(f *fixture) {
	const n = 3000
	var got []int
	var revs []store.Revision
	finished := make(chan struct{})
	for i := range n {
		tx := puts(put(key("job", strconv.Itoa(i%7)), strconv.Itoa(i)))
		if i%10 == 9 {
			tx.Expect = []store.Expect{{Key: key("job", "none"), Revision: 1}}
		}
		f.Enqueue(tx, func(rev store.Revision, err error) {
			got = append(got, i) // no lock: the calls come one at a time
			if err == nil {
				revs = append(revs, rev)
			}
			if len(got) == n {
				close(finished)
			}
		})
	}
	<-finished
	f.commit(store.Tx{}) // nothing is called twice in the meantime
	if len(got) != n || !slices.IsSorted(got) {
		f.Errorf("%d answers, in order: %v", len(got), slices.IsSorted(got))
	}
	if len(revs) != n-n/10 || !slices.IsSorted(revs) || len(slices.Compact(revs)) != len(revs) {
		f.Errorf("%d revisions do not grow strictly", len(revs))
	}
}

func doneEnqueues(f *fixture) {
	finished := make(chan store.Revision)
	var again func(n int) func(store.Revision, error)
	again = func(n int) func(store.Revision, error) {
		return func(rev store.Revision, err error) {
			if n == 0 || err != nil {
				finished <- rev
				return
			}
			f.Enqueue(puts(put(key("job", "1"), strconv.Itoa(n))), again(n-1))
		}
	}
	f.Enqueue(store.Tx{}, again(50))
	f.wantObject(key("job", "1"), "1", <-finished)
}

// concurrentWriters lets several goroutines increase one number by optimistic
// concurrency: each success is one step.
func concurrentWriters(f *fixture) {
	const writers, steps = 8, 25
	k := key("counter", "n")
	f.commit(puts(put(k, "0")))
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range steps {
				if err := increase(f, k); err != nil {
					f.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	o, err := f.Get(f.ctx, k)
	if err != nil || string(o.Value) != strconv.Itoa(writers*steps) {
		f.Errorf("the counter is %s (%v), want %d", o.Value, err, writers*steps)
	}
}

func increase(f *fixture, k store.Key) error {
	for {
		o, err := f.Get(f.ctx, k)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(o.Value))
		if err != nil {
			return err
		}
		_, err = store.Commit(f.ctx, f, store.Tx{
			Put:    []store.Put{put(k, strconv.Itoa(n+1))},
			Expect: []store.Expect{{Key: k, Revision: o.Revision}},
		})
		if !fault.Is(err, fault.Conflict) {
			return err
		}
	}
}

// wholeForReaders writes ten objects with equal values in each transaction,
// while listings look for a mixture.
func wholeForReaders(f *fixture) {
	write := func(n int) store.Tx {
		var tx store.Tx
		for i := range 10 {
			tx.Put = append(tx.Put, put(key("job", strconv.Itoa(i)), strconv.Itoa(n)))
		}
		return tx
	}
	f.commit(write(0))
	ctx, stop := context.WithCancel(f.ctx)
	var readers sync.WaitGroup
	// Also where a commit fails: a reader that outlives the test hides why.
	defer readers.Wait()
	defer stop()
	for range 3 {
		readers.Go(func() {
			for ctx.Err() == nil {
				seen := map[string]int{}
				for o, err := range f.List(f.ctx, "job", store.Options{}) {
					if err != nil {
						f.Error(err)
						return
					}
					seen[string(o.Value)+"@"+strconv.FormatInt(int64(o.Revision), 10)]++
				}
				if len(seen) != 1 {
					f.Errorf("a listing saw %v", seen)
					return
				}
			}
		})
	}
	for n := range 200 {
		f.commit(write(n))
	}
}

func reopenKeeps(f *fixture) {
	var last store.Revision
	for i := range 50 {
		last = f.commit(puts(put(key("job", strconv.Itoa(i)), strconv.Itoa(i))))
	}
	last = max(last, f.commit(store.Tx{Delete: []store.Key{key("job", "7")}}))
	before := describe(f.changes(0, 1000))
	f.reopen()
	if got := f.revision(); got != last {
		f.Errorf("the newest revision is %d, was %d", got, last)
	}
	if got := describe(f.changes(0, 1000)); !slices.Equal(got, before) {
		f.Errorf("the feed is %q, was %q", got, before)
	}
	f.wantObject(key("job", "7"), "", 0)
	f.wantObject(key("job", "49"), "49", last-1)
	if rev := f.commit(puts(put(key("job", "50"), "50"))); rev <= last {
		f.Errorf("revision %d comes after %d", rev, last)
	}
}

func closeCommits(f *fixture) {
	const n = 1000
	var mu sync.Mutex
	good := 0
	for i := range n {
		f.Enqueue(puts(put(key("job", strconv.Itoa(i)), "1")), func(_ store.Revision, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				good++
			}
		})
	}
	f.reopen()
	mu.Lock()
	defer mu.Unlock()
	if stored := len(f.list("job", store.Options{})); good != n || stored != n {
		f.Errorf("%d acknowledged and %d stored, want %d", good, stored, n)
	}
}

func closedRefuses(f *fixture) {
	f.commit(puts(put(key("job", "1"), "1")))
	old := f.Store
	f.reopen()
	answers := []error{}
	add := func(err error) { answers = append(answers, err) }
	_, err := store.Commit(f.ctx, old, store.Tx{})
	add(err)
	_, err = old.Get(f.ctx, key("job", "1"))
	add(err)
	_, err = old.Revision(f.ctx)
	add(err)
	_, err = old.Changes(f.ctx, 0, 1)
	add(err)
	_, err = old.AcquireLease(f.ctx, "leader", "a", deadline)
	add(err)
	for _, err := range old.List(f.ctx, "job", store.Options{}) {
		add(err)
	}
	for _, err := range old.Watch(f.ctx, 0) {
		add(err)
	}
	if len(answers) != 7 {
		f.Fatalf("%d answers: %v", len(answers), answers)
	}
	for i, err := range answers {
		if !fault.Is(err, fault.Unavailable) {
			f.Errorf("answer %d: %v", i, err)
		}
	}
	if err := old.Close(); err != nil {
		f.Errorf("closed again: %v", err)
	}
}

func commitGivesUp(f *fixture) {
	release := make(chan struct{})
	f.Enqueue(store.Tx{}, func(store.Revision, error) { <-release })
	because := errors.New("no more patience")
	ctx, cancel := context.WithCancelCause(f.ctx)
	cancel(because)
	_, err := store.Commit(ctx, f, puts(put(key("job", "1"), "1")))
	close(release)
	if !errors.Is(err, because) {
		f.Errorf("got %v", err)
	}
	f.commit(store.Tx{})
	if _, err := f.Get(f.ctx, key("job", "1")); err != nil {
		f.Errorf("what was enqueued did not commit: %v", err)
	}
}
