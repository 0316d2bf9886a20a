package yaql

import (
	"github.com/drover-project/drover/yaql/internal/syntax"
)

// arg is an argument of a call: an expression, a value that is known already, or a gap.
type arg struct {
	code  *code // nil for values given by the engine
	value any   // if known
	known bool  // value is the argument: a constant, or a value given by the engine
	skip  bool
	name  string // of a keyword argument
	key   *code  // for key => value: the two sides
	val   *code
}

func constantArg(v any) arg { return arg{value: v, known: true} }

func (a *arg) isPair() bool { return a.key != nil }

// fits is the check of an argument before anything is evaluated: constants must be of the type, expressions may
// turn out to be of any, and lazy types take what they can work with.
func (a *arg) fits(cfg *config, p *param) bool {
	if a.skip {
		return p.hasDefault || p.typ == tAny || p.typ == tLambda
	}
	switch p.typ {
	case tLambda:
		return true
	case tExpression:
		return a.code != nil
	case tMethod:
		return a.code == nil || a.code.node.Kind == syntax.Call
	case tRule:
		return a.isPair()
	case tKeyword:
		return a.isWord()
	case tStringConst:
		_, ok := a.value.(string)
		return a.known && ok && a.code != nil
	}
	return !a.known || p.accepts(cfg, a.value)
}

// isWord reports whether the argument is a bare word.
func (a *arg) isWord() bool { return a.code != nil && a.code.node.Kind == syntax.Keyword }

// candidate is an overload that an argument list may be meant for.
type candidate struct {
	fn    *Function
	pos   []*param // the parameter of each positional argument, the receiver first
	named []*param // the parameter of each keyword argument
	layer int
}

// site is a call with its arguments, prepared as far as it can be without values.
type site struct {
	name     string
	node     *syntax.Node
	method   bool
	args     []arg // positional, without the receiver
	named    []arg
	cands    []candidate
	err      *Error
	uniform  bool // all candidates have the same lazy parameters
	overload [][]*Function
	dynamic  bool // the function is to be found by name, with args as they were written
}

// prepare does the part of overload resolution that needs no values: it drops the overloads whose number, names
// and constants of arguments do not fit. For methods the receiver is not looked at.
func prepare(cfg *config, n *syntax.Node, name string, method bool, layers [][]*Function, args []arg) *site {
	s := &site{name: name, node: n, method: method, overload: layers}
	if len(layers) == 0 {
		return s // the error depends on the receiver
	}
	noKwargs := layers[0][0].noKwargs
	for i, layer := range layers {
		for _, fn := range layer {
			if fn.noKwargs != noKwargs {
				s.err = s.ambiguous()
				return s
			}
			if s.named == nil && s.args == nil {
				if s.args, s.named, s.err = splitArgs(noKwargs, args); s.err != nil {
					return s
				}
			}
			if c, ok := s.match(cfg, fn); ok {
				c.layer = i
				s.cands = append(s.cands, c)
			}
		}
	}
	s.uniform = true
	for i := range s.cands {
		s.uniform = s.uniform && sameLazies(&s.cands[0], &s.cands[i])
	}
	return s
}

// splitArgs separates keyword arguments from the others, unless the function wants pairs as they are.
func splitArgs(noKwargs bool, args []arg) (pos, named []arg, err *Error) {
	pos = make([]arg, 0, len(args))
	for _, a := range args {
		if noKwargs && a.name != "" {
			return nil, nil, errorf(ArgumentException, "Invalid argument %s", a.name)
		}
		if noKwargs || !a.isPair() && a.name == "" {
			pos = append(pos, a)
			continue
		}
		name := a.name
		if name == "" {
			if a.key.node.Kind != syntax.Keyword {
				return nil, nil, errorf(MappingTranslationException, "Cannot convert mapping to keyword argument")
			}
			name = a.key.node.Name
			a = argOf(a.val)
		}
		a.name = name
		named = replaceNamed(named, a)
	}
	return pos, named, nil
}

// replaceNamed adds a keyword argument; of two with one name the last counts.
func replaceNamed(named []arg, a arg) []arg {
	for i := range named {
		if named[i].name == a.name {
			named[i] = a
			return named
		}
	}
	return append(named, a)
}

