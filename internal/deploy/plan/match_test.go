package plan

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestPrefixesChangeNoAnswer compares patterns with and without the short way past names that do not begin as they do.
func TestPrefixesChangeNoAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "-", "a*", "b?", "a+", "b{0,1}", "a{2}", ".", "[ab]", "(a)", "(?i)", "a|b", "^", "$", `\w`, "ab"}), 0, 5)
		p := strings.Join(pieces.Draw(t, "pattern"), "")
		text := rapid.StringMatching(`[abAB-]{0,5}`).Draw(t, "text")
		short, err := newMatcher()
		if err != nil {
			t.Fatal(err)
		}
		got, wrong := short.match(t.Context(), "/"+p+"/", text)
		long, err := newMatcher()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = long.match(t.Context(), "/"+p+"/", text)
		if c := long.compiled[p]; c != nil {
			c.prefix = ""
		}
		want, wrongToo := long.match(t.Context(), "/"+p+"/", text)
		if got != want || (wrong == nil) != (wrongToo == nil) {
			t.Fatalf("/%s/ fits %q: %v (%v), without the prefix %q %v (%v)", p, text, got, wrong, prefixOf(p), want, wrongToo)
		}
	})
}

func TestPrefixOf(t *testing.T) {
	for p, want := range map[string]string{"t12$": "t12", "^web": "web", "ab*": "a", "ab+c": "ab", "a|b": "", "(?i)a": "", ".*": "", "web.*": "web", `we\b`: "we", "a{0}": ""} {
		if got := prefixOf(p); got != want {
			t.Errorf("names that %s fits begin with %q, want %q", p, got, want)
		}
	}
}
