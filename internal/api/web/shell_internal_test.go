package web

import "testing"

// TestEachFileOfThePageHasItsType: browsers are told not to guess.
func TestEachFileOfThePageHasItsType(t *testing.T) {
	for name, f := range loadShell().files {
		if f.kind == "" {
			t.Errorf("%s has no media type: give its extension one", name)
		}
	}
}
