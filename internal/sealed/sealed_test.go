package sealed

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/store/storetest"
	"github.com/drover-project/drover/internal/testkit"
)

// newKey is a line of a key file.
func newKey() string {
	b := make([]byte, keySize)
	_, _ = rand.Read(b)
	return base64.StdEncoding.EncodeToString(b)
}

func ringOf(t testing.TB, lines ...string) *Ring {
	t.Helper()
	r, err := ParseRing([]byte(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func openStore(t testing.TB) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func commit(t testing.TB, s store.Store, tx store.Tx) {
	t.Helper()
	if _, err := store.Commit(t.Context(), s, tx); err != nil {
		t.Fatal(err)
	}
}

func putOf(kind, id, value string) store.Put {
	return store.Put{Key: store.Key{Kind: store.Kind(kind), ID: id}, Value: []byte(value)}
}

func get(t testing.TB, s store.Store, kind, id string) string {
	t.Helper()
	o, err := s.Get(t.Context(), store.Key{Kind: store.Kind(kind), ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return string(o.Value)
}

// parts is the table of the tests.
var parts = Parts{"state": nil, "env": {"settings", "hidden"}}

// A store with sealed values is a store: it passes the suite of its port, whose objects are all sealed.
func TestConformanceOfStore(t *testing.T) {
	ring := ringOf(t, newKey())
	all := Parts{"job": nil, "instance": nil, "a": nil, "b": nil, "thing": nil, "k": nil}
	storetest.Run(t, func(tb testing.TB, s storetest.Setting) store.Store {
		tb.Helper()
		below, err := sqlite.Open(s.Dir, sqlite.Options{Now: s.Now, Keep: s.Keep})
		if err != nil {
			tb.Fatal(err)
		}
		over := Over(below, ring, all)
		over.noted.Store(ring.keys[0]) // the suite counts what is in the feed
		return over
	})
}

// What is read is what was written, byte for byte, and what is below has nothing of what was secret.
func TestSecretsAreSealed(t *testing.T) {
	below := openStore(t)
	s := Over(below, ringOf(t, newKey()), parts)
	values := map[string]string{
		"state/a": `{"p": "planted-1"}`, "state/empty": `{}`, "state/text": `"planted-2"`,
		"env/a":  `{"name":"x","settings":{"a":["planted-3",{"settings":1}]},"nodes":[{"hidden":["planted-4"],"n":1e400},{"hidden":[]}],"other":"shown"}`,
		"env/b":  `{"settings" : "planted-5" , "hidden":null }`,
		"env/c":  `{"name":"settings","x":["settings","hidden"]}`,
		"env/d":  `{"settings":{"sealed":"0123","text":"cGxhbnRlZA=="}}`,
		"env/e":  `no JSON with hidden planted-6`,
		"env/f":  `{"\u0073ettings":1,"x":"\ud800","settings":"planted-7"}`,
		"else/a": `{"settings":"shown"}`,
	}
	for name, value := range values {
		kind, id, _ := strings.Cut(name, "/")
		commit(t, s, store.Tx{Put: []store.Put{putOf(kind, id, value)}})
	}
	for name, value := range values {
		kind, id, _ := strings.Cut(name, "/")
		if got := get(t, s, kind, id); got != value {
			t.Errorf("%s: got %s, want %s", name, got, value)
		}
		stored := get(t, below, kind, id)
		if strings.Contains(stored, "planted") || strings.Contains(stored, "cGxhbnRlZA") {
			t.Errorf("%s is stored as %s", name, stored)
		}
		if strings.Contains(value, "shown") != strings.Contains(stored, "shown") {
			t.Errorf("%s is stored as %s", name, stored)
		}
	}
	if s := get(t, below, "env", "c"); s != values["env/c"] {
		t.Errorf("nothing secret was changed to %s", s)
	}
	seen := map[string]string{}
	take := func(k store.Key, value []byte) { seen[string(k.Kind)+"/"+k.ID] = string(value) }
	changes, err := s.Changes(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		take(c.Key, c.Value)
	}
	same(t, "the feed", seen, values)
	clear(seen)
	for kind := range map[store.Kind]bool{"state": true, "env": true, "else": true} {
		for o, err := range s.List(t.Context(), kind, store.Options{}) {
			if err != nil {
				t.Fatal(err)
			}
			take(o.Key, o.Value)
		}
	}
	same(t, "lists", seen, values)
	clear(seen)
	ctx, stop := context.WithTimeout(t.Context(), testkit.Patience())
	defer stop()
	for changes, err := range s.Watch(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			take(c.Key, c.Value)
		}
		if len(seen) == len(values)+1 { // and the note of the key
			break
		}
	}
	same(t, "the watch", seen, values)
}

func same(t *testing.T, what string, seen, values map[string]string) {
	t.Helper()
	for name, value := range values {
		if seen[name] != value {
			t.Errorf("%s: %s is %s, want %s", what, name, seen[name], value)
		}
	}
}

// Any JSON comes back as it was, whatever is secret in it.
func TestAnyValueComesBack(t *testing.T) {
	s := Over(nil, ringOf(t, newKey()), parts)
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(anyJSON(t, 4))
		if err != nil {
			t.Fatal(err)
		}
		key := store.Key{Kind: rapid.SampledFrom([]store.Kind{"state", "env"}).Draw(t, "kind"), ID: "x"}
		closed, _ := s.seal(s.Ring(), key, text)
		if bytes.Contains(closed, []byte("planted")) {
			t.Fatalf("%s is stored as %s", text, closed)
		}
		if opened, _, err := s.open(key, closed); err != nil || !bytes.Equal(opened, text) {
			t.Fatalf("%s became %s (%v)", text, opened, err)
		}
	})
}

// anyJSON is a value in which "planted" is below settings or hidden alone.
func anyJSON(t *rapid.T, depth int) any {
	if depth == 0 {
		return rapid.SampledFrom([]any{nil, true, "", "x", "{\"sealed\":\"", 1.5, "settings"}).Draw(t, "leaf")
	}
	switch rapid.IntRange(0, 3).Draw(t, "shape") {
	case 0:
		return anyJSON(t, 0)
	case 1:
		return []any{anyJSON(t, depth-1), anyJSON(t, depth-1)}
	}
	out := map[string]any{"a": anyJSON(t, depth-1), "sealed": anyJSON(t, depth-1)}
	for _, name := range []string{"settings", "hidden"} {
		if rapid.Bool().Draw(t, name) {
			out[name] = []any{"planted", anyJSON(t, depth-1)}
		}
	}
	return out
}

// A sealed text belongs to its place, and nobody changes it.
func TestSealedTextsStayWhereTheyAre(t *testing.T) {
	below := openStore(t)
	s := Over(below, ringOf(t, newKey()), parts)
	commit(t, s, store.Tx{Put: []store.Put{putOf("state", "a", `"one"`), putOf("env", "a", `{"settings":"two","hidden":"three","n":1}`)}})
	whole := get(t, below, "state", "a")
	two := get(t, below, "env", "a")
	moved := strings.Replace(strings.Replace(two, `"settings"`, `"x"`, 1), `"hidden"`, `"settings"`, 1)
	commit(t, below, store.Tx{Put: []store.Put{putOf("state", "b", whole), putOf("state", "c", whole[:len(whole)-12]+"AAAAAAAA"+whole[len(whole)-4:]), putOf("env", "b", two), putOf("env", "a", moved)}})
	for _, k := range []store.Key{{Kind: "state", ID: "b"}, {Kind: "state", ID: "c"}, {Kind: "env", ID: "b"}, {Kind: "env", ID: "a"}} {
		if o, err := s.Get(t.Context(), k); !fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), k.ID) {
			t.Errorf("%v: %s, %v", k, o.Value, err)
		}
		// In a list it costs itself alone, and is no value of any use.
		found := 0
		for o, err := range s.List(t.Context(), k.Kind, store.Options{}) {
			if err != nil {
				t.Fatal(err)
			}
			found++
			var as struct{ Settings any }
			if o.ID == k.ID && (json.Unmarshal(o.Value, &as) == nil || !strings.Contains(string(o.Value), "changed since")) {
				t.Errorf("%v is listed as %s", k, o.Value)
			}
		}
		if found < 2 {
			t.Errorf("the list of %s has %d objects", k.Kind, found)
		}
	}
}

