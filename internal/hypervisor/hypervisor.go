// Package hypervisor is the port to the program that runs virtual machines on
// one node: what a driver must do, and the values that go in and out.
//
// A driver owns what exists of an instance on its node: its disks and whether
// it runs. It does not know the inventory; every start brings the whole
// specification along, so a changed parameter takes effect at the next start.
//
// What exists is told apart by its UUID. A name is an attribute of it, for people and for
// the files that other programs read.
//
// Invariants that every driver keeps, and that package hypertest checks:
//   - Each call either has happened or has not: a state that a call reports is
//     still there after the driver was closed, or killed, and opened again.
//   - Start, Stop, Prepare, Drop, Rename and Remove are idempotent. Where the wanted
//     state is there already they succeed and report that nothing changed.
//   - Calls for different instances may run at the same time; calls for one
//     instance take place one after the other.
//   - What has another UUID is somebody else's, whatever its name is. A call for an instance
//     of which there is nothing on the node, while something else is under its name, leaves
//     that alone and is answered with both UUIDs (Stranger).
//   - By whom a thing was made (MadeBy) never changes.
//   - A disk that no instance has is a thing of its own (DetachedDisk), whose content is what it was. Nothing that becomes of the instance that
//     had it last, or was to have it, becomes of it; only Remove of that thing removes it.
//   - What is handed over from node to node (Receive, Send, Start) runs on neither of them until the last of the three, and on the one that
//     received it behind that: a driver never runs what it has sent, or waits for, unless it is told to start it.
//   - Errors carry a code of package fault; a failed call leaves the state as
//     it was.
package hypervisor

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qemuimg"
	"github.com/drover-project/drover/internal/storage"
)

// Thing says which instance is meant. The UUID decides; the Name is for people and for files
// that others read.
type Thing struct{ UUID, Name string }

// Check refuses a thing whose name or UUID could not be the name of a file, see CheckName. Invalid then.
func (t Thing) Check() error {
	if err := CheckName(t.Name); err != nil {
		return err
	}
	if !fileName(t.UUID) {
		return fault.New(fault.Invalid, "%.300q is not a valid UUID of instance %s", t.UUID, t.Name).
			WithHint("an instance is meant by its UUID; drover instance info %s shows it", t.Name)
	}
	return nil
}

// DetachedDisk is the thing that a disk is while no instance has it: it has the disk's UUID, and that disk alone. No instance can have its name.
func DetachedDisk(uuid string) Thing { return Thing{UUID: uuid, Name: "disk:" + uuid} }

// Mark says by which opcode a thing was made. Job ids come again when an older state of the
// store is put back, so the life of the store (package store/life) belongs to them. The zero
// Mark says nothing.
type Mark struct {
	Life   string `json:"life"`
	Job    int64  `json:"job"`
	Opcode int    `json:"opcode"`
}

// IsZero reports whether the mark says nothing.
func (m Mark) IsZero() bool { return m == Mark{} }

// String is the mark for people.
func (m Mark) String() string {
	switch {
	case m.IsZero():
		return "nobody says which job made it"
	case m.Life == "":
		return fmt.Sprintf("made by job %d, opcode %d", m.Job, m.Opcode)
	}
	return fmt.Sprintf("made by job %d, opcode %d of the store's life %s", m.Job, m.Opcode, m.Life)
}

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
	// Incoming: it holds its memory and waits for what another node sends. It does not run.
	Incoming State = "incoming"
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
	// Format is what the content is kept in when the disk is made: "raw" if it is empty, or "qcow2"; drivers that only pretend may ignore it.
	Format string `json:"format,omitempty"`
	// Image is the SHA-256 of the image of the node that the content stands on; empty for none. It is told, and not asked for.
	Image string `json:"image,omitempty"`
	// External says who makes a disk of template "ext", and how he knows it; nil for others.
	External *External `json:"external,omitempty"`
	// ReadOnly disks are given to the instance without the right to write.
	ReadOnly bool `json:"readonly,omitempty"`
	// From is the name of the node that the content of a mirrored disk is copied from when it is made here; empty for one that is not.
	From string `json:"from,omitempty"`
	// Behind is how many MiB of a mirrored disk are not copied yet. It is told, and not asked for.
	Behind int `json:"behind,omitempty"`
	// Volume is how many MiB the content has room for, as Driver.Instance tells it: it may be more than what was asked for, or less if somebody else has
	// changed it. 0 where disks are pretended, and where nobody has looked.
	Volume int `json:"volume,omitempty"`
	// Path is where scripts of the node find the content, as Driver.Instance tells it; empty where that is pretended.
	Path string `json:"-"`
	// File is the same for who reads formats.
	File *qemuimg.File `json:"-"`
}

