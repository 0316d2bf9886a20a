package placement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
)

// Constraint names what keeps a node from taking an instance.
type Constraint string

// The constraints.
const (
	OtherGroup  Constraint = "group"
	Unallocable Constraint = "alloc-policy"
	Offline     Constraint = "offline"
	Drained     Constraint = "drained"
	Incapable   Constraint = "vm-capable"
	Full        Constraint = "full"
	Unreported  Constraint = "report"
	Hypervisor  Constraint = "hypervisor"
	Parameters  Constraint = "hvparams"
	Template    Constraint = "disk-template"
	Policy      Constraint = "policy"
	Memory      Constraint = "memory"
	Disk        Constraint = "disk"
	VCPUs       Constraint = "vcpus"
	Exclusion   Constraint = "exclusion"
	Crowded     Constraint = "apart"
	Alone       Constraint = "together"
	Failover    Constraint = "n+1"
	Taken       Constraint = "other-node"
	Takeover    Constraint = "takeover"
	Mirror      Constraint = "mirror"
)

// constraint is a row of the table: the check of a node, and what is said of one that does not pass it.
type constraint struct {
	name Constraint
	// means is what the constraint asks of a node, for the documentation.
	means string
	// check reports whether the node breaks it, and by how much.
	check func(c *candidate) (v Verdict, broken bool)
	// text says it of one node; many, behind their number, of several.
	text func(v Verdict) string
	many string
	// counted: need and have are amounts, in unit.
	counted bool
	unit    string
	// only says that just one of both is asked for it: a node that is to run the instance, or one that is to have the second copy of its disks.
	only role
	// firm holds for a node that was asked for, too, where what else speaks against it is for whoever asked to know.
	firm bool
}

// Firm tells whether the constraint keeps an instance from a node that was asked for.
func (f Constraint) Firm() bool {
	return slices.ContainsFunc(constraints, func(c constraint) bool { return c.name == f && c.firm })
}

// role is what a node is looked at for.
type role int

const (
	either role = iota
	primary
	mirror
)

// nearest tells of the node that comes nearest to passing, where that can be counted, or else what is said of one of them.
func (c *constraint) nearest(v Verdict) string {
	switch {
	case c.counted:
		return fmt.Sprintf(" (%d%s needed, at best %d on %s)", v.Need, c.unit, max(v.Have, 0), v.Node)
	case v.Detail != "":
		return " (" + v.Detail + ")"
	}
	return ""
}

const mebibytes = " MiB"

