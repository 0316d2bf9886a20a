package shell

import "testing"

// TestJSONHasNoEscapesForTheWeb: only those are undone, also behind other escapes.
func TestJSONHasNoEscapesForTheWeb(t *testing.T) {
	const in, want = `{"a":["\u003e","\\u003e","\\\u0026\"","\u001b\u003c"],"b":"\\"}`, `{"a":[">","\\u003e","\\&\"","\u001b<"],"b":"\\"}`
	if got := string(unescaped([]byte(in))); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
