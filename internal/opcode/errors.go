package opcode

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
)

// Kind says what is wrong with a parameter.
type Kind string

// The kinds of faults in a request.
const (
	// Unknown: the opcode has no parameter of that name.
	Unknown Kind = "unknown"
	// Missing: a required parameter was left out.
	Missing Kind = "missing"
	// Mismatch: the value is not of the parameter's type.
	Mismatch Kind = "type"
	// UnknownOpcode: there is no opcode of that id.
	UnknownOpcode Kind = "opcode"
)

// ParamError tells what is wrong with an opcode in parts, so that a transport
// can word it as its clients know it. It is the cause of the fault that Parse
// and FromMap return; AsParamError finds it.
type ParamError struct {
	Kind Kind
	// Opcode is the OP_ID; empty when that itself is missing.
	Opcode string
	// Param is the name of the parameter.
	Param string
	// Path leads to the place inside the parameter's value, for example
	// "[0].mode"; empty for the value itself.
	Path string
	// Want is the name of the type at that place, Got the value as JSON,
	// shortened if it is long. Only for Mismatch.
	Want, Got string
	// Given lists the keys of the request, as they came. Only for Missing.
	Given []string
	// Allowed lists the keys that the opcode knows. Only for Unknown.
	Allowed []string
}

// AsParamError returns the ParamError in err's chain.
func AsParamError(err error) (*ParamError, bool) {
	return errors.AsType[*ParamError](err)
}

// Class is the opcode's class name, for example "OpInstanceShutdown"; for an
// unknown opcode its id.
func (e *ParamError) Class() string {
	if d, ok := Lookup(e.Opcode); ok {
		return d.Class()
	}
	return fault.Clip(e.Opcode, maxQuoted)
}

// Error names the opcode and the parameter.
func (e *ParamError) Error() string {
	switch e.Kind {
	case UnknownOpcode:
		return "unknown opcode " + quote(e.Opcode)
	case Unknown:
		return e.Opcode + " has no parameter " + quote(e.Param)
	case Missing:
		if e.Opcode == "" {
			return "an opcode needs the key OP_ID"
		}
		return e.Opcode + " needs the parameter " + quote(e.Param)
	}
	return e.Opcode + ": the parameter " + quote(e.Param+e.Path) + " must be " + e.Want + ", got " + e.Got
}

// Luxi words the fault as Ganeti's luxid does in an answer that a request
// could not be parsed.
func (e *ParamError) Luxi() string {
	switch e.Kind {
	case UnknownOpcode:
		return "Unknown opcode " + fault.Clip(e.Opcode, maxQuoted)
	case Unknown:
		return "Superfluous dictionary keys: [" + quote(e.Param) + "], but only " + quoteList(e.Allowed) + " allowed."
	case Missing:
		if slices.Contains(e.Given, e.Param) {
			return "Can't parse value for '" + e.Param + "': expected a value, got null"
		}
		return "key '" + e.Param + "' not found, object contains only " + quoteList(e.Given)
	}
	return "Can't parse value for '" + e.Param + "': " + e.luxiDetail()
}

func (e *ParamError) luxiDetail() string {
	if name, ok := strings.CutPrefix(e.Want, "enum "); ok {
		return "Invalid string value for type " + name + ": " + e.Got
	}
	switch e.Want {
	case submitPriority.name:
		return "Invalid string value for type OpSubmitPriority: " + e.Got
	case Float.name:
		return "Unable to read Double"
	case Int.name:
		return "Unable to read Int"
	case Bool.name:
		return "Unable to read Bool"
	}
	at := ""
	if e.Path != "" {
		at = " at " + e.Path
	}
	return "expected " + e.Want + at + ", got " + e.Got
}

// fault wraps the error for callers that only know codes and fields.
func (e *ParamError) fault() *fault.Error {
	f := &fault.Error{Code: fault.Invalid, Message: e.Error(), Field: e.Param + e.Path, Cause: e}
	switch e.Kind {
	case Unknown:
		f.Hint = "known are " + strings.Join(e.Allowed, ", ")
		if best := qlang.Suggest(e.Param, slices.Values(e.Allowed)); best != "" {
			f.Hint = "did you mean " + quote(best) + "?"
		}
	case UnknownOpcode:
		f.Field = "OP_ID"
		if best := qlang.Suggest(e.Opcode, slices.Values(sortedKeys(byID))); best != "" {
			f.Hint = "did you mean " + quote(best) + "?"
		}
	}
	return f
}

// maxQuoted is how much of a name from outside an error repeats, in bytes, and
// maxListed how many of them.
const (
	maxQuoted = 200
	maxListed = 100
)

func quote(s string) string { return string(appendString(nil, fault.Clip(s, maxQuoted))) }

func quoteList(list []string) string {
	b := []byte{'['}
	for i, s := range list[:min(len(list), maxListed)] {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, quote(s)...)
	}
	return string(append(b, ']'))
}

// clip shortens a value for an error message.
func clip(raw []byte) string {
	const limit = 80
	if len(raw) <= limit {
		return string(raw)
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(raw[cut]) {
		cut--
	}
	return string(raw[:cut]) + "..."
}
