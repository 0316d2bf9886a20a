package texts

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/deploy/dump"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/yaql/yaqljson"
)

// alike are texts that one reader or another takes for something else, where they stand without quotes.
var alike = []string{
	"", " ", "~", "null", "Null", "NULL", "yes", "Yes", "YES", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF", "y", "Y", "n", "N",
	"true", "True", "TRUE", "false", "False", "FALSE", "=", "<<", "-", "--", "---", "...", "?", ":", "!", "&", "*", "|", ">", "%", "@", "`", "#", ",", "[]", "{}",
	"12:30", "1:30", "12:30:45", "1:30.5", "08:30", "52:54:00:12:34:56", "00:00:00:00:00:00", "190:20:30",
	"0", "-0", "+1", "017", "0o17", "08", "0x1F", "0b11", "1_000", "12345678901234567890", "1e3", "1E3", "1e+3", "1.5", ".5", "5.", "1.5e3", "1.5e+3", ".inf", "-.INF", ".NaN", "nan", "inf", "Infinity", "NaN",
	"2026-11-23", "2026-1-3", "2026-11-23 10:00:00", "2026-11-23T10:00:00Z", "2026-11-23T10:00:00.5+01:00", "10.0.0.1", "::1", "fe80::1%eth0",
	"a: b", "a:b", "a #b", "a#b", "- a", "? a", "key:", "'", "\"", "''", "it's", "\"a\"", "\\", "\\n", "\n", "a\n", "\na", "a\nb", "a\n\nb", "a \nb", "a\n b", "\ta", "a\tb", "a ", " a", "a  b",
	"\r", "a\r\nb", "\u0085", "\u2028", "\u00a0", "\ufeff", "\x00", "\x1b[31m", "\x7f", "ä", "€", "😀", "!!str a", "!tag", "&a b", "*a", "%YAML 1.1", "--- a", "a\n---\nb", "a\n...\n",
	strings.Repeat("long ", 60), strings.Repeat("x", 200), "{a: b}", "[a, b]", "a, b", "<a&b>", "null ", "yes\n",
}

// pieces make further texts.
var pieces = []string{"a", "Z", "0", "1", "9", "-", "+", ".", ":", "/", " ", "  ", "\n", "\t", "\r", "'", "\"", "\\", "#", "&", "*", "!", "|", ">", "<", "=", "~", "%", "@", "`", "?", "[", "]", "{", "}", ",", "_",
	"e", "E", "x", "o", "b", "T", "Z", "yes", "no", "null", "true", "inf", "nan", "12:30", "2026-11-23", "1e3", "ä", "\u2028", "\u0085", "\ufeff", "😀", "\x01"}

// all are texts in plenty: those that are known to be alike, and what can be made of their pieces.
func all() []string {
	const made = 400
	out := alike
	draw := rand.New(rand.NewPCG(1, 2))
	for range made {
		var text strings.Builder
		for range 1 + draw.IntN(6) {
			text.WriteString(pieces[draw.IntN(len(pieces))])
		}
		out = append(out, text.String())
	}
	return out
}

// written is what a writer made of a text that is an item of a list, a value and a key.
type written struct {
	text   string
	writer string
	out    string
}

// writers are all that Drover writes YAML or JSON with that people and programs read.
var writers = []struct {
	name  string
	write func(text string) (string, error)
	json  bool
	// old: its texts are those of the reference, which are for Python.
	old bool
}{
	{name: "--output yaml", write: func(text string) (string, error) {
		var out bytes.Buffer
		err := shell.WriteYAML(&out, value(text))
		return out.String(), err
	}},
	{name: "--output json", json: true, write: func(text string) (string, error) {
		var out bytes.Buffer
		err := (&shell.Shell{Out: &out}).ShowJSON(value(text))
		return out.String(), err
	}},
	{name: "uploads of tasks as YAML", old: true, write: func(text string) (string, error) { return dumped(text, dump.YAML) }},
	{name: "uploads of tasks as JSON", json: true, old: true, write: func(text string) (string, error) { return dumped(text, dump.JSON) }},
}

