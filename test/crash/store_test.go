package crash

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/sqlite"
)

// storeChild writes numbered transactions as fast as it can, many at a time, and prints each
// number when the store has acknowledged it. Each transaction puts its number into an object
// of its own and into a counter.
func storeChild(dir string) error {
	s, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		return err
	}
	next, err := lastNumber(s)
	if err != nil {
		return err
	}
	slots := make(chan struct{}, 200)
	for {
		slots <- struct{}{}
		next++
		text := strconv.Itoa(next)
		s.Enqueue(store.Tx{Put: []store.Put{
			{Key: store.Key{Kind: "number", ID: text}, Value: []byte(text)},
			{Key: store.Key{Kind: "counter", ID: "last"}, Value: []byte(text)},
		}}, func(_ store.Revision, err error) {
			if err == nil {
				_, err = os.Stdout.WriteString(text + "\n")
			}
			if err != nil {
				os.Exit(1)
			}
			<-slots
		})
	}
}

// lastNumber is the highest number in the store.
func lastNumber(s store.Store) (int, error) {
	for o, err := range s.List(context.Background(), "number", store.Options{Desc: true, Limit: 1}) {
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(o.ID)
	}
	return 0, nil
}

// TestStoreKeepsWhatItAcknowledged kills a process that writes to a store, and looks at
// what is there.
func TestStoreKeepsWhatItAcknowledged(t *testing.T) {
	dir := t.TempDir()
	acknowledged, killed := 0, 0
	rounds(t, func(int) {
		const most = 3000
		lines := killAfter(t, "store", dir, 1+rand.IntN(most))
		n, err := strconv.Atoi(lines[len(lines)-1])
		if err != nil {
			t.Fatal(err)
		}
		if n <= acknowledged {
			t.Fatalf("acknowledged %d after %d", n, acknowledged)
		}
		acknowledged, killed = n, killed+1
		checkStore(t, dir, acknowledged)
	})
	if t.Failed() {
		return
	}
	t.Logf("%d times killed, %d transactions acknowledged, none lost", killed, acknowledged)
}

// checkStore checks that all numbers up to the last are there, that it is at least
// the one acknowledged, and that counter and feed agree.
func checkStore(t *testing.T, dir string, acknowledged int) {
	t.Helper()
	s, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	last := 0
	for o, err := range s.List(t.Context(), "number", store.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		if last++; o.ID != strconv.Itoa(last) || o.Revision != store.Revision(last) {
			t.Fatalf("number %s at revision %d stands in place %d", o.ID, o.Revision, last)
		}
	}
	if last < acknowledged {
		t.Errorf("acknowledged %d, stored %d", acknowledged, last)
	}
	counter, err := s.Get(t.Context(), store.Key{Kind: "counter", ID: "last"})
	if err != nil || string(counter.Value) != strconv.Itoa(last) {
		t.Errorf("the counter says %s (%v), the numbers %d", counter.Value, err, last)
	}
	from := max(0, store.Revision(last)-100)
	changes, err := s.Changes(t.Context(), from, 1000)
	if want := 2 * (last - int(from)); err != nil || len(changes) != want {
		t.Errorf("the feed has %d changes after revision %d (%v), want %d", len(changes), from, err, want)
	}
}
