package listing_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cli/listing"
)

// list writes rows of one column.
func list(t *testing.T, what, name, kind string, o listing.Options, cells ...string) string {
	t.Helper()
	a := &listing.Answer{Fields: []listing.Field{{Name: name, Title: "T", Kind: kind}}}
	for _, c := range cells {
		var cell listing.Cell
		if err := json.Unmarshal([]byte(c), &cell); err != nil {
			t.Fatal(err)
		}
		a.Data = append(a.Data, []listing.Cell{cell})
	}
	o.NoHeaders, o.Separator, o.Location = true, "|", time.UTC
	var b strings.Builder
	if err := listing.Write(&b, what, a, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestValues(t *testing.T) {
	for _, tc := range []struct{ what, name, kind, units, cell, want string }{
		{"x", "f", "other", "", `[0, {"a": [1, null, true, 1.5, "it's"], "b": {}}]`, `{'a': [1, None, True, 1.5, "it's"], 'b': {}}`},
		{"x", "f", "other", "", `[0, ["a'b\"c", "\u00e4\u0007\n\\", "\u2028"]]`, `['a\'b"c', 'ä\x07\n\\', '\u2028']`},
		{"x", "f", "other", "", `[0, [1e16, 1e-5, 123456789.0, 0.0001]]`, `[1e+16, 1e-05, 123456789.0, 0.0001]`},
		{"x", "f", "text", "", `[0, null]`, `None`},
		{"x", "f", "text", "", `[0, "a b"]`, `a b`},
		{"x", "f", "float", "", `[0, 1]`, `1`},
		{"x", "f", "unit", "h", `[0, 1023]`, `1023M`},
		{"x", "f", "unit", "h", `[0, 1536]`, `1.5G`},
		{"x", "f", "unit", "h", `[0, 1572864]`, `1.5T`},
		{"x", "f", "unit", "g", `[0, 512]`, `0.5`},
		{"x", "f", "unit", "t", `[0, 1048576]`, `1.0`},
		{"x", "f", "unit", "", `[0, 1536]`, `1536`},
		{"x", "f", "timestamp", "", `[0, 1700000000.9]`, `2023-11-14 22:13:20`},
		{"job", "opstart", "other", "", `[0, [[1700000000, 500], null]]`, `['2023-11-14 22:13:20.000500', '?']`},
		{"instance", "nic.ips", "other", "", `[0, ["192.0.2.5", null]]`, `192.0.2.5,None`},
		{"lock", "mode", "other", "", `[0, null]`, `-`},
		{"x", "f", "other", "", `[4, null]`, `*`},
	} {
		got := list(t, tc.what, tc.name, tc.kind, listing.Options{Units: tc.units}, tc.cell)
		if got != tc.want+"\n" {
			t.Errorf("%s %s of kind %s, %s: got %q, want %q", tc.what, tc.name, tc.kind, tc.cell, got, tc.want)
		}
	}
}

func TestColorsDoNotMoveColumns(t *testing.T) {
	a := &listing.Answer{
		Fields: []listing.Field{{Name: "a", Title: "Ä", Kind: "text"}, {Name: "b", Title: "B", Kind: "text"}},
		Data:   [][]listing.Cell{{{Status: 3}, {Value: json.RawMessage(`"x"`)}}, {{Value: json.RawMessage(`"öö"`)}, {Status: 2}}},
	}
	var plain, colored strings.Builder
	if err := listing.Write(&plain, "x", a, listing.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := listing.Write(&colored, "x", a, listing.Options{Color: true}); err != nil {
		t.Fatal(err)
	}
	if plain.String() != "Ä  B\n-  x\nöö ?\n" {
		t.Errorf("got %q", plain.String())
	}
	stripped := strings.NewReplacer("\x1b[2m", "", "\x1b[33m", "", "\x1b[0m", "").Replace(colored.String())
	if stripped != plain.String() || colored.String() == plain.String() {
		t.Errorf("coloured %q", colored.String())
	}
}

func TestBrokenCellsAreRefused(t *testing.T) {
	var c listing.Cell
	for _, bad := range []string{`[0]`, `[0,1,2]`, `{}`, `["a",1]`} {
		if err := json.Unmarshal([]byte(bad), &c); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
	if listing.CheckUnits("k") == nil || listing.CheckUnits("hm") == nil || listing.CheckUnits("h") != nil {
		t.Error("CheckUnits is wrong")
	}
}

func TestCSV(t *testing.T) {
	a := &listing.Answer{Fields: []listing.Field{{Name: "name"}, {Name: "n"}, {Name: "tags"}}}
	for _, row := range []string{`[[0,"a,b"],[0,5],[0,["x","y"]]]`, `[[0,"ä"],[3,null],[0,null]]`, `[[0,"off"],[4,null],[2,null]]`} {
		var cells []listing.Cell
		if err := json.Unmarshal([]byte(row), &cells); err != nil {
			t.Fatal(err)
		}
		a.Data = append(a.Data, cells)
	}
	var b strings.Builder
	if err := listing.WriteCSV(&b, a, listing.Options{}); err != nil {
		t.Fatal(err)
	}
	if want := "name,n,tags\n\"a,b\",5,\"[\"\"x\"\",\"\"y\"\"]\"\nä,,\noff,(offline),(nodata)\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	b.Reset()
	if err := listing.WriteCSV(&b, a, listing.Options{Verbose: true, Separator: ";", NoHeaders: true}); err != nil || !strings.HasPrefix(b.String(), "a,b;5;") || !strings.Contains(b.String(), "ä;(unavail);\n") {
		t.Errorf("got %q, %v", b.String(), err)
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"für 保守": "für 保守", "a\nb\tc\r": `a\nb\tc\r`, "\x1b[31m": `\x1b[31m`, "\x00\x7f\u0085": `\x00\x7f\x85`,
		"\u202eevil\u2066": `\u202eevil\u2066`, "\xff": `\xff`, "\ufffd": "\ufffd", "": "",
	} {
		if got := listing.Printable(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestTablesFitTerminals(t *testing.T) {
	when := &listing.Answer{Fields: []listing.Field{{Name: "t", Title: "T", Kind: "timestamp"}, {Name: "a", Title: "A", Kind: "text"}},
		Data: [][]listing.Cell{{{Value: json.RawMessage("1000")}, {Value: json.RawMessage(`"` + strings.Repeat("a", 15) + `"`)}}}}
	var times strings.Builder
	if err := listing.Write(&times, "x", when, listing.Options{Width: 30}); err != nil || !strings.Contains(times.String(), "1970-01-01 00:16:40 aaaaaaaaa…") {
		t.Errorf("a time is cut: %s %v", times.String(), err)
	}
	a := &listing.Answer{Fields: []listing.Field{{Name: "n", Title: "N", Kind: "number"}, {Name: "a", Title: "A", Kind: "text"}, {Name: "b", Title: "B", Kind: "text"}}}
	cell := func(s string) listing.Cell { return listing.Cell{Value: json.RawMessage(s)} }
	a.Data = [][]listing.Cell{{cell("1"), cell(`"` + strings.Repeat("ä", 60) + `"`), cell(`"` + strings.Repeat("b", 100) + `"`)}, {cell("2"), cell(`"x"`), cell(`"y"`)}}
	for _, width := range []int{80, 40} {
		var b strings.Builder
		if err := listing.Write(&b, "x", a, listing.Options{Width: width}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(b.String(), "\n") {
			if n := len([]rune(line)); n > width {
				t.Errorf("%d columns in %d: %s", n, width, line)
			}
		}
		if strings.Count(b.String(), "…") != 2 {
			t.Errorf("got %s", b.String())
		}
	}
	var b strings.Builder
	fields := []listing.Field{{Name: "name", Title: "T", Kind: "text", Doc: strings.TrimSpace(strings.Repeat("some words ", 20))}}
	if err := listing.WriteFields(&b, fields, listing.Options{Width: 60}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) < 6 || strings.Contains(b.String(), "…") || strings.Count(b.String(), "words") != 20 {
		t.Errorf("got %s", b.String())
	}
}

func TestTimesInData(t *testing.T) {
	for _, c := range []struct{ name, kind, value, want string }{
		{"timestamp", "timestamp", "1795309512.465136129", `"2026-11-22T01:05:12.465136129Z"`},
		{"ctime", "timestamp", "1000", `"1970-01-01T00:16:40Z"`},
		{"received_ts", "other", "[1000, 500000]", `"1970-01-01T00:16:40.5Z"`},
		{"opstart", "other", "[[1000, 500000]]", "[[1000, 500000]]"},
		{"ctime", "timestamp", "null", "null"},
		{"n", "number", "1000", "1000"},
		{"predicates", "other", `["\u003e","\\\\u003c \u0026\\n"]`, `[">","\\\\u003c &\\n"]`},
	} {
		got := listing.Data(listing.Field{Name: c.name, Kind: c.kind}, json.RawMessage(c.value))
		if string(got) != c.want {
			t.Errorf("%s %s: got %s, want %s", c.name, c.value, got, c.want)
		}
	}
}
