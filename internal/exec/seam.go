package exec

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/agent/exports"
	"github.com/drover-project/drover/internal/export"
	"github.com/drover-project/drover/internal/hooks"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/storage"
)

// Node is what executors need of a node. The agent in this process is one; an
// agent elsewhere is reached by an adapter.
//
// What changes something takes an order, and is carried out once however often
// it arrives. Errors carry codes of package fault: Unavailable when it is not
// known what became of a call, Fenced when the node follows a newer leader.
type Node interface {
	// Node is the node's name.
	Node() string
	// Away is how long an order that is given now would wait at most for the node, which cannot be reached; 0 when it can.
	Away() time.Duration

	// Instance tells about one instance: NotFound when the node has nothing of it, Exists when something else
	// is under its name, which is what whatever changes something is answered with then, too (hypervisor.Stranger).
	Instance(ctx context.Context, of hypervisor.Thing) (hypervisor.Instance, error)
	// Named lists what the node has under a name, whosever it is.
	Named(ctx context.Context, name string) ([]hypervisor.Instance, error)
	Instances(ctx context.Context) ([]hypervisor.Instance, error)
	Info(ctx context.Context) (hypervisor.Node, error)
	// State returns what the node reported last, which knows all that was ordered of it; with fresh it is asked.
	State(ctx context.Context, fresh bool) (agent.State, error)
	FindOS(ctx context.Context, name string, force bool) (agent.OS, error)
	Delay(ctx context.Context, d time.Duration) error

	Prepare(ctx context.Context, order agent.Order, of hypervisor.Thing, disks []hypervisor.Disk) error
	Drop(ctx context.Context, order agent.Order, of hypervisor.Thing, disks []string) error
	// Detach has disks of an instance be of none, things of their own (hypervisor.DetachedDisk), and Attach has such disks be those of an instance.
	Detach(ctx context.Context, order agent.Order, of hypervisor.Thing, disks []string) error
	Attach(ctx context.Context, order agent.Order, of hypervisor.Thing, disks []string) error
	// Adjust has an instance that runs have the disks and network cards of the specification, and no others.
	Adjust(ctx context.Context, order agent.Order, spec hypervisor.Spec) error
	// Balloon asks the guest of an instance that runs to have another memory, in MiB.
	Balloon(ctx context.Context, order agent.Order, of hypervisor.Thing, memory int) error
	// Install hands what people should know of it over line by line.
	Install(ctx context.Context, order agent.Order, spec hypervisor.Spec, os string, params map[string]string, log func(line string)) error
	// FetchImage has the node keep a copy of an image and look at it: what it returns is complete. How far that came is handed over line by line.
	FetchImage(ctx context.Context, order agent.Order, image agent.Image, log func(line string)) (agent.Image, error)
	// ReadImage reads the first part of a node's copy of the image with a sum from a place on, or tells its size alone for a place before the beginning:
	// NotFound where there is no copy. KeepImage hands a part over, and tells whether the node has a whole copy now.
	ReadImage(ctx context.Context, sum string, at int64) (agent.Piece, error)
	KeepImage(ctx context.Context, order agent.Order, image agent.Image, piece agent.Piece, log func(line string)) (bool, error)
	// InstallImage writes an image on the first disk; params are what the instance is told at its first start (cluster.ImageParameters). What
	// people should know of it is handed over line by line.
	InstallImage(ctx context.Context, order agent.Order, spec hypervisor.Spec, image agent.Image, params map[string]string, log func(line string)) error
	Start(ctx context.Context, order agent.Order, spec hypervisor.Spec, trail reason.Trail) error
	// Receive has an instance wait for what another node sends, and Send hands it over: it runs on neither node then, until it is started where it is
	// waited for.
	Receive(ctx context.Context, order agent.Order, spec hypervisor.Spec) error
	Send(ctx context.Context, order agent.Order, of hypervisor.Thing, trail reason.Trail) error
	Stop(ctx context.Context, order agent.Order, of hypervisor.Thing, how hypervisor.Stop, trail reason.Trail) error
	RebootSoft(ctx context.Context, order agent.Order, of hypervisor.Thing, trail reason.Trail) error
	RebootHard(ctx context.Context, order agent.Order, spec hypervisor.Spec, how hypervisor.Stop, trail reason.Trail) error
	Rename(ctx context.Context, order agent.Order, of hypervisor.Thing, to string) error
	Remove(ctx context.Context, order agent.Order, of hypervisor.Thing) error

	// Exports lists the exports of instances that the node keeps, by name, and Export tells what one says that is meant by its name or path: NotFound
	// if there is none.
	Exports(ctx context.Context) ([]string, error)
	// HalfExports lists what is being made of exports on the node, or was left of some; Unsupported by agents of before.
	HalfExports(ctx context.Context) ([]exports.Half, error)
	Export(ctx context.Context, name string) (export.Export, error)
	// SnapshotDisks has what the disks of an instance that runs have at one moment be kept under an id, until ReleaseSnapshot or its end; see hypervisor.Driver.
	SnapshotDisks(ctx context.Context, order agent.Order, of hypervisor.Thing, id string) error
	ReleaseSnapshot(ctx context.Context, order agent.Order, of hypervisor.Thing, id string) error
	// DumpDisk dumps a disk of an instance that does not run, or what a snapshot has of it, to what is being made under an id, ImportDisk writes a dump on a disk; both begin from the
	// beginning when they come again. RenameSystem has the operating system on its disks know its new name. What people should know is handed over line by line.
	DumpDisk(ctx context.Context, order agent.Order, spec hypervisor.Spec, d agent.Dump, params map[string]string, log func(line string)) error
	ImportDisk(ctx context.Context, order agent.Order, spec hypervisor.Spec, d agent.Dump, params map[string]string, log func(line string)) error
	RenameSystem(ctx context.Context, order agent.Order, spec hypervisor.Spec, os, former string, params map[string]string, log func(line string)) error
	// ReadDump reads the first part of a dump from a place on, and KeepDump writes one to what is being made.
	ReadDump(ctx context.Context, from exports.Place, at int64) (agent.Piece, error)
	KeepDump(ctx context.Context, order agent.Order, to exports.Place, piece agent.Piece) error
	// FinishExport puts what was made under an id in the place of the export of that name, DiscardExport removes what is being made, and RemoveExport
	// the export of a name, if there is any.
	FinishExport(ctx context.Context, order agent.Order, id string, e export.Export) error
	DiscardExport(ctx context.Context, order agent.Order, id string) error
	RemoveExport(ctx context.Context, order agent.Order, name string) error

	// HookDirs are the directories of operators' hooks that have anything to run, as the node told last; one that never told is asked.
	HookDirs(ctx context.Context) ([]string, error)
	// RunHooks runs the scripts of one of them, and returns what they came to. Given again, the order runs them again.
	RunHooks(ctx context.Context, order agent.Order, h agent.Hooks) ([]hooks.Result, error)

	// RunCommand runs a restricted command of the node, and returns what it said. Given again, the order runs it again.
	RunCommand(ctx context.Context, order agent.Order, name string) (string, error)

	// StorageUnits, LogicalVolumes and Providers tell what the disks of the node are kept in, and SetAllocatable and RepairStorage change that: see
	// storage.Backing. Unsupported of what the node has not, and by agents of before.
	StorageUnits(ctx context.Context, kind storage.Kind) ([]storage.Unit, error)
	LogicalVolumes(ctx context.Context) ([]storage.LogicalVolume, error)
	Providers(ctx context.Context) ([]storage.Provider, error)
	SetAllocatable(ctx context.Context, order agent.Order, device string, may bool) error
	RepairStorage(ctx context.Context, order agent.Order, group string) error

	// Powercycle has the machine switched off and on in a moment, and returns what is to be said of that; Unsupported where its operator has not said how.
	Powercycle(ctx context.Context, order agent.Order) (string, error)

	// RenewCertificate has the agent of a node that is elsewhere make its key and its certificate anew, and returns the number of the latter. Given again, the
	// order does so again.
	RenewCertificate(ctx context.Context, order agent.Order) (serial string, err error)

	// RunTask carries a task of a deployment out, and hands its output over line by line.
	RunTask(ctx context.Context, order agent.Order, task agent.Task, log func(line string)) error
	// Compare tells whether what a task of a deployment brings about is there: Failed where that cannot be told, Unsupported by agents of before.
	Compare(ctx context.Context, check agent.Check) (agent.Finding, error)
}

// Nodes finds a node by its name; Unavailable when it does not answer.
type Nodes func(node string) (Node, error)

// Local finds the nodes whose agents live in this process.
func Local(fleet *agent.Fleet) Nodes {
	return func(node string) (Node, error) {
		a, err := fleet.Agent(node)
		if err != nil {
			return nil, err // and no interface that holds a nil pointer
		}
		return a, nil
	}
}

// Order is the next order of an opcode that gives them one by one, and not as steps.
func (e *Env) Order() agent.Order { return e.orderNumber(int(e.steps.Add(1))) }

// orderNumber is the order with a number among those of the opcode.
func (e *Env) orderNumber(n int) agent.Order {
	return agent.Order{Epoch: e.Epoch, Life: e.Life, Job: e.Job, Opcode: e.Index, Step: n}
}
