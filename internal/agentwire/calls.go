package agentwire

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/agent/exports"
	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/deploy/secret"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/export"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hooks"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/storage"
)

// Served is a node that is served: it is asked for what executors need, and for what queries do.
type Served interface {
	exec.Node
	// OSes lists the operating system definitions of the node.
	OSes(ctx context.Context) ([]agent.OS, error)
	// Next waits for a state other than the one of a number; see agent.Agent.
	Next(ctx context.Context, after uint64) (agent.State, error)
	ReadConsole(ctx context.Context, of hypervisor.Thing, at uint64, wait time.Duration) (console.Piece, error)
	TypeConsole(ctx context.Context, of hypervisor.Thing, keys []byte) error
	OpenScreen(ctx context.Context, of hypervisor.Thing) (io.ReadWriteCloser, error)
	// Reason is why an instance changed its state last; nil if nobody knows.
	Reason(instance string) reason.Trail
}

// call is one method of the port: both ends are made from it.
type call[Args, Result any] struct {
	name string
	// lasts says that the call goes on when its connection is lost, and is named.
	lasts bool
	// once says that it does more when it is carried out again. Scripts and tasks have fences of their own: package effect.
	once bool
	do   func(ctx context.Context, n Served, a Args, log func(string)) (Result, error)
}

// none is the result of a call that has none.
type none struct{}

// served is a call as a handler sees it.
type served struct {
	lasts, once bool
	// serve reads the arguments; what it returns carries the call out.
	serve func(args json.RawMessage) (func(ctx context.Context, n Served, log func(string)) (any, error), error)
}

func (c *call[A, R]) served() served {
	return served{lasts: c.lasts, once: c.once, serve: func(text json.RawMessage) (func(context.Context, Served, func(string)) (any, error), error) {
		var a A
		if err := read(text, &a); err != nil {
			return nil, fault.New(fault.Invalid, "the arguments of %s cannot be read: %w", c.name, err)
		}
		return func(ctx context.Context, n Served, log func(string)) (any, error) { return c.do(ctx, n, a, log) }, nil
	}}
}

// read reads a JSON value that has no other fields than are known here. Numbers without a type keep their digits.
func read(text []byte, into any) error {
	return intake.ReadNumbers(text, into)
}

// ask has the agent carry the call out.
func (c *call[A, R]) ask(ctx context.Context, to *Client, args A, log func(string)) (result R, err error) {
	text, err := json.Marshal(args)
	if err != nil {
		return result, fault.New(fault.Invalid, "%s cannot be asked of node %s: %w", c.name, to.node, err)
	}
	answer, err := to.call(ctx, c.name, c.lasts, text, log)
	if err != nil {
		return result, err
	}
	if err := intake.ReadOpen(answer, &result); err != nil {
		return result, fault.New(fault.Internal, "node %s answered %s with something else: %w", to.node, c.name, err)
	}
	return result, nil
}