// Has is the size of a disk as far as it is known, in MiB: that of its content where somebody has looked.
func (d *Disk) Has() int { return cmp.Or(d.Volume, d.Size) }

// Kept is the format that the content of a disk has which the node tells of: "raw" where it is as it is, or is pretended.
func (d *Disk) Kept() string {
	if d.File == nil {
		return diskimage.Raw
	}
	return d.File.Format
}

// External is a volume that operators' scripts make: those of Provider, which know it as Name and have Params. Label is what people call its disk.
type External struct {
	Provider string            `json:"provider"`
	Name     string            `json:"name"`
	Params   map[string]string `json:"params,omitempty"`
	Label    string            `json:"label,omitempty"`
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
	// Hypervisor is the kind of the instance, as the inventory has it. A driver that runs machines refuses those of another
	// kind; one that pretends does so with all.
	Hypervisor string `json:"hypervisor,omitempty"`
	// Memory in MiB, at most; and MinMemory, with which it may do where a start finds no more, 0 for all of it.
	Memory    int `json:"memory"`
	MinMemory int `json:"min_memory,omitempty"`
	// VCPUs is the number of virtual processors.
	VCPUs int    `json:"vcpus"`
	Disks []Disk `json:"disks"`
	NICs  []NIC  `json:"nics"`
	// Params are the hypervisor parameters, all defaults filled in.
	Params map[string]any `json:"params,omitempty"`
	// StartPaused asks Start to leave the instance in state Paused.
	StartPaused bool `json:"start_paused,omitempty"`
	// Snapshot asks Start for a snapshot under this id of the disks as they are before the instance runs; see Driver.Snapshot. Empty for none.
	Snapshot string `json:"snapshot,omitempty"`
	// By is who orders the start: what Start makes of an instance that the node does not
	// know has this mark.
	By Mark `json:"-"`
}

// Thing is the instance that is to run.
func (s *Spec) Thing() Thing { return Thing{UUID: s.UUID, Name: s.Name} }

// StartMemory is how much of its memory an instance is started with on a node that has so much free, both in MiB: all of it if that fits, else what
// there is. Exhausted when that is less than it can do with.
func (s *Spec) StartMemory(free int) (int, error) {
	least := s.Memory
	if s.MinMemory > 0 {
		least = min(s.MinMemory, s.Memory)
	}
	if least > free {
		return 0, fault.New(fault.Exhausted, "not enough memory: %d MiB needed, %d MiB free", least, free)
	}
	return min(s.Memory, free), nil
}

// CheckBalloon refuses a memory in MiB that an instance cannot have that was started with this specification. Invalid then.
func (s *Spec) CheckBalloon(memory int) error {
	if memory < 1 || memory > s.Memory {
		return fault.New(fault.Invalid, "instance %s was started with at most %d MiB of memory, and cannot have %d", s.Name, s.Memory, memory).
			WithHint("another maxmem counts from its next start on")
	}
	return nil
}

// Instance is what a driver knows about one instance.
type Instance struct {
	Name string
	// UUID is empty for what is under a name without anybody knowing whose it is: no call is about it.
	UUID  string
	State State
	// Memory in MiB, as much of it as the guest has by now, and VCPUs of the running machine; zero when stopped.
	Memory int
	VCPUs  int
	// EndedItself says of a stopped instance that its guest ended it, as by a shutdown that its user typed, and that nobody has
	// stopped or started it since.
	EndedItself bool
	// Trouble is what is wrong with an instance that is active, for people; empty when nothing is known to be.
	Trouble string
	// Disks that exist on the node, in the order they were made.
	Disks []Disk
	// MadeBy is the mark of the first Prepare or Start, which made it.
	MadeBy Mark
}

// Detached reports whether this is no instance, but a disk that none has.
func (i *Instance) Detached() bool {
	return i.UUID != "" && i.Thing() == DetachedDisk(i.UUID)
}

