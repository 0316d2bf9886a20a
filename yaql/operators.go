package yaql

import (
	"slices"
	"strings"

	"github.com/drover-project/drover/yaql/internal/syntax"
)

func (cp *compiler) unary(n *syntax.Node) *code {
	if !cp.fast || cp.lib.functions[n.Func] == nil {
		return cp.call(n, n.Func, n.Args)
	}
	x := cp.compile(n.Args[0])
	if cp.impossible(n.Func, x) {
		return cp.noMatch(n, n.Func)
	}
	switch n.Func {
	case "#unary_operator_not":
		return testCode(n, x.retains, func(c *Context) (bool, error) {
			t, err := x.truth(c)
			return !t, err
		})
	case "#unary_operator_-", "#unary_operator_+":
		minus := n.Name == "-"
		return &code{node: n, retains: x.retains, eval: func(c *Context) (any, error) {
			v, err := x.eval(c)
			if err != nil {
				return nil, err
			}
			if !isNumber(v) {
				return c.callValues(n, n.Func, v)
			}
			if minus {
				return c.run.negate(v), nil
			}
			return v, nil
		}}
	}
	return cp.call(n, n.Func, n.Args)
}

// testCode is code whose result is a boolean.
func testCode(n *syntax.Node, retains bool, test func(c *Context) (bool, error)) *code {
	return &code{node: n, retains: retains, test: test, eval: func(c *Context) (any, error) {
		t, err := test(c)
		if err != nil {
			return nil, err
		}
		return t, nil
	}}
}

func (cp *compiler) binary(n *syntax.Node) *code {
	if !cp.fast || cp.lib.functions[n.Func] == nil {
		return cp.call(n, n.Func, n.Args)
	}
	switch n.Func {
	case "#operator_.":
		return cp.dot(n)
	case "#operator_?.":
		return cp.safeDot(n)
	case "#operator_->":
		return cp.arrow(n)
	}
	l, r := cp.compile(n.Args[0]), cp.compile(n.Args[1])
	switch n.Func {
	case "#operator_and":
		return and(n, l, r)
	case "#operator_or":
		return or(n, l, r)
	case "*equal":
		return equality(n, l, r, true)
	case "*not_equal":
		return equality(n, l, r, false)
	}
	if cp.impossible(n.Func, l, r) {
		return cp.noMatch(n, n.Func)
	}
	switch n.Func {
	case "#operator_<", "#operator_>", "#operator_<=", "#operator_>=":
		return comparison(n, l, r)
	case "#operator_in":
		return membership(n, l, r)
	case "#operator_+", "#operator_-", "#operator_*", "#operator_/", "#operator_mod":
		return arithmetic(n, l, r)
	case "#operator_=~", "#operator_!~":
		if r.constant {
			return cp.matching(n, l, r)
		}
	}
	return cp.call(n, n.Func, n.Args)
}

func and(n *syntax.Node, l, r *code) *code {
	left, right := l.tester(), r.tester()
	return &code{node: n, retains: l.retains || r.retains,
		eval: func(c *Context) (any, error) {
			v, err := l.eval(c)
			if err != nil || !truth(v) {
				return v, err
			}
			return r.eval(c)
		},
		test: func(c *Context) (bool, error) {
			t, err := left(c)
			if err != nil || !t {
				return false, err
			}
			return right(c)
		}}
}

func or(n *syntax.Node, l, r *code) *code {
	left, right := l.tester(), r.tester()
	return &code{node: n, retains: l.retains || r.retains,
		eval: func(c *Context) (any, error) {
			v, err := l.eval(c)
			if err != nil || truth(v) {
				return v, err
			}
			return r.eval(c)
		},
		test: func(c *Context) (bool, error) {
			t, err := left(c)
			if err != nil || t {
				return t, err
			}
			return right(c)
		}}
}

// evalTwo evaluates both operands, the left one first.
func evalTwo(c *Context, l, r *code) (a, b any, err error) {
	if a, err = l.eval(c); err != nil {
		return nil, nil, err
	}
	b, err = r.eval(c)
	return a, b, err
}

func equality(n *syntax.Node, l, r *code, want bool) *code {
	retains := l.retains || r.retains
	if l.constant {
		l, r = r, l // one side does nothing, so their order does not matter
	}
	if s, ok := r.value.(string); ok && r.constant {
		return equalsWord(n, l, s, want)
	}
	if b, ok := r.value.(bool); ok && r.constant {
		return testCode(n, retains, func(c *Context) (bool, error) {
			v, err := l.eval(c)
			if t, ok := v.(bool); ok {
				return (t == b) == want, err
			}
			return c.run.equal(v, b) == want, err
		})
	}
	return testCode(n, retains, func(c *Context) (bool, error) {
		a, b, err := evalTwo(c, l, r)
		if err != nil {
			return false, err
		}
		return c.run.equal(a, b) == want, nil
	})
}

