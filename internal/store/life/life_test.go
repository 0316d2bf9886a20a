package life_test

import (
	"errors"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/life"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/stores"
)

// TestALifeGoesOn from one leader to the next; one that has lost the lead begins none.
func TestALifeGoesOn(t *testing.T) {
	stores.Each(t, func(t *testing.T, url string) {
		s := stores.Open(t, url)
		defer func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		lead := func() int64 {
			t.Helper()
			l, err := s.AcquireLease(t.Context(), "leader", "a", time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			return l.Epoch
		}
		former := lead()
		now := lead()
		if id, err := life.Open(t.Context(), s, former, testkit.NewUUID); !fault.Is(err, fault.Fenced) {
			t.Errorf("a former leader begins %q, %v", id, err)
		}
		first, err := life.Open(t.Context(), s, now, testkit.NewUUID)
		if err != nil || first == "" {
			t.Fatal(first, err)
		}
		if again, err := life.Open(t.Context(), s, lead(), testkit.NewUUID); err != nil || again != first {
			t.Errorf("behind %q comes %q, %v", first, again, err)
		}
		if _, err := store.Commit(t.Context(), s, store.Tx{Put: []store.Put{{Key: life.Key, Value: []byte(`[1]`)}}}); err != nil {
			t.Fatal(err)
		}
		other, err := life.Open(t.Context(), s, lead(), testkit.NewUUID)
		if err != nil || other == first {
			t.Errorf("behind one that cannot be read comes %q, %v", other, err)
		}
	})
}

func TestRenew(t *testing.T) {
	failed := errors.New("it cannot be read")
	all := func(yield func(store.Object, error) bool) {
		_ = yield(store.Object{Key: store.Key{Kind: "job", ID: "1"}, Value: []byte("1")}, nil) &&
			yield(store.Object{Key: life.Key, Revision: 7, Value: []byte(`{"life":"old"}`)}, nil) && yield(store.Object{}, failed)
	}
	var said []string
	for o, err := range life.Renew(all, "new") {
		if err != nil {
			said = append(said, err.Error())
			continue
		}
		said = append(said, o.ID+" "+string(o.Value))
	}
	if len(said) != 3 || said[0] != "1 1" || said[1] != `life {"life":"new"}` || said[2] != failed.Error() {
		t.Errorf("it is %q", said)
	}
	for _, err := range life.Renew(all, "new") {
		if err != nil {
			t.Error(err)
		}
		break // whoever has had enough gets no more
	}
}
