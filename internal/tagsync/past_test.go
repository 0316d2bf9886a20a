package tagsync_test

import (
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/tagsync"
	"github.com/drover-project/drover/internal/testkit"
)

// TestWhatWasDoneOutlivesTheServer: and the controller; for a month.
func TestWhatWasDoneOutlivesTheServer(t *testing.T) {
	r := newRig(t)
	s := r.create()
	if _, err := r.engine.Past(t.Context(), s.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("something is kept of a server that is there: %v", err)
	}
	by := r.asked()
	by.ID = "u-bob"
	_, err := r.engine.Begin(s.ID, server.Delete, by)
	r.check(err)
	r.until(s.ID, "is gone", func(s *server.Server) bool { return s == nil })
	r.stop()
	r.start()
	p, err := r.engine.Past(t.Context(), s.ID)
	r.check(err)
	if len(p.Done) != 2 || p.Done[0].Do != server.Create || p.Done[0].Asked.ID != "u" || p.Done[1].Do != server.Delete || p.Done[1].Asked.ID != "u-bob" ||
		p.Done[1].Job == 0 || p.Done[1].Began == 0 || p.Done[1].Failed != "" || p.Project != "p" {
		t.Errorf("there is %+v", p)
	}
	for _, c := range []struct {
		ahead time.Duration
		kept  bool
	}{{29 * 24 * time.Hour, true}, {31 * 24 * time.Hour, false}} {
		r.ahead.Store(int64(c.ahead))
		revision := r.shown.Load().Revision
		r.engine.Reconcile()
		if !c.kept {
			testkit.Until(r, "it is forgotten", r.shown.Changed, func() bool { return r.shown.Load().Revision > revision }, func() any { return p })
		} else {
			r.check(tagsync.ForgetPast(t.Context(), r.engine))
		}
		if _, err := r.engine.Past(t.Context(), s.ID); fault.Is(err, fault.NotFound) == c.kept {
			t.Errorf("after %v: %v", c.ahead, err)
		}
	}
}
