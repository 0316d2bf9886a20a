package items

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/testkit"
)

// conformance reads a file of the conformance directory; numbers stay as they
// are written.
func conformance(t testing.TB, name string, into any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(testkit.ReadConformance(t, name)))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// newFields are fields that the reference does not have.
var newFields = map[string][]string{"job": {"begun_after", "dry_run", "held_by", "held_since", "opplacement", "opsteps", "place", "ran_on", "reason", "reason_trail", "step", "timeline", "wait_reason", "waited", "waited_for", "waits_for", "waits_for_jobs", "waits_since"},
	"filter":   {"action_text", "added_by", "changed", "comment", "decides", "held", "longest_hold", "predicates_text", "reason", "rule", "rule_name", "shadow", "until", "would_hold"},
	"instance": append([]string{"told_state"}, lastChange...), "node": append([]string{"told_at"}, lastChange...)}

var lastChange = []string{"last_change", "last_change_job", "last_change_reason", "last_change_trail"}

func TestFieldsConformance(t *testing.T) {
	var file map[string][]struct{ Name, Title, Kind, Source string }
	conformance(t, "query-fields.json", &file)
	passed, total := 0, 0
	for what, fields := range file {
		defs, err := All.Fields(what, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := len(fields) + len(newFields[what]); len(defs) != want {
			t.Errorf("%s has %d fields, want %d", what, len(defs), want)
		}
		for _, f := range fields {
			total++
			got, err := All.Fields(what, []string{f.Name})
			if err != nil {
				t.Fatal(err)
			}
			if d := got[0]; d.Name != f.Name || d.Title != f.Title || string(d.Kind) != f.Kind || !slices.Contains(defs, d) {
				t.Errorf("%s/%s: got %+v, want title %s, kind %s", what, f.Name, d, f.Title, f.Kind)
				continue
			}
			passed++
		}
	}
	t.Logf("query-fields.json: %d of %d fields passed", passed, total)
}

// The reference asserts the form of names, titles and docs.
func TestFieldsAreWellFormed(t *testing.T) {
	for _, what := range All.Names() {
		defs, err := All.Fields(what, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.IsSortedFunc(defs, func(a, b query.Def) int { return cluster.CompareNames(a.Name, b.Name) }) {
			t.Errorf("%s: fields are out of order", what)
		}
		for _, d := range defs {
			first, last := d.Doc[0], d.Doc[len(d.Doc)-1]
			if first < 'A' || first > 'Z' || strings.ContainsRune(".,?!", rune(last)) || strings.Contains(d.Doc, "\n") {
				t.Errorf("%s/%s: doc %q", what, d.Name, d.Doc)
			}
			if strings.ContainsAny(d.Title, " \t") || d.Title == "" || strings.Trim(d.Name, "abcdefghijklmnopqrstuvwxyz0123456789/._") != "" {
				t.Errorf("%s: name %q, title %q", what, d.Name, d.Title)
			}
		}
	}
}

// recording is a recorded exchange over the control socket.
type recording struct {
	Header struct {
		Request struct {
			Method string
			Args   []any
		}
	}
	Response struct {
		Success bool
		Result  any
	}
}

func TestQueryFieldsRecordingsConformance(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testkit.Conformance(t, "golden/luxi"), "QueryFields_*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	passed := 0
	for _, path := range files {
		name := filepath.Base(path)
		var rec recording
		conformance(t, "golden/luxi/"+name, &rec)
		what, _ := rec.Header.Request.Args[0].(string)
		if !rec.Response.Success {
			continue // the transport refuses what old clients cannot ask for
		}
		var names []string
		if list, ok := rec.Header.Request.Args[1].([]any); ok {
			for _, n := range list {
				names = append(names, n.(string))
			}
		}
		defs, err := All.Fields(what, names)
		if err != nil {
			t.Fatal(err)
		}
		defs = slices.DeleteFunc(defs, func(d query.Def) bool { return slices.Contains(newFields[what], d.Name) })
		want, _ := rec.Response.Result.(map[string]any)["fields"].([]any)
		if len(defs) != len(want) {
			t.Errorf("%s: %d fields, want %d", name, len(defs), len(want))
			continue
		}
		same := true
		for i, w := range want {
			m := w.(map[string]any)
			if d := defs[i]; d.Name != m["name"] || d.Title != m["title"] || string(d.Kind) != m["kind"] {
				t.Errorf("%s: field %d is %+v, want %v", name, i, d, m)
				same = false
			}
		}
		if same {
			passed++
		}
	}
	t.Logf("golden/luxi/QueryFields_*: %d of %d recordings passed", passed, len(files))
}
