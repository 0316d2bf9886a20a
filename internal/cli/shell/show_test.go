package shell

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/drover-project/drover/internal/deploy/document"
)

// TestJSONHasNoEscapesForTheWeb: only those are undone, also behind other escapes.
func TestJSONHasNoEscapesForTheWeb(t *testing.T) {
	const in, want = `{"a":["\u003e","\\u003e","\\\u0026\"","\u001b\u003c"],"b":"\\"}`, `{"a":[">","\\u003e","\\&\"","\u001b<"],"b":"\\"}`
	if got := string(unescaped([]byte(in))); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestTextsStayTextsInYAML: whoever reads it, by the rules of YAML 1.1 or of 1.2.
func TestTextsStayTextsInYAML(t *testing.T) {
	texts := []string{"yes", "no", "on", "Off", "y", "n", "true", "NULL", "~", "", "=", "<<", "52:54:00:12:34:56", "22:30", "1:30.5", "08:30", "0o17", "017", "0x1F",
		"0b1", "1e3", "1.5", "1_000", ".inf", "-.INF", ".nan", "2026-11-23", "2026-11-23 10:00:00", "12345678901234567890", "-", "?", ":", "a: b", "#", " a", "a\nb", "'", "\"", "plain"}
	var out strings.Builder
	byText := map[string]string{}
	for _, s := range texts {
		byText[s] = s
	}
	if err := (&Shell{Out: &out}).ShowYAML(map[string]any{"list": texts, "map": byText}); err != nil {
		t.Fatal(err)
	}
	var modern struct {
		List []any
		Map  map[any]any
	}
	if err := yaml.Unmarshal([]byte(out.String()), &modern); err != nil {
		t.Fatal(err)
	}
	old, _, err := document.Parse("out", []byte(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range texts {
		if modern.List[i] != want || modern.Map[want] != want {
			t.Errorf("YAML 1.2 reads %q as %v", want, modern.List[i])
		}
		if got := old.Get("list").Items[i]; got.Scalar != want {
			t.Errorf("YAML 1.1 reads %q as %v", want, got.Scalar)
		}
		if got := old.Get("map").Get(want); got == nil || got.Scalar != want {
			t.Errorf("YAML 1.1 finds no key %q", want)
		}
	}
}