func value(text string) map[string]any {
	return map[string]any{"list": []any{text, []any{text}}, "map": map[string]any{text: text}}
}

func dumped(text string, write func(any) (string, error)) (string, error) {
	encoded, err := json.Marshal(value(text))
	if err != nil {
		return "", err
	}
	v, err := yaqljson.Decode(encoded)
	if err != nil {
		return "", err
	}
	return write(v)
}

func everything(t *testing.T) (out []written) {
	t.Helper()
	for _, w := range writers {
		for _, text := range all() {
			made, err := w.write(text)
			if err != nil {
				t.Fatalf("%s: %q: %v", w.name, text, err)
			}
			out = append(out, written{text, w.name, made})
		}
	}
	return out
}

// wrong tells of a text that did not come back.
func wrong(t *testing.T, reader string, w written, got any) {
	t.Helper()
	t.Errorf("%s reads %#v of %q, which stands in %s as\n%s", reader, got, w.text, w.writer, w.out)
}

// TestTextsComeBack reads all that is written with our own reader, which is one of YAML 1.1, and with Go's.
func TestTextsComeBack(t *testing.T) {
	older, isJSON := map[string]bool{}, map[string]bool{}
	for _, w := range writers {
		older[w.name], isJSON[w.name] = w.old, w.json
	}
	for _, w := range everything(t) {
		if isJSON[w.writer] {
			var got map[string]any
			if err := json.Unmarshal([]byte(w.out), &got); err != nil || !reflect.DeepEqual(got, value(w.text)) {
				wrong(t, "a reader of JSON", w, got)
			}
			if older[w.writer] { // as Python writes it, which readers of YAML do not take in all cases
				continue
			}
		}
		read, _, err := document.Parse("out", []byte(w.out))
		if err != nil {
			wrong(t, "our own reader", w, err)
			continue
		}
		items, at := read.Get("list").Items, read.Get("map").Get(w.text)
		if items[0].Scalar != w.text || items[1].Items[0].Scalar != w.text || at == nil || at.Scalar != w.text {
			wrong(t, "our own reader", w, items[0].Scalar)
		}
		if older[w.writer] {
			continue
		}
		var modern struct {
			List []any
			Map  map[any]any
		}
		if err := yaml.Unmarshal([]byte(w.out), &modern); err != nil || modern.List[0] != w.text || modern.Map[w.text] != w.text {
			wrong(t, "a reader of YAML 1.2", w, err)
		}
	}
}

// python reads documents, one after the other, and tells the place of each that is not what it is to be.
const python = `
import json, sys, yaml
for line in sys.stdin:
    text, is_json, written = json.loads(line)
    want = {"list": [text, [text]], "map": {text: text}}
    for loader in [] if is_json else [yaml.SafeLoader, yaml.CSafeLoader]:
        try:
            got = yaml.load(written, loader)
        except Exception as e:
            got = str(e)
        if got != want:
            print(json.dumps([loader.__name__, repr(text), written, repr(got)]))
    if is_json and json.loads(written) != want:
        print(json.dumps(["json", repr(text), written, ""]))
print("done")
`

// TestPythonReadsThem has PyYAML, in Python and in C, and Python's json read all that is written.
func TestPythonReadsThem(t *testing.T) {
	testkit.NeedPython(t, "yaml", "python3-yaml")
	isJSON := map[string]bool{}
	for _, w := range writers {
		isJSON[w.name] = w.json
	}
	var in bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, w := range everything(t) {
		if err := enc.Encode([]any{w.text, isJSON[w.writer], w.out}); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "python3", "-c", python)
	cmd.Stdin = &in
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if report := strings.TrimSpace(string(out)); report != "done" {
		t.Errorf("Python reads something else:\n%s", report)
	}
}
