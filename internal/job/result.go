package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// ByRequest is the result of an opcode that was cancelled by a client while it
// waited, or before it was reached.
const ByRequest = "Job canceled by request"

// Killed is the error of an opcode that a client had ended while it ran.
const Killed = "Job killed on request"

// precedingFailed is the result of the opcodes behind one that failed.
var precedingFailed = json.RawMessage(`["OpExecError",["Preceding opcode failed"]]`)

// errorCodes maps codes to the second argument of OpPrereqError. A code that
// is missing here makes an OpExecError: the work had begun.
var errorCodes = map[fault.Code]string{
	fault.Invalid:     "wrong_input",
	fault.TooLarge:    "wrong_input",
	fault.NotFound:    "unknown_entity",
	fault.Exists:      "already_exists",
	fault.Ambiguous:   "resource_not_unique",
	fault.WrongState:  "wrong_state",
	fault.Unsupported: "wrong_state",
	fault.Exhausted:   "insufficient_resources",
	fault.Busy:        "temp_insufficient_resources",
	fault.Environment: "environment_error",
	fault.Unresolved:  "resolver_error",
}

// errorClasses are the failed prerequisites that clients know by a class of
// their own, without a second argument.
var errorClasses = map[fault.Code]string{
	fault.Mistyped:   "TypeEnforcementError",
	fault.BadTag:     "TagError",
	fault.BadAddress: "AddressPoolError",
}

// paired is an error that clients know by a class and arguments of its own.
type paired interface {
	error
	Pair() (class string, args []any)
}

// EncodeError returns an error as clients expect it in an opcode's result:
// ["OpPrereqError", [message, code]] when nothing was begun (or a class that
// says more, and the message alone), else ["OpExecError", [message]].
func EncodeError(err error) json.RawMessage {
	if p, ok := errors.AsType[paired](err); ok {
		class, args := p.Pair()
		return mustJSON([2]any{class, args})
	}
	if class, ok := errorClasses[fault.CodeOf(err)]; ok {
		return mustJSON([2]any{class, [1]string{Clip(err.Error())}})
	}
	code, ok := errorCodes[fault.CodeOf(err)]
	if !ok {
		return EncodeText(err.Error())
	}
	return mustJSON([2]any{"OpPrereqError", [2]string{Clip(err.Error()), code}})
}

// EncodeText returns a failure without a code: ["OpExecError", [text]].
func EncodeText(text string) json.RawMessage {
	return mustJSON([2]any{"OpExecError", [1]string{Clip(text)}})
}

// DecodeError reads an opcode's result as a failure: the class and the text for
// a person. It reports false for a result that is no failure.
func DecodeError(result json.RawMessage) (class, text string, ok bool) {
	var pair []json.RawMessage
	if json.Unmarshal(result, &pair) != nil || len(pair) != 2 {
		return "", "", false
	}
	var args []any
	if json.Unmarshal(pair[0], &class) != nil || json.Unmarshal(pair[1], &args) != nil || len(args) == 0 {
		return "", "", false
	}
	if list, ok := args[0].([]any); ok && class == hooksAbort {
		return class, refusals(list), true
	}
	return class, fmt.Sprint(args[0]), true
}

// hooksAbort is the class of an opcode that operators' scripts refused.
const hooksAbort = "HooksAbort"

// refusals are those of scripts, each [node, script, output], for people.
func refusals(list []any) string {
	lines := []string{"hooks execution failed:"}
	for _, item := range list {
		if r, ok := item.([]any); ok && len(r) == 3 {
			lines = append(lines, fmt.Sprintf("  node: %v, script: %v, output: %v", r[0], r[1], r[2]))
		}
	}
	return strings.Join(lines, "\n")
}

// ErrorCode is the second argument of a failed prerequisite ("unknown_entity"),
// empty for any other result.
func ErrorCode(result json.RawMessage) string {
	var pair []json.RawMessage
	var args []any
	if json.Unmarshal(result, &pair) != nil || len(pair) != 2 || json.Unmarshal(pair[1], &args) != nil || len(args) < 2 {
		return ""
	}
	code, _ := args[1].(string)
	return code
}

func quote(text string) json.RawMessage { return mustJSON(text) }

// mustJSON encodes values that cannot fail to encode: strings and lists of
// them. Text that is not UTF-8 is made so by the encoder.
func mustJSON(v any) json.RawMessage {
	out, err := json.Marshal(v)
	if err != nil {
		panic(errors.Join(errors.New("job: a result that cannot be encoded"), err))
	}
	return out
}
