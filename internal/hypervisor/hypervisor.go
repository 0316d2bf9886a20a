// Package hypervisor is the port to the program that runs virtual machines on
// one node: what a driver must do, and the values that go in and out.
//
// A driver owns what exists of an instance on its node: its disks and whether
// it runs. It does not know the inventory; every start brings the whole
// specification along, so a changed parameter takes effect at the next start.
//
// Invariants that every driver keeps, and that package hypertest checks:
//   - Each call either has happened or has not: a state that a call reports is
//     still there after the driver was closed, or killed, and opened again.
//   - Start, Stop, Prepare, Keep, Drop, Rename and Remove are idempotent. Where the wanted
//     state is there already they succeed and report that nothing changed.
//   - Calls for different instances may run at the same time; calls for one
//     instance take place one after the other.
//   - What is under a name with another UUID is somebody else's: Prepare, Keep and
//     Start leave it alone and say so (Stranger).
//   - Errors carry a code of package fault; a failed call leaves the state as
//     it was.
package hypervisor

import (
	"context"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// State is what an instance does on its node.
type State string

// The states of an instance.
const (
	// Stopped: its disks are there, it does not run.
	Stopped State = "stopped"
	// Running: it runs and uses memory.
	Running State = "running"
	// Paused: it holds its memory, but its processors stand still.
	Paused State = "paused"
)

// Disk is one disk of an instance.
type Disk struct {
	// UUID identifies the disk on the node; Prepare and Drop go by it.
	UUID string `json:"uuid"`
	// Size in MiB.
	Size int `json:"size"`
	// Template is the kind of storage, for example "file"; drivers that know
	// one kind only may ignore it.
	Template string `json:"template,omitempty"`
	// ReadOnly disks are given to the instance without the right to write.
	ReadOnly bool `json:"readonly,omitempty"`
}

// NIC is one network card of an instance.
type NIC struct {
	UUID string `json:"uuid"`
	MAC  string `json:"mac"`
	// IP is the address the network meant for it; empty for none.
	IP string `json:"ip,omitempty"`
	// Mode says how it is attached ("bridged", "routed", ...), Link to what.
	Mode string `json:"mode"`
	Link string `json:"link"`
	VLAN string `json:"vlan,omitempty"`
}

// Spec is everything a driver needs to run an instance.
type Spec struct {
	Name string `json:"name"`
	UUID string `json:"uuid"`
	// Memory in MiB.
	Memory int `json:"memory"`
	// VCPUs is the number of virtual processors.
	VCPUs int    `json:"vcpus"`
	Disks []Disk `json:"disks"`
	NICs  []NIC  `json:"nics"`
	// Params are the hypervisor parameters, all defaults filled in.
	Params map[string]any `json:"params,omitempty"`
	// StartPaused asks Start to leave the instance in state Paused.
	StartPaused bool `json:"start_paused,omitempty"`
}

// Instance is what a driver knows about one instance.
type Instance struct {
	Name  string
	UUID  string
	State State
	// Memory in MiB and VCPUs of the running machine; zero when stopped.
	Memory int
	VCPUs  int
	// Disks that exist on the node, in the order they were made.
	Disks []Disk
	// Blank: its disks were made by Prepare and nothing has happened to it since. A
	// creation that did not end leaves this behind, and nobody misses it.
	Blank bool
}

// Active reports whether the instance holds memory: it runs or is paused.
func (i Instance) Active() bool { return i.State == Running || i.State == Paused }

// Node holds the figures of the machine that the driver runs on.
type Node struct {
	// Memory in MiB: all of it, what the node's own system uses, and what is
	// free for instances.
	MemoryTotal, MemoryNode, MemoryFree int
	// Disk space for instances in MiB.
	DiskTotal, DiskFree int
	// CPUs is the number of logical processors, CPUNodes and CPUSockets the
	// NUMA nodes and sockets they sit in, CPUReserved those that the node's
	// own system uses.
	CPUs, CPUNodes, CPUSockets, CPUReserved int
	// BootID changes with each start of the machine.
	BootID string
	// Version names the driver and the version of what it drives.
	Version string
}

// Stop says how an instance is to be stopped.
type Stop struct {
	// Force ends it at once, without asking the guest.
	Force bool
	// Timeout is how long the guest may take; after it the driver forces. A
	// zero timeout forces at once.
	Timeout time.Duration
}

// Driver runs the instances of one node. See the package comment for what all
// methods promise. Names are checked with CheckName.
type Driver interface {
	// Kind is the driver's name in the inventory, for example "fake".
	Kind() string
	// Prepare makes sure that the disks exist with at least their size: it
	// makes the missing ones and grows the smaller ones. On failure it takes
	// away what it made. Exhausted when there is no space.
	Prepare(ctx context.Context, name, uuid string, disks []Disk) (changed bool, err error)
	// Keep takes note that the instance is wanted: it is Blank no more. NotFound when
	// there is nothing of it.
	Keep(ctx context.Context, name, uuid string) (changed bool, err error)
	// Drop removes the named disks and leaves the others.
	Drop(ctx context.Context, name string, disks []string) (changed bool, err error)
	// Remove removes the instance with all its disks. WrongState when it is
	// active.
	Remove(ctx context.Context, name string) (changed bool, err error)
	// Rename moves all there is of a stopped instance to another name.
	// WrongState when it is active, Exists when the new name is taken,
	// NotFound when neither is known; when only the new one is, it happened
	// before.
	Rename(ctx context.Context, name, to string) (changed bool, err error)
	// Start runs the instance. Exhausted when memory is short, WrongState
	// when a disk of the specification does not exist.
	Start(ctx context.Context, spec Spec) (changed bool, err error)
	// Stop ends the instance; one that is unknown is as good as stopped.
	Stop(ctx context.Context, name string, how Stop) (changed bool, err error)
	// Reboot restarts the guest inside its running machine. WrongState when
	// it is not running.
	Reboot(ctx context.Context, name string) error
	// Instance tells about one instance; NotFound when there is nothing of
	// it on this node.
	Instance(ctx context.Context, name string) (Instance, error)
	// Instances lists all, ordered by name.
	Instances(ctx context.Context) ([]Instance, error)
	// Node tells the figures of the node at this moment.
	Node(ctx context.Context) (Node, error)
	// Close releases what the driver holds in this process. Instances keep
	// running.
	Close() error
}

// Stranger is the error about an instance that is on a node under the name of
// another.
func Stranger(name, wanted, there string) error {
	return fault.New(fault.Exists, "there is another instance %s on the node: its UUID is %s, not %s", name, there, wanted).
		WithHint("it is left alone; drover cluster verify lists what nodes have and the inventory does not know")
}

// CheckName refuses instance names that could not be the name of a file:
// empty ones, longer than 240 bytes, with a slash, a control character, or a
// leading dot.
func CheckName(name string) error {
	bad := name == "" || len(name) > 240 || name[0] == '.' || strings.ContainsFunc(name, func(r rune) bool {
		return r == '/' || r < ' ' || r == 0x7f
	})
	if bad {
		return fault.New(fault.Invalid, "%.300q is not a valid instance name", name).At("instance_name").
			WithHint("1 to 240 bytes, no slash or control character, not beginning with a dot")
	}
	return nil
}
