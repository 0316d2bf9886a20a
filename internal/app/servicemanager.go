package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/systemd"
)

// report tells the service manager how it goes.
func (c *controller) report(states ...string) {
	c.tellManager(append(states, systemd.Status(fmt.Sprintf("leads with epoch %d, revision %d", c.lease.Epoch, c.picture.Load().Revision)))...)
}

// keepWatchdog keeps the service manager's watchdog quiet, until ctx ends, for as
// long as the controller moves: each time it goes through the queue and through
// the goroutine that writes to the store. A store that answers with an error
// is no reason for a restart; one that never answers is.
func (c *controller) keepWatchdog(ctx context.Context) error {
	every := c.manager.WatchdogEvery()
	if every == 0 {
		return nil
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		_ = c.queue.Health() // whatever it says: it went through
		_, _ = c.store.RenewLease(ctx, c.lease, leaseTime)
		if ctx.Err() != nil {
			return nil
		}
		c.report(systemd.StateAlive)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// reload reads anew what can be, each time it is asked for, until ctx ends.
// What cannot be read stays as it was.
func (m *member) reload(ctx context.Context, o Options, cert *rapi.CertificateFile) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-o.Hangup:
		}
		begun, err := systemd.Reloading()
		if err == nil && o.Manager.Present() {
			err = o.Manager.Tell(begun)
		}
		if o.Reread != nil {
			err = errors.Join(err, o.Reread())
		}
		if err = errors.Join(err, cert.Reload()); err != nil {
			o.Log.Error("not everything could be read anew; what could not stays as it was", "error", err)
		} else {
			o.Log.Info("the configuration was read anew")
		}
		m.tellCertificate()
		m.tellManager(systemd.StateReady)
	}
}
