// Package storetest is the conformance suite of package store: what every adapter
// promises, as tests that know nothing of the adapter. An adapter's own
// tests call Run, and RunShared where several controllers may use the store; a wrapper
// around an adapter may do so too.
//
// Invariants:
//   - The suite uses the port alone.
//   - No test waits by time: each waits for an event, and all are bounded by the
//     suite's deadline.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/testkit"
)

// Setting is what a test asks of the adapter.
type Setting struct {
	// Dir is the directory of the store, or a name for it: the same Dir opened again after Close
	// is the same store, and another Dir is another store.
	Dir string
	// Now is the store's clock for leases.
	Now func() time.Time
	// Keep is how many revisions the feed keeps at least; zero is the adapter's own choice. It
	// must not keep many more than that: with Keep 100, revision 1 is gone by revision 1000.
	Keep store.Revision
}

// Open opens a store, or fails the test.
type Open func(tb testing.TB, s Setting) store.Store

// Run runs the suite.
func Run(t *testing.T, open Open) {
	for _, group := range []struct {
		name  string
		cases []testCase
	}{
		{"Transactions", transactions},
		{"Lists", lists},
		{"Feed", feeds},
		{"Leases", leases},
		{"Model", models},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.run(newFixture(t, open))
				})
			}
		})
	}
}

type testCase struct {
	name string
	run  func(*fixture)
}

// deadline bounds each test of the suite.
var deadline = 4 * testkit.Patience()

// fixture is one store under test.
type fixture struct {
	*testing.T
	store.Store
	open    Open
	setting Setting
	clock   *clock
	ctx     context.Context
}

func newFixture(t *testing.T, open Open) *fixture {
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	c := &clock{now: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}
	f := &fixture{T: t, open: open, setting: Setting{Dir: t.TempDir(), Now: c.Now}, clock: c, ctx: ctx}
	f.Store = open(t, f.setting)
	t.Cleanup(func() {
		if err := f.Store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return f
}

// reopen closes the store and opens it again, with Keep as it is in the setting now.
func (f *fixture) reopen() {
	f.Helper()
	if err := f.Store.Close(); err != nil {
		f.Fatalf("close: %v", err)
	}
	f.Store = f.open(f, f.setting)
}

// clock is set by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func key(kind, id string) store.Key { return store.Key{Kind: store.Kind(kind), ID: id} }

func put(k store.Key, value string) store.Put { return store.Put{Key: k, Value: []byte(value)} }

func puts(p ...store.Put) store.Tx { return store.Tx{Put: p} }

// commit commits a transaction that must succeed.
func (f *fixture) commit(tx store.Tx) store.Revision {
	f.Helper()
	rev, err := store.Commit(f.ctx, f, tx)
	if err != nil {
		f.Fatalf("commit: %v", err)
	}
	return rev
}

// refused commits a transaction that must be refused with a code.
func (f *fixture) refused(tx store.Tx, code fault.Code) {
	f.Helper()
	before := f.revision()
	if rev, err := store.Commit(f.ctx, f, tx); !fault.Is(err, code) || rev != 0 {
		f.Fatalf("commit gave revision %d and %v, want code %s", rev, err, code)
	}
	if after := f.revision(); after != before {
		f.Fatalf("a refused transaction took the store from revision %d to %d", before, after)
	}
}

func (f *fixture) revision() store.Revision {
	f.Helper()
	rev, err := f.Revision(f.ctx)
	if err != nil {
		f.Fatalf("revision: %v", err)
	}
	return rev
}

// wantObject checks what Get says; an empty value stands for "does not exist".
func (f *fixture) wantObject(k store.Key, value string, rev store.Revision) {
	f.Helper()
	o, err := f.Get(f.ctx, k)
	switch {
	case value == "" && !fault.Is(err, fault.NotFound):
		f.Fatalf("get %v: %v and %v, want not found", k, o, err)
	case value == "":
	case err != nil:
		f.Fatalf("get %v: %v", k, err)
	case o.Key != k || string(o.Value) != value || o.Revision != rev:
		f.Fatalf("get %v: %v revision %d value %.100q, want revision %d value %.100q", k, o.Key, o.Revision, o.Value, rev, value)
	}
}

// list collects the ids of a listing.
func (f *fixture) list(kind store.Kind, opts store.Options) []string {
	f.Helper()
	ids := []string{}
	for o, err := range f.List(f.ctx, kind, opts) {
		if err != nil {
			f.Fatalf("list: %v", err)
		}
		ids = append(ids, o.ID)
	}
	return ids
}

// changes reads the feed by Changes, in portions, up to the newest revision.
func (f *fixture) changes(after store.Revision, limit int) []store.Change {
	f.Helper()
	var all []store.Change
	for {
		portion, err := f.Changes(f.ctx, after, limit)
		if err != nil {
			f.Fatalf("changes after %d: %v", after, err)
		}
		if len(portion) == 0 {
			return all
		}
		all = append(all, portion...)
		after = portion[len(portion)-1].Revision
	}
}

// watchUntil follows the feed until it has seen a revision.
func (f *fixture) watchUntil(after, until store.Revision) ([]store.Change, error) {
	var all []store.Change
	for changes, err := range f.Watch(f.ctx, after) {
		if err != nil {
			return all, err
		}
		all = append(all, changes...)
		if changes[len(changes)-1].Revision >= until {
			return all, nil
		}
	}
	return all, errors.New("the watch ended without an error")
}

// describe shows changes without their values, one text for each.
func describe(changes []store.Change) []string {
	out := make([]string, len(changes))
	for i, c := range changes {
		what := "put"
		if c.Deleted {
			what = "delete"
		}
		out[i] = fmt.Sprintf("%d %s %s/%s", c.Revision, what, c.Kind, c.ID)
	}
	return out
}