// Thing is what it is told apart by.
func (i *Instance) Thing() Thing { return Thing{UUID: i.UUID, Name: i.Name} }

// Active reports whether the instance runs or is paused.
func (i Instance) Active() bool { return i.State == Running || i.State == Paused }

// LeftBy reports whether a controller of this life of the store made the instance, and it does not run: if
// the inventory has no such instance it is what a creation left that did not end. Nobody has used it, but
// for that creation.
func (i *Instance) LeftBy(life string) bool {
	return life != "" && i.MadeBy.Life == life && !i.Active()
}

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
	// Hypervisor is the kind of what runs its instances; empty from an agent that does not tell it. StandsIn: it pretends to be any other as well.
	Hypervisor string
	StandsIn   bool
	// Takes are the values that parameters of the hypervisor may have on this node, where that is the node's to say (models of processors by
	// cpu_type), by parameter; of one that is not there nothing is known.
	Takes map[string][]string
	// Templates are those of disks that it keeps; empty where nobody says, and all are pretended.
	Templates []string
	// Hotplug: devices can be plugged into whatever runs (Driver.Adjust); see Plugs.
	Hotplug bool
	// Migrates: what runs can be handed over to another node while it runs (Driver.Receive, Driver.Send).
	Migrates bool
	// Snapshots are the templates of disks that can be copied while an instance runs, as they were at one moment (Driver.Snapshot).
	Snapshots []string
	// Packs: the node's agent can dump disks as files that have no more than what is on them (agent.Dump). Drivers leave it to the agent.
	Packs bool
}

// hotplugged is the kind of instances that take devices while they run; what pretends to be of it takes them, too.
const hotplugged = "kvm"

// Plugs reports whether devices of an instance of a kind can be changed on the node while it runs.
func (n *Node) Plugs(kind string) bool { return n.Hotplug || n.StandsIn && kind == hotplugged }

// Stop says how an instance is to be stopped.
type Stop struct {
	// Force ends it at once, without asking the guest.
	Force bool
	// Timeout is how long the guest may take; after it the driver forces. A
	// zero timeout forces at once.
	Timeout time.Duration
}

