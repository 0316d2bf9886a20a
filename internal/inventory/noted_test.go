package inventory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

func noting(change Change, value string) Noted {
	return func(snap *cluster.Snapshot) ([]cluster.Change, []store.Put, error) {
		changes, err := change(snap)
		return changes, []store.Put{{Key: store.Key{Kind: "note", ID: "1"}, Value: fmt.Appendf(nil, "%q", value)}}, err
	}
}

func unchanged(*cluster.Snapshot) ([]cluster.Change, error) { return nil, nil }

// A change and what is noted beside it are one transaction, whatever becomes of its answer; and a note alone counts, too.
func TestNotesGoWithTheirChange(t *testing.T) {
	for name, effect := range lost {
		for what, change := range map[string]Change{"a change": addTag("a"), "no change": unchanged} {
			t.Run(name+", "+what, func(t *testing.T) {
				inBubble(t, func(t *testing.T, s *faultstore.Store, k *Keeper) {
					tried := 0
					s.Inject(faultstore.Fault{Do: effect})
					err := k.UpdateNoted(t.Context(), func(snap *cluster.Snapshot) ([]cluster.Change, []store.Put, error) {
						tried++
						return noting(change, "done")(snap)
					})
					o, readErr := s.Get(t.Context(), store.Key{Kind: "note", ID: "1"})
					want := map[faultstore.Effect]int{faultstore.FailBefore: 2, faultstore.FailAfter: 1}[effect]
					if err != nil || readErr != nil || string(o.Value) != `"done"` || tried != want {
						t.Errorf("noted %q (%v), made %d times, want %d: %v", o.Value, readErr, tried, want, err)
					}
					if got := k.Snapshot().Cluster().Tags.Has("a"); got != (what == "a change") {
						t.Errorf("the change is there: %v", got)
					}
				})
			})
		}
	}
}

// A note is refused with its change, and one that the store would refuse refuses its change.
func TestNotesAreRefusedWithTheirChange(t *testing.T) {
	s := openStore(t, t.TempDir())
	k := open(t, s, 0)
	if err := k.Bootstrap(t.Context(), setup("node1")); err != nil {
		t.Fatal(err)
	}
	refusal := fault.New(fault.Invalid, "no")
	if err := k.UpdateNoted(t.Context(), noting(func(*cluster.Snapshot) ([]cluster.Change, error) { return nil, refusal }, "x")); !fault.Is(err, fault.Invalid) {
		t.Errorf("refused: %v", err)
	}
	if err := k.UpdateNoted(t.Context(), noting(addTag("a"), strings.Repeat("x", store.MaxValue))); err == nil || k.Snapshot().Cluster().Tags.Has("a") {
		t.Errorf("a note that is too large: %v", err)
	}
	if _, err := s.Get(t.Context(), store.Key{Kind: "note", ID: "1"}); !fault.Is(err, fault.NotFound) {
		t.Errorf("there is a note: %v", err)
	}
}

// TestANoteIsRefusedAlone: an update whose note the store would refuse costs those nothing that are written with it.
func TestANoteIsRefusedAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *faultstore.Store, k *Keeper) {
		var batch []*update
		for _, change := range []Noted{noting(addTag("a"), "fits"), noting(addTag("b"), strings.Repeat("x", store.MaxValue)), noting(addTag("c"), "fits")} {
			batch = append(batch, &update{ctx: t.Context(), answer: make(chan error, 1), change: change})
		}
		if again := k.carryOut(batch); len(again) > 0 {
			t.Errorf("%d are carried out again", len(again))
		}
		for i, u := range batch {
			tag := []string{"a", "b", "c"}[i]
			err := <-u.answer
			if refused := i == 1; (err != nil) != refused || k.Snapshot().Cluster().Tags.Has(tag) == refused {
				t.Errorf("update %d: %v, and its tag is there: %t", i, err, k.Snapshot().Cluster().Tags.Has(tag))
			}
		}
	})
}
