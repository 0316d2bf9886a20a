package expression_test

import (
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/yaql/yaqljson"
)

func TestQuoted(t *testing.T) {
	l := language(t)
	for text, want := range map[string]string{
		"$.s.quoted()":           `'it'\''s $(id)'`,
		"$.n.quoted()":           "'7'",
		"$.b.quoted()":           "'true'",
		"$.nothing.quoted()":     "'null'",
		"$.l.quoted()":           "'a b' '1' ''",
		"$.m.quoted()":           `'{"k": 1}'`,
		"[].quoted()":            "''",
		"'echo ' + $.s.quoted()": `echo 'it'\''s $(id)'`,
	} {
		r, err := eval(t, l, text, seen{node: `{"s": "it's $(id)", "n": 7, "b": true, "nothing": null, "l": ["a b", 1, ""], "m": {"k": 1}}`})
		if want == "''" { // of no words there are none
			want = ""
		}
		if err != nil || r.Value != want {
			t.Errorf("%s is %v, %v; want %s", text, r.Value, err, want)
		}
	}
	for text, want := range map[string]string{"[[1]].quoted()": "TypeError", `"a\u0000b".quoted()`: "ValueError"} {
		if _, err := eval(t, l, text, seen{}); expression.ErrorClass(err) != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestQuotedIsOneWord: whatever a text holds, a shell takes it for that text and nothing else.
func TestQuotedIsOneWord(t *testing.T) {
	l := language(t)
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.ReplaceAll(rapid.StringOfN(rapid.SampledFrom([]rune("ab '\"\\$`!\n\t;&|*?[]{}()<>#~-=é")), 0, 20, -1).Draw(rt, "text"), "\x00", "")
		node, err := yaqljson.Encode(map[string]any{"s": text})
		if err != nil {
			rt.Fatal(err)
		}
		r, err := eval(t, l, "$.s.quoted()", seen{node: string(node)})
		if err != nil {
			rt.Fatal(err)
		}
		word, _ := r.Value.(string)
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", "printf '%s|%d' "+word+" 1").Output()
		if err != nil || string(out) != text+"|1" {
			rt.Fatalf("%q is %s, which a shell takes for %q, %v", text, word, out, err)
		}
	})
}
