package machine

import "testing"

// TestWhatIsSaidOfLocksThatAreWaitedFor: which lock, how it is wanted, who holds it, and who wanted it before.
func TestWhatIsSaidOfLocksThatAreWaitedFor(t *testing.T) {
	d := newDesk(t, 4, Loaded{})
	for _, want := range []struct{ comment, why string }{
		{"=web1", ""},
		{"=web1", `waits for the lock instance/web1 (exclusive), held by job 1`},
		{"web1", `waits for the lock instance/web1 (shared), held by job 1, wanted before by job 2`},
		{"=web2", ""},
	} {
		id := d.submit(want.comment)
		if x, there := d.Explain(id); want.why != "" && (!there || x.Why != want.why) {
			t.Errorf("job %d: %q", id, x.Why)
		} else if want.why == "" && len(d.heldBy(id)) != 1 {
			t.Errorf("job %d does not run: %q", id, x.Why)
		}
	}
}