// Driver runs the instances of one node. See the package comment for what all
// methods promise. Things are checked (Thing.Check). Every method that is about a
// thing answers Stranger when the node has nothing of that UUID, and something else under its
// name; Prepare makes an exception.
type Driver interface {
	// Kind is the driver's name in the inventory, for example "fake".
	Kind() string
	// Prepare makes sure that the disks exist with at least their size: it
	// makes the missing ones and grows the smaller ones. On failure it takes
	// away what it made. Exhausted when there is no space. What it makes of a thing that
	// the node does not know is marked. That is made beside what is under its name if all of that was
	// left by the same life of the store (Instance.LeftBy).
	Prepare(ctx context.Context, of Thing, by Mark, disks []Disk) (changed bool, err error)
	// Drop removes the disks with these UUIDs and leaves the others.
	Drop(ctx context.Context, of Thing, disks []string) (changed bool, err error)
	// Detach has disks of an instance, by UUID, be things of their own (DetachedDisk), which are marked. WrongState for one that it is using, NotFound
	// for one that neither it has nor is detached already.
	Detach(ctx context.Context, of Thing, by Mark, disks []string) (changed bool, err error)
	// Attach has detached disks be those of an instance, which is made as Prepare makes it if the node does not know it. NotFound for one that neither
	// is detached on this node nor its own already.
	Attach(ctx context.Context, of Thing, by Mark, disks []string) (changed bool, err error)
	// Remove removes the instance with all its disks. WrongState when it is
	// active.
	Remove(ctx context.Context, of Thing) (changed bool, err error)
	// Rename gives a stopped instance another name, whatever it is called. WrongState when it is active,
	// Stranger when something else has the new name, NotFound when it is not known.
	Rename(ctx context.Context, of Thing, to string) (changed bool, err error)
	// Start runs the instance, under the name that the specification has; one that is Incoming goes on where it was sent. Exhausted when memory is
	// short, WrongState when a disk of the specification does not exist.
	Start(ctx context.Context, spec Spec) (changed bool, err error)
	// Receive has an instance that does not run wait, as Incoming, for what another node sends, with all the memory that it will need. What is
	// active stays so. Exhausted and WrongState as with Start; Unsupported where that cannot be done.
	Receive(ctx context.Context, spec Spec) (changed bool, err error)
	// Send ends an instance that is active by handing what it is doing over to the node that waits for it. What is not active is as good as
	// sent. Unsupported where that cannot be done.
	Send(ctx context.Context, of Thing) (changed bool, err error)
	// Stop ends the instance, or its waiting; one that is unknown is as good as stopped.
	Stop(ctx context.Context, of Thing, how Stop) (changed bool, err error)
	// Adjust has an instance that is active have the disks and network cards of the specification, and no others: what is missing is
	// plugged in, what is too much pulled out. Nothing else of the specification counts. What is not active has them when it is started. Busy
	// when the guest does not let go of something, which it then keeps; Exhausted when there is no place for more; Unsupported for what the node
	// does not plug (Node.Plugs). Once more it does what is left to be done.
	Adjust(ctx context.Context, spec Spec) (changed bool, err error)
	// Balloon asks the guest of an active instance to do with so much memory in MiB, or to use so much again; how far it has come, Instance tells.
	// A guest without a driver for that keeps what it has. WrongState when it is not active, Invalid for more than it was started with.
	Balloon(ctx context.Context, of Thing, memory int) (changed bool, err error)
	// Snapshot has what all disks of an active instance have at one moment be kept under an id, to be copied while the instance goes on. An instance has
	// one snapshot at most: another id takes the place of the one before. It ends by Release, and when the instance is stopped, its disks or
	// devices change, or the node has no room for it. WrongState when it is not active, Unsupported for disks of templates that Node.Snapshots does not have.
	Snapshot(ctx context.Context, of Thing, id string) (changed bool, err error)
	// CopySnapshot writes what a disk had to a file, with holes where that was zeros, and returns when it is on disk; where disks are pretended it writes
	// nothing. WrongState when there is no snapshot of the id, Exhausted when there is no room for the copy, or was none for the snapshot.
	CopySnapshot(ctx context.Context, of Thing, id, disk string, to *os.File, told func(done, size int64)) error
	// Release ends the snapshot of an id, and whatever copies it. Once more, and for what is not there, it does nothing.
	Release(ctx context.Context, of Thing, id string) (changed bool, err error)
	// Reboot restarts the guest inside its running machine. WrongState when
	// it is not running.
	Reboot(ctx context.Context, of Thing) error
	// Seed has a stopped instance find a CD beside its disks at each start from now on, until it is removed; an empty one takes it away.
	// WrongState when it is active, NotFound when it is not known, Unsupported where machines are pretended. Taking away what
	// is not there is no error, whatever is asked about.
	Seed(ctx context.Context, of Thing, cd []byte) error
	// Blank has a disk of an instance that does not run read as zeros again, or as an image of the node on which it stands from now on. Unsupported for a
	// disk whose format has no such thing, and where disks are pretended; WrongState when it is active, NotFound when it is not known.
	Blank(ctx context.Context, of Thing, disk string, base *storage.Base) error
	// Instance tells about one instance, also when it has another name on the node; NotFound when there is
	// nothing of it on this node. A disk that is noted and lost is not among its disks.
	Instance(ctx context.Context, of Thing) (Instance, error)
	// Named lists what is under a name, ordered by UUID: a node may have several things of one name, and
	// some of which nobody knows the UUID.
	Named(ctx context.Context, name string) ([]Instance, error)
	// Instances lists all, ordered by name and UUID, with the disks that are noted of them.
	Instances(ctx context.Context) ([]Instance, error)
	// Node tells the figures of the node at this moment.
	Node(ctx context.Context) (Node, error)
	// Console is the serial line of an instance; NotFound when there is nothing of it on this node, Unsupported where machines are
	// pretended.
	Console(of Thing) (*console.Line, error)
	// Screen connects to the screen of an instance that is active, in the protocol RFB without a password (RFC 6143); several may look at a time, and
	// each may use its keyboard. The connection ends with the machine. WrongState when it is not active, NotFound when there is nothing of it on this
	// node, Busy when too many look, Unsupported where there is none.
	Screen(ctx context.Context, of Thing) (net.Conn, error)
	// Powercycle returns what has the machine of the node switched off and on, at once and without asking anything that runs on it: behind that nothing
	// does. Unsupported where the node's operator has not said how, Environment if that cannot be done.
	Powercycle() (reset func(ctx context.Context) error, err error)
	// Backing is what the disks of the node are kept in.
	Backing() storage.Backing
	// Watch has changed called whenever an instance has changed without a call: its guest ended itself, or its process was
	// killed. It must not wait, and replaces what was said before.
	Watch(changed func())
	// Close releases what the driver holds in this process. Instances keep
	// running.
	Close() error
}

