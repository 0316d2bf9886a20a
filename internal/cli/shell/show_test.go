package shell

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestJSONHasNoEscapesForTheWeb: only those are undone, also behind other escapes.
func TestJSONHasNoEscapesForTheWeb(t *testing.T) {
	const in, want = `{"a":["\u003e","\\u003e","\\\u0026\"","\u001b\u003c"],"b":"\\"}`, `{"a":[">","\\u003e","\\&\"","\u001b<"],"b":"\\"}`
	if got := string(unescaped([]byte(in))); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestYAMLKeepsWhatJSONSays: keys in their order, numbers as they are written, and what is empty.
func TestYAMLKeepsWhatJSONSays(t *testing.T) {
	const in = `{"z":1,"a":{"m":12345678901234567890,"f":1e3,"g":0.5,"h":1E-7,"i":1.5e+21},"n":null,"b":[true,false,[],{}],"t":"12:30","l":"two\nlines"}`
	const want = `z: 1
a:
  m: 12345678901234567890
  f: 1.0e+3
  g: 0.5
  h: 1.0e-7
  i: 1.5e+21
n: null
b:
  - true
  - false
  - []
  - {}
t: '12:30'
l: |-
  two
  lines
`
	var out strings.Builder
	if err := WriteYAML(&out, json.RawMessage(in)); err != nil || out.String() != want {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestJSONEscapesWhatReadersOfYAMLRefuse: control characters of the second hundred, and the mark of an order of bytes.
func TestJSONEscapesWhatReadersOfYAMLRefuse(t *testing.T) {
	const in, want = "{\"a\":\"\x7f\u0085\ufeffä\"}", `{"a":"\u007f\u0085\ufeffä"}`
	if got := string(unescaped([]byte(in))); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
