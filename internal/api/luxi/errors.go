package luxi

import (
	"errors"
	"maps"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/qlang"
)

// parseError is an error of the request itself: it is answered as a plain
// text in the words that clients know, and the connection is closed.
type parseError struct {
	text string
	err  error
}

func (e *parseError) Error() string { return e.err.Error() }
func (e *parseError) Unwrap() error { return e.err }

// unknownMethod is the answer to a request of a method that is not in the
// table.
func unknownMethod(name string, known map[string]method) error {
	err := fault.New(fault.Invalid, "Unable to parse LUXI request method: Invalid string value for type LuxiReq: %q", name)
	if best := qlang.Suggest(name, maps.Keys(known)); best != "" {
		err = err.WithHint("did you mean %s?", best)
	}
	return &parseError{err.Message, err}
}

// queueClasses are the classes of errors by which clients know that the queue takes
// no jobs.
var queueClasses = map[fault.Code]string{fault.Drained: "JobQueueDrainError", fault.Full: "JobQueueFull"}

// pairOf is how an error travels. Errors that name their class keep it; for
// others the code decides, as it does in the result of an opcode.
func pairOf(err error) luxiwire.Error {
	if pair, ok := errors.AsType[*luxiwire.Error](err); ok {
		return *pair
	}
	if f, ok := errors.AsType[*fault.Error](err); ok && queueClasses[f.Code] != "" {
		return luxiwire.Error{Class: queueClasses[f.Code], Args: []any{f.Message}}
	}
	var pair luxiwire.Error
	if pair.UnmarshalJSON(job.EncodeError(err)) != nil || pair.Class != "OpPrereqError" {
		return *luxiwire.Generic("%s", err.Error())
	}
	return pair
}
