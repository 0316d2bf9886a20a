package testkit

import (
	"os"
	"time"
)

// Patience is how long something may take that is to come: half a minute, or $DROVER_PATIENCE on a machine that has very much to do. It
// only ends what hangs, which should take no longer than somebody waits for the answer. What starts programs takes a multiple.
func Patience() time.Duration {
	const enough = 30 * time.Second
	if d, err := time.ParseDuration(os.Getenv("DROVER_PATIENCE")); err == nil {
		return d
	}
	return enough
}

// Failing is what tests and properties have in common.
type Failing interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Until waits until a condition holds, and looks again whenever something
// changed: changed returns a channel that is closed at the next change. When
// patience is over the test fails with what never came about, and what there was.
func Until(t Failing, what string, changed func() <-chan struct{}, holds func() bool, found func() any) {
	t.Helper()
	limit := time.After(Patience())
	for {
		next := changed()
		if holds() {
			return
		}
		select {
		case <-next:
		case <-limit:
			t.Fatalf("%s: this never came about; there is %+v", what, found())
		}
	}
}
