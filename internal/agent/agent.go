// Package agent is the side of one node: it carries out on the node's
// hypervisor what executors decided, knows which operating systems can be
// installed there, and writes down why an instance last changed its state.
//
// Invariants:
//   - The reason file of an instance is written after a real change of state
//     only; a start of what runs already leaves it alone.
//   - A state that State hands out knows every change whose call returned before.
//   - Calls for one instance take place one after the other; calls for
//     different instances do not wait for each other.
package agent

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/reason"
)

// Sources of the entries that the node side adds to a reason trail.
const (
	SourceStart    = "gnt:daemon:noded:start"
	SourceShutdown = "gnt:daemon:noded:shutdown"
	SourceReboot   = "gnt:daemon:noded:reboot"
)

// Config is what an agent needs to know about its node.
type Config struct {
	// Node is the node's name.
	Node string
	// Dir is where the agent keeps its files; it is made when it does not
	// exist. Reason files are in instance-reason/ below it, operating system
	// definitions in os/.
	Dir string
	// Driver runs the instances.
	Driver hypervisor.Driver
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Agent is safe for concurrent use.
type Agent struct {
	cfg      Config
	reporter *reporter
	mu       sync.Mutex
	locks    map[string]*instanceLock
}

type instanceLock struct {
	sync.Mutex
	users int
}

// New returns the agent of a node, which reports its state until it is closed.
func New(cfg Config) (*Agent, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	for _, dir := range []string{reasonDir, osDir} {
		if err := os.MkdirAll(filepath.Join(cfg.Dir, dir), 0o750); err != nil {
			return nil, fault.New(fault.Environment, "cannot make a directory of the node agent: %w", err)
		}
	}
	return &Agent{cfg: cfg, reporter: newReporter(cfg.Node, cfg.Driver, cfg.Now), locks: map[string]*instanceLock{}}, nil
}

const reasonDir = "instance-reason"

// Node returns the node's name.
func (a *Agent) Node() string { return a.cfg.Node }

// ReasonFile returns the path of an instance's reason file.
func (a *Agent) ReasonFile(instance string) string {
	return filepath.Join(a.cfg.Dir, reasonDir, instance)
}

// Close ends the reports and closes the driver. Instances keep running.
func (a *Agent) Close() error {
	a.reporter.close()
	return a.cfg.Driver.Close()
}

// change makes calls that change one instance follow each other; it returns
// what to do when the call ends.
func (a *Agent) change(instance string) func() {
	unlock := a.lock(instance)
	return func() {
		a.reporter.changed()
		unlock()
	}
}

// lock makes calls for one instance follow each other; it returns the unlock.
func (a *Agent) lock(instance string) func() {
	a.mu.Lock()
	l := a.locks[instance]
	if l == nil {
		l = new(instanceLock)
		a.locks[instance] = l
	}
	l.users++
	a.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		a.mu.Lock()
		defer a.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(a.locks, instance)
		}
	}
}

// Prepare makes and grows the disks of an instance, see hypervisor.Driver.
func (a *Agent) Prepare(ctx context.Context, name, uuid string, disks []hypervisor.Disk) error {
	defer a.change(name)()
	_, err := a.cfg.Driver.Prepare(ctx, name, uuid, disks)
	return err
}

// Drop removes disks of an instance by UUID.
func (a *Agent) Drop(ctx context.Context, name string, disks []string) error {
	defer a.change(name)()
	_, err := a.cfg.Driver.Drop(ctx, name, disks)
	return err
}

// Remove removes a stopped instance with its disks. Its reason file stays.
func (a *Agent) Remove(ctx context.Context, name string) error {
	defer a.change(name)()
	_, err := a.cfg.Driver.Remove(ctx, name)
	return err
}

// Rename moves all there is of a stopped instance to another name. Its reason
// file stays under the old one.
func (a *Agent) Rename(ctx context.Context, name, to string) error {
	defer a.change(name)()
	_, err := a.cfg.Driver.Rename(ctx, name, to)
	return err
}

// Start runs an instance and writes its reason file if it did not run before.
func (a *Agent) Start(ctx context.Context, spec hypervisor.Spec, trail reason.Trail) error {
	defer a.change(spec.Name)()
	changed, err := a.cfg.Driver.Start(ctx, spec)
	if err != nil || !changed {
		return err
	}
	return a.writeReason(spec.Name, trail, SourceStart)
}

// Stop ends an instance and writes its reason file if it ran.
func (a *Agent) Stop(ctx context.Context, name string, how hypervisor.Stop, trail reason.Trail) error {
	defer a.change(name)()
	changed, err := a.cfg.Driver.Stop(ctx, name, how)
	if err != nil || !changed {
		return err
	}
	return a.writeReason(name, trail, SourceShutdown)
}

// RebootSoft restarts the guest inside its machine.
func (a *Agent) RebootSoft(ctx context.Context, name string, trail reason.Trail) error {
	defer a.change(name)()
	if err := a.cfg.Driver.Reboot(ctx, name); err != nil {
		return err
	}
	return a.writeReason(name, trail, SourceReboot)
}

// RebootHard ends the instance and starts it anew, with the parameters of the
// specification.
func (a *Agent) RebootHard(ctx context.Context, spec hypervisor.Spec, how hypervisor.Stop, trail reason.Trail) error {
	defer a.change(spec.Name)()
	if _, err := a.cfg.Driver.Stop(ctx, spec.Name, how); err != nil {
		return err
	}
	if _, err := a.cfg.Driver.Start(ctx, spec); err != nil {
		return err
	}
	return a.writeReason(spec.Name, trail, SourceReboot)
}

// Instance tells about one instance; NotFound when the node has none of it.
func (a *Agent) Instance(ctx context.Context, name string) (hypervisor.Instance, error) {
	return a.cfg.Driver.Instance(ctx, name)
}

// Instances lists what is on the node, by name.
func (a *Agent) Instances(ctx context.Context) ([]hypervisor.Instance, error) {
	return a.cfg.Driver.Instances(ctx)
}

// Info tells the figures of the node.
func (a *Agent) Info(ctx context.Context) (hypervisor.Node, error) { return a.cfg.Driver.Node(ctx) }

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

// writeReason replaces the instance's reason file with the trail and the
// node's own entry.
func (a *Agent) writeReason(instance string, trail reason.Trail, source string) error {
	entry := reason.Entry{Source: source, Time: a.cfg.Now().UnixNano()}
	data, err := json.Marshal(trail.Append(entry))
	if err != nil {
		return fault.New(fault.Internal, "cannot encode the reason trail of %s: %w", instance, err)
	}
	path := a.ReasonFile(instance)
	// A leading dot is no instance name, so this is nobody's reason file.
	temporary := filepath.Join(filepath.Dir(path), "."+instance)
	if err := os.WriteFile(temporary, append(data, '\n'), 0o640); err != nil {
		return fault.New(fault.Environment, "cannot write the reason file of %s: %w", instance, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fault.New(fault.Environment, "cannot write the reason file of %s: %w", instance, err)
	}
	return nil
}