// constraints are asked of a node in this order: what an operator has decided first, then what the instance is, then what there is room for.
var constraints = []constraint{
	{
		name: OtherGroup, means: "the node is in the group that was asked for", many: "in another group",
		check: func(c *candidate) (Verdict, bool) {
			return Verdict{Detail: c.group.Name}, c.Group != "" && c.node.Group != c.Group
		},
		text: func(v Verdict) string { return "it is in group " + v.Detail },
	},
	{
		name: Taken, means: "it is another node than the one that the disks are on, or that the instance leaves", many: "that the instance has or leaves",
		check: func(c *candidate) (Verdict, bool) {
			return Verdict{}, c.node.UUID == c.Beside || slices.Contains(c.Leaves, c.node.UUID)
		},
		text: func(Verdict) string { return "the instance has its disks there, or leaves it" },
	},
	{
		name: Unallocable, means: "its group's allocation policy is not unallocable, unless the group or the node was asked for", many: "in a group that takes no new instances",
		check: func(c *candidate) (Verdict, bool) { return Verdict{Detail: c.group.Name}, !c.group.allowed },
		text:  func(v Verdict) string { return "its group " + v.Detail + " takes no new instances (it is unallocable)" },
	},
	{
		name: Offline, firm: true, means: "it is not marked offline", many: "offline",
		check: func(c *candidate) (Verdict, bool) { return Verdict{}, c.node.Offline },
		text:  func(Verdict) string { return "it is marked offline" },
	},
	{
		name: Drained, firm: true, means: "it is not drained", many: "drained",
		check: func(c *candidate) (Verdict, bool) { return Verdict{}, c.node.Drained },
		text:  func(Verdict) string { return "it is drained" },
	},
	{
		name: Incapable, firm: true, means: "it is vm_capable", many: "not meant for instances",
		check: func(c *candidate) (Verdict, bool) { return Verdict{}, !c.node.VMCapable },
		text:  func(Verdict) string { return "it is not meant for instances (not vm_capable)" },
	},
	{
		name: Full, means: "it did not turn out to have no room while this instance was being made", many: "without room after all",
		check: func(c *candidate) (Verdict, bool) {
			said, full := c.Full[c.node.UUID]
			return Verdict{Detail: said}, full
		},
		text: func(v Verdict) string { return "it had no room after all: " + v.Detail },
	},
	{
		name: Policy, means: "the instance is within the instance policy of its group (memory-size, cpu-count, disks, interfaces, templates)", many: "whose group's policy refuses it",
		check: func(c *candidate) (Verdict, bool) {
			if len(c.group.broken) == 0 {
				return Verdict{}, false
			}
			return Verdict{Need: c.group.broken[0].Value, Have: c.group.broken[0].Bound, Detail: c.group.broken[0].Text}, true
		},
		text: func(v Verdict) string { return "the policy of its group refuses it: " + v.Detail },
	},
	{
		name: Unreported, firm: true, means: "it tells its state", many: "that do not tell their state",
		check: func(c *candidate) (Verdict, bool) {
			report, told := c.Reports[c.node.UUID]
			if !told {
				return Verdict{Detail: "nothing was heard of it"}, true
			}
			return Verdict{Detail: report.Failed}, report.Failed != ""
		},
		text: func(v Verdict) string { return "it does not tell its state: " + v.Detail },
	},
	{
		name: Hypervisor, firm: true, means: "it runs instances of this hypervisor; one that pretends takes them only where no candidate runs them for real", many: "of another hypervisor",
		check: func(c *candidate) (Verdict, bool) {
			report, wanted := c.Reports[c.node.UUID], c.Instance.Hypervisor
			if report.Hypervisor == "" || wanted == "" || report.Hypervisor == wanted {
				return Verdict{}, false
			}
			return Verdict{Detail: report.Hypervisor}, !report.StandsIn || c.real
		},
		text: func(v Verdict) string { return "it runs instances of " + v.Detail },
	},
	{
		name: Parameters, firm: true, means: "it has what the instance's hypervisor parameters ask for: the model of processor (cpu_type), the firmware, the TPM, a screen without a port (vnc_*)", many: "without what the hypervisor parameters ask for",
		check: func(c *candidate) (Verdict, bool) {
			lacks := Lacking(c.params, c.Reports[c.node.UUID].Takes)
			return Verdict{Detail: lacks}, lacks != ""
		},
		text: func(v Verdict) string { return v.Detail },
	},
	{
		name: Template, firm: true, means: "it keeps disks of the instance's template", many: "that keep no disks of its template",
		check: func(c *candidate) (Verdict, bool) {
			keeps, wanted := c.Reports[c.node.UUID].Templates, c.Instance.DiskTemplate()
			if len(keeps) == 0 || wanted == cluster.DiskDiskless || wanted == cluster.DiskMixed || slices.Contains(keeps, wanted) {
				return Verdict{}, false
			}
			return Verdict{Detail: "it keeps no disks of the template " + wanted + "; it has " + strings.Join(keeps, ", ")}, true
		},
		text: func(v Verdict) string { return v.Detail },
	},
	{
		name: Memory, only: primary, firm: true, means: "so much memory is free, and not promised to instances that do not run or are being made", many: "with too little memory", counted: true, unit: mebibytes,
		check: func(c *candidate) (Verdict, bool) {
			have := c.left().free
			return Verdict{Need: c.need.Memory, Have: have}, have < c.need.Memory
		},
		text: func(v Verdict) string { return short(v, "MiB of memory", "free") },
	},
	{
		name: Disk, firm: true, means: "so much disk space is free, and not promised", many: "with too little disk space", counted: true, unit: mebibytes,
		check: func(c *candidate) (Verdict, bool) {
			have := c.left().disk
			return Verdict{Need: c.need.Disk, Have: have}, c.need.Disk > 0 && have < c.need.Disk
		},
		text: func(v Verdict) string { return short(v, "MiB of disk space", "free") },
	},
	{
		name: VCPUs, only: primary, means: "its processors, times the vcpu-ratio of its group's instance policy, are not all promised", many: "with too few processors", counted: true,
		check: func(c *candidate) (Verdict, bool) {
			cpus := c.Reports[c.node.UUID].CPUs
			if c.group.ratio == 0 || cpus == 0 {
				return Verdict{}, false
			}
			have := int64(c.group.ratio*float64(cpus)) - c.left().vcpus
			return Verdict{Need: c.need.VCPUs, Have: have}, have < c.need.VCPUs
		},
		text: func(v Verdict) string { return short(v, "virtual processors", "left by the vcpu-ratio") },
	},
	{
		name: Exclusion, only: primary, means: "no instance of it has the same exclusive tag (cluster tags " + ExclusionPrefix + "PREFIX)", many: "that exclude it by a tag",
		check: func(c *candidate) (Verdict, bool) { return Verdict{Detail: c.left().conflict}, c.left().conflict != "" },
		text:  func(v Verdict) string { return "no two instances of a node may have the tag " + v.Detail },
	},
	{
		name: Crowded, only: primary, means: "it has fewer instances of the instance's group than may be on one node (tags " + CompanyPrefix + "apart:GROUP and at-most:N:GROUP)",
		many: "that have as many of its group as may be on one node", check: (*candidate).crowded,
		text: func(v Verdict) string { return "it has as many as may be on one node of " + v.Detail },
	},
	{
		name: Alone, only: primary, means: "it has the others of the instance's group, or there are none yet (tags " + CompanyPrefix + "together:GROUP)",
		many: "that have none of its group", check: (*candidate).alone,
		text: func(v Verdict) string { return "the instance is to be with those of " + v.Detail },
	},
	{
		name: Failover, only: primary, means: "what stays free is enough for the instances that would come to it if one other node failed (N+1)", many: "that keep memory for a failover", counted: true, unit: mebibytes,
		check: func(c *candidate) (Verdict, bool) {
			have := c.left().free - c.left().reserve
			return Verdict{Need: c.need.Memory, Have: have, Detail: c.peerName()}, c.left().reserve > 0 && have < c.need.Memory
		},
		text: func(v Verdict) string {
			return short(v, "MiB of memory", "free beside what is kept for the instances of "+v.Detail)
		},
	},
	{
		name: Takeover, only: mirror, means: "of a node for the second copy of disks: what is free is enough for all instances that would come to it if the primary node failed, the new one among them",
		many: "that could not take the primary node's instances over", counted: true, unit: mebibytes,
		check: func(c *candidate) (Verdict, bool) {
			need := c.left().from[c.Beside] + c.need.Memory
			return Verdict{Need: need, Have: c.left().free, Detail: c.nameOf(c.Beside)}, c.left().free < need
		},
		text: func(v Verdict) string {
			return short(v, "MiB of memory", "free if "+v.Detail+" failed")
		},
	},
}

