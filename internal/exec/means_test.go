package exec

import (
	"errors"
	"testing"
)

// TestWhatIsMeantIsLocked: an opcode whose short name means another instance by the time it is planned than when its locks were
// told does nothing, and asks for those of the other. It may be the only one that is left of those that the name could mean.
func TestWhatIsMeantIsLocked(t *testing.T) {
	r := newRig(t)
	r.create("web.one", false)
	op := r.opcode("OP_INSTANCE_REINSTALL", params{"instance_name": "web"})
	env := r.env(op)
	var err error
	if env.Locks, err = r.all.Locks(op, r.keeper.Snapshot()); err != nil {
		t.Fatal(err)
	}
	r.create("web.two", false)
	r.must("null", "OP_INSTANCE_REMOVE", params{"instance_name": "web.one"})
	before := r.nodeStates()
	if _, err := r.all.Run(t.Context(), env); !errors.Is(err, ErrAskAgain) {
		t.Errorf("it goes on with the locks of web.one: %v", err)
	}
	if after := r.nodeStates(); after != before {
		t.Errorf("something was done:\n%s\n%s", before, after)
	}
	env = r.env(op)
	if env.Locks, err = r.all.Locks(op, r.keeper.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.all.Run(t.Context(), env); err != nil {
		t.Errorf("with the locks of web.two: %v", err)
	}
}
