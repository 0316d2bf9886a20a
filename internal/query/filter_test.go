package query

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/qlang"
	"pgregory.net/rapid"
)

// An "or" of many equality tests decides as its tests do one by one.
func TestManyValuesDecideAsOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		what := rapid.SampledFrom([]string{"name", "os", "network_port"}).Draw(t, "field")
		f := &Field[any]{Def: Def{Name: what}, Get: func(_ *View, r any) Cell { return r.(Cell) }, Mode: map[string]Mode{"name": ModeHostname}[what]}
		items := (&Table[any]{Fields: []Field[any]{*f}}).Indexed()
		texts := rapid.SampledFrom([]string{"", ".", "a", "a.", "a.b", "a.b.c", "a.bc", "b", "b.a"})
		or := &qlang.Or{}
		for range rapid.IntRange(0, 2*manyValues).Draw(t, "n") {
			value := qlang.TextValue(texts.Draw(t, "text"))
			if what == "network_port" {
				value = qlang.IntValue(int64(rapid.IntRange(-3, 12).Draw(t, "int")))
			}
			if rapid.IntRange(0, 60).Draw(t, "odd") == 0 {
				value = qlang.Value{Int: new(big.Int).Lsh(big.NewInt(1), 70)}
			}
			or.Args = append(or.Args, &qlang.Compare{Op: qlang.Eq, Field: what, Value: value})
		}
		cells := []Cell{{Status: NoData}, {Value: int64(2)}, {Value: 2.0}, {Value: nil}, {Value: true}, {Value: texts.Draw(t, "value")}}
		for _, c := range cells {
			got, err := items.Compile(or, true)(nil, c)
			want, wantErr := items.compileMany(or.Args, true, Yes)(nil, c)
			if got != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("%+v in %s: %v, %v; want %v, %v", c, qlang.JSON(or), got, err, want, wantErr)
			}
		}
	})
}

// What a list holds is read as a text, to which one is a list of characters; an element that is
// none is named as the reference names it.
func TestElementsThatAreNoTexts(t *testing.T) {
	for _, tc := range []struct {
		list  any
		found bool
		err   string
	}{
		{[]any{"ab", "c"}, true, ""},
		{[]any{"c", []any{"a", "b"}}, true, ""},
		{[]any{[]any{}}, false, ""},
		{[]any{[]any{"default", "bridged"}}, false, "Unable to read Char"},
		{[]any{[]any{"a", 1}}, false, "Unable to read Char"},
		{[][]string{{"default"}}, false, "Unable to read Char"},
		{[]any{1}, false, "Unable to read String"},
		{[]any{"ab", nil}, false, "Unable to read String"},
		{"ab", false, "Unable to read list"},
	} {
		found, err := contains(qlang.TextValue("ab"))(tc.list)
		if got := fmt.Sprint(err); found != tc.found || tc.err == "" && err != nil || !strings.Contains(got, tc.err) {
			t.Errorf("%v: %v, %v; want %v, %s", tc.list, found, err, tc.found, tc.err)
		}
	}
}
