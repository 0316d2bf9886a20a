package rapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
)

// httpError is an answer other than 200.
type httpError struct {
	status  int
	message string
}

func (e *httpError) Error() string { return e.message }

func failure(status int, format string, args ...any) *httpError {
	return &httpError{status: status, message: fault.Clip(fmt.Sprintf(format, args...), 2*fault.MaxText)}
}

func badRequest(format string, args ...any) *httpError {
	return failure(http.StatusBadRequest, format, args...)
}

// explanations are the sentences that go with a status.
var explanations = map[int]string{
	http.StatusBadRequest:            "Bad request syntax or unsupported method",
	http.StatusUnauthorized:          "No permission -- see authorization schemes",
	http.StatusForbidden:             "Request forbidden -- authorization will not help",
	http.StatusNotFound:              "Nothing matches the given URI",
	http.StatusConflict:              "Request conflict",
	http.StatusPreconditionFailed:    "A condition of the request does not hold",
	http.StatusRequestEntityTooLarge: "Entity is too large",
	http.StatusUnsupportedMediaType:  "Entity body in unsupported format",
	http.StatusInternalServerError:   "Server got itself in trouble",
	http.StatusNotImplemented:        "Server does not support this operation",
	http.StatusBadGateway:            "Invalid responses from another server/proxy",
	http.StatusServiceUnavailable:    "The server cannot process the request due to a high load",
	http.StatusGatewayTimeout:        "The gateway server did not receive a timely response",
}

// statuses maps codes of faults to statuses; a code that is not here is 500.
var statuses = map[fault.Code]int{
	fault.Invalid:     http.StatusBadRequest,
	fault.Mistyped:    http.StatusBadRequest,
	fault.BadTag:      http.StatusBadRequest,
	fault.BadAddress:  http.StatusBadRequest,
	fault.Unresolved:  http.StatusBadRequest,
	fault.NotFound:    http.StatusNotFound,
	fault.Exists:      http.StatusConflict,
	fault.Ambiguous:   http.StatusBadRequest,
	fault.WrongState:  http.StatusConflict,
	fault.Conflict:    http.StatusConflict,
	fault.Unsupported: http.StatusNotImplemented,
	fault.Exhausted:   http.StatusServiceUnavailable,
	fault.Busy:        http.StatusServiceUnavailable,
	fault.Denied:      http.StatusForbidden,
	fault.TooLarge:    http.StatusRequestEntityTooLarge,
	fault.Drained:     http.StatusServiceUnavailable,
	fault.Full:        http.StatusServiceUnavailable,
	fault.Fenced:      http.StatusServiceUnavailable,
	fault.Unavailable: http.StatusServiceUnavailable,
	fault.Canceled:    http.StatusServiceUnavailable,
}

// drainedMessage is the text by which clients know a drained queue.
const drainedMessage = "Queue drained"

// asHTTP turns any error into an answer.
func asHTTP(err error) *httpError {
	if e, ok := errors.AsType[*httpError](err); ok {
		return e
	}
	if p, ok := opcode.AsParamError(err); ok {
		return badRequest("Invalid body parameters: %s", paramMessage(p, err))
	}
	code := fault.CodeOf(err)
	status, ok := statuses[code]
	if !ok {
		status = http.StatusInternalServerError
	}
	if code == fault.Drained {
		return &httpError{status: status, message: drainedMessage}
	}
	return &httpError{status: status, message: fault.Clip(err.Error(), 2*fault.MaxText)}
}

// paramMessage begins with the words that clients know and goes on with what
// helps a person.
func paramMessage(p *opcode.ParamError, err error) string {
	switch p.Kind {
	case opcode.Unknown:
		text := fmt.Sprintf("Object %s doesn't support the parameter '%s'", p.Class(), fault.Clip(p.Param, 200))
		if f, ok := errors.AsType[*fault.Error](err); ok && strings.HasPrefix(f.Hint, "did you mean") {
			text += " (" + f.Hint + ")"
		}
		return text
	case opcode.Missing, opcode.Mismatch:
		return fmt.Sprintf(`("Parameter '%s.%s' fails validation", 'wrong_input'): %s`, p.Opcode, p.Param, p.Error())
	}
	return err.Error()
}

// escaper writes messages as clients have always received them.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;")

// errorBody is the JSON object of an answer other than 200.
type errorBody struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Explain string `json:"explain"`
}

func (e *httpError) body() errorBody {
	return errorBody{Code: e.status, Message: escaper.Replace(e.message), Explain: explanations[e.status]}
}
