package syntax

import (
	"encoding/json"
	"strings"
	"testing"
)

func parser(t testing.TB, table Table, delegates bool) *Parser {
	t.Helper()
	p, err := NewParser(table, delegates)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func treeOf(t *testing.T, p *Parser, text string) string {
	t.Helper()
	n, perr := p.Parse(text)
	if perr != nil {
		return "!" + string(perr.Class)
	}
	b, err := json.Marshal(n.Tree())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestErrorsTellTheirPlace(t *testing.T) {
	p := parser(t, Default(), false)
	for _, c := range []struct {
		text         string
		line, column int
		expected     string
		caret        string
	}{
		{"", 1, 1, "a value", "\n^"},
		{"1 +\n  * 2", 2, 3, "a value", "  * 2\n  ^"},
		{"f(é, 1 2)", 1, 8, "an operator, ',' or ')'", "f(é, 1 2)\n       ^"},
		{"(1", 1, 3, "an operator or ')'", "(1\n  ^"},
		{"f(a => 1, 2)", 1, 12, "'=>'", "f(a => 1, 2)\n           ^"},
		{"f(,a => 1)", 1, 6, "',' or ')'", "f(,a => 1)\n     ^"},
		{"1 2", 1, 3, "an operator or the end of the expression", "1 2\n  ^"},
		{"a\n@", 2, 1, "", "@\n^"},
		{"'é\\x4é'", 1, 3, "", "'é\\x4é'\n  ^"},
	} {
		_, err := p.Parse(c.text)
		if err == nil {
			t.Errorf("%q is taken", c.text)
			continue
		}
		if line, column := err.Place(); line != c.line || column != c.column || err.Expected != c.expected || err.Caret() != c.caret {
			t.Errorf("%q: line %d, column %d, expected %q, caret\n%s", c.text, line, column, err.Expected, err.Caret())
		}
		if c.expected != "" && !strings.Contains(err.Error(), "expected "+c.expected) {
			t.Errorf("%q: %v", c.text, err)
		}
	}
}

func TestOperatorTables(t *testing.T) {
	table := Default()
	for _, err := range []error{
		table.Insert("or", BinaryLeft, Operator{Symbol: "implies"}, false),
		table.Insert("+", BinaryLeft, Operator{Symbol: "++"}, true),
		table.Insert("not", Prefix, Operator{Symbol: "!", Fixity: Suffix, Alias: "factorial"}, false),
		table.Insert("->", BinaryRight, Operator{Symbol: "|>", Fixity: BinaryRight}, true),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Insert("nope", BinaryLeft, Operator{Symbol: "x"}, false); err == nil {
		t.Error("an operator was inserted after one that is not there")
	}
	p := parser(t, table, false)
	for text, want := range map[string]string{
		"a or b implies c":   `["bin","implies",["bin","or",["kw","a"],["kw","b"]],["kw","c"]]`,
		"1 ++ 2 - 3":         `["bin","-",["bin","++",["const",1],["const",2]],["const",3]]`,
		"1 + 2!":             `["un","!",["bin","+",["const",1],["const",2]]]`,
		"1 |> 2 -> 3 |> 4":   `["bin","|\u003e",["const",1],["bin","-\u003e",["const",2],["bin","|\u003e",["const",3],["const",4]]]]`,
		"1! + 2!":            `["un","!",["bin","+",["un","!",["const",1]],["const",2]]]`,
		"implies":            "!YaqlGrammarException",
		"f(a => b! implies)": "!YaqlGrammarException",
	} {
		if got := treeOf(t, p, text); got != want {
			t.Errorf("%s gives %s, not %s", text, got, want)
		}
	}
	bare := parser(t, Table{Levels: [][]Operator{{{Symbol: "+"}}}, Pair: "is"}, false)
	for text, want := range map[string]string{
		"1 + 2": `["bin","+",["const",1],["const",2]]`, "[1]": "!YaqlLexicalException", "{}": "!YaqlLexicalException", "1[0]": "!YaqlLexicalException",
		"f(a is 1)": `["call","f",["map",["kw","a"],["const",1]]]`, "a - b": "!YaqlLexicalException",
	} {
		if got := treeOf(t, bare, text); got != want {
			t.Errorf("%s gives %s, not %s", text, got, want)
		}
	}
	for _, levels := range [][]Operator{{{}}, {{Symbol: "()", Fixity: Element}}, {{Symbol: "+"}, {Symbol: "+"}}} {
		if _, err := NewParser(Table{Levels: [][]Operator{levels}}, false); err == nil {
			t.Errorf("%v is taken for a table", levels)
		}
	}
}

func TestNumbersWithoutEnd(t *testing.T) {
	p := parser(t, Default(), false)
	if got := treeOf(t, p, strings.Repeat("9", 5000)); got != "!YaqlLexicalException" {
		t.Errorf("5000 digits give %.40s", got)
	}
	if !IsInt(int64(1)) || IsInt(1.0) {
		t.Error("IsInt is wrong")
	}
}

// FuzzParse parses anything. There must be no panic, errors must have a place in the text, and trees must not be
// deeper than allowed.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "$.a.b[0] + f(1,, x => 'a\\x41')", "{a => 1, `b` => [$x, -1]}", "not a in b -> c?.d()", "1.5e", "\"\\N{BULLET}\"", "٣ + ²", "$f(1)(2)"} {
		f.Add(text)
	}
	parsers := []*Parser{parser(f, Default(), false), parser(f, Default(), true), parser(f, Legacy(), false)}
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range parsers {
			n, err := p.Parse(text)
			switch {
			case err == nil:
				if n.depth > MaxDepth {
					t.Errorf("%d levels", n.depth)
				}
				n.Tree()
			case err.Class == "" || err.Offset > len(text) || err.RuneOffset() > len(text):
				t.Errorf("error without class or place: %#v", err)
			default:
				_, _ = err.Error(), err.Caret()
			}
		}
	})
}
