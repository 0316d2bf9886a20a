// Package agentd is the daemon of one node: it joins a cluster, keeps the certificate that it got there, and serves the node's agent to whichever
// controller leads.
//
// Invariants:
//   - A directory is the agent of one node, and one process serves it at a time (TestOneProcess).
//   - A token that was used and whose answer was lost is used again, with the same key (TestJoiningTwice).
//   - A certificate is renewed before it ends, and by an agent that was away behind that (TestRenewals).
//   - What the daemon is told to do while no controller is there goes on; guests outlive it.
package agentd

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/agentwire"
	"github.com/drover-project/drover/internal/authority"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/joining"
	"github.com/drover-project/drover/internal/nodedriver"
	"github.com/drover-project/drover/internal/systemd"
)

// Options are the settings of an agent.
type Options struct {
	// Data is the directory of everything that lasts: who the agent is, and what the node has.
	Data string
	// Controllers are where controllers are, as HOST:PORT, in place of what the leader told last; none for that.
	Controllers []string
	// Driver says what runs the node's instances.
	Driver nodedriver.Settings
	// Tasks lets deployments run tasks on the node: commands with the agent's rights.
	Tasks bool
	// Metrics is the address of /metrics and /healthz; empty for none.
	Metrics string
	// Manager is the service manager that wants to know how it goes.
	Manager systemd.Manager
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	Log *slog.Logger
}

func (o *Options) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

// Join has the directory become the agent of the node that a token is for. It may be done again with the same token, if it was interrupted.
func Join(ctx context.Context, o Options, t joining.Token) error {
	unlock, err := lock(o.Data)
	if err != nil {
		return err
	}
	defer unlock()
	switch id, err := readIdentity(o.Data); {
	case err == nil:
		return fault.New(fault.Exists, "%s is the agent of node %s already", o.Data, id.Node).WithHint("start it: drover agent --data %s; for another node, name another directory", o.Data)
	case !fault.Is(err, fault.NotFound):
		return err
	}
	key, err := joiningKey(o.Data)
	if err != nil {
		return err
	}
	request, err := authority.RequestFor(key)
	if err != nil {
		return err
	}
	at := t.Addresses
	if len(o.Controllers) > 0 {
		at = o.Controllers
	}
	papers, err := agentwire.Join(ctx, at, authority.TrustByFingerprint(t.Authority, o.now), t.Node, t.Secret, request)
	if err != nil {
		return err
	}
	id := &identity{Node: t.Node, Addresses: papers.Addresses, Authority: authority.Among(papers.Shown.PeerCertificates, t.Authority), Certificate: papers.Certificate}
	if id.Key, err = authority.KeyText(key); err != nil {
		return err
	}
	return id.write(o.Data)
}

// Run serves the node until ctx ends.
func Run(ctx context.Context, o Options) (err error) {
	if _, err := readIdentity(o.Data); err != nil { // before anything is made in a directory that was named by mistake
		return err
	}
	unlock, err := lock(o.Data)
	if err != nil {
		return err
	}
	defer unlock()
	id, err := openIdentity(o)
	if err != nil {
		return err
	}
	driver, err := o.Driver.Open(ctx, nodedriver.Node{Dir: o.Data, Log: o.Log})
	if err != nil {
		return err
	}
	a, err := agent.New(agent.Config{Node: id.node(), Dir: o.Data, Driver: driver, Tasks: o.Tasks, Commands: o.Driver.Commands, Renew: id.renewAll, Log: o.Log})
	if err != nil {
		return errors.Join(err, driver.Close())
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	handler, err := agentwire.NewHandler(a, filepath.Join(o.Data, "calls"))
	if err != nil {
		return err
	}
	defer handler.Close()
	f := newFigures(id, a)
	listener, err := o.listen(ctx)
	if err != nil {
		return err
	}
	parts, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	if listener != nil {
		running.Go(func() { f.serve(parts, listener, &o) })
	}
	running.Go(func() { id.keepCertificate(parts) })
	d := agentwire.Dialer{
		Node: id.node(), Addresses: id.addresses, TLS: id.tls, Follow: a.Follow, Moved: id.moved, Handler: handler, Log: o.Log,
		Linked: func(is bool) {
			f.linked.Store(is)
			status := "linked to the controller that leads"
			if !is {
				status = "looks for the controller that leads"
			}
			tell(o, systemd.Status(status))
		},
	}
	o.Log.Info("the agent of a node is there", "node", id.node(), "data", o.Data, "hypervisor", driver.Kind())
	tell(o, systemd.StateReady)
	d.Run(ctx)
	tell(o, systemd.StateStopping)
	return nil
}

func tell(o Options, state string) {
	if err := o.Manager.Tell(state); err != nil {
		o.Log.Warn("the service manager was not told", "error", err)
	}
}

// lock has the directory for this process alone.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.New(fault.Environment, "cannot make the directory of the agent: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "agent.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot lock the directory of the agent: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fault.New(fault.Busy, "another agent works in %s", dir).WithHint("stop it first, or name another directory")
	}
	return func() { _ = f.Close() }, nil
}
