package yaql

// Mutable is what a Mapping implements that is to be of the mutable kind, which cannot be a key; see [Unconverted].
type Mutable interface {
	Mapping
	// Mutable reports whether the map is of the mutable kind.
	Mutable() bool
}

// Equal reports whether the language's = holds between two values.
func Equal(a, b any) bool { return equal(norm(a), norm(b)) }

// Finalize converts a value to what it would be as the result of the evaluation that c belongs to: lazy collections
// become lists, and errors in them come to light. Functions of the host use it on what a Lambda returns.
func (c *Context) Finalize(v any) (out any, err error) {
	defer rescue(&err)
	return finalize(c, v)
}

// Code identifies the text of an argument within one compiled expression. Codes are equal if and only if they
// come from the same place in the same expression; they may be keys of Go maps.
type Code struct{ code *code }

// Code returns which argument l is, whatever context it is evaluated in.
func (l *Lambda) Code() Code { return Code{l.code} }

// Tree returns the syntax tree of the argument; see the method Tree of [Expression].
func (c Code) Tree() []any { return c.code.node.Tree() }

// OfKeys reports whether the view is the result of keys().
func (v *View) OfKeys() bool { return v.kind == keysView }