// field is $.key, if $ is a map of the host that has the key.
func (c *Context) field(key string) (any, bool) {
	switch m := c.item.(type) {
	case map[string]any:
		x, ok := m[key]
		return x, ok
	case *Dict:
		return m.text(key)
	}
	return nil, false
}

// equalsWord compares with a constant string.
func equalsWord(n *syntax.Node, l *code, s string, want bool) *code {
	slow := func(c *Context) (bool, error) {
		v, err := l.eval(c)
		t, ok := v.(string)
		return (ok && t == s) == want, err
	}
	if len(l.path) != 1 {
		return testCode(n, l.retains, slow)
	}
	key := l.path[0]
	return testCode(n, l.retains, func(c *Context) (bool, error) {
		if x, ok := c.field(key); ok {
			if t, ok := x.(string); ok {
				return (t == s) == want, nil
			}
		}
		return slow(c)
	})
}

// order is the outcome of a comparison that has one.
type order int8

const (
	less order = iota - 1
	same
	greater
	unordered // no outcome: every comparison is false
)

// compareOrdered compares numbers with numbers, strings with strings, and null with anything.
func (r *run) compareOrdered(a, b any) (order, bool) {
	switch x := a.(type) {
	case int64:
		switch y := b.(type) {
		case int64:
			switch {
			case x < y:
				return less, true
			case x > y:
				return greater, true
			}
			return same, true
		case nil:
			return greater, true
		}
	case string:
		switch y := b.(type) {
		case string:
			r.reads(min(len(x), len(y)))
			return order(strings.Compare(x, y)), true
		case nil:
			return greater, true
		}
		return unordered, false
	case nil:
		if b == nil {
			return same, true
		}
		return less, true
	}
	if b == nil {
		return greater, true
	}
	if isNumber(a) && isNumber(b) {
		o, ok := r.compareNumbers(a, b)
		if !ok {
			return unordered, true
		}
		return order(o), true
	}
	return unordered, false
}

// holds reports whether the operator, such as <=, is true of the outcome.
func (o order) holds(op string) bool {
	switch op {
	case "<":
		return o == less
	case "<=":
		return o == less || o == same
	case ">":
		return o == greater
	}
	return o == greater || o == same
}

func comparison(n *syntax.Node, l, r *code) *code {
	op := n.Name
	retains := l.retains || r.retains
	return testCode(n, retains, func(c *Context) (bool, error) {
		a, b, err := evalTwo(c, l, r)
		if err != nil {
			return false, err
		}
		if o, ok := c.run.compareOrdered(a, b); ok {
			return o.holds(op), nil
		}
		v, err := c.callValues(n, n.Func, a, b)
		return truth(v), err
	})
}

// compareValues calls < or > for the sake of sorting, min and max.
func compareValues(c *Context, op string, a, b any) (bool, error) {
	if c.untouched {
		if o, ok := c.run.compareOrdered(a, b); ok {
			return o.holds(op), nil
		}
	}
	v, err := c.callValues(nil, "#operator_"+op, a, b)
	return truth(v), err
}

func arithmetic(n *syntax.Node, l, r *code) *code {
	op := n.Name[0] // of mod the m
	return &code{node: n, retains: l.retains || r.retains, eval: func(c *Context) (any, error) {
		a, b, err := evalTwo(c, l, r)
		if err != nil {
			return nil, err
		}
		return c.arithmetic(n, op, a, b)
	}}
}

// arithmetic carries out an operator on values.
func (c *Context) arithmetic(n *syntax.Node, op byte, a, b any) (any, error) {
	if isNumber(a) && isNumber(b) {
		v, err := c.run.arith(op, a, b)
		if err != nil {
			return nil, at(err, n)
		}
		return v, nil
	}
	if x, ok := a.(string); ok && op == '+' {
		if y, ok := b.(string); ok {
			return c.joined(n, x, y)
		}
	}
	return c.callValues(n, operatorNames[op], a, b)
}

var operatorNames = map[byte]string{'+': "#operator_+", '-': "#operator_-", '*': "#operator_*", '/': "#operator_/", 'm': "#operator_mod"}

// joined concatenates strings within the limits.
func (c *Context) joined(n *syntax.Node, parts ...string) (any, error) {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if err := c.checkString(size); err != nil {
		return nil, at(err, n)
	}
	s := strings.Join(parts, "")
	if err := c.run.charge(s); err != nil {
		return nil, at(err, n)
	}
	return s, nil
}

