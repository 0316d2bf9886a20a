package luxi

import (
	"encoding/json"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit"
)

// TestClassesOfFaults pins the pair that a client gets for each code of an error,
// and what comes back from the code beside it.
func TestClassesOfFaults(t *testing.T) {
	prereq := func(code string) string { return `["OpPrereqError",["x","` + code + `"]]` }
	const generic = `["GenericError",["x"]]`
	want := map[fault.Code]string{
		fault.Invalid:     prereq("wrong_input"),
		fault.TooLarge:    prereq("wrong_input"),
		fault.NotFound:    prereq("unknown_entity"),
		fault.Exists:      prereq("already_exists"),
		fault.Ambiguous:   prereq("resource_not_unique"),
		fault.WrongState:  prereq("wrong_state"),
		fault.Unsupported: prereq("wrong_state"),
		fault.Exhausted:   prereq("insufficient_resources"),
		fault.Busy:        prereq("temp_insufficient_resources"),
		fault.Environment: prereq("environment_error"),
		fault.Unresolved:  prereq("resolver_error"),
		fault.Drained:     `["JobQueueDrainError",["x"]]`,
		fault.Full:        `["JobQueueFull",["x"]]`,
		fault.Mistyped:    generic,
		fault.BadTag:      generic,
		fault.BadAddress:  generic,
		fault.Failed:      generic,
		fault.Denied:      generic,
		fault.Conflict:    generic,
		fault.Compacted:   generic,
		fault.Fenced:      generic,
		fault.Unavailable: generic,
		fault.Canceled:    generic,
		fault.Internal:    generic,
	}
	for _, code := range testkit.FaultCodes(t) {
		if _, ok := want[fault.Code(code)]; !ok {
			t.Errorf("nothing says what clients get for %s", code)
		}
	}
	for code, pair := range want {
		err := fault.New(code, "x")
		got, encodeErr := json.Marshal(pairOf(err))
		if encodeErr != nil || string(got) != pair {
			t.Errorf("%s: %s, %v; want %s", code, got, encodeErr, pair)
		}
		frame, encodeErr := luxiwire.ErrorFrame(pairOf(err), err)
		var answer struct {
			Success bool
			Fault   struct{ Code fault.Code }
		}
		if encodeErr != nil || json.Unmarshal(frame, &answer) != nil || answer.Success || answer.Fault.Code != code {
			t.Errorf("%s travels as %s, %v", code, frame, encodeErr)
		}
	}
}

// TestUnknownMethods: the text is the reference's, with what was perhaps meant beside it.
func TestUnknownMethods(t *testing.T) {
	for method, hint := range map[string]string{"Ecko": "did you mean Echo?", "echo": "did you mean Echo?", "Destroy": ""} {
		_, path := echoServer(t, nil)
		got := dialRaw(t, path).ask(`{"method":"` + method + `","args":[1]}`)
		want := `Failed to parse request: Unable to parse LUXI request method: Invalid string value for type LuxiReq: "` + method + `"`
		if got.Success || got.Result != want || got.Fault == nil || got.Fault.Code != fault.Invalid || got.Fault.Hint != hint {
			t.Errorf("%s: %+v, %+v", method, got, got.Fault)
		}
	}
}
