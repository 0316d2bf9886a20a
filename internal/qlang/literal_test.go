package qlang_test

import (
	"testing"

	"github.com/drover-project/drover/internal/qlang"
)

// TestAnchorsOfLiteralsAreThoseOfLines, in the short cut for literal patterns, too.
func TestAnchorsOfLiteralsAreThoseOfLines(t *testing.T) {
	for _, tc := range []struct {
		pattern, text string
		want          bool
	}{
		{"a$", "a\nb", true}, {"a$", "ba\nb", true}, {"a$", "ab\nb", false}, {"b$", "a\nb", true},
		{"^b", "a\nb", true}, {"^b", "a\nbc", true}, {"^b", "a\ncb", false}, {"^a", "a\nb", true},
		{"^a$", "b\na\nb", true}, {"^a$", "a\nb", true}, {"^a$", "b\na", true}, {"^a$", "ab\nba", false},
		{"a", "b\na", true}, {"a", "b\nb", false},
	} {
		re, err := qlang.CompileRegex(tc.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := re.MatchString(tc.text); err != nil || got != tc.want {
			t.Errorf("%q on %q: %v, %v, want %v", tc.pattern, tc.text, got, err, tc.want)
		}
	}
}
