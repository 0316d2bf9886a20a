package sealed

import (
	"bytes"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// A key is not forgotten while it has sealed anything, also what somebody wrote who had the keys of before when all was sealed anew.
func TestWhatALateWriterSealedIsSealedAnew(t *testing.T) {
	below := openStore(t)
	first, second := newKey(), newKey()
	reseal := func() (count int, forgotten []string) {
		t.Helper()
		count, forgotten, err := Over(below, ringOf(t, second, first), parts).Reseal(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		return count, forgotten
	}
	reseal()
	late := Over(below, ringOf(t, first), parts)
	commit(t, late, store.Tx{Put: []store.Put{putOf("state", "a", `"planted"`)}})
	if n, gone := reseal(); n != 1 || !slices.Equal(gone, []string{late.Ring().ID()}) {
		t.Errorf("%d objects were sealed anew, and %v is forgotten", n, gone)
	}
	if got := get(t, Over(below, ringOf(t, second), parts), "state", "a"); got != `"planted"` {
		t.Errorf("it reads %s", got)
	}
}

// Who does not lead any more seals nothing anew.
func TestNothingIsSealedUnderAnEpochThatIsOver(t *testing.T) {
	below := openStore(t)
	commit(t, below, store.Tx{Put: []store.Put{putOf("state", "a", `"planted"`)}})
	if n, _, err := Over(below, ringOf(t, newKey()), parts).Reseal(t.Context(), 77); !fault.Is(err, fault.Fenced) || n != 0 {
		t.Errorf("%d objects, %v", n, err)
	}
	if o, err := below.Get(t.Context(), store.Key{Kind: "state", ID: "a"}); err != nil || !bytes.Equal(o.Value, []byte(`"planted"`)) {
		t.Errorf("it was written: %s, %v", o.Value, err)
	}
}

// A key that comes into use while the program runs is noted with what it seals first.
func TestAKeyThatComesLaterIsNoted(t *testing.T) {
	below := openStore(t)
	first, second := newKey(), newKey()
	s := Over(below, ringOf(t, first), parts)
	commit(t, s, store.Tx{Put: []store.Put{putOf("state", "a", `"one"`)}})
	s.Use(ringOf(t, second, first))
	commit(t, s, store.Tx{Put: []store.Put{putOf("state", "a", `"two"`)}})
	if ids, err := KeysOf(t.Context(), below); err != nil || !slices.Contains(ids, s.Ring().ID()) || len(ids) != 2 {
		t.Errorf("noted are %v, %v", ids, err)
	}
}