// The arguments of calls.
type (
	aThing struct {
		Thing hypervisor.Thing `json:"thing"`
	}
	aName struct {
		Name  string `json:"name"`
		Force bool   `json:"force,omitempty"`
	}
	toRead struct {
		Thing hypervisor.Thing `json:"thing"`
		At    uint64           `json:"at"`
		Wait  time.Duration    `json:"wait"`
	}
	toType struct {
		Thing hypervisor.Thing `json:"thing"`
		Keys  []byte           `json:"keys"`
	}
	nothing struct{}
	freshly struct {
		Fresh bool `json:"fresh"`
	}
	toNext struct {
		After uint64 `json:"after"`
	}
	duration struct {
		For time.Duration `json:"for"`
	}
	toDisks struct {
		Order agent.Order       `json:"order"`
		Thing hypervisor.Thing  `json:"thing"`
		Disks []hypervisor.Disk `json:"disks"`
	}
	toDrop struct {
		Order agent.Order      `json:"order"`
		Thing hypervisor.Thing `json:"thing"`
		Disks []string         `json:"disks"`
	}
	toInstall struct {
		Order  agent.Order       `json:"order"`
		Spec   hypervisor.Spec   `json:"spec"`
		OS     string            `json:"os"`
		Params map[string]string `json:"params"`
	}
	toFetch struct {
		Order agent.Order `json:"order"`
		Image agent.Image `json:"image"`
	}
	toReadImage struct {
		SHA256 string `json:"sha256"`
		At     int64  `json:"at"`
	}
	toKeepImage struct {
		Order agent.Order `json:"order"`
		Image agent.Image `json:"image"`
		Piece agent.Piece `json:"piece"`
	}
	toInstallImage struct {
		Order  agent.Order       `json:"order"`
		Spec   hypervisor.Spec   `json:"spec"`
		Image  agent.Image       `json:"image"`
		Params map[string]string `json:"params"`
	}
	toDump struct {
		Order  agent.Order       `json:"order"`
		Spec   hypervisor.Spec   `json:"spec"`
		Dump   agent.Dump        `json:"dump"`
		Params map[string]string `json:"params"`
	}
	toRenameSystem struct {
		Order  agent.Order       `json:"order"`
		Spec   hypervisor.Spec   `json:"spec"`
		OS     string            `json:"os"`
		Former string            `json:"former"`
		Params map[string]string `json:"params"`
	}
	toReadDump struct {
		From exports.Place `json:"from"`
		At   int64         `json:"at"`
	}
	toKeepDump struct {
		Order agent.Order   `json:"order"`
		To    exports.Place `json:"to"`
		Piece agent.Piece   `json:"piece"`
	}
	toFinish struct {
		Order  agent.Order   `json:"order"`
		ID     string        `json:"id"`
		Export export.Export `json:"export"`
	}
	toExport struct {
		Order agent.Order `json:"order"`
		Name  string      `json:"name"` // of an export, or the id of what is being made
	}
	toRun struct {
		Order agent.Order     `json:"order"`
		Spec  hypervisor.Spec `json:"spec"`
		Stop  hypervisor.Stop `json:"stop"`
		Trail reason.Trail    `json:"trail"`
	}
	toThing struct {
		Order agent.Order      `json:"order"`
		Thing hypervisor.Thing `json:"thing"`
		Stop  hypervisor.Stop  `json:"stop"`
		Name  string           `json:"name,omitempty"`
		Trail reason.Trail     `json:"trail,omitempty"`
	}
	toBalloon struct {
		Order  agent.Order      `json:"order"`
		Thing  hypervisor.Thing `json:"thing"`
		Memory int              `json:"memory"`
	}
	toTask struct {
		Order  agent.Order `json:"order"`
		Task   agent.Task  `json:"task"`
		Hidden []string    `json:"hidden,omitempty"` // stands for the task's own
	}
	toCompare struct {
		Check  agent.Check `json:"check"`
		Hidden []string    `json:"hidden,omitempty"` // stands for the check's own
	}
	toCommand struct {
		Order agent.Order `json:"order"`
		Name  string      `json:"name"`
	}
	toStorage struct {
		Order agent.Order `json:"order"`
		Name  string      `json:"name"`
		May   bool        `json:"may,omitempty"`
	}
	ofKind struct {
		Kind storage.Kind `json:"kind"`
	}
	toOrder struct {
		Order agent.Order `json:"order"`
	}
	toHooks struct {
		Order agent.Order `json:"order"`
		Hooks agent.Hooks `json:"hooks"`
	}
	// told is a state on the wire.
	told struct {
		At        time.Time             `json:"at"`
		Number    uint64                `json:"number"`
		Node      hypervisor.Node       `json:"node"`
		Instances []hypervisor.Instance `json:"instances"`
		Hooks     []string              `json:"hooks,omitempty"`
		Error     *failure              `json:"error,omitempty"`
	}
)

func tell(s agent.State) told {
	return told{At: s.At, Number: s.Number, Node: s.Node, Instances: s.Instances, Hooks: s.Hooks, Error: failed(s.Err)}
}

func (t *told) state() agent.State {
	return agent.State{At: t.At, Number: t.Number, Node: t.Node, Instances: t.Instances, Hooks: t.Hooks, Err: t.Error.fault()}
}