// mirrorless is said of a node that could run the instance, if there were one for the second copy of its disks. It is asked last, of those that
// rank before the one that is chosen.
var mirrorless = constraint{
	name: Mirror, means: "of an instance with mirrored disks: beside it another node of its group can have the second copy of the disks", many: "beside which no node can have the second copy of the disks",
	text: func(v Verdict) string { return "no node can have the second copy of the disks: " + v.Detail },
}

func (c *candidate) peerName() string { return c.nameOf(c.left().peer) }

func (c *candidate) nameOf(uuid string) string {
	if n := c.Inventory.Node(uuid); n != nil {
		return n.Name
	}
	return uuid
}

// table are all constraints, in the order in which they are asked.
func table() []constraint { return append(slices.Clip(constraints), mirrorless) }

// short says how much is missing.
func short(v Verdict, what, left string) string {
	return fmt.Sprintf("%d %s are needed and %d are %s: %d short", v.Need, what, max(v.Have, 0), left, -v.Margin())
}

// Text says the verdict for people.
func (v Verdict) Text() string {
	if v.Fails == "" {
		text := fmt.Sprintf("%d MiB of memory are free, %d would be left", v.Have, v.Margin())
		if v.Detail != "" {
			text += "; " + v.Detail + " there"
		}
		return text
	}
	for _, c := range table() {
		if c.name == v.Fails {
			return c.text(v)
		}
	}
	return "it breaks the constraint " + string(v.Fails) + ", which this program does not know"
}

// Meanings are the constraints in the order in which they are asked, each with what it asks of a node.
func Meanings() [][2]string {
	var out [][2]string
	for _, c := range table() {
		out = append(out, [2]string{string(c.name), c.means})
	}
	return out
}
