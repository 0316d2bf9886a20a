package exec

import (
	"sync"

	"github.com/drover-project/drover/internal/cluster"
)

// places is the memory of nodes that creations have chosen and that the inventory does
// not know of yet, so that those which choose at the same time see one another. One that
// is over, or whose instance is in the inventory, counts no more: what is there is
// promised by the inventory.
type places struct {
	mu     sync.Mutex
	claims map[string]claim // by the UUID of the instance
}

type claim struct {
	node   string // UUID
	memory int    // MiB
	// total is what the node has for instances, 0 if nobody asked.
	total int
}

func newPlaces() *places { return &places{claims: map[string]claim{}} }

// claim takes a place on a node that nobody had to choose.
func (p *places) claim(uuid string, c claim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims[uuid] = c
}

// release gives a place back.
func (p *places) release(uuid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.claims, uuid)
}

// choose chooses a node for an instance, says why, and takes the place, in one: the next
// one to choose counts it as taken.
func (p *places) choose(newest func() *cluster.Snapshot, candidates []candidate, uuid string, need int) (*cluster.Node, string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	snap := newest()
	for i := range candidates {
		c := &candidates[i]
		total := c.info.MemoryTotal - c.info.MemoryNode
		c.free = min(c.info.MemoryFree, total-promised(snap, c.node.UUID)) - p.claimed(snap, c.node.UUID, uuid)
	}
	best, why, err := choose(candidates, need)
	if err != nil {
		return nil, "", err
	}
	p.claims[uuid] = claim{best.node.UUID, need, best.info.MemoryTotal - best.info.MemoryNode}
	return best.node, why, nil
}

// total is what the node of an instance has for instances, in MiB; 0 if nobody asked.
func (p *places) total(uuid string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.claims[uuid].total
}

// taken reports whether the place of an instance that is to be added went to others since it was chosen. Behind a restart nobody knows
// what other creations have chosen; they find out when they add theirs.
func (e *Env) taken(snap *cluster.Snapshot, inst *cluster.Instance, total int) bool {
	if e.places != nil {
		return e.places.taken(snap, inst.UUID)
	}
	return intParam(snap.Cluster().FillBE(inst), "maxmem") > total-promised(snap, inst.PrimaryNode)
}

// taken reports whether the place of an instance went to others since it was chosen: the
// node has promised more by now.
func (p *places) taken(snap *cluster.Snapshot, uuid string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.claims[uuid]
	return c.memory > c.total-promised(snap, c.node)-p.claimed(snap, c.node, uuid)
}

// claimed is the memory of a node that other instances are to have and that the inventory
// does not know of.
func (p *places) claimed(snap *cluster.Snapshot, node, except string) (sum int) {
	for uuid, c := range p.claims {
		if c.node == node && uuid != except && snap.Instance(uuid) == nil {
			sum += c.memory
		}
	}
	return sum
}

// promised is the memory of a node that its instances may use, running or not.
func promised(snap *cluster.Snapshot, node string) (sum int) {
	for inst := range snap.PrimariesOn(node) {
		if inst.AdminState != cluster.AdminOffline {
			sum += intParam(snap.Cluster().FillBE(inst), "maxmem")
		}
	}
	return sum
}
