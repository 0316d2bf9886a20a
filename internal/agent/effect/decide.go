package effect

import "fmt"

// Claim is what an order asks for.
type Claim struct {
	Order Order
	// Of is the thing that the order is about.
	Of string
	// Name and Kind are those of the effect that it is to begin; empty for one that begins none.
	Name string
	Kind Kind
	// What says for people what is to be done.
	What string
}

// Move is what has to happen before an order may be carried out.
type Move int

// The moves.
const (
	// Go: nothing stands in the way.
	Go Move = iota
	// Join: what runs is what was ordered; its end is awaited.
	Join
	// End: what runs belongs to an earlier leader. It is ended, and its end awaited.
	End
	// Await: what runs belongs to the same leader, who has to wait for it.
	Await
	// Refuse: the order is of a leader that another has followed.
	Refuse
)

// Verdict is what is decided about an order.
type Verdict struct {
	Do  Move
	Why string
}

// Decide says what has to happen before an order may be carried out on a node that follows the leader of an epoch, while an
// effect works on the thing (nil for none).
func Decide(follows int64, runs *Effect, c *Claim) Verdict {
	epoch := c.Order.Epoch
	switch {
	case epoch < follows:
		return Verdict{Refuse, fmt.Sprintf("the order to %s was given under epoch %d, but the node follows a controller of epoch %d", c.What, epoch, follows)}
	case runs == nil:
		return Verdict{Do: Go}
	case runs.Epoch > epoch: // whoever began it was followed before
		return Verdict{Refuse, fmt.Sprintf("the order to %s was given under epoch %d, but %s runs", c.What, epoch, runs)}
	case runs.Kind == c.Kind && runs.Name == c.Name && c.Kind.joins():
		return Verdict{Join, runs.String() + " runs already"}
	case runs.Epoch < epoch:
		return Verdict{End, runs.String() + " was begun by a controller that another has followed"}
	}
	return Verdict{Await, runs.String() + " still runs"}
}