// The calls, one for each method of the port that goes to the node.
var (
	callInstance = call[aThing, hypervisor.Instance]{name: "instance", do: func(ctx context.Context, n Served, a aThing, _ func(string)) (hypervisor.Instance, error) {
		return n.Instance(ctx, a.Thing)
	}}
	callNamed = call[aName, []hypervisor.Instance]{name: "named", do: func(ctx context.Context, n Served, a aName, _ func(string)) ([]hypervisor.Instance, error) {
		return n.Named(ctx, a.Name)
	}}
	callInstances = call[nothing, []hypervisor.Instance]{name: "instances", do: func(ctx context.Context, n Served, _ nothing, _ func(string)) ([]hypervisor.Instance, error) {
		return n.Instances(ctx)
	}}
	callInfo = call[nothing, hypervisor.Node]{name: "info", do: func(ctx context.Context, n Served, _ nothing, _ func(string)) (hypervisor.Node, error) {
		return n.Info(ctx)
	}}
	callState = call[freshly, told]{name: "state", do: func(ctx context.Context, n Served, a freshly, _ func(string)) (told, error) {
		s, err := n.State(ctx, a.Fresh)
		return tell(s), err
	}}
	callNext = call[toNext, told]{name: "next-state", do: func(ctx context.Context, n Served, a toNext, _ func(string)) (told, error) {
		s, err := n.Next(ctx, a.After)
		return tell(s), err
	}}
	callFindOS = call[aName, agent.OS]{name: "find-os", do: func(ctx context.Context, n Served, a aName, _ func(string)) (agent.OS, error) {
		return n.FindOS(ctx, a.Name, a.Force)
	}}
	callOSes = call[nothing, []agent.OS]{name: "oses", do: func(ctx context.Context, n Served, _ nothing, _ func(string)) ([]agent.OS, error) {
		return n.OSes(ctx)
	}}
	callReason = call[aName, reason.Trail]{name: "reason", do: func(_ context.Context, n Served, a aName, _ func(string)) (reason.Trail, error) {
		return n.Reason(a.Name), nil
	}}
	callReadConsole = call[toRead, console.Piece]{name: "read-console", do: func(ctx context.Context, n Served, a toRead, _ func(string)) (console.Piece, error) {
		return n.ReadConsole(ctx, a.Thing, a.At, a.Wait)
	}}
	callTypeConsole = call[toType, none]{name: "type-console", do: func(ctx context.Context, n Served, a toType, _ func(string)) (none, error) {
		return none{}, n.TypeConsole(ctx, a.Thing, a.Keys)
	}}
	callDelay = call[duration, none]{name: "delay", lasts: true, do: func(ctx context.Context, n Served, a duration, _ func(string)) (none, error) {
		return none{}, n.Delay(ctx, a.For)
	}}
	callPrepare = call[toDisks, none]{name: "prepare", lasts: true, do: func(ctx context.Context, n Served, a toDisks, _ func(string)) (none, error) {
		return none{}, n.Prepare(ctx, a.Order, a.Thing, a.Disks)
	}}
	callAdjust = call[toRun, none]{name: "adjust", lasts: true, do: func(ctx context.Context, n Served, a toRun, _ func(string)) (none, error) {
		return none{}, n.Adjust(ctx, a.Order, plain(a.Spec))
	}}
	callBalloon = call[toBalloon, none]{name: "balloon", lasts: true, do: func(ctx context.Context, n Served, a toBalloon, _ func(string)) (none, error) {
		return none{}, n.Balloon(ctx, a.Order, a.Thing, a.Memory)
	}}
	callDrop = call[toDrop, none]{name: "drop", lasts: true, do: func(ctx context.Context, n Served, a toDrop, _ func(string)) (none, error) {
		return none{}, n.Drop(ctx, a.Order, a.Thing, a.Disks)
	}}
	callDetach = call[toDrop, none]{name: "detach", lasts: true, do: func(ctx context.Context, n Served, a toDrop, _ func(string)) (none, error) {
		return none{}, n.Detach(ctx, a.Order, a.Thing, a.Disks)
	}}
	callAttach = call[toDrop, none]{name: "attach", lasts: true, do: func(ctx context.Context, n Served, a toDrop, _ func(string)) (none, error) {
		return none{}, n.Attach(ctx, a.Order, a.Thing, a.Disks)
	}}
	callInstall = call[toInstall, none]{name: "install", lasts: true, do: func(ctx context.Context, n Served, a toInstall, log func(string)) (none, error) {
		return none{}, n.Install(ctx, a.Order, plain(a.Spec), a.OS, a.Params, log)
	}}
	callFetchImage = call[toFetch, agent.Image]{name: "fetch-image", lasts: true, do: func(ctx context.Context, n Served, a toFetch, log func(string)) (agent.Image, error) {
		return n.FetchImage(ctx, a.Order, a.Image, log)
	}}
	callReadImage = call[toReadImage, agent.Piece]{name: "read-image", do: func(ctx context.Context, n Served, a toReadImage, _ func(string)) (agent.Piece, error) {
		return n.ReadImage(ctx, a.SHA256, a.At)
	}}
	callKeepImage = call[toKeepImage, bool]{name: "keep-image", lasts: true, do: func(ctx context.Context, n Served, a toKeepImage, log func(string)) (bool, error) {
		return n.KeepImage(ctx, a.Order, a.Image, a.Piece, log)
	}}
	callInstallImage = call[toInstallImage, none]{name: "install-image", lasts: true, do: func(ctx context.Context, n Served, a toInstallImage, log func(string)) (none, error) {
		return none{}, n.InstallImage(ctx, a.Order, plain(a.Spec), a.Image, a.Params, log)
	}}
	callExports = call[nothing, []string]{name: "exports", do: func(ctx context.Context, n Served, _ nothing, _ func(string)) ([]string, error) {
		return n.Exports(ctx)
	}}
	callHalfExports = call[nothing, []exports.Half]{name: "half-exports", do: func(ctx context.Context, n Served, _ nothing, _ func(string)) ([]exports.Half, error) {
		return n.HalfExports(ctx)
	}}
	callExport = call[aName, export.Export]{name: "export", do: func(ctx context.Context, n Served, a aName, _ func(string)) (export.Export, error) {
		return n.Export(ctx, a.Name)
	}}
	callSnapshotDisks = call[toThing, none]{name: "snapshot-disks", lasts: true, do: func(ctx context.Context, n Served, a toThing, _ func(string)) (none, error) {
		return none{}, n.SnapshotDisks(ctx, a.Order, a.Thing, a.Name)
	}}
	callReleaseSnapshot = call[toThing, none]{name: "release-snapshot", lasts: true, do: func(ctx context.Context, n Served, a toThing, _ func(string)) (none, error) {
		return none{}, n.ReleaseSnapshot(ctx, a.Order, a.Thing, a.Name)
	}}
	callDumpDisk = call[toDump, none]{name: "dump-disk", lasts: true, do: func(ctx context.Context, n Served, a toDump, log func(string)) (none, error) {
		return none{}, n.DumpDisk(ctx, a.Order, plain(a.Spec), a.Dump, a.Params, log)
	}}
	callImportDisk = call[toDump, none]{name: "import-disk", lasts: true, do: func(ctx context.Context, n Served, a toDump, log func(string)) (none, error) {
		return none{}, n.ImportDisk(ctx, a.Order, plain(a.Spec), a.Dump, a.Params, log)
	}}
	callRenameSystem = call[toRenameSystem, none]{name: "rename-system", lasts: true, do: func(ctx context.Context, n Served, a toRenameSystem, log func(string)) (none, error) {
		return none{}, n.RenameSystem(ctx, a.Order, plain(a.Spec), a.OS, a.Former, a.Params, log)
	}}
	callReadDump = call[toReadDump, agent.Piece]{name: "read-dump", do: func(ctx context.Context, n Served, a toReadDump, _ func(string)) (agent.Piece, error) {
		return n.ReadDump(ctx, a.From, a.At)
	}}
	callKeepDump = call[toKeepDump, none]{name: "keep-dump", lasts: true, do: func(ctx context.Context, n Served, a toKeepDump, _ func(string)) (none, error) {
		return none{}, n.KeepDump(ctx, a.Order, a.To, a.Piece)
	}}
	callFinishExport = call[toFinish, none]{name: "finish-export", lasts: true, do: func(ctx context.Context, n Served, a toFinish, _ func(string)) (none, error) {
		return none{}, n.FinishExport(ctx, a.Order, a.ID, a.Export)
	}}
	callDiscardExport = call[toExport, none]{name: "discard-export", lasts: true, do: func(ctx context.Context, n Served, a toExport, _ func(string)) (none, error) {
		return none{}, n.DiscardExport(ctx, a.Order, a.Name)
	}}
	callRemoveExport = call[toExport, none]{name: "remove-export", lasts: true, do: func(ctx context.Context, n Served, a toExport, _ func(string)) (none, error) {
		return none{}, n.RemoveExport(ctx, a.Order, a.Name)
	}}
	callStart = call[toRun, none]{name: "start", lasts: true, do: func(ctx context.Context, n Served, a toRun, _ func(string)) (none, error) {
		return none{}, n.Start(ctx, a.Order, plain(a.Spec), a.Trail)
	}}
	callReceive = call[toRun, none]{name: "receive", lasts: true, do: func(ctx context.Context, n Served, a toRun, _ func(string)) (none, error) {
		return none{}, n.Receive(ctx, a.Order, plain(a.Spec))
	}}
	callSend = call[toThing, none]{name: "send", lasts: true, do: func(ctx context.Context, n Served, a toThing, _ func(string)) (none, error) {
		return none{}, n.Send(ctx, a.Order, a.Thing, a.Trail)
	}}
	callStop = call[toThing, none]{name: "stop", lasts: true, do: func(ctx context.Context, n Served, a toThing, _ func(string)) (none, error) {
		return none{}, n.Stop(ctx, a.Order, a.Thing, a.Stop, a.Trail)
	}}
	callRebootSoft = call[toThing, none]{name: "reboot-soft", lasts: true, once: true, do: func(ctx context.Context, n Served, a toThing, _ func(string)) (none, error) {
		return none{}, n.RebootSoft(ctx, a.Order, a.Thing, a.Trail)
	}}
	callRebootHard = call[toRun, none]{name: "reboot-hard", lasts: true, once: true, do: func(ctx context.Context, n Served, a toRun, _ func(string)) (none, error) {
		return none{}, n.RebootHard(ctx, a.Order, plain(a.Spec), a.Stop, a.Trail)
	}}
	callRename = call[toThing, none]{name: "rename", lasts: true, do: func(ctx context.Context, n Served, a toThing, _ func(string)) (none, error) {
		return none{}, n.Rename(ctx, a.Order, a.Thing, a.Name)
	}}
	callRemove = call[toThing, none]{name: "remove", lasts: true, do: func(ctx context.Context, n Served, a toThing, _ func(string)) (none, error) {
		return none{}, n.Remove(ctx, a.Order, a.Thing)
	}}
	callRunTask = call[toTask, none]{name: "run-task", lasts: true, do: func(ctx context.Context, n Served, a toTask, log func(string)) (none, error) {
		a.Task.Hidden = secret.NewValues(a.Hidden)
		return none{}, n.RunTask(ctx, a.Order, a.Task, log)
	}}
	callCompare = call[toCompare, agent.Finding]{name: "compare", do: func(ctx context.Context, n Served, a toCompare, _ func(string)) (agent.Finding, error) {
		a.Check.Hidden = secret.NewValues(a.Hidden)
		return n.Compare(ctx, a.Check)
	}}
	callRunHooks = call[toHooks, []hooks.Result]{name: "run-hooks", lasts: true, do: func(ctx context.Context, n Served, a toHooks, _ func(string)) ([]hooks.Result, error) {
		return n.RunHooks(ctx, a.Order, a.Hooks)
	}}
	callStorageUnits = call[ofKind, []storage.Unit]{name: "storage-units", do: func(ctx context.Context, n Served, a ofKind, _ func(string)) ([]storage.Unit, error) {
		return n.StorageUnits(ctx, a.Kind)
	}}
	callLogicalVolumes = call[nothing, []storage.LogicalVolume]{name: "logical-volumes", do: func(ctx context.Context, n Served, _ nothing, _ func(string)) ([]storage.LogicalVolume, error) {
		return n.LogicalVolumes(ctx)
	}}
	callProviders = call[nothing, []storage.Provider]{name: "providers", do: func(ctx context.Context, n Served, _ nothing, _ func(string)) ([]storage.Provider, error) {
		return n.Providers(ctx)
	}}
	callSetAllocatable = call[toStorage, none]{name: "set-allocatable", lasts: true, do: func(ctx context.Context, n Served, a toStorage, _ func(string)) (none, error) {
		return none{}, n.SetAllocatable(ctx, a.Order, a.Name, a.May)
	}}
	callRepairStorage = call[toStorage, none]{name: "repair-storage", lasts: true, do: func(ctx context.Context, n Served, a toStorage, _ func(string)) (none, error) {
		return none{}, n.RepairStorage(ctx, a.Order, a.Name)
	}}
	callPowercycle = call[toOrder, string]{name: "powercycle", lasts: true, once: true, do: func(ctx context.Context, n Served, a toOrder, _ func(string)) (string, error) {
		return n.Powercycle(ctx, a.Order)
	}}
	callRenewCertificate = call[toOrder, string]{name: "renew-certificate", lasts: true, do: func(ctx context.Context, n Served, a toOrder, _ func(string)) (string, error) {
		return n.RenewCertificate(ctx, a.Order)
	}}
	callRunCommand = call[toCommand, string]{name: "run-command", lasts: true, once: true, do: func(ctx context.Context, n Served, a toCommand, _ func(string)) (string, error) {
		return n.RunCommand(ctx, a.Order, a.Name)
	}}
)

