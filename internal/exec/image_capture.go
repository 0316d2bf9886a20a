package exec

import (
	"context"
	"io"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/agent/exports"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/export"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/work"
)

// imageCapture prepares OP_IMAGE_CAPTURE: the first disk of an instance is dumped on its own node, as an export does it, and the dump goes to the controller. What is
// made of it then is another job's (OP_IMAGE_ADD), which a node looks at as at whatever users bring.
func imageCapture(ctx context.Context, env *Env) (Plan, error) {
	x := &exporting{env: env, id: env.NewUUID(), form: export.Raw}
	var err error
	if x.inst, err = findInstance(env.Op, env.snapshot()); err != nil {
		return Plan{}, err
	}
	if err := env.awaited(x.inst); err != nil {
		return Plan{}, err
	}
	if x.from, x.agent, err = env.primary(x.inst); err != nil {
		return Plan{}, err
	}
	x.to = x.from
	if err := x.checkCaptured(ctx); err != nil {
		return Plan{}, err
	}
	return Plan{Work: x.capture(env.Op.Str("image_name"))}, nil
}

// awaited refuses to take the disk of an instance for an image that does not wait for it.
func (e *Env) awaited(inst *cluster.Instance) error {
	if e.Uploads == nil {
		return fault.New(fault.NotFound, "nothing is uploaded to this controller").At("image_name")
	}
	id := e.Op.Str("image_name")
	of, err := e.Uploads.Awaits(id)
	if err == nil && of != inst.UUID {
		err = fault.New(fault.WrongState, "The image %s is to be made of another instance than %s", fault.Clip(id, 100), inst.Name).At("instance_name")
	}
	return err
}

// checkCaptured looks whether the disks have content that can be dumped as it is at one moment.
func (x *exporting) checkCaptured(ctx context.Context) error {
	if len(x.inst.Disks) == 0 {
		return fault.New(fault.WrongState, "Instance %s has no disk that an image could be made of", x.inst.Name)
	}
	info, err := x.agent.Info(ctx)
	if err != nil {
		return fault.New(fault.Environment, "Can't get data from node %s: %w", x.from.Name, err)
	}
	if info.StandsIn {
		return fault.New(fault.Unsupported, "Instance %s is only pretended: its disks have no content that an image could be made of", x.inst.Name)
	}
	if x.keeps = info.Snapshots; info.Packs {
		x.form = export.Packed
	}
	if x.runs, err = active(ctx, x.agent, x.inst); err != nil {
		return err
	}
	if err := hasSomething(ctx, x.agent, x.inst); err != nil {
		return err
	}
	if why := x.cannotSnapshot(); x.runs && why != "" {
		return fault.New(fault.WrongState, "Instance %s runs, and its disks change: %s", x.inst.Name, why).WithHint("stop it first")
	}
	x.snapshots = x.runs
	return nil
}

// capture are the steps: all is taken back until the controller has the disk.
func (x *exporting) capture(image string) *work.Work {
	w := &work.Work{}
	if x.snapshots {
		w.Steps = append(w.Steps, x.snapshotting(false))
	}
	dump := x.dumping(0)
	dump.Says = []string{"Copying disk/0 of instance " + x.inst.Name + " on " + x.from.Name}
	w.Steps = append(w.Steps, dump)
	if x.snapshots {
		w.Steps = append(w.Steps, x.releasing())
	}
	take := onNode(takeDump, x.from.UUID, x.inst.UUID, "take the disk of instance "+x.inst.Name+" for image "+image, takenArgs{x.id, x.inst.Disks[0].UUID, image, dumpFormats[x.form]})
	take.Says = []string{"Bringing the disk from " + x.from.Name + " to the controller"}
	take.Fails = "Could not take the disk of instance " + x.inst.Name + " from node " + x.from.Name + " for image " + image
	w.Steps = append(w.Steps, take, x.discarding(x.from))
	return w
}

// dumpFormats are the formats of images that are dumps of a form.
var dumpFormats = map[export.Form]string{export.Raw: diskimage.Raw, export.Packed: diskimage.QCOW2}

// capture has the controller take a dump of a node for the file of an image.
func (e *Env) capture(ctx context.Context, node Node, a *takenArgs) error {
	if e.Uploads == nil {
		return fault.New(fault.NotFound, "nothing is uploaded to this controller")
	}
	from := &dumpReader{node: node, place: exports.Place{ID: a.ID, File: a.File}, ctx: ctx, log: e.Logf}
	err := e.Uploads.TakeDisk(ctx, a.Image, a.Format, from)
	if from.err != nil {
		return from.err // and not what was made of it by who read
	}
	return err
}

// dumpReader reads a dump of a node as it is, with its zeros.
type dumpReader struct {
	ctx   context.Context //nolint:containedctx // that of one step, which readers have no parameter for
	node  Node
	place exports.Place
	log   func(format string, args ...any)

	at    int64       // where is read on
	piece agent.Piece // in which that is
	told  int64       // the tenth part that was told of last
	err   error       // what the node told in place of a piece
}

// Read implements io.Reader.
func (d *dumpReader) Read(to []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	for d.at >= d.piece.Next {
		if d.at > 0 && d.piece.Last() {
			return 0, io.EOF
		}
		if d.err = d.fetch(); d.err != nil {
			return 0, d.err
		}
		if d.piece.Size == 0 {
			return 0, io.EOF
		}
	}
	p := &d.piece
	n := int(min(int64(len(to)), p.Next-d.at))
	clear(to[:n])
	if from := max(d.at, p.At); from < p.At+int64(len(p.Data)) && from < d.at+int64(n) {
		copy(to[from-d.at:n], p.Data[from-p.At:])
	}
	d.at += int64(n)
	return n, nil
}

// fetch has the node tell the next piece.
func (d *dumpReader) fetch() error {
	size := d.piece.Size
	p, err := d.node.ReadDump(d.ctx, d.place, d.at)
	switch {
	case err != nil:
		return err
	case p.From != d.at || p.Check() != nil || d.at > 0 && p.Size != size:
		return fault.New(fault.Failed, "node %s tells of another dump than it was asked for", d.node.Node())
	}
	d.piece = p
	if part := d.at * 10 / max(p.Size, 1); part > d.told {
		d.told = part
		d.log("%d of %d MiB came", d.at>>20, p.Size>>20)
	}
	return nil
}
