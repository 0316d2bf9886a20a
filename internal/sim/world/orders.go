package world

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/agent/exports"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/export"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/sim/check"
	"github.com/drover-project/drover/internal/sim/plan"
)

// ordered is what asks a node, in place of the embedded one which answers.
type ordered = exec.Node

// sender is the way from the executors of a life to a node: orders take time, and the
// life may be struck before the node has an order, and before it hears of its outcome.
type sender struct {
	ordered
	life *life
	term *term
}

// send gives an order about an instance.
func (s sender) send(ctx context.Context, o agent.Order, of hypervisor.Thing, what string, give func(context.Context) error) error {
	w, instance := s.life.w, s.term.actsOn(o.Job, of)
	defer w.effects.Acts(check.Effect{Node: s.Node(), Of: instance, What: what, Owner: s.life.id, Epoch: o.Epoch, Job: int64(o.Job)})()
	time.Sleep(w.streams.Between("orders/"+s.life.name, 100*time.Microsecond, 3*time.Millisecond))
	if err := s.life.cross(plan.Order); err != nil {
		return err
	}
	err := give(context.WithValue(ctx, ordering{}, s.under(o)))
	if fault.Is(err, fault.Fenced) {
		w.Reached.Add("an order of an old leader is refused")
	}
	if crossed := s.life.cross(plan.Done); crossed != nil {
		return crossed
	}
	return err
}

// ordering is the key of what a node is told in a context, for those who look on: by whom
// it is ordered.
type ordering struct{}

// under is an order of a term.
type under struct {
	agent.Order
	term *term
}

func (s sender) under(o agent.Order) under { return under{o, s.term} }

// actsFor notes who it is that a node does something for.
func (w *world) actsFor(ctx context.Context, of hypervisor.Thing) {
	if o, known := ctx.Value(ordering{}).(under); known {
		o.term.acts(o.Job, o.term.actsOn(o.Job, of))
	}
}

// actsOn is what a job acts on: all that has the name of an instance, which is locked by it, but for one that clears away what jobs
// left. That goes by UUIDs, beside what is done to the instance of the name on other nodes.
func (t *term) actsOn(id job.ID, of hypervisor.Thing) string {
	if j := t.shown.Load().Jobs.Get(id); j != nil && j.Ops[0].Input.ID == "OP_NODE_CLEAR_ORPHANS" {
		return of.UUID
	}
	return of.Name
}

// acts holds what a node does for a job to what was begun before: whatever another job did
// to the instance has come to an end, as the leader of this one shows.
func (t *term) acts(id job.ID, instance string) {
	w := t.life.w
	t.obeys(id)
	w.mu.Lock()
	before := w.acted[instance]
	w.acted[instance] = id
	w.mu.Unlock()
	if before == 0 || before == id {
		return
	}
	switch j := t.shown.Load().Jobs.Get(before); {
	case j == nil || j.Final():
	case t.writesAgain(): // its end is not stored yet, for the store failed
		w.Reached.Add("a job acts upon the end of another that is not stored")
	case !j.Ops[j.Next()].Stepwise: // whoever goes on with it looks the names up that it was given, which may mean something else by now
		w.Reached.Add("a job acts before one of which nothing was kept goes on")
	default:
		w.verdict.Breakf(check.NoneBetween, "job %d acts on %s under epoch %d, and job %d had begun and is %s", id, instance, t.lease.Epoch, before, j.Status())
	}
}

// Prepare implements exec.Node.
func (s sender) Prepare(ctx context.Context, o agent.Order, of hypervisor.Thing, disks []hypervisor.Disk) error {
	return s.send(ctx, o, of, "prepare", func(ctx context.Context) error { return s.ordered.Prepare(ctx, o, of, disks) })
}

// Drop implements exec.Node.
func (s sender) Drop(ctx context.Context, o agent.Order, of hypervisor.Thing, disks []string) error {
	return s.send(ctx, o, of, "drop disks of", func(ctx context.Context) error { return s.ordered.Drop(ctx, o, of, disks) })
}

// Detach implements exec.Node.
func (s sender) Detach(ctx context.Context, o agent.Order, of hypervisor.Thing, disks []string) error {
	return s.send(ctx, o, of, "detach disks of", func(ctx context.Context) error { return s.ordered.Detach(ctx, o, of, disks) })
}

// Attach implements exec.Node.
func (s sender) Attach(ctx context.Context, o agent.Order, of hypervisor.Thing, disks []string) error {
	return s.send(ctx, o, of, "attach disks to", func(ctx context.Context) error { return s.ordered.Attach(ctx, o, of, disks) })
}

// Adjust implements exec.Node.
func (s sender) Adjust(ctx context.Context, o agent.Order, spec hypervisor.Spec) error {
	return s.send(ctx, o, spec.Thing(), "adjust", func(ctx context.Context) error { return s.ordered.Adjust(ctx, o, spec) })
}

// Balloon implements exec.Node.
func (s sender) Balloon(ctx context.Context, o agent.Order, of hypervisor.Thing, memory int) error {
	return s.send(ctx, o, of, "balloon", func(ctx context.Context) error { return s.ordered.Balloon(ctx, o, of, memory) })
}

// Receive implements exec.Node.
func (s sender) Receive(ctx context.Context, o agent.Order, spec hypervisor.Spec) error {
	return s.send(ctx, o, spec.Thing(), "receive", func(ctx context.Context) error { return s.ordered.Receive(ctx, o, spec) })
}

