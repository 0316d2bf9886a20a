package effect

import (
	"context"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// quicker is a host on which an agent in another process has the node follow a leader, just before this one would.
type quicker struct {
	Host

	epoch int64
}

func (q *quicker) Hold(ctx context.Context, of string) (func(), error) {
	if of == Leader && q.epoch != 0 {
		if err := q.Follow(q.epoch); err != nil {
			return nil, err
		}
		q.epoch = 0
	}
	return q.Host.Hold(ctx, of)
}

// TestTheNewestOfTwoLeadersIsFollowed whose first orders come at once, to agents in two processes: the other is refused, and what is ordered
// under its epoch is not carried out.
func TestTheNewestOfTwoLeadersIsFollowed(t *testing.T) {
	for other, want := range map[int64]fault.Code{1: "", 2: "", 3: fault.Fenced} {
		for what, order := range map[string]func(*Fence, Claim) error{
			"about nothing": func(f *Fence, c Claim) error { return f.Check(t.Context(), c) },
			"about a thing": func(f *Fence, c Claim) error {
				h, err := f.Enter(t.Context(), c)
				if err == nil {
					h.Leave()
				}
				return err
			},
		} {
			n := newNode(func() time.Duration { return time.Hour }, func() bool { return false })
			host := &quicker{Host: n.newLife(2), epoch: other}
			f, err := Open(Config{Node: "node", Host: host})
			if err != nil {
				t.Fatal(err)
			}
			if err := order(f, Claim{Order: Order{Epoch: 2}, Of: "one", What: "start one"}); fault.CodeOf(err) != want {
				t.Errorf("an order %s under epoch 2, while another of epoch %d is followed: %v", what, other, err)
			}
			if n.follows != max(2, other) || n.wrong != nil {
				t.Errorf("the node follows %d, %v", n.follows, n.wrong)
			}
		}
	}
}
