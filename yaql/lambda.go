package yaql

import "strconv"

// Lambda is an argument that a function evaluates itself, as often as it likes, with its own $.
type Lambda struct {
	code  *code
	c     *Context // where the argument was written
	frame *Context // kept between calls if the code does not retain it
}

// Call evaluates the argument with $1, $2 ... set to args; $ is $1. Without arguments $ is what it was outside.
func (l *Lambda) Call(args ...any) (any, error) {
	switch len(args) {
	case 0:
		return l.code.eval(l.c)
	case 1:
		return l.call1(args[0])
	}
	return l.callNamed(args, nil)
}

// bind returns the context for a call with x as $.
func (l *Lambda) bind(x any) *Context {
	if x == NoValue {
		return l.c.Child()
	}
	if l.code.retains {
		return l.c.withItem(x)
	}
	if l.frame == nil {
		l.frame = l.c.withItem(x)
		return l.frame
	}
	l.frame.setItem(x)
	return l.frame
}

func (l *Lambda) call1(x any) (any, error) { return l.code.eval(l.bind(x)) }

// test1 is the truth value of the result with x as $.
func (l *Lambda) test1(x any) (bool, error) { return l.code.truth(l.bind(x)) }

func (l *Lambda) call2(a, b any) (any, error) { return l.code.eval(l.bind2(a, b)) }

// test2 is the truth value of the result with $1 and $2.
func (l *Lambda) test2(a, b any) (bool, error) { return l.code.truth(l.bind2(a, b)) }

func (l *Lambda) bind2(a, b any) *Context {
	child := l.bind(a)
	if len(child.vars) == 1 {
		child.vars[0].value = b
		return child
	}
	child.vars = []variable{{"2", b}}
	return child
}

// callNamed sets $1, $2 ... and a variable for each keyword.
func (l *Lambda) callNamed(args []any, keywords []named) (any, error) {
	child := l.c.Child()
	if err := l.c.run.spend(square(len(args) + len(keywords))); err != nil {
		return nil, err
	}
	for i, x := range args {
		child.set(strconv.Itoa(i+1), x)
	}
	for _, k := range keywords {
		child.set(k.name, k.value)
	}
	return l.code.eval(child)
}

// callFresh is callNamed with an own context for every call, for bodies that call themselves.
func (l *Lambda) callFresh(args []any, keywords []named) (any, error) {
	if len(args) == 1 && len(keywords) == 0 && args[0] != NoValue {
		return l.code.eval(l.c.withItem(args[0]))
	}
	return l.callNamed(args, keywords)
}

// callable is a lambda as a value, which $f(...) calls.
type callable struct{ lambda *Lambda }

// rule is an unevaluated key => value argument.
type rule struct{ key, value *Lambda }
