// Package agentwire carries the port exec.Node over HTTP/2: a Handler before an agent, and a Client that is a Node for executors. A link
// turns the direction round: the agent dials, and then serves on that connection, so that nodes behind a router that translates
// addresses work, and an agent is an http.Handler.
//
// A call is a POST of its arguments to /v1/NAME. The answer is a stream of JSON values, one a line: lines of output as they
// come, and in the end the result or the error. A stream without an end says nothing: the call is repeated
// under its own name, and joined or answered, for a handler carries a call out once however often it arrives.
//
// Invariants:
//   - Both ends keep package nodetest's promises (TestOverHTTP, TestOverTLS).
//   - A call whose connection is cut is repeated, and joined or answered: nothing is done twice (TestHistories, TestHistoriesOfCuts, TestACutIsJoined,
//     TestALateCopyIsNotCarriedOut, TestACallThatGoesOnIsNotForgotten). When
//     the agent has begun anew meanwhile, what may not be done twice is looked up in its journal, and Unavailable if it ended in the midst: nobody
//     knows (TestAnotherAgentDoesNothingTwice, TestTheNextAgentKnowsWhatWasDone,
//     TestACallIsNotedBeforeItIsTold, TestANoteThatCannotBeReadIsNoLeave).
//   - An agent keeps an answer until it is told that it has come (TestWhatWasHadIsSaidUntilItArrives), or has too many.
//   - Ending a call is a call of its own: a connection that is lost ends nothing (TestALostConnectionEndsNothing).
//   - What either end sends is bounded, and refused where it is read (TestHostileAgents, TestHostileControllers).
//   - A screen is a stream both ways that ends when either end does, and holds up no other call (TestScreen); what of it is on its way is
//     little, so that who types meanwhile does not wait for it (TestLittleIsOnItsWay).
//   - A node is who its certificate says, and serves one connection, the newest (TestOnlyTheNodeItself, TestTheNewestConnection).
package agentwire

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// What is the most that goes over the wire.
const (
	// maxRequest is the size of a call with its arguments.
	maxRequest = 16 << 20
	// maxFrame is the size of one value of an answer: the states of all instances of a node fit into it.
	maxFrame = 64 << 20
	// usualFrame is the size of most of them, for which room is made at first.
	usualFrame = 512
	// maxRefusal is the size of an answer that is no stream.
	maxRefusal = 64 << 10
	// maxOutput is how much output of a call the agent keeps for who joins it.
	maxOutput = 4 << 20
	// maxCalls is how many calls an agent carries out at a time that are not over when their connection is, and maxAnswers
	// how many answers it keeps that nobody has said to have had.
	maxCalls   = 4096
	maxAnswers = 4096
)

// The paths, below which are the names of calls.
const (
	pathCalls  = "/v1/"
	pathCancel = "/v1/cancel"
	pathScreen = "/v1/open-screen"
)

const contentType = "application/json"

// headerAgent is in each answer: the name that the agent gave itself when it began.
const headerAgent = "Drover-Agent"

// request is a call. ID names it; the zero ID is for calls that change nothing, which end with their connection.
type request struct {
	// Node is who is meant.
	Node string          `json:"node"`
	ID   string          `json:"id,omitempty"`
	Args json.RawMessage `json:"args"`
	// From is how many lines of output have come already.
	From int `json:"from,omitempty"`
	// Repeat says that the agent may have got the call before, and Agent which one that was: the name that it gave itself when it began,
	// empty if nobody knows.
	Repeat bool   `json:"repeat,omitempty"`
	Agent  string `json:"agent,omitempty"`
	// Cancel is why the call of that name is to end, at pathCancel.
	Cancel *failure `json:"cancel,omitempty"`
	// Had are calls whose answers have come: they are not needed any more.
	Had []string `json:"had,omitempty"`
}

// frame is one value of an answer: a line of output, how many lines are lost, or the end.
type frame struct {
	Line *string `json:"line,omitempty"`
	Lost int     `json:"lost,omitempty"`
	End  *end    `json:"end,omitempty"`
}

// end is what a call came to.
type end struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  *failure        `json:"error,omitempty"`
}

// failure is a fault on the wire.
type failure struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
	Field   string     `json:"field,omitempty"`
	Hint    string     `json:"hint,omitempty"`
}

// failed returns an error as it goes over the wire; nil for none.
func failed(err error) *failure {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return &failure{Code: e.Code, Message: outer(err, e), Field: e.Field, Hint: e.Hint}
	}
	return &failure{Code: fault.Internal, Message: fault.Clip(err.Error(), fault.MaxText)}
}

// outer is the message of an error that may have words around its fault.
func outer(err error, e *fault.Error) string {
	if err == error(e) { //nolint:errorlint // only the fault itself has no words around it
		return e.Message
	}
	return fault.Clip(err.Error(), fault.MaxText)
}

// fault returns the error that was sent. Texts of another program are bounded as ours are.
func (f *failure) fault() error {
	if f == nil {
		return nil
	}
	e := fault.New(f.Code, "%s", f.Message)
	if f.Code == "" {
		e.Code = fault.Internal
	}
	if f.Field != "" {
		e = e.At(f.Field)
	}
	if f.Hint != "" {
		e = e.WithHint("%s", f.Hint)
	}
	return e
}

// newID returns the name of a call, which no other has.
func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it cannot fail
	return hex.EncodeToString(id[:])
}

// validID tells whether a text is the name of a call.
func validID(id string) bool {
	raw, err := hex.DecodeString(id)
	return err == nil && len(raw) == 16
}

// Times of a call.
const (
	// Away is how long a call waits for a node that is away before it is given up, if nothing else is asked for.
	Away = time.Minute
	// Looking is how long one waits that only asks: enough for an agent to find another leader.
	Looking = 15 * time.Second
	// ending is how long a call that was ended may take to come to its end.
	ending = 30 * time.Second
)
