package rapi

import (
	"maps"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/testkit"
)

// TestStatusesOfFaults pins what clients have come to rely on; 500 for a code
// that is in no list is part of it.
func TestStatusesOfFaults(t *testing.T) {
	want := map[fault.Code]int{
		fault.Invalid: 400, fault.Ambiguous: 400, fault.BadAddress: 400, fault.BadTag: 400, fault.Mistyped: 400, fault.Unresolved: 400, fault.Denied: 403, fault.NotFound: 404,
		fault.Exists: 409, fault.WrongState: 409, fault.Conflict: 409, fault.TooLarge: 413, fault.Unsupported: 501,
		fault.Exhausted: 503, fault.Busy: 503, fault.Drained: 503, fault.Full: 503, fault.Fenced: 503, fault.Unavailable: 503, fault.Canceled: 503,
	}
	if !maps.Equal(statuses, want) {
		t.Errorf("the table is %v", statuses)
	}
	for _, code := range []fault.Code{fault.Internal, fault.Failed, fault.Environment, fault.Compacted} {
		want[code] = 500
	}
	for _, code := range testkit.FaultCodes(t) {
		if want[fault.Code(code)] == 0 {
			t.Errorf("nothing says what clients get for %s", code)
		}
	}
	for code, status := range want {
		if got := asHTTP(fault.New(code, "x")).status; got != status {
			t.Errorf("%s: %d, want %d", code, got, status)
		}
		if explanations[status] == "" {
			t.Errorf("%d has no explanation", status)
		}
	}
}