// Send implements exec.Node.
func (s sender) Send(ctx context.Context, o agent.Order, of hypervisor.Thing, trail reason.Trail) error {
	return s.send(ctx, o, of, "send", func(ctx context.Context) error { return s.ordered.Send(ctx, o, of, trail) })
}

// FetchImage implements exec.Node. Nodes of the world have no images.
func (s sender) FetchImage(context.Context, agent.Order, agent.Image, func(string)) (agent.Image, error) {
	return agent.Image{}, noImages()
}

// ReadImage implements exec.Node.
func (s sender) ReadImage(context.Context, string, int64) (agent.Piece, error) {
	return agent.Piece{}, noImages()
}

// KeepImage implements exec.Node.
func (s sender) KeepImage(context.Context, agent.Order, agent.Image, agent.Piece, func(string)) (bool, error) {
	return false, noImages()
}

// InstallImage implements exec.Node, likewise.
func (s sender) InstallImage(context.Context, agent.Order, hypervisor.Spec, agent.Image, map[string]string, func(string)) error {
	return noImages()
}

func noImages() error { return fault.New(fault.Unsupported, "nodes of the world have no images") }

// Exports implements exec.Node. Nodes of the world keep no exports.
func (s sender) Exports(context.Context) ([]string, error) { return nil, noExports() }

// Export implements exec.Node, likewise, and so do the others that are about exports.
func (s sender) Export(context.Context, string) (export.Export, error) {
	return export.Export{}, noExports()
}

// SnapshotDisks implements exec.Node.
func (s sender) SnapshotDisks(context.Context, agent.Order, hypervisor.Thing, string) error {
	return noExports()
}

// ReleaseSnapshot implements exec.Node.
func (s sender) ReleaseSnapshot(context.Context, agent.Order, hypervisor.Thing, string) error {
	return noExports()
}

// DumpDisk implements exec.Node.
func (s sender) DumpDisk(context.Context, agent.Order, hypervisor.Spec, agent.Dump, map[string]string, func(string)) error {
	return noExports()
}

// ImportDisk implements exec.Node.
func (s sender) ImportDisk(context.Context, agent.Order, hypervisor.Spec, agent.Dump, map[string]string, func(string)) error {
	return noExports()
}

// RenameSystem implements exec.Node.
func (s sender) RenameSystem(context.Context, agent.Order, hypervisor.Spec, string, string, map[string]string, func(string)) error {
	return noExports()
}

// ReadDump implements exec.Node.
func (s sender) ReadDump(context.Context, exports.Place, int64) (agent.Piece, error) {
	return agent.Piece{}, noExports()
}

// KeepDump implements exec.Node.
func (s sender) KeepDump(context.Context, agent.Order, exports.Place, agent.Piece) error {
	return noExports()
}

// FinishExport implements exec.Node.
func (s sender) FinishExport(context.Context, agent.Order, string, export.Export) error {
	return noExports()
}

// DiscardExport implements exec.Node.
func (s sender) DiscardExport(context.Context, agent.Order, string) error { return noExports() }

// RemoveExport implements exec.Node.
func (s sender) RemoveExport(context.Context, agent.Order, string) error { return noExports() }

func noExports() error { return fault.New(fault.Unsupported, "nodes of the world keep no exports") }

// Install implements exec.Node.
func (s sender) Install(ctx context.Context, o agent.Order, spec hypervisor.Spec, os string, params map[string]string, log func(string)) error {
	return s.send(ctx, o, spec.Thing(), "install", func(ctx context.Context) error { return s.ordered.Install(ctx, o, spec, os, params, log) })
}

// Start implements exec.Node.
func (s sender) Start(ctx context.Context, o agent.Order, spec hypervisor.Spec, trail reason.Trail) error {
	return s.send(ctx, o, spec.Thing(), "start", func(ctx context.Context) error { return s.ordered.Start(ctx, o, spec, trail) })
}

// Stop implements exec.Node.
func (s sender) Stop(ctx context.Context, o agent.Order, of hypervisor.Thing, how hypervisor.Stop, trail reason.Trail) error {
	return s.send(ctx, o, of, "stop", func(ctx context.Context) error { return s.ordered.Stop(ctx, o, of, how, trail) })
}

// RebootSoft implements exec.Node.
func (s sender) RebootSoft(ctx context.Context, o agent.Order, of hypervisor.Thing, trail reason.Trail) error {
	return s.send(ctx, o, of, "reboot", func(ctx context.Context) error { return s.ordered.RebootSoft(ctx, o, of, trail) })
}

// RebootHard implements exec.Node.
func (s sender) RebootHard(ctx context.Context, o agent.Order, spec hypervisor.Spec, how hypervisor.Stop, trail reason.Trail) error {
	return s.send(ctx, o, spec.Thing(), "restart", func(ctx context.Context) error { return s.ordered.RebootHard(ctx, o, spec, how, trail) })
}

// Rename implements exec.Node.
func (s sender) Rename(ctx context.Context, o agent.Order, of hypervisor.Thing, to string) error {
	defer s.life.w.effects.Acts(check.Effect{Node: s.Node(), Of: to, What: "rename to", Owner: s.life.id, Epoch: o.Epoch, Job: int64(o.Job)})()
	return s.send(ctx, o, of, "rename", func(ctx context.Context) error { return s.ordered.Rename(ctx, o, of, to) })
}

// Remove implements exec.Node.
func (s sender) Remove(ctx context.Context, o agent.Order, of hypervisor.Thing) error {
	return s.send(ctx, o, of, "remove", func(ctx context.Context) error { return s.ordered.Remove(ctx, o, of) })
}
