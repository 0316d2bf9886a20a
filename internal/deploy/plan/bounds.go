package plan

import (
	"context"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/yaql"
)

// What a plan may have at the most. Whoever computes plans for others has some memory for each, and no more. The largest plan that is known
// has 53,000 steps on a thousand nodes, 23 MB of computed values, and 190,000 relations.
const (
	// MostSteps bounds its tasks on nodes, those that do not run included.
	MostSteps = 500_000
	// MostBytes bounds what is computed for its steps, roughly in the bytes of its text.
	MostBytes = 256 << 20
	// MostRelations bounds the pairs of steps of which one comes after the other, those "all of these on all of those" counted once.
	MostRelations = 10_000_000
)

// bounds are what one plan may have at the most.
type bounds struct{ steps, bytes, relations int }

func usualBounds() bounds { return bounds{MostSteps, MostBytes, MostRelations} }

// tooLarge refuses a plan of which something is more than it may be.
func tooLarge(most int, what string) error {
	return fault.New(fault.TooLarge, "the plan would have more than %d %s", most, what).
		WithHint("plan for some of the nodes or tasks at a time (--node, --task), or divide the environment")
}

// checkPlaced refuses more steps than a plan may have, before any is computed.
func (b *builder) checkPlaced() error {
	n := 0
	for _, p := range b.placements {
		if n += len(p.nodes); n > b.most.steps {
			return tooLarge(b.most.steps, "tasks on nodes")
		}
	}
	return nil
}

// take counts values that were computed for a step.
func (b *builder) take(ctx context.Context, values []any) error {
	n := 0
	for _, v := range values {
		n += sizeOf(v)
	}
	if b.bytes.Add(int64(n)) > int64(b.most.bytes) {
		return tooLarge(b.most.bytes, "bytes of computed values")
	}
	return context.Cause(ctx)
}

// sizeOf is about how long a value is as a text. What only looks at a state counts nothing: it takes no memory of its own.
func sizeOf(v any) int {
	const each = 4 // quotes and commas
	n := each
	switch x := v.(type) {
	case string:
		n += len(x)
	case []any:
		for _, item := range x {
			n += sizeOf(item)
		}
	case *yaql.List:
		for _, item := range x.Items {
			n += sizeOf(item)
		}
	case *yaql.Dict:
		x.Range(func(k, item any) bool {
			n += sizeOf(k) + sizeOf(item)
			return true
		})
	}
	return n
}
