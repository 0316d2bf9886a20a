package evacuation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/placement"
)

// planner is a plan while it is made: its world is what comes of the moves that are decided already.
type planner struct {
	placement.World

	// ignorePolicy: the policies of groups do not count.
	ignorePolicy bool
}

// decide decides about instances: those with the fewest choices first, then the largest. They come back by name.
func (p *planner) decide(instances []*cluster.Instance, choices func(*cluster.Instance) int, course func(*Course)) []Course {
	p.Reports = maps.Clone(p.Reports)
	order := slices.Clone(instances)
	slices.SortStableFunc(order, func(a, b *cluster.Instance) int {
		return cmp.Or(cmp.Compare(choices(a), choices(b)), cmp.Compare(p.need(b).Memory, p.need(a).Memory))
	})
	courses := make([]Course, len(order))
	for i, inst := range order {
		before := p.fork()
		courses[i] = Course{Instance: inst}
		if course(&courses[i]); courses[i].Cannot != "" {
			p.World = before.World // it stays
		}
	}
	slices.SortFunc(courses, func(a, b Course) int { return cluster.CompareNames(a.Instance.Name, b.Instance.Name) })
	return courses
}

// fork is the plan as it is, whatever is added to the other.
func (p *planner) fork() *planner {
	f := *p
	f.Reports = maps.Clone(p.Reports)
	return &f
}

func (p *planner) need(inst *cluster.Instance) placement.Need {
	return placement.NeedOf(p.Inventory.Cluster(), inst)
}

// second is the UUID of the node that has the second copy of an instance's disks; empty if none has.
func second(inst *cluster.Instance) string {
	for _, uuid := range inst.SecondaryNodes() {
		return uuid
	}
	return ""
}

// handOver has the node that has the second copies of an instance's disks run it, or says why that cannot.
func (p *planner) handOver(inst *cluster.Instance) (moved *cluster.Instance, moves []Move, cannot string) {
	to := p.Inventory.Node(second(inst))
	if to == nil {
		return nil, nil, "no node has the second copies of its disks"
	}
	here := to.Name + ", which has the second copies of its disks, "
	switch i := inst.StaleOn(to.UUID); {
	case to.Offline:
		return nil, nil, here + "is offline"
	case to.Drained:
		return nil, nil, here + "is drained"
	case i >= 0:
		return nil, nil, fmt.Sprintf("the copy of its disk %d on %s is out of date", i, to.Name)
	}
	if why := p.policy(inst, to); why != "" {
		return nil, nil, here + why
	}
	if need, free := p.need(inst).Memory, p.free(to.UUID); inst.AdminState == cluster.AdminUp && free < need {
		return nil, nil, fmt.Sprintf("%shas %d MiB of memory free, and %d are needed", here, max(free, 0), need)
	}
	return p.move(inst, to), []Move{{Migrate, to, "it has the second copies of its disks"}}, ""
}

// policy says how an instance breaks the policy of a node in another group than that of its primary node; empty if it does not.
func (p *planner) policy(inst *cluster.Instance, to *cluster.Node) string {
	from, group, c := p.Inventory.Node(inst.PrimaryNode), p.Inventory.Group(to.Group), p.Inventory.Cluster()
	if p.ignorePolicy || group == nil || from != nil && from.Group == to.Group {
		return ""
	}
	var texts []string
	for _, v := range placement.Violations(c.FillIPolicy(group), c.FillBE(inst), inst, len(inst.NICs)) {
		texts = append(texts, v.Text)
	}
	if len(texts) == 0 {
		return ""
	}
	return "is in group " + group.Name + ", whose policy refuses it: " + strings.Join(texts, ", ")
}

// staysBehind says what would stay on a node of an instance whose disks all nodes reach; empty for nothing.
func (p *planner) staysBehind(inst *cluster.Instance, to *cluster.Node) string {
	if r := p.Reports[to.UUID]; len(inst.Disks) == 0 || r.Hypervisor == "" || r.StandsIn {
		return ""
	}
	where := inst.PrimaryNode
	if n := p.Inventory.Node(where); n != nil {
		where = n.Name
	}
	return "its disks are where other nodes reach them, but what the machine keeps beside them is on " + where + " alone"
}

// copies says why the disks of an instance cannot be copied from its primary node; empty if they can.
func (p *planner) copies(inst *cluster.Instance) string {
	if source := p.Inventory.Node(inst.PrimaryNode); source == nil || source.Offline {
		return "its primary node is offline, and its disks cannot be copied from there"
	}
	if i := inst.StaleOn(inst.PrimaryNode); i >= 0 {
		return fmt.Sprintf("the copy of its disk %d on its primary node is out of date, so it cannot be copied from there", i)
	}
	if inst.Mirroring() != cluster.InternalMirror {
		return "its disks (" + inst.DiskTemplate() + ") are not all mirrored"
	}
	return ""
}

// move notes that a node runs an instance now.
func (p *planner) move(inst *cluster.Instance, to *cluster.Node) *cluster.Instance {
	from := p.Inventory.Node(inst.PrimaryNode)
	moved := inst.Clone()
	moved.MoveTo(to.UUID, from == nil || from.Offline)
	p.Inventory = p.Inventory.With(cluster.Put(moved))
	if inst.AdminState == cluster.AdminUp {
		p.take(to.UUID, placement.Need{Memory: p.need(inst).Memory})
	}
	return moved
}

// moveSecond notes that a node has the second copies of an instance's disks now.
func (p *planner) moveSecond(inst *cluster.Instance, to *cluster.Node) *cluster.Instance {
	next := inst.Clone()
	gone := second(inst)
	for i := range next.Disks {
		d := &next.Disks[i]
		d.Nodes, d.Stale = []string{inst.PrimaryNode, to.UUID}, slices.DeleteFunc(d.Stale, func(s string) bool { return s == gone })
	}
	p.Inventory = p.Inventory.With(cluster.Put(next))
	p.take(to.UUID, placement.Need{Disk: p.need(inst).Disk})
	return next
}

// take notes that a node has less free than it has told.
func (p *planner) take(node string, need placement.Need) {
	r := p.Reports[node]
	r.MemoryFree -= need.Memory
	r.DiskFree -= need.Disk
	p.Reports[node] = r
}

// free is the memory that a node has now, in MiB, and that nobody else is about to take.
func (p *planner) free(node string) int64 {
	free := p.Reports[node].MemoryFree
	for _, c := range p.Claims {
		if c.Node == node && !c.Kept(p.Inventory) {
			free -= c.Need.Memory
		}
	}
	return free
}