func argOf(k *code) arg {
	a := arg{code: k, skip: k.node.Kind == syntax.Skip}
	if k.constant && !a.skip {
		a.value, a.known = k.value, true
	}
	return a
}

// match assigns the arguments to the parameters of fn, or reports that they do not fit.
func (s *site) match(cfg *config, fn *Function) (candidate, bool) {
	c := candidate{fn: fn}
	receiver := 0
	if s.method {
		receiver = 1
	}
	n := len(s.args) + receiver
	if n > len(fn.params) && fn.variadic == nil {
		return c, false
	}
	c.pos = make([]*param, n)
	for i := range c.pos {
		if i < len(fn.params) {
			c.pos[i] = &fn.params[i]
		} else {
			c.pos[i] = fn.variadic
		}
		if i >= receiver && !s.args[i-receiver].fits(cfg, c.pos[i]) {
			return c, false
		}
	}
	if len(s.named) > 0 {
		c.named = make([]*param, len(s.named))
	}
	found := 0
	for i := range fn.params {
		p := &fn.params[i]
		at := s.namedIndex(p.name)
		given := i < n && (i < receiver || !s.args[i-receiver].skip)
		switch {
		case at >= 0 && given:
			return c, false
		case at >= 0:
			// The reference does not look at a keyword argument before all arguments are evaluated, even if it is
			// constant; only what it must be as written counts here.
			if (p.typ.lazy() || p.typ == tKeyword || p.typ == tStringConst) && !s.named[at].fits(cfg, p) {
				return c, false
			}
			c.named[at] = p
			found++
		case !given && !p.hasDefault:
			return c, false
		}
	}
	if found < len(s.named) {
		if fn.keywords == nil {
			return c, false
		}
		for i := range c.named {
			if c.named[i] == nil {
				c.named[i] = fn.keywords
			}
		}
	}
	return c, true
}

func (s *site) namedIndex(name string) int {
	for i := range s.named {
		if s.named[i].name == name {
			return i
		}
	}
	return -1
}

// sameLazies reports whether two candidates want the same arguments unevaluated.
func sameLazies(a, b *candidate) bool {
	for i := range a.pos {
		if a.pos[i].typ.lazy() != b.pos[i].typ.lazy() {
			return false
		}
	}
	for i := range a.named {
		if a.named[i].typ.lazy() != b.named[i].typ.lazy() {
			return false
		}
	}
	return true
}

// call resolves the call with values and carries it out. The receiver is looked at only for methods.
func (s *site) call(c *Context, receiver any) (any, error) {
	if err := c.run.step(); err != nil {
		return nil, err
	}
	if s.err != nil {
		return nil, at(s.err, s.node)
	}
	var buf [8]*candidate
	live := buf[:0]
	for i := range s.cands {
		if !s.method || s.cands[i].pos[0].accepts(c.run.cfg, receiver) {
			live = append(live, &s.cands[i])
		}
	}
	if len(live) == 0 {
		return nil, at(s.notFound(c, receiver, nil), s.node)
	}
	if !s.uniform {
		for _, k := range live[1:] {
			if !sameLazies(live[0], k) {
				return nil, at(s.ambiguous(), s.node)
			}
		}
	}
	var vals [8]any
	values, err := s.evaluate(c, live[0], receiver, vals[:0])
	if err != nil {
		return nil, err
	}
	k, err := s.choose(c, live, values, receiver)
	if err != nil {
		return nil, at(err, s.node)
	}
	return s.invoke(c, k, values)
}

