package tagsync_test

import (
	"context"
	"errors"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/tagsync"
)

// TestWhatIsHeardIsDealtWith: when Heard returns without an error whoever told of it may forget it, so what is found by then is there to be read. It is an
// error that nobody has looked, since the one who waits or the engine has ended; that the cluster does not answer is none.
func TestWhatIsHeardIsDealtWith(t *testing.T) {
	far := newMute()
	r := rigBeside(t, far)
	near := r.create()
	r.finish("OP_TAGS_SET", tagParams(near, "cyclades:user:adopted"))
	r.check(r.engine.Heard(r.ctx, near.Instance))
	if names := r.engine.Servers().Get(near.ID).Tags.Names(user); len(names) != 1 {
		t.Errorf("what was heard of is not there: %q", names)
	}
	r.check(r.engine.Heard(r.ctx, "")) // of no instance
	r.check(r.engine.Heard(r.ctx, "stranger"))

	away, err := r.engine.Create(r.ctx, &tagsync.Wish{Name: "web", Project: "p", User: "u", Backend: "far", Flavor: server.DefaultFlavors()[3], Image: r.engine.Images()[0],
		NICs: 1, Asked: r.asked()})
	r.check(err)
	heard := func(ctx context.Context) <-chan error {
		answer := make(chan error, 1)
		go func() { answer <- r.engine.Heard(ctx, away.Instance) }()
		return answer
	}
	told := heard(r.ctx)
	for answered := false; !answered; {
		select {
		case far.answer <- fault.New(fault.Unavailable, "nobody is at home"):
		case err := <-told:
			if answered = true; err != nil {
				t.Errorf("a cluster that does not answer: %v", err)
			}
		}
	}
	gone := errors.New("gone")
	ctx, leave := context.WithCancelCause(r.ctx)
	told = heard(ctx)
	leave(gone)
	if err := <-told; !errors.Is(err, gone) {
		t.Errorf("who waits no longer is told %v", err)
	}
	r.engine.Close()
	if err := r.engine.Heard(r.ctx, away.Instance); !fault.Is(err, fault.Unavailable) {
		t.Errorf("when the engine has ended: %v", err)
	}
}
