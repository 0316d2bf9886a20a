package query

import (
	"fmt"
	"testing"

	"github.com/drover-project/drover/internal/qlang"
)

// testsOf are all tests of a field, with values of both types.
func testsOf(t *testing.T, field string) []qlang.Node {
	t.Helper()
	var out []qlang.Node
	for _, text := range []string{`%s`, `%s =~ m/x/`, `%s =~ m/(?=x)/`, `%s =* "x*"`, `"x" in %s`, `5 in %s`} {
		n, err := qlang.ParseText(fmt.Sprintf(text, field))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	for _, op := range []qlang.Op{qlang.Eq, qlang.Ne, qlang.Lt, qlang.Le, qlang.Gt, qlang.Ge} {
		for _, v := range []qlang.Value{qlang.TextValue("x"), qlang.TextValue(""), qlang.IntValue(5), qlang.IntValue(0)} {
			out = append(out, &qlang.Compare{Op: op, Field: field, Value: v})
		}
	}
	return out
}

// TestMissingValuesAreNotChosen: whatever a strict filter tests, and in whatever
// field, a row without the value is not chosen, neither by the test nor by its
// negation. Is it asked for by name, it is.
func TestMissingValuesAreNotChosen(t *testing.T) {
	for _, kind := range []Kind{KindText, KindNumber, KindUnit, KindFloat, KindBool, KindTimestamp, KindOther} {
		for _, mode := range []Mode{ModePlain, ModeHostname, ModeSeconds, ModeDuration} {
			for _, strict := range []bool{false, true} {
				for _, status := range []Status{NoData, Unavail, Offline} {
					missing := func(*View, any) Cell { return Cell{Status: status} }
					items := (&Table[any]{Fields: []Field[any]{
						{Def: Def{Name: "f", Kind: kind}, Mode: mode, Strict: strict, Get: missing},
						{Def: Def{Name: "there", Kind: KindBool}, Get: func(*View, any) Cell { return Cell{Value: true} }},
					}}).Indexed()
					chosen := func(n qlang.Node) bool {
						got, err := items.Compile(n, true)(&View{Source: &Source{}}, nil)
						if err != nil {
							t.Fatal(err)
						}
						return got == Yes
					}
					for _, n := range testsOf(t, "f") {
						there := &qlang.True{Field: "there"}
						for _, filter := range []qlang.Node{n, &qlang.Not{Arg: n}, &qlang.And{Args: []qlang.Node{there, n}},
							&qlang.Not{Arg: &qlang.And{Args: []qlang.Node{there, n}}}, &qlang.Not{Arg: &qlang.Or{Args: []qlang.Node{n, n}}}} {
							if chosen(qlang.Strict(filter)) {
								t.Errorf("%v %v: %s chooses what has no value", kind, mode, qlang.String(filter))
							}
						}
						if or := qlang.Strict(&qlang.Or{Args: []qlang.Node{n, &qlang.Missing{Field: "f"}}}); !chosen(or) {
							t.Errorf("%v %v: %s does not", kind, mode, qlang.String(or))
						}
					}
				}
			}
		}
	}
}
