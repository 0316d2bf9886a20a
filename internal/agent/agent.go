// Package agent is the side of one node: it carries out on the node's
// hypervisor what executors decided, knows which operating systems can be
// installed there, and writes down why an instance last changed its state.
//
// Invariants:
//   - The reason file of an instance is written after a real change of state
//     only; a start of what runs already leaves it alone.
//   - An order is carried out once, however often it arrives, and orders of a
//     controller that lost the lead are refused. What an earlier one began on an instance has ended before anything
//     else happens to it; see package effect.
//   - A state that State hands out knows every change whose call returned before, and soon what changed by itself
//     (TestWhatChangesByItselfIsReported).
//   - An order is about the instance that has the UUID, whatever it is called: what else is under its name is left alone.
//   - A machine is told what it was last installed with, and nothing of before (TestAnotherSystemForgetsTheSeed).
//   - A disk on which the content of an image was not written whole reads as zeros (TestAnImageThatIsNotWrittenWhole).
//   - A restricted command runs only if nobody but root and the agent's own user could have changed it or its directory (TestCommandsOfOthers).
//   - Calls for one instance take place one after the other; calls for
//     different instances do not wait for each other.
package agent

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/drover-project/drover/internal/agent/effect"
	"github.com/drover-project/drover/internal/agent/exports"
	"github.com/drover-project/drover/internal/agent/imagecache"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/qemuimg"
	"github.com/drover-project/drover/internal/reason"
)

// Sources of the entries that the node side adds to a reason trail.
const (
	SourceStart    = "gnt:daemon:noded:start"
	SourceShutdown = "gnt:daemon:noded:shutdown"
	SourceReboot   = "gnt:daemon:noded:reboot"
	SourceMigrate  = "gnt:daemon:noded:migrate"
)

