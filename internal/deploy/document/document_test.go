package document_test

import (
	"math"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/yaql/yaqljson"
)

func parse(t *testing.T, text string) *document.Node {
	t.Helper()
	n, _, err := document.Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPlainTextsAreYAML11 has what PyYAML's safe_load gives for these texts.
func TestPlainTextsAreYAML11(t *testing.T) {
	for text, want := range map[string]any{
		"yes": true, "Off": false, "y": "y", "~": nil, "null": nil, "": nil, "0755": int64(493), "0x1F": int64(31), "0b11": int64(3),
		"1_000": int64(1000), "1:30": int64(90), "-1:30": int64(-90), "1000:1030": "1000:1030", "2:65535": "2:65535", "09": "09",
		"1.5": 1.5, "1e5": "1e5", "1.e+5": 1e5, ".5": 0.5, "+1": int64(1), "1.2.3": "1.2.3", "-.inf": math.Inf(-1), "-": "-",
		"'yes'": "yes", `"1"`: "1", "!!str 1": "1", "2020-01-01": "2020-01-01", "2.1.0": "2.1.0",
	} {
		if text == "-" {
			text = "'-'"
		}
		n := parse(t, "a: "+text)
		if got := n.Get("a").Scalar; got != want {
			t.Errorf("%s is %#v, want %#v", text, got, want)
		}
	}
}

// TestBadYAMLHasItsLine looks at errors whose line the reader of YAML does not tell, or tells wrongly.
func TestBadYAMLHasItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"a: [":                   "f:1: bad YAML: did not find expected node content",
		"a: }":                   "f:1: bad YAML: did not find expected node content",
		"a: 'x":                  "f:1: bad YAML: found unexpected end of stream",
		"a: b: c":                "f:1: bad YAML: mapping values are not allowed in this context",
		"\ta: 1":                 "f:1: bad YAML: found character that cannot start any token",
		"a: 1\nb: b: c":          "f:2: bad YAML: mapping values are not allowed in this context",
		"a: 1\nb: ]\nc: 1":       "f:2: bad YAML: did not find expected node content",
		"- a\nb: 1\n":            "f:2: bad YAML: did not find expected '-' indicator",
		"a: |\n  x\n y\nz: 1":    "f:3: bad YAML: did not find expected key",
		"a: 1\n\n\nb: @y":        "f:4: bad YAML: found character that cannot start any token",
		"a: &x\nb: [*x,\n  *yy]": "f:3: bad YAML: unknown anchor 'yy' referenced",
		"a: 1\nb: \x01":          "f:2: bad YAML: control characters are not allowed",
		"a: 1\n\nb: \xff":        "f:3: bad YAML: invalid leading UTF-8 octet",
	} {
		if _, _, err := document.Parse("f", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestPlacesInsideTexts looks up where the word HERE of a text stands in the file.
func TestPlacesInsideTexts(t *testing.T) {
	for _, c := range []struct {
		name, file   string
		line, column int
	}{
		{"plain", "a: x HERE", 1, 6},
		{"plain over lines", "a: x\n  y HERE", 2, 5},
		{"single quotes", "a: 'it''s HERE'", 1, 11},
		{"double quotes", `a: "say \"x\" HERE"`, 1, 15},
		{"double quotes, a line break within", `a: "x\ny HERE"`, 1, 10},
		{"folded", "a: >\n  x\n\n  y HERE", 4, 5},
		{"literal", "a:\n- |\n    x\n      HERE", 4, 7},
		{"not ASCII", "a: äö HERE", 1, 7},
	} {
		n := parse(t, c.file).Get("a")
		if n.Kind == document.List {
			n = n.Items[0]
		}
		text, _ := n.Scalar.(string)
		got := n.Inside(strings.Index(text, "HERE"))
		if got.Line != c.line || got.Column != c.column {
			t.Errorf("%s: at %s, want %d:%d", c.name, got, c.line, c.column)
		}
	}
}

func TestMapsOfDocuments(t *testing.T) {
	n, warnings, err := document.Parse("f", []byte("base: &b {x: 1, y: 2}\nz: {<<: *b, y: 3, x: 4, x: 5}\nl: {<<: [*b, {w: 6}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := yaqljson.Encode(document.Sorted(n.Value()))
	if want := `{"base": {"x": 1, "y": 2}, "l": {"w": 6, "x": 1, "y": 2}, "z": {"x": 5, "y": 3}}`; err != nil || strings.ReplaceAll(string(got), " ", "") != strings.ReplaceAll(want, " ", "") {
		t.Errorf("got %s, %v", got, err)
	}
	if len(warnings) != 1 || warnings[0].Line != 2 || !strings.Contains(warnings[0].String(), `f:2:25: the key "x" is there twice`) {
		t.Errorf("the warnings are %v", warnings)
	}
}

func TestBadDocuments(t *testing.T) {
	for text, want := range map[string]string{
		"a: [1":                         "f:1: bad YAML",
		"a: 1\n---\nb: 2":               "more than one document",
		"? [1, 2]\n: 3":                 "keys must be texts",
		"&a [*a]":                       "stands within what it names",
		strings.Repeat("[", 300):        "",
		"a: \x00":                       "bad YAML",
		"a: b: c":                       "bad YAML",
		"\t- x":                         "bad YAML",
		strings.Repeat("- ", 250) + "x": "nested more than 200 deep",
	} {
		_, _, err := document.Parse("f", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || fault.CodeOf(err) == fault.Internal {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	if n, _, err := document.Parse("f", nil); err != nil || n.Scalar != nil {
		t.Errorf("an empty document: %v, %v", n, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a: [1, {b: c}]", "&a x: *a", "a: >\n  b\n c", "<<: {a: b}", "? a\n: b", "1: 2\n1: 3"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		n, _, err := document.Parse("f", []byte(text))
		if err != nil {
			return
		}
		document.Sorted(n.Value())
		n.Inside(len(text))
	})
}
