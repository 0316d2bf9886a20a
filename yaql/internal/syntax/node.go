package syntax

import "math/big"

// Kind says what a [Node] is.
type Kind uint8

// The kinds of nodes.
const (
	Const   Kind = iota // a literal: null, boolean, number or string
	Keyword             // a bare word: a string constant that may name a member or a keyword argument
	Var                 // $name; Name holds the text with its dollar sign
	Call                // name(args)
	Binary              // left op right; Name is the operator
	Unary               // op arg, or arg op for suffix operators; Name is the operator
	Index               // value[args]: Args[0] is the value
	List                // [args]
	Dict                // {args}
	Pair                // key => value, only as an argument
	Wrap                // an expression in parentheses
	Invoke              // value(args), a delegate call: Args[0] is the value
	Skip                // an argument that was left out
)

// Node is one node of a syntax tree. Trees are immutable after parsing.
type Node struct {
	Kind  Kind
	Name  string  // see the kinds
	Func  string  // for Binary and Unary: the name of the function that carries the operator out
	Value any     // for Const: nil, bool, int64, *big.Int, float64 or string; for Keyword the word
	Args  []*Node // operands, arguments, elements
	Pos   int     // byte offset of the token that made the node
	depth int
}

// Tree renders the node as nested lists in the notation of the conformance corpus, such as
// ["bin","+",["const",1],["var","$x"]].
func (n *Node) Tree() []any {
	switch n.Kind {
	case Const:
		return []any{"const", n.Value}
	case Keyword:
		return []any{"kw", n.Name}
	case Var:
		return []any{"var", n.Name}
	case Call:
		return n.list("call", n.Name)
	case Binary:
		return n.list("bin", n.Name)
	case Unary:
		return n.list("un", n.Name)
	case Index:
		return n.list("index")
	case List:
		return n.list("list")
	case Dict:
		return n.list("dict")
	case Pair:
		return n.list("map")
	case Wrap:
		return n.list("wrap")
	case Invoke:
		return n.list("call", "#call")
	default:
		return []any{"skip"}
	}
}

func (n *Node) list(head ...any) []any {
	for _, a := range n.Args {
		head = append(head, a.Tree())
	}
	return head
}

// IsInt reports whether v is one of the two integer representations of a constant.
func IsInt(v any) bool {
	switch v.(type) {
	case int64, *big.Int:
		return true
	}
	return false
}
