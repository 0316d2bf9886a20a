package requestid_test

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/requestid"
)

func TestValid(t *testing.T) {
	for id, want := range map[string]bool{
		"a": true, "4f.X_-9": true, strings.Repeat("a", 64): true,
		"": false, "a b": false, "ä": false, "a\n": false, "a\"": false, strings.Repeat("a", 65): false,
	} {
		if got := requestid.Valid(id); got != want {
			t.Errorf("%q: %v", id, got)
		}
	}
}

func TestIDsAreValidAndDiffer(t *testing.T) {
	s := requestid.NewSource("a1b2")
	first, second := s.Next(), s.Next()
	if first == second || !requestid.Valid(first) {
		t.Errorf("%q and %q", first, second)
	}
	if got := requestid.From(requestid.With(t.Context(), first)); got != first {
		t.Errorf("carried %q", got)
	}
	if got := requestid.From(t.Context()); got != "" {
		t.Errorf("nothing carried %q", got)
	}
}