// The first sealed value brings the note of its key, in the same transaction; what is in clear brings none.
func TestKeysAreNoted(t *testing.T) {
	below := openStore(t)
	ring := ringOf(t, newKey())
	s := Over(below, ring, parts)
	keys := func() []string {
		t.Helper()
		ids, err := KeysOf(t.Context(), below)
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	commit(t, s, store.Tx{Put: []store.Put{putOf("env", "a", `{"settings":{}}`), putOf("else", "a", `{"settings":1}`)}})
	if got := keys(); len(got) > 0 {
		t.Errorf("noted without need: %v", got)
	}
	other := ringOf(t, newKey())
	if err := Check(t.Context(), below, other, "F"); err != nil {
		t.Error(err)
	}
	if _, err := store.Commit(t.Context(), s, store.Tx{Put: []store.Put{putOf("env", "a", `{"settings":1}`)}, Expect: []store.Expect{{Key: store.Key{Kind: "x", ID: "y"}, Revision: 7}}}); !fault.Is(err, fault.Conflict) {
		t.Fatal(err)
	}
	if got := keys(); len(got) > 0 {
		t.Errorf("noted by what was refused: %v", got)
	}
	commit(t, s, store.Tx{Put: []store.Put{putOf("env", "a", `{"settings":1}`)}})
	if got := keys(); !slices.Equal(got, []string{ring.ID()}) {
		t.Errorf("noted: %v", got)
	}
	changes, err := below.Changes(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(changes); changes[n-1].Revision != changes[n-2].Revision {
		t.Errorf("the note is another transaction: %v", changes)
	}
	for _, r := range []*Ring{other, nil} {
		err := Check(t.Context(), below, r, "/var/lib/drover/key")
		if !fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), ring.ID()) || !strings.Contains(err.Error(), "/var/lib/drover/key") {
			t.Errorf("%v", err)
		}
	}
	if err := Check(t.Context(), below, ring, "F"); err != nil {
		t.Error(err)
	}
	lost := Over(below, other, parts)
	if _, err := lost.Get(t.Context(), store.Key{Kind: "env", ID: "a"}); !fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), ring.ID()) {
		t.Errorf("without the key: %v", err)
	}
	for _, err := range lost.List(t.Context(), "env", store.Options{}) {
		if !fault.Is(err, fault.WrongState) {
			t.Errorf("a list without the key: %v", err)
		}
	}
}

