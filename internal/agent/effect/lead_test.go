package effect

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestALeadThatIsExtendedAtTheLastMomentGoesOn: its time is over, and is extended before anybody has acted upon that.
func TestALeadThatIsExtendedAtTheLastMomentGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Lead{}
		l.Extend(time.Now().Add(time.Hour))
		bound, stop := l.bind(t.Context())
		defer stop()
		l.expire() // it was to be called before the lead was extended
		synctest.Wait()
		if err := context.Cause(bound); err != nil {
			t.Errorf("what was begun under it ends: %v", err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if err := context.Cause(bound); err != ErrUnsure { //nolint:errorlint // it is the one
			t.Errorf("behind its end what was begun under it ends with %v", err)
		}
	})
}