// evaluate returns the value of each argument, or for lazy ones what the function gets instead: first the
// receiver, then the positional, then the keyword arguments.
func (s *site) evaluate(c *Context, k *candidate, receiver any, values []any) ([]any, error) {
	if s.method {
		values = append(values, receiver)
	}
	for i := range s.args {
		v, err := s.args[i].evaluate(c, k.pos[len(values)])
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	for i := range s.named {
		v, err := s.named[i].evaluate(c, k.named[i])
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

func (a *arg) evaluate(c *Context, p *param) (any, error) {
	switch {
	case a.skip && p.typ == tLambda && !p.hasDefault:
		return &Lambda{code: constantCode(nil, NoValue), c: c}, nil
	case a.skip:
		return NoValue, nil
	case p.typ == tRule:
		return &rule{&Lambda{code: a.key, c: c}, &Lambda{code: a.val, c: c}}, nil
	case p.typ == tExpression:
		return *a, nil
	case p.typ.lazy():
		if a.code == nil && a.value == nil && p.hasDefault {
			return nil, nil
		}
		return a.lambda(c), nil
	case a.known:
		return a.value, nil
	}
	return a.code.eval(c)
}

// lambda returns the argument as a function of $. Values given by the engine are constant functions.
func (a *arg) lambda(c *Context) *Lambda {
	switch {
	case a.code == nil && a.value == nil:
		return &Lambda{code: failing(nil, errorf(TypeError, "'NoneType' object is not callable")), c: c}
	case a.code == nil:
		return &Lambda{code: constantCode(nil, a.value), c: c}
	}
	return &Lambda{code: a.code, c: c}
}

// choose picks the overload of the innermost layer whose types accept the values.
func (s *site) choose(c *Context, live []*candidate, values []any, receiver any) (*candidate, error) {
	var best *candidate
	for _, k := range live {
		if best != nil && k.layer != best.layer {
			break
		}
		if !s.accepts(c.run.cfg, k, values) {
			continue
		}
		switch {
		case best == nil, s.narrower(k, best):
			best = k
		case !s.narrower(best, k):
			return nil, s.ambiguous()
		}
	}
	if best == nil {
		return nil, s.notFound(c, receiver, values)
	}
	return best, nil
}

func (s *site) accepts(cfg *config, k *candidate, values []any) bool {
	for i, v := range values {
		p := k.param(i)
		if p.typ.lazy() {
			continue
		}
		if v == NoValue {
			if !p.hasDefault && p != k.fn.variadic {
				return false
			}
			continue
		}
		if !p.accepts(cfg, v) {
			return false
		}
	}
	return true
}

// param returns the parameter of the i-th value.
func (k *candidate) param(i int) *param {
	if i < len(k.pos) {
		return k.pos[i]
	}
	return k.named[i-len(k.pos)]
}

// narrower reports whether the parameters of a are narrower than those of b, and none is broader.
func (s *site) narrower(a, b *candidate) bool {
	result := false
	for i := range len(a.pos) + len(a.named) {
		ta, tb := a.param(i).typ, b.param(i).typ
		if broader(ta, tb) {
			return false
		}
		result = result || broader(tb, ta)
	}
	return result
}

// invoke passes the values to the function of a candidate.
func (s *site) invoke(c *Context, k *candidate, values []any) (any, error) {
	fn := k.fn
	n := max(len(fn.params), len(k.pos))
	a := make([]any, n, n+1)
	for i := range fn.params {
		a[i] = NoValue
	}
	var keywords []named
	for i, v := range values {
		p := k.param(i)
		if v == NoValue && p != fn.variadic {
			continue
		}
		if err := c.run.charge(v); err != nil {
			return nil, err
		}
		v, err := p.convert(c, v)
		if err != nil {
			return nil, at(err, s.node)
		}
		switch {
		case i < len(k.pos):
			a[i] = v
		case p == fn.keywords:
			keywords = append(keywords, named{s.named[i-len(k.pos)].name, v})
		default:
			a[fn.index(p)] = v
		}
	}
	for i := range fn.params {
		if a[i] == NoValue {
			a[i] = fn.params[i].def
		}
	}
	if fn.keywords != nil {
		a = append(a, keywords)
	}
	if err := c.run.enter(); err != nil {
		return nil, at(err, s.node)
	}
	v, err := fn.call(c, a)
	c.run.leave()
	if err != nil {
		return nil, at(err, s.node)
	}
	return v, c.run.charge(v)
}

func (f *Function) index(p *param) int {
	for i := range f.params {
		if &f.params[i] == p {
			return i
		}
	}
	return 0
}

// callByName resolves and carries out a call whose function is known by name only. A receiver makes it a method
// call.
func (c *Context) callByName(n *syntax.Node, name string, method bool, receiver any, args []arg) (any, error) {
	layers := c.collect(name, method)
	return prepare(c.run.cfg, n, name, method, layers, args).call(c, receiver)
}

// callValues calls a function by name with values.
func (c *Context) callValues(n *syntax.Node, name string, values ...any) (any, error) {
	args := make([]arg, len(values))
	for i, v := range values {
		args[i] = constantArg(v)
	}
	return c.callByName(n, name, false, nil, args)
}
