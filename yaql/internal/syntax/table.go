package syntax

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Fixity says where an operator stands and how it groups.
type Fixity uint8

// The fixities. Element marks the brackets of index, list and map: their place in the table gives the
// precedence of indexing.
const (
	BinaryLeft Fixity = iota
	BinaryRight
	Prefix
	Suffix
	Element
)

// Operator is one entry of an operator table.
type Operator struct {
	Symbol string
	Fixity Fixity
	Alias  string // if not empty, the operator calls the function "*Alias" instead of "#operator_Symbol"
}

// Table is the operator table: levels from the tightest to the loosest, and the sign between the name and the
// value of a keyword argument (empty for a language without keyword arguments).
type Table struct {
	Levels [][]Operator
	Pair   string
}

// Default returns the standard table.
func Default() Table {
	left := func(symbols ...string) []Operator {
		ops := make([]Operator, len(symbols))
		for i, s := range symbols {
			ops[i] = Operator{Symbol: s}
		}
		return ops
	}
	compare := append(left(">", "<", ">=", "<="),
		Operator{Symbol: "!=", Alias: "not_equal"}, Operator{Symbol: "=", Alias: "equal"}, Operator{Symbol: "in"})
	return Table{Pair: "=>", Levels: [][]Operator{
		left(".", "?."),
		{{Symbol: "[]", Fixity: Element}, {Symbol: "{}", Fixity: Element}},
		{{Symbol: "+", Fixity: Prefix}, {Symbol: "-", Fixity: Prefix}},
		left("=~", "!~"),
		left("*", "/", "mod"),
		left("+", "-"),
		compare,
		{{Symbol: "not", Fixity: Prefix}},
		left("and"),
		left("or"),
		{{Symbol: "->", Fixity: BinaryRight}},
	}}
}

// Insert puts op on a new level right after the level that holds existing (looser than it), or, if same is
// true, on the same level. Other levels keep their order.
func (t *Table) Insert(existing string, fixity Fixity, op Operator, same bool) error {
	for i, level := range t.Levels {
		for _, o := range level {
			if o.Symbol != existing || !sameArity(o.Fixity, fixity) {
				continue
			}
			if same {
				t.Levels[i] = append(slices.Clone(level), op)
			} else {
				t.Levels = slices.Insert(slices.Clone(t.Levels), i+1, []Operator{op})
			}
			return nil
		}
	}
	return fmt.Errorf("no operator %q to insert %q after", existing, op.Symbol)
}

func sameArity(a, b Fixity) bool {
	binary := func(f Fixity) bool { return f == BinaryLeft || f == BinaryRight }
	return binary(a) == binary(b)
}

// grammar is a table prepared for lexing and parsing.
type grammar struct {
	symbols []string // operators that are not words, longest first
	words   map[string]bool
	binary  map[string]opInfo
	prefix  map[string]opInfo
	suffix  map[string]opInfo
	index   int // binding power of [ ]; 0 if there is no indexing
	lists   bool
	maps    bool
	pair    string
	calls   bool // delegate calls are on
}

type opInfo struct {
	power int // the tighter, the greater
	right bool
	fn    string
}

var errTable = errors.New("invalid operator table")

func newGrammar(t Table, delegates bool) (*grammar, error) {
	g := &grammar{words: map[string]bool{}, binary: map[string]opInfo{}, prefix: map[string]opInfo{},
		suffix: map[string]opInfo{}, pair: t.Pair, calls: delegates}
	for i, level := range t.Levels {
		power := 2 * (len(t.Levels) - i)
		for _, op := range level {
			if err := g.add(op, power); err != nil {
				return nil, err
			}
		}
	}
	if t.Pair != "" {
		if isWord(t.Pair) {
			g.words[t.Pair] = true
		} else {
			g.symbols = append(g.symbols, t.Pair)
		}
	}
	slices.SortStableFunc(g.symbols, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	g.symbols = slices.Compact(g.symbols)
	return g, nil
}

func (g *grammar) add(op Operator, power int) error {
	if op.Symbol == "" {
		return fmt.Errorf("%w: an operator has no symbol", errTable)
	}
	if op.Fixity == Element {
		switch op.Symbol {
		case "[]":
			g.index, g.lists = power, true
		case "{}":
			g.maps = true
		default:
			return fmt.Errorf("%w: %q is no bracket", errTable, op.Symbol)
		}
		return nil
	}
	fn := "#operator_" + op.Symbol
	table := g.binary
	switch op.Fixity {
	case Prefix:
		fn, table = "#unary_operator_"+op.Symbol, g.prefix
	case Suffix:
		fn, table = "#unary_operator_"+op.Symbol, g.suffix
	}
	if op.Alias != "" {
		fn = "*" + op.Alias
	}
	if _, dup := table[op.Symbol]; dup {
		return fmt.Errorf("%w: %q appears twice", errTable, op.Symbol)
	}
	table[op.Symbol] = opInfo{power: power, right: op.Fixity == BinaryRight, fn: fn}
	if isWord(op.Symbol) {
		g.words[op.Symbol] = true
	} else if !slices.Contains(g.symbols, op.Symbol) {
		g.symbols = append(g.symbols, op.Symbol)
	}
	return nil
}

// Legacy returns the table of the first version of the language, in which => is an operator that builds tuples
// and there are no keyword arguments.
func Legacy() Table {
	t := Default()
	t.Pair = ""
	at := len(t.Levels) - 1
	t.Levels = slices.Insert(t.Levels, at, []Operator{{Symbol: "=>"}})
	return t
}
