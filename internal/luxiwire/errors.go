package luxiwire

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drover-project/drover/internal/fault"
)

// Error is the pair [class, [arguments]] by which an error travels. As a Go
// error it lets a handler choose the class itself, where clients depend on it.
type Error struct {
	Class string
	Args  []any
}

// Generic is an error of the class that says nothing but its text.
func Generic(format string, args ...any) *Error {
	return &Error{Class: "GenericError", Args: []any{fmt.Sprintf(format, args...)}}
}

// Prereq is an error of the class for requests that cannot be carried out,
// with one of its error codes such as "wrong_input".
func Prereq(code, format string, args ...any) *Error {
	return &Error{Class: "OpPrereqError", Args: []any{fmt.Sprintf(format, args...), code}}
}

// Error returns the first argument that is a text, and the class when there is
// none.
func (e *Error) Error() string {
	for _, arg := range e.Args {
		if text, ok := arg.(string); ok {
			return text
		}
	}
	return e.Class
}

// MarshalJSON writes the pair.
func (e Error) MarshalJSON() ([]byte, error) {
	args := e.Args
	if args == nil {
		args = []any{}
	}
	return encode([]any{e.Class, args})
}

// UnmarshalJSON reads the pair.
func (e *Error) UnmarshalJSON(data []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil || len(parts) != 2 {
		return errors.New("an error must be a pair [class, [arguments]]")
	}
	var out Error
	if err := json.Unmarshal(parts[0], &out.Class); err != nil {
		return errors.New("the class of an error must be a string")
	}
	if err := json.Unmarshal(parts[1], &out.Args); err != nil {
		return errors.New("the arguments of an error must be a list")
	}
	*e = out
	return nil
}

// classCodes says what the classes of errors mean in our codes; the codes of
// OpPrereqError are in prereqCodes. Classes that are not here mean
// fault.Failed.
var classCodes = map[string]fault.Code{
	"OpCodeUnknown":         fault.Invalid,
	"ParameterError":        fault.Invalid,
	"QueryFilterParseError": fault.Invalid,
	"TypeEnforcementError":  fault.Invalid,
	"ParseError":            fault.Invalid,
	"UnitParseError":        fault.Invalid,
	"TagError":              fault.Invalid,
	"JobLost":               fault.NotFound,
	"JobQueueDrainError":    fault.Drained,
	"JobQueueFull":          fault.Full,
	"LockError":             fault.Busy,
	"ResolverError":         fault.Environment,
	"ProgrammerError":       fault.Internal,
	"LuxiError":             fault.Unavailable,
}

var prereqCodes = map[string]fault.Code{
	"resolver_error":              fault.Environment,
	"insufficient_resources":      fault.Exhausted,
	"temp_insufficient_resources": fault.Busy,
	"wrong_input":                 fault.Invalid,
	"wrong_state":                 fault.WrongState,
	"unknown_entity":              fault.NotFound,
	"already_exists":              fault.Exists,
	"resource_not_unique":         fault.Ambiguous,
	"internal_error":              fault.Internal,
	"environment_error":           fault.Environment,
}

// CodeOf returns the meaning of an error pair in our codes.
func (e *Error) CodeOf() fault.Code {
	if e.Class == "OpPrereqError" && len(e.Args) > 1 {
		ecode, _ := e.Args[1].(string)
		if code, ok := prereqCodes[ecode]; ok {
			return code
		}
	}
	if code, ok := classCodes[e.Class]; ok {
		return code
	}
	return fault.Failed
}

// FaultOf returns what an error says beside its text.
func FaultOf(err error) *Fault {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return &Fault{Code: f.Code, Message: f.Message, Field: f.Field, Hint: f.Hint}
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return &Fault{Code: e.CodeOf(), Message: e.Error()}
	}
	return &Fault{Code: fault.Internal, Message: err.Error()}
}

// asError turns the failure in a response into an error with a code; the
// cause is the pair, when there was one.
func (r Response) asError() error {
	var pair Error
	var text string
	switch {
	case json.Unmarshal(r.Result, &pair) == nil:
		if r.Fault == nil {
			return &fault.Error{Code: pair.CodeOf(), Message: pair.Error(), Cause: &pair}
		}
		return &fault.Error{Code: r.Fault.Code, Message: r.Fault.Message, Field: r.Fault.Field, Hint: r.Fault.Hint, Cause: &pair}
	case json.Unmarshal(r.Result, &text) == nil:
		out := &fault.Error{Code: fault.Invalid, Message: text, Cause: &ProtocolError{Text: text}}
		if r.Fault != nil {
			out.Code, out.Message, out.Field, out.Hint = r.Fault.Code, r.Fault.Message, r.Fault.Field, r.Fault.Hint
		}
		return out
	default:
		return fault.New(fault.Internal, "the server answered with an error of an unknown form: %.200s", r.Result)
	}
}

// ProtocolError is the cause of an error that the server answered as a plain
// string: it did not understand the request. The server closes the connection
// after it.
type ProtocolError struct{ Text string }

// Error returns the text of the server.
func (e *ProtocolError) Error() string { return e.Text }
