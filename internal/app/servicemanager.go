package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/systemd"
)

// report tells the service manager how it goes.
func (c *controller) report(states ...string) { c.tellManager(append(states, c.status())...) }

// status is what a controller in a term says of itself.
func (c *controller) status() string {
	return systemd.Status(fmt.Sprintf("leads with epoch %d, revision %d", c.lease.Epoch, c.picture.Load().Revision))
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
