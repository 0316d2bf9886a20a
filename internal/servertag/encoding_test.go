package servertag

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/testkit"
)

type examples struct {
	Prefix string `json:"prefix"`
	Pairs  []struct {
		Tag       string `json:"tag"`
		Ganeti    string `json:"ganeti"`
		Fits      bool   `json:"fits_128"`
		Forbidden bool   `json:"forbidden_by_openstack"`
	} `json:"pairs"`
	Decode []struct {
		Ganeti    string  `json:"ganeti"`
		Decoded   *string `json:"decoded"`
		Canonical bool    `json:"canonical"`
		Own       bool    `json:"own_prefix"`
	} `json:"decode_examples"`
	Double []struct {
		Tag string `json:"db_tag"`
	} `json:"double_decode_examples"`
}

func TestConformanceTagEncoding(t *testing.T) {
	var e examples
	if err := json.Unmarshal(testkit.ReadConformance(t, "tag-encoding-examples.json"), &e); err != nil {
		t.Fatal(err)
	}
	prefixes, policy, passed := DefaultPrefixes(), DefaultPolicy(), 0
	for _, c := range e.Pairs {
		raw := prefixes.Raw(User, c.Tag)
		text, ok := Decode(strings.TrimPrefix(raw, e.Prefix))
		fits := len(raw) <= MaxRaw
		if raw != c.Ganeti || !ok || text != c.Tag || fits != c.Fits {
			t.Errorf("%q is written %q and read %q %v, fits %v; want %q, fits %v", c.Tag, raw, text, ok, fits, c.Ganeti, c.Fits)
			continue
		}
		// What passes our checks passes those of the cluster.
		if policy.check(User, []string{c.Tag}) == nil && (c.Forbidden || cluster.CheckTag(raw) != nil) {
			t.Errorf("%q is taken, though a cluster refuses %q", c.Tag, raw)
			continue
		}
		passed++
	}
	for _, c := range e.Decode {
		ns, name, origin := prefixes.Parse(c.Ganeti)
		want := Foreign
		switch {
		case c.Own && c.Canonical && c.Decoded != nil:
			want = Ours
		case c.Own:
			want = Odd
		}
		// Names that are never given out are odd, however they are written.
		if want == Ours && CheckName(strings.TrimPrefix(*c.Decoded, prefixes[ns])) != nil {
			want = Odd
		}
		if origin != want || origin == Ours && prefixes[ns]+name != *c.Decoded {
			t.Errorf("%q is %d, %q in %s; want %d", c.Ganeti, origin, name, ns, want)
			continue
		}
		passed++
	}
	for _, c := range e.Double { // reading once gives the text, whatever a second reading would make of it
		if text, ok := Decode(Encode(c.Tag)); !ok || text != c.Tag {
			t.Errorf("%q is read as %q", c.Tag, text)
			continue
		}
		passed++
	}
	t.Logf("tag-encoding-examples.json: %d of %d passed", passed, len(e.Pairs)+len(e.Decode)+len(e.Double))
}

// anyText draws from what tags are made of and what is written in a form of its own.
func anyText() *rapid.Generator[string] {
	return rapid.StringOfN(rapid.OneOf(rapid.RuneFrom([]rune("aA0_.-:+*~% @!/,é日🙂\x00")), rapid.Rune()), 0, 12, -1)
}

func TestEncodeIsReversibleAndInjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyText().Draw(t, "a"), anyText().Draw(t, "b")
		back, ok := Decode(Encode(a))
		if utf8.ValidString(a) && (!ok || back != a) {
			t.Fatalf("%q is written %q and read %q, %v", a, Encode(a), back, ok)
		}
		if a != b && Encode(a) == Encode(b) {
			t.Fatalf("%q and %q are both written %q", a, b, Encode(a))
		}
	})
}

func TestDecodeTakesOnlyWhatEncodeWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.StringMatching(`[a-cA-F0-9_.*/+:@-]{0,12}`).Draw(t, "raw")
		if text, ok := Decode(raw); ok && Encode(text) != raw {
			t.Fatalf("%q is read as %q, which is written %q", raw, text, Encode(text))
		}
	})
}

func TestUsersCannotWriteSystemTags(t *testing.T) {
	p := DefaultPrefixes()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(anyText(), rapid.Just("cyclades:system:x")).Draw(t, "name")
		if ns, _, _ := p.Parse(p.Raw(User, name)); ns != User {
			t.Fatalf("a user's tag %q is one of %q", name, ns)
		}
	})
}
