package exec

import (
	"context"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/agent/exports"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/deploy/secret"
	"github.com/drover-project/drover/internal/export"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/work"
)

// The verbs of exports and imports. All are orders for a node.
const (
	snapshotDisks = "snapshot-disks" // keep what the disks of an instance have at this moment, under the id of what is being made
	releaseDisks  = "release-snapshot"
	dumpDisk      = "dump-disk"      // dump a disk of a stopped instance, or what a snapshot has of it, to what is being made
	takeDump      = "take-dump"      // have the controller take a dump for the file of an image
	copyDumps     = "copy-dumps"     // have the node fetch dumps from another one
	finishExport  = "finish-export"  // put what was made in the place of the export before
	discardExport = "discard-export" // remove what is being made
	removeExport  = "remove-export"
	importDisk    = "import-disk"   // write a dump on a disk of a stopped instance
	renameSystem  = "rename-system" // have the operating system on the disks know its new name
)

// dumpArgs are about a dump. Its operating system is the instance's.
type dumpArgs struct {
	Disk   int         `json:"disk"`
	Form   export.Form `json:"form"`
	ID     string      `json:"id,omitempty"`
	Export string      `json:"export,omitempty"`
	File   string      `json:"file"`
	// Snapshot: what is dumped is what the snapshot of the id has.
	Snapshot bool `json:"snapshot,omitempty"`
}

type snapshotArgs struct {
	Name string `json:"name"` // of the instance
	ID   string `json:"id"`
}

type fetchedArgs struct {
	// From is the UUID of the node that has the dumps, in an export or in what is being made under the same id.
	From   string   `json:"from"`
	Export string   `json:"export,omitempty"`
	ID     string   `json:"id"`
	Files  []string `json:"files"`
}

type takenArgs struct {
	ID    string `json:"id"` // of what is being made
	File  string `json:"file"`
	Image string `json:"image"` // the id of the image
	// Format is that of the dump.
	Format string `json:"format"`
}

type finishArgs struct {
	ID   string      `json:"id"`
	Form export.Form `json:"form"`
}

type exportArgs struct {
	Name string `json:"name"` // of an export, or the id of what is being made
}

type formerArgs struct {
	Former string `json:"former"`
}

var exportVerbs = map[string]verb{
	snapshotDisks: ordering(func(ctx context.Context, _ *Env, node Node, order agent.Order, s *work.Step, a snapshotArgs) error {
		return node.SnapshotDisks(ctx, order, thing(s, a.Name), a.ID)
	}),
	releaseDisks: ordering(func(ctx context.Context, env *Env, node Node, order agent.Order, s *work.Step, a snapshotArgs) error {
		return env.unlessGone(node.ReleaseSnapshot(ctx, order, thing(s, a.Name), a.ID))
	}),
	dumpDisk: ordering(func(ctx context.Context, env *Env, node Node, order agent.Order, s *work.Step, a dumpArgs) error {
		inst, params, hide, err := env.scripted(s)
		if err != nil {
			return err
		}
		return hide.Error(node.DumpDisk(ctx, order, specOf(env.snapshot().Cluster(), inst, nil, nil), a.dump(inst), params, env.logLine))
	}),
	importDisk: ordering(func(ctx context.Context, env *Env, node Node, order agent.Order, s *work.Step, a dumpArgs) error {
		inst, params, hide, err := env.scripted(s)
		if err != nil {
			return err
		}
		return hide.Error(node.ImportDisk(ctx, order, specOf(env.snapshot().Cluster(), inst, nil, nil), a.dump(inst), params, env.logLine))
	}),
	renameSystem: ordering(func(ctx context.Context, env *Env, node Node, order agent.Order, s *work.Step, a formerArgs) error {
		inst, params, hide, err := env.scripted(s)
		if err != nil {
			return err
		}
		return hide.Error(node.RenameSystem(ctx, order, specOf(env.snapshot().Cluster(), inst, nil, nil), inst.OS, a.Former, params, env.logLine))
	}),
	copyDumps: ordering(func(ctx context.Context, env *Env, node Node, order agent.Order, _ *work.Step, a fetchedArgs) error {
		from, err := env.nodeByUUID(a.From)
		for _, file := range a.Files {
			if err != nil {
				return err
			}
			place := exports.Place{Export: a.Export, File: file}
			if a.Export == "" {
				place.ID = a.ID
			}
			err = copyDump(ctx, order, from, place, node, exports.Place{ID: a.ID, File: file})
		}
		return err
	}),
	takeDump: ordering(func(ctx context.Context, env *Env, node Node, _ agent.Order, _ *work.Step, a takenArgs) error {
		return env.capture(ctx, node, &a)
	}),
	finishExport: ordering(func(ctx context.Context, env *Env, node Node, order agent.Order, s *work.Step, a finishArgs) error {
		inst, err := env.present(s)
		if err != nil {
			return err
		}
		return node.FinishExport(ctx, order, a.ID, exported(env, inst, a.ID, a.Form))
	}),
	discardExport: ordering(func(ctx context.Context, _ *Env, node Node, order agent.Order, _ *work.Step, a exportArgs) error {
		return node.DiscardExport(ctx, order, a.Name)
	}),
	removeExport: ordering(func(ctx context.Context, _ *Env, node Node, order agent.Order, _ *work.Step, a exportArgs) error {
		return node.RemoveExport(ctx, order, a.Name)
	}),
}

func (a *dumpArgs) dump(inst *cluster.Instance) agent.Dump {
	return agent.Dump{Place: exports.Place{ID: a.ID, Export: a.Export, File: a.File}, Disk: a.Disk, Form: a.Form, OS: inst.OS, Snapshot: a.Snapshot}
}

// scripted is the instance of a step, with the parameters that scripts of its operating system get, and what hides those of them that are not to be seen.
func (e *Env) scripted(s *work.Step) (*cluster.Instance, map[string]string, *secret.Values, error) {
	if err := lostSecret(e.Op); err != nil {
		return nil, nil, nil, err
	}
	inst, err := e.present(s)
	if err != nil {
		return nil, nil, nil, err
	}
	private, given := inst.OSParamsPrivate, e.Op.Map("osparams_secret")
	return inst, scriptParams(e.snapshot().Cluster().FillOS(inst), private, given), hiddenParams(private, given), nil
}

func (e *Env) logLine(line string) { e.Logf("%s", line) }

// copyDump has a node have a dump of another, piece by piece.
func copyDump(ctx context.Context, order agent.Order, from Node, at exports.Place, to Node, place exports.Place) error {
	for next := int64(0); ; {
		piece, err := from.ReadDump(ctx, at, next)
		if err == nil {
			err = to.KeepDump(ctx, order, place, piece)
		}
		if err != nil || piece.Next >= piece.Size {
			return err
		}
		if piece.Next <= next {
			return fault.New(fault.Internal, "node %s told nothing of the dump %s behind %d bytes", from.Node(), at.File, next)
		}
		next = piece.Next
	}
}
