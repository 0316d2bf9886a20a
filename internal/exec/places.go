package exec

import (
	"cmp"
	"sync"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/placement"
)

// places are those of nodes that creations have chosen and that the inventory does
// not know of yet, so that those which choose at the same time see one another. One that
// is over, or whose instance is in the inventory, counts no more: what is there is
// promised by the inventory.
type places struct {
	mu     sync.Mutex
	claims map[string]claim // by the UUID of the instance
}

type claim struct {
	placement.Claim

	// second is that of the second copy of mirrored disks; zero for other disks.
	second placement.Claim

	// total is the memory that the node has for instances in MiB, 0 if it did not say.
	total int64
}

func newPlaces() *places { return &places{claims: map[string]claim{}} }

// release gives a place back.
func (p *places) release(uuid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.claims, uuid)
}

// decide decides where an instance goes and takes the place, in one: the next
// one to choose counts it as taken. A node that was asked for gets it whatever stands against it.
func (p *places) decide(newest func() *cluster.Snapshot, reports map[string]placement.Report, r placement.Request) placement.Decision {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := placement.Decide(p.world(newest(), reports), r)
	node := d.UUID
	if r.Node != "" {
		node = r.Node
	}
	if node != "" {
		c := claim{Claim: placement.Claim{Instance: r.Instance.UUID, Node: node, Need: d.Need, Tags: r.Instance.Tags}, total: reports[node].Memory}
		if second := cmp.Or(r.Second, d.SecondUUID()); second != "" {
			c.second = placement.Claim{Instance: r.Instance.UUID, Node: second, Need: placement.Need{Disk: d.Need.Disk}}
		}
		p.claims[r.Instance.UUID] = c
	}
	return d
}

// world is what a decision is made upon, with the places that others have chosen.
func (p *places) world(snap *cluster.Snapshot, reports map[string]placement.Report) placement.World {
	w := placement.World{Inventory: snap, Reports: reports}
	for _, c := range p.claims {
		w.Claims = append(w.Claims, c.Claim)
		if c.second.Node != "" {
			w.Claims = append(w.Claims, c.second)
		}
	}
	return w
}

// seen is world for whoever takes no place.
func (p *places) seen(snap *cluster.Snapshot, reports map[string]placement.Report) placement.World {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.world(snap, reports)
}

// total is the memory that the node of an instance has for instances, in MiB; 0 if it did not say.
func (p *places) total(uuid string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.claims[uuid].total
}

// taken reports whether the place of an instance that is to be added went to others since it was chosen. Behind a restart nobody knows
// what other creations have chosen; they find out when they add theirs.
func (e *Env) taken(snap *cluster.Snapshot, inst *cluster.Instance, total int64) bool {
	if e.places != nil {
		return e.places.taken(snap, inst.UUID)
	}
	return placement.NeedOf(snap.Cluster(), inst).Memory > total-promised(snap, inst.PrimaryNode)
}

// taken reports whether the place of an instance went to others since it was chosen: the
// node has promised more by now.
func (p *places) taken(snap *cluster.Snapshot, uuid string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.claims[uuid]
	return c.Need.Memory > c.total-promised(snap, c.Node)-p.claimed(snap, c.Node, uuid)
}

// claimed is the memory of a node that other instances are to have and that the inventory
// does not know of.
func (p *places) claimed(snap *cluster.Snapshot, node, except string) (sum int64) {
	for uuid, c := range p.claims {
		if c.Node == node && uuid != except && !c.Kept(snap) {
			sum += c.Need.Memory
		}
	}
	return sum
}

// promised is the memory of a node that its instances may use, running or not.
func promised(snap *cluster.Snapshot, node string) (sum int64) {
	for inst := range snap.PrimariesOn(node) {
		if inst.AdminState != cluster.AdminOffline {
			sum += placement.NeedOf(snap.Cluster(), inst).Memory
		}
	}
	return sum
}
