package live

import (
	"context"
	"io"
	"time"

	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// ReadConsole returns what an instance printed on its serial line behind a position, and waits for it for a time if that is nothing; see
// agent.Agent. NotFound for an instance that the inventory does not have.
func (q *Querier) ReadConsole(ctx context.Context, instance string, at uint64, wait time.Duration) (console.Piece, error) {
	node, of, err := q.nodeOf(instance)
	if err != nil {
		return console.Piece{}, err
	}
	return node.ReadConsole(ctx, of, at, wait)
}

// TypeConsole types on an instance's serial line.
func (q *Querier) TypeConsole(ctx context.Context, instance string, keys []byte) error {
	node, of, err := q.nodeOf(instance)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	return node.TypeConsole(ctx, of, keys)
}

// OpenScreen connects to the screen of an instance until ctx ends, in the protocol RFB; see hypervisor.Driver.
func (q *Querier) OpenScreen(ctx context.Context, instance string) (io.ReadWriteCloser, error) {
	node, of, err := q.nodeOf(instance)
	if err != nil {
		return nil, err
	}
	return node.OpenScreen(ctx, of)
}

// nodeOf finds the node that has an instance.
func (q *Querier) nodeOf(instance string) (Node, hypervisor.Thing, error) {
	if q.Stored != nil {
		return nil, hypervisor.Thing{}, ErrLed
	}
	snap := q.Picture.Load().Inventory
	inst, err := snap.FindInstance(instance)
	if err != nil {
		return nil, hypervisor.Thing{}, err
	}
	primary := snap.Node(inst.PrimaryNode)
	if primary == nil {
		return nil, hypervisor.Thing{}, fault.New(fault.NotFound, "instance %s has no node", inst.Name)
	}
	node, err := q.Nodes(primary.Name)
	return node, hypervisor.Thing{UUID: inst.UUID, Name: inst.Name}, err
}