// What was in clear, or under an earlier key, is sealed with the present one; once.
func TestWhatWasInClearIsSealed(t *testing.T) {
	below := openStore(t)
	first, second := newKey(), newKey()
	for i := range 3 * mostObjects {
		commit(t, below, store.Tx{Put: []store.Put{
			{Key: store.Key{Kind: "state", ID: strconv.Itoa(i)}, At: int64(i + 1), Value: []byte(`"planted"`)},
			putOf("env", strconv.Itoa(i), `{"settings":"planted"}`), putOf("else", strconv.Itoa(i), `"planted"`),
		}})
	}
	reseal := func(want, forgotten int, lines ...string) {
		t.Helper()
		s := Over(below, ringOf(t, lines...), parts)
		n, gone, err := s.Reseal(t.Context(), 0)
		if err != nil || n != want || len(gone) != forgotten {
			t.Errorf("%d objects, %v (%v)", n, gone, err)
		}
		for i := range 3 * mostObjects {
			if get(t, s, "state", strconv.Itoa(i)) != `"planted"` || get(t, s, "env", strconv.Itoa(i)) != `{"settings":"planted"}` {
				t.Fatal("it is another value")
			}
			for _, kind := range []store.Kind{"state", "env"} {
				o, err := below.Get(t.Context(), store.Key{Kind: kind, ID: strconv.Itoa(i)})
				if err != nil || bytes.Contains(o.Value, []byte("planted")) || !bytes.Contains(o.Value, []byte(s.Ring().ID())) || kind == "state" && o.At != int64(i+1) {
					t.Fatalf("stored: %s at %d (%v)", o.Value, o.At, err)
				}
			}
		}
	}
	reseal(6*mostObjects, 0, first)
	reseal(0, 0, first)
	reseal(6*mostObjects, 1, second, first)
	reseal(0, 0, second)
	if _, _, err := Over(below, ringOf(t, first), parts).Reseal(t.Context(), 77); !fault.Is(err, fault.Fenced) {
		t.Errorf("under an epoch that is over: %v", err)
	}
}

func TestKeyFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	if _, err := ReadRing(path); !fault.Is(err, fault.NotFound) {
		t.Errorf("none: %v", err)
	}
	made, err := MakeRing(path)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := MakeRing(path); err != nil || again.ID() != made.ID() {
		t.Errorf("made twice: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), made.ID()) {
		t.Errorf("%s %v", text, err)
	}
	two := ringOf(t, newKey(), "", "# of last year", string(text))
	if len(two.keys) != 2 || two.keys[1].id != made.ID() || two.Digest([]byte("x")) == made.Digest([]byte("x")) {
		t.Errorf("%s", two.Text())
	}
	joined := made.Joined(ringOf(t, newKey()))
	if joined.ID() == made.ID() || !joined.Has(made.ID()) || len(joined.Joined(made).keys) != 2 || (*Ring)(nil).Joined(made).ID() != made.ID() {
		t.Errorf("joined: %s", joined.Text())
	}
	if err := joined.Write(path); err != nil {
		t.Fatal(err)
	}
	if read, err := ReadRing(path); err != nil || !bytes.Equal(read.Text(), joined.Text()) {
		t.Errorf("written, and read: %v", err)
	}
	if made.Digest([]byte("x")) == made.Digest([]byte("y")) || made.Digest([]byte("x")) != ringOf(t, string(text)).Digest([]byte("x")) {
		t.Error("digests tell no texts apart")
	}
	for text, want := range map[string]string{"": "no key in it", "# x\n\nabc\n": "line 3 is no key", base64.StdEncoding.EncodeToString(make([]byte, 16)): "line 1 is no key"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadRing(path); !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, good := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: true, 0o644: false, 0o620: false, 0o604: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadRing(path); (err == nil) != good {
			t.Errorf("%o: %v", mode, err)
		}
	}
}

// BenchmarkUsual is what a value costs that has nothing to be sealed, of a kind that may have.
func BenchmarkUsual(b *testing.B) {
	s := Over(nil, ringOf(b, newKey()), Parts{"job": {"osparams_private"}})
	value := []byte(`{"id":1,"ops":[{"input":` + strings.Repeat(`{"OP_ID":"OP_TEST_DELAY","duration":1},`, 20) + `null}]}`)
	key := store.Key{Kind: "job", ID: "1"}
	for b.Loop() {
		if out, is := s.seal(s.Ring(), key, value); is || len(out) != len(value) {
			b.Fatal("sealed")
		}
		if _, _, err := s.open(key, value); err != nil {
			b.Fatal(err)
		}
	}
}