// calls are all of them, by name.
var calls = map[string]served{
	callInstance.name: callInstance.served(), callNamed.name: callNamed.served(), callInstances.name: callInstances.served(),
	callInfo.name: callInfo.served(), callState.name: callState.served(), callNext.name: callNext.served(), callFindOS.name: callFindOS.served(), callDelay.name: callDelay.served(),
	callReadConsole.name: callReadConsole.served(), callTypeConsole.name: callTypeConsole.served(),
	callOSes.name: callOSes.served(), callReason.name: callReason.served(),
	callPrepare.name: callPrepare.served(), callAdjust.name: callAdjust.served(), callBalloon.name: callBalloon.served(), callDrop.name: callDrop.served(), callDetach.name: callDetach.served(), callAttach.name: callAttach.served(),
	callInstall.name:    callInstall.served(),
	callFetchImage.name: callFetchImage.served(), callInstallImage.name: callInstallImage.served(), callReadImage.name: callReadImage.served(), callKeepImage.name: callKeepImage.served(), callStart.name: callStart.served(),
	callExports.name: callExports.served(), callHalfExports.name: callHalfExports.served(), callExport.name: callExport.served(), callDumpDisk.name: callDumpDisk.served(), callImportDisk.name: callImportDisk.served(),
	callSnapshotDisks.name: callSnapshotDisks.served(), callReleaseSnapshot.name: callReleaseSnapshot.served(),
	callRenameSystem.name: callRenameSystem.served(), callReadDump.name: callReadDump.served(), callKeepDump.name: callKeepDump.served(),
	callFinishExport.name: callFinishExport.served(), callDiscardExport.name: callDiscardExport.served(), callRemoveExport.name: callRemoveExport.served(),
	callReceive.name: callReceive.served(), callSend.name: callSend.served(),
	callStop.name: callStop.served(), callRebootSoft.name: callRebootSoft.served(), callRebootHard.name: callRebootHard.served(),
	callRename.name: callRename.served(), callRemove.name: callRemove.served(), callRunTask.name: callRunTask.served(), callCompare.name: callCompare.served(), callRunHooks.name: callRunHooks.served(), callRunCommand.name: callRunCommand.served(),
	callPowercycle.name: callPowercycle.served(), callRenewCertificate.name: callRenewCertificate.served(),
	callStorageUnits.name: callStorageUnits.served(), callLogicalVolumes.name: callLogicalVolumes.served(),
	callProviders.name: callProviders.served(), callSetAllocatable.name: callSetAllocatable.served(), callRepairStorage.name: callRepairStorage.served(),
}

// plain returns a specification whose parameters are as in the inventory: whole numbers are integers, others floats.
func plain(spec hypervisor.Spec) hypervisor.Spec {
	for name, v := range spec.Params {
		spec.Params[name] = plainValue(v)
	}
	return spec
}

func plainValue(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // one beyond all floats is the greatest
		return f
	case []any:
		for i := range v {
			v[i] = plainValue(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = plainValue(v[key])
		}
	}
	return v
}