// Stranger is the error about a thing of which a node has nothing, while something else is under its name:
// there is the UUID of that, empty if nobody knows it. Its code is Exists.
func Stranger(of Thing, there string) error {
	if there == "" {
		return fault.New(fault.Exists, "there is something under the name %s on the node of which nobody knows the UUID; %s is wanted", of.Name, of.UUID).
			WithHint("it is left alone; drover cluster verify lists what nodes have and the inventory does not know")
	}
	return fault.New(fault.Exists, "there is another instance %s on the node: its UUID is %s, not %s", of.Name, there, of.UUID).
		WithHint("it is left alone; drover cluster verify lists what nodes have and the inventory does not know")
}

// NoSuchDisk is the error about a disk that is to be attached or detached, and is on the node neither as one of the thing's nor of its own.
func NoSuchDisk(of Thing, disk string) error {
	return fault.New(fault.NotFound, "this node has no disk %s, neither of instance %s nor detached", disk, of.Name).
		WithHint("drover cluster verify says what is missing where")
}

// InUse is the error about a disk that is to be taken from a thing which is active, and uses it.
func InUse(of Thing, disk string, state State) error {
	return fault.New(fault.WrongState, "disk %s is used by instance %s, which is %s", disk, of.Name, state).WithHint("stop the instance first")
}

// NoConsole is the error about the console of a thing whose kind of hypervisor has none.
func NoConsole(of Thing, kind string) error {
	return fault.New(fault.Unsupported, "instance %s has no console: the hypervisor %s of its node only pretends to run it", of.Name, kind).
		WithHint("a node whose agent is set to hypervisor kvm runs virtual machines")
}

// NoHotplug is the error about the devices of what is pretended. The words are the reference's.
func NoHotplug() error {
	return fault.New(fault.Unsupported, "Hotplug is not supported by this hypervisor")
}

// NoMigration is the error about what runs where it cannot be handed over to another node.
func NoMigration(name string) error {
	return fault.New(fault.Unsupported, "instance %s cannot be handed over while it runs: its hypervisor does not migrate yet", name).
		WithHint("drover instance failover stops it and starts it on the other node")
}

// NoLayers is the answer of a driver whose disks are only pretended.
func NoLayers(of Thing, kind string) error {
	return fault.New(fault.Unsupported, "disks of instance %s have no layers: the hypervisor %s only pretends to have disks", of.Name, kind)
}

// NoSnapshots is the error about the disks of a thing that cannot be snapshotted.
func NoSnapshots(of Thing, kind string) error {
	return fault.New(fault.Unsupported, "disks of instance %s cannot be snapshotted: the hypervisor %s of its node does not do that", of.Name, kind)
}

// NoSeed is the error about a CD for a thing whose kind of hypervisor has no machines that could read one.
func NoSeed(of Thing, kind string) error {
	return fault.New(fault.Unsupported, "instance %s cannot be told anything at its first start: the hypervisor %s of its node only pretends to run it", of.Name, kind).
		WithHint("a node whose agent is set to hypervisor kvm runs virtual machines")
}

// CheckName refuses instance names that could not be the name of a file:
// empty ones, longer than 240 bytes, with a slash, a control character, or a
// leading dot.
func CheckName(name string) error {
	if !fileName(name) {
		return fault.New(fault.Invalid, "%.300q is not a valid instance name", name).At("instance_name").
			WithHint("1 to 240 bytes, no slash or control character, not beginning with a dot")
	}
	return nil
}

func fileName(text string) bool {
	return text != "" && len(text) <= 240 && text[0] != '.' && !strings.ContainsFunc(text, func(r rune) bool {
		return r == '/' || r < ' ' || r == 0x7f
	})
}
