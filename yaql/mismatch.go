package yaql

import (
	"strings"

	"github.com/drover-project/drover/yaql/internal/pytext"
)

// shownReceiver bounds the text of a receiver in a message.
const shownReceiver = 200

func (s *site) ambiguous() *Error {
	if s.method {
		return errorf(AmbiguousMethodException, "Ambiguous method \"%s\"", s.name)
	}
	return errorf(AmbiguousFunctionException, "Ambiguous function \"%s\"", s.name)
}

// notFound is the error of a call that no overload accepts, or whose name nobody knows.
func (s *site) notFound(c *Context, receiver any, values []any) *Error {
	if len(s.overload) == 0 {
		return s.unknown(c, receiver)
	}
	var e *Error
	if s.method {
		e = errorf(NoMatchingMethodException, "No method \"%s\" for receiver %s matches supplied arguments", s.name, c.run.shown(receiver))
	} else {
		e = errorf(NoMatchingFunctionException, "No function \"%s\" matches supplied arguments", s.name)
	}
	if e.Hint = otherHints[s.name]; e.Hint != "" {
		return e
	}
	if sign, ok := operatorSign(s.name); ok {
		e.Hint = s.operatorHint(sign, values)
		return e
	}
	var overloads []string
	for _, layer := range s.overload {
		for _, fn := range layer {
			overloads = append(overloads, fn.Signature())
		}
	}
	e.Hint = "there is " + strings.Join(overloads, ", ")
	return e
}

func (s *site) unknown(c *Context, receiver any) *Error {
	var e *Error
	if s.method {
		e = errorf(NoMethodRegisteredException, "Unknown method \"%s\" for receiver %s", s.name, c.run.shown(receiver))
	} else {
		e = errorf(NoFunctionRegisteredException, "Unknown function \"%s\"", s.name)
	}
	if strings.HasPrefix(s.name, "#property#") {
		return e
	}
	var names []string
	otherForm := false
	for _, fn := range c.Functions() {
		if s.method && fn.isMethod() || !s.method && fn.isFunction() {
			names = append(names, fn.name)
		}
		otherForm = otherForm || fn.name == s.name
	}
	switch near, ok := pytext.Nearest(s.name, names); {
	case s.name == "not" || s.name == "and" || s.name == "or":
		e.Hint = "it is an operator: put a space before the bracket"
	case otherForm && s.method:
		e.Hint = "it is a function: " + s.name + "(...)"
	case otherForm:
		e.Hint = "it is a method: value." + s.name + "(...)"
	case ok:
		e.Hint = "did you mean " + near + "?"
	}
	return e
}

// shown is the text of a receiver in messages.
func (r *run) shown(v any) string {
	if s, ok := v.(string); ok {
		return clip(s)
	}
	return clip(r.repr(v))
}

func clip(s string) string {
	if len(s) > shownReceiver {
		return strings.ToValidUTF8(s[:shownReceiver], "") + "..."
	}
	return s
}