// Config is what an agent needs to know about its node.
type Config struct {
	// Node is the node's name.
	Node string
	// Dir is where the agent keeps its files; it is made when it does not
	// exist. Reason files are in instance-reason/ below it, operating system
	// definitions in os/, copies of images in images/, exports of instances in export/, operators' hooks in hooks/.
	Dir string
	// Driver runs the instances.
	Driver hypervisor.Driver
	// Tasks tells whether deployments may run tasks on the node, which means commands with the rights of the agent.
	Tasks bool
	// HooksTime is how long all hooks of a directory may take; 0 is a quarter of an hour.
	HooksTime time.Duration
	// Commands is the directory of the restricted commands of the node; empty for none.
	Commands string
	// CommandTime is how long one may take; 0 is a quarter of an hour.
	CommandTime time.Duration
	// PowercycleDelay is how long after the answer the machine is switched off and on; 0 is a few seconds, so that it arrives.
	PowercycleDelay time.Duration
	// Renew has the agent's own certificate made anew, with another key, and returns its number; nil for an agent that has none.
	Renew func(ctx context.Context) (serial string, err error)
	// Host is where scripts and commands run; nil is the operating system.
	Host effect.Host
	// Lead is how long the controller in whose process the agent lives may be sure that it leads; nil is for ever.
	Lead *effect.Lead
	// Log is told what earlier controllers left; nil for nobody.
	Log *slog.Logger
	// Told is called when the node's instances are not what they were in the report before, by whatever; nil for nobody.
	Told func()
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Agent is safe for concurrent use.
type Agent struct {
	cfg      Config
	reporter *reporter
	fence    *effect.Fence
	images   *imagecache.Cache
	exports  *exports.Exports
	resets   resets
}

// Order says on whose behalf a node changes something.
type Order = effect.Order

// New returns the agent of a node, which reports its state until it is closed.
func New(cfg Config) (*Agent, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.HooksTime, cfg.CommandTime = cmp.Or(cfg.HooksTime, hooksTime), cmp.Or(cfg.CommandTime, commandTime)
	cfg.PowercycleDelay, cfg.Log = cmp.Or(cfg.PowercycleDelay, powercycleDelay), cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	var err error
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil { // what it begins runs elsewhere
		return nil, fault.New(fault.Environment, "cannot tell the directory of the node agent: %w", err)
	}
	for _, dir := range []string{reasonDir, osDir} {
		if err := os.MkdirAll(filepath.Join(cfg.Dir, dir), 0o750); err != nil {
			return nil, fault.New(fault.Environment, "cannot make a directory of the node agent: %w", err)
		}
	}
	fence, err := effect.Open(effect.Config{Node: cfg.Node, Dir: cfg.Dir, Host: cfg.Host, Lead: cfg.Lead, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	a := &Agent{cfg: cfg, fence: fence, reporter: newReporter(cfg), images: imagecache.Open(filepath.Join(cfg.Dir, imagesDir), cfg.Now, stoodOn(cfg.Driver)),
		exports: exports.Open(filepath.Join(cfg.Dir, exportsDir), cfg.Now()), resets: newResets()}
	cfg.Driver.Watch(a.reporter.changed)
	return a, nil
}

// Node returns the node's name.
func (a *Agent) Node() string { return a.cfg.Node }

// Away is 0: whoever has the agent can reach it.
func (a *Agent) Away() time.Duration { return 0 }

// Close ends the reports and closes the driver. Instances keep running.
func (a *Agent) Close() error {
	a.resets.close()
	a.reporter.close()
	return a.cfg.Driver.Close()
}

// Follow has the node follow the leader of an epoch from now on, if it is newer: what is left of earlier ones is told to end. fault.Fenced if another has
// followed that leader already.
func (a *Agent) Follow(ctx context.Context, epoch int64) error {
	return a.fence.Check(ctx, effect.Claim{Order: Order{Epoch: epoch}, What: "follow a controller"})
}

// carryOut does what an order says to one instance, unless that was done
// before. Orders for one instance follow each other.
func (a *Agent) carryOut(ctx context.Context, order Order, instance, what string, act func() error) error {
	return a.carryOutBy(ctx, effect.Claim{Order: order, Of: thing(instance), What: what + " instance " + instance}, func(*effect.Hold) error { return act() })
}

// carryOutBy does what an order claims, unless that was done before.
func (a *Agent) carryOutBy(ctx context.Context, claim effect.Claim, act func(*effect.Hold) error) error {
	hold, err := a.fence.Enter(ctx, claim)
	if err != nil {
		return err
	}
	defer hold.Leave()
	if hold.Repeated() {
		return nil
	}
	defer a.reporter.changed()
	if err := act(hold); err != nil {
		return err
	}
	hold.Carried()
	return nil
}

// thing is an instance as a thing that effects work on. It goes by the name, also by now that the hypervisor goes by
// UUIDs: what a program of before has begun on the node is noted under that, and is to be found.
func thing(instance string) string { return "instance " + instance }

// mark says by which opcode a thing is made that an order makes.
func mark(o Order) hypervisor.Mark {
	return hypervisor.Mark{Life: o.Life, Job: int64(o.Job), Opcode: o.Opcode}
}

// Prepare makes and grows the disks of an instance, see hypervisor.Driver.
func (a *Agent) Prepare(ctx context.Context, order Order, of hypervisor.Thing, disks []hypervisor.Disk) error {
	return a.carryOut(ctx, order, of.Name, "prepare", func() error {
		_, err := a.cfg.Driver.Prepare(ctx, of, mark(order), disks)
		return err
	})
}

// Drop removes disks of an instance by UUID.
func (a *Agent) Drop(ctx context.Context, order Order, of hypervisor.Thing, disks []string) error {
	return a.carryOut(ctx, order, of.Name, "drop disks of", func() error {
		_, err := a.cfg.Driver.Drop(ctx, of, disks)
		return err
	})
}

// Detach has disks of an instance, by UUID, be of none, see hypervisor.Driver.
func (a *Agent) Detach(ctx context.Context, order Order, of hypervisor.Thing, disks []string) error {
	return a.carryOut(ctx, order, of.Name, "detach disks of", func() error {
		_, err := a.cfg.Driver.Detach(ctx, of, mark(order), disks)
		return err
	})
}

// Attach has disks that no instance has be those of one, see hypervisor.Driver.
func (a *Agent) Attach(ctx context.Context, order Order, of hypervisor.Thing, disks []string) error {
	return a.carryOut(ctx, order, of.Name, "attach disks to", func() error {
		_, err := a.cfg.Driver.Attach(ctx, of, mark(order), disks)
		return err
	})
}

// Adjust has an instance that runs have the devices of a specification, see hypervisor.Driver.
func (a *Agent) Adjust(ctx context.Context, order Order, spec hypervisor.Spec) error {
	return a.carryOut(ctx, order, spec.Name, "adjust the devices of", func() error {
		_, err := a.cfg.Driver.Adjust(ctx, spec)
		return err
	})
}

// Balloon asks the guest of an instance that runs to have another memory in MiB, see hypervisor.Driver.
func (a *Agent) Balloon(ctx context.Context, order Order, of hypervisor.Thing, memory int) error {
	return a.carryOut(ctx, order, of.Name, "change the memory of", func() error {
		_, err := a.cfg.Driver.Balloon(ctx, of, memory)
		return err
	})
}

// Remove removes a stopped instance with its disks and its reason file.
func (a *Agent) Remove(ctx context.Context, order Order, of hypervisor.Thing) error {
	return a.carryOut(ctx, order, of.Name, "remove", func() error {
		if _, err := a.cfg.Driver.Remove(ctx, of); err != nil {
			return err
		}
		if others, err := a.cfg.Driver.Named(ctx, of.Name); err != nil || len(others) > 0 {
			return err // the file is of what has the name
		}
		return a.dropReason(of.Name)
	})
}

// Rename gives a stopped instance another name, and its reason file too.
func (a *Agent) Rename(ctx context.Context, order Order, of hypervisor.Thing, to string) error {
	return a.carryOut(ctx, order, of.Name, "rename", func() error {
		if to != of.Name { // nobody else acts on that name either; who gives the order has locked both
			hold, err := a.fence.Enter(ctx, effect.Claim{Order: order, Of: thing(to), What: "rename instance " + of.Name + " to " + to})
			if err != nil {
				return err
			}
			defer hold.Leave()
		}
		if _, err := a.cfg.Driver.Rename(ctx, of, to); err != nil {
			return err
		}
		return a.moveReason(of.Name, to)
	})
}

// Start runs an instance and writes its reason file if it did not run before.
func (a *Agent) Start(ctx context.Context, order Order, spec hypervisor.Spec, trail reason.Trail) error {
	spec.By = mark(order)
	return a.carryOut(ctx, order, spec.Name, "start", func() error {
		source := SourceStart
		if was, err := a.cfg.Driver.Instance(ctx, spec.Thing()); err == nil && was.State == hypervisor.Incoming {
			source = SourceMigrate
		}
		changed, err := a.cfg.Driver.Start(ctx, spec)
		if err == nil && !changed && spec.Snapshot != "" { // it was started by another order, which knew nothing of that
			_, err = a.cfg.Driver.Snapshot(ctx, spec.Thing(), spec.Snapshot)
		}
		if err != nil || !changed {
			return err
		}
		return a.writeReason(spec.Name, trail, source)
	})
}

// Receive has an instance wait for what another node sends, see hypervisor.Driver.
func (a *Agent) Receive(ctx context.Context, order Order, spec hypervisor.Spec) error {
	spec.By = mark(order)
	return a.carryOut(ctx, order, spec.Name, "receive", func() error {
		_, err := a.cfg.Driver.Receive(ctx, spec)
		return err
	})
}

// Send hands an instance over to the node that waits for it, and writes its reason file if it ran.
func (a *Agent) Send(ctx context.Context, order Order, of hypervisor.Thing, trail reason.Trail) error {
	return a.carryOut(ctx, order, of.Name, "send", func() error {
		changed, err := a.cfg.Driver.Send(ctx, of)
		if err != nil || !changed {
			return err
		}
		return a.writeReason(of.Name, trail, SourceMigrate)
	})
}

// Stop ends an instance and writes its reason file if it ran.
func (a *Agent) Stop(ctx context.Context, order Order, of hypervisor.Thing, how hypervisor.Stop, trail reason.Trail) error {
	return a.carryOut(ctx, order, of.Name, "stop", func() error {
		changed, err := a.cfg.Driver.Stop(ctx, of, how)
		if err != nil || !changed {
			return err
		}
		return a.writeReason(of.Name, trail, SourceShutdown)
	})
}

// RebootSoft restarts the guest inside its machine.
func (a *Agent) RebootSoft(ctx context.Context, order Order, of hypervisor.Thing, trail reason.Trail) error {
	return a.carryOut(ctx, order, of.Name, "reboot", func() error {
		if err := a.cfg.Driver.Reboot(ctx, of); err != nil {
			return err
		}
		return a.writeReason(of.Name, trail, SourceReboot)
	})
}

// RebootHard ends the instance and starts it anew, with the parameters of the
// specification.
func (a *Agent) RebootHard(ctx context.Context, order Order, spec hypervisor.Spec, how hypervisor.Stop, trail reason.Trail) error {
	spec.By = mark(order)
	return a.carryOut(ctx, order, spec.Name, "restart", func() error {
		if _, err := a.cfg.Driver.Stop(ctx, spec.Thing(), how); err != nil {
			return err
		}
		if _, err := a.cfg.Driver.Start(ctx, spec); err != nil {
			return err
		}
		return a.writeReason(spec.Name, trail, SourceReboot)
	})
}

// Instance tells about one instance; NotFound when the node has none of it, Exists when it has another one under the
// name (hypervisor.Stranger).
func (a *Agent) Instance(ctx context.Context, of hypervisor.Thing) (hypervisor.Instance, error) {
	return a.cfg.Driver.Instance(ctx, of)
}

// Named lists what is on the node under a name, whosever it is.
func (a *Agent) Named(ctx context.Context, name string) ([]hypervisor.Instance, error) {
	return a.cfg.Driver.Named(ctx, name)
}

// Instances lists what is on the node, by name.
func (a *Agent) Instances(ctx context.Context) ([]hypervisor.Instance, error) {
	return a.cfg.Driver.Instances(ctx)
}

// Info tells the figures of the node.
func (a *Agent) Info(ctx context.Context) (hypervisor.Node, error) {
	info, err := a.cfg.Driver.Node(ctx)
	_, missing := qemuimg.Program()
	info.Packs = !info.StandsIn && missing == nil
	return info, err
}

// Delay waits for a time on the node; it is what OP_TEST_DELAY asks for.
func (a *Agent) Delay(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fault.New(fault.Canceled, "the delay on node %s was interrupted: %w", a.cfg.Node, context.Cause(ctx))
	}
}
