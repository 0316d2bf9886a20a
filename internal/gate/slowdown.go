package gate

import (
	"net/http"
	"time"

	"github.com/drover-project/drover/internal/intake"
)

// SlowDown counts wrong credentials of a request, and returns when they may be answered, or when who asked is gone. Before it waits, told is told of
// those that are worth a line of the log: which of their origin they are, and how long they wait.
func SlowDown(r *http.Request, brake *intake.Brake, now time.Time, told func(count int, wait time.Duration)) {
	count, wait := brake.Wrong(intake.Origin(r.RemoteAddr), now)
	if intake.WorthLogging(count) {
		told(count, wait)
	}
	if wait == 0 {
		return
	}
	select {
	case <-r.Context().Done():
	case <-time.After(wait):
	}
}