// maxString bounds the length of strings that operators build, in bytes.
const maxString = 1 << 28

// fits refuses a string of n bytes that would break the memory quota or the bound on strings.
func (c *Context) fits(n int) error {
	if n > maxString || c.run.cfg.memoryQuota > 0 && int64(n/4) > c.run.cfg.memoryQuota {
		return errQuota
	}
	return nil
}

// checkString refuses to build a string of n bytes that does not fit, and counts it.
func (c *Context) checkString(n int) error {
	if err := c.fits(n); err != nil {
		return err
	}
	return c.run.spend(n / bytesOfStep)
}

// growing is asked before a text grows to n bytes, piece by piece.
func (c *Context) growing(n int) error {
	if err := c.fits(n); err != nil {
		return err
	}
	return c.run.step()
}

func membership(n *syntax.Node, l, r *code) *code {
	retains := l.retains || r.retains
	if words, ok := constantWords(r); ok {
		return testCode(n, retains, func(c *Context) (bool, error) {
			v, err := l.eval(c)
			s, ok := v.(string)
			if err != nil || !ok {
				return false, err
			}
			if limit := c.run.cfg.limitIterators; limit >= 0 && len(words) > limit {
				return false, at(tooLarge(limit), n)
			}
			return slices.Contains(words, s), nil
		})
	}
	if s, ok := l.value.(string); ok && l.constant {
		return wordIn(n, s, r)
	}
	return testCode(n, retains, func(c *Context) (bool, error) {
		a, b, err := evalTwo(c, l, r)
		if err != nil {
			return false, err
		}
		return c.isIn(n, a, b)
	})
}

// wordIn looks a constant string up in a collection or string.
func wordIn(n *syntax.Node, s string, r *code) *code {
	slow := func(c *Context) (bool, error) {
		v, err := r.eval(c)
		if err != nil {
			return false, err
		}
		return c.hasWord(n, s, v)
	}
	if len(r.path) != 1 {
		return testCode(n, r.retains, slow)
	}
	key := r.path[0]
	return testCode(n, r.retains, func(c *Context) (bool, error) {
		if x, ok := c.field(key); ok {
			if _, ok := x.([]any); ok {
				return c.hasWord(n, s, x)
			}
		}
		return slow(c)
	})
}

// constantWords returns the items of a list literal of constant strings.
func constantWords(k *code) ([]string, bool) {
	if k.node.Kind != syntax.List || len(k.node.Args) == 0 {
		return nil, false
	}
	words := make([]string, len(k.node.Args))
	for i, a := range k.node.Args {
		s, ok := a.Value.(string)
		if !ok {
			return nil, false
		}
		words[i] = s
	}
	return words, true
}

// hasWord reports whether the string s is in the collection or string v.
func (c *Context) hasWord(n *syntax.Node, s string, v any) (bool, error) {
	items, ok := v.([]any)
	if !ok {
		return c.isIn(n, s, v)
	}
	if limit := c.run.cfg.limitIterators; limit >= 0 && len(items) > limit {
		return false, at(tooLarge(limit), n)
	}
	if err := c.run.spend(len(items)); err != nil {
		return false, err
	}
	for _, x := range items {
		y, ok := x.(string)
		if ok && y == s || !ok && mayBeWord(x) && c.run.equal(s, norm(x)) {
			return true, nil
		}
	}
	return false, nil
}

// mayBeWord reports whether a value that is no string may become one.
func mayBeWord(v any) bool {
	switch v.(type) {
	case int64, bool, float64, nil, map[string]any, []any:
		return false
	}
	return true
}

// isIn carries out the operator in.
func (c *Context) isIn(n *syntax.Node, a, b any) (bool, error) {
	if x, ok := a.(string); ok {
		if y, ok := b.(string); ok {
			c.run.reads(len(y))
			return strings.Contains(y, x), nil
		}
	}
	if !isIterable(c.run.cfg, b) {
		_, err := c.callValues(n, "#operator_in", a, b)
		return false, err
	}
	coll, err := limited(c, b)
	if err != nil {
		return false, at(err, n)
	}
	found, err := hasItem(c, coll, a)
	if err != nil {
		return false, at(err, n)
	}
	return truth(found), nil
}

// containsValue walks through a collection until it meets a value equal to x.
func containsValue(c *Context, coll, x any) (bool, error) {
	found := false
	err := each(c, coll, func(y any) error {
		if c.run.equal(x, y) {
			found = true
			return errStop
		}
		return nil
	})
	return found, err
}
