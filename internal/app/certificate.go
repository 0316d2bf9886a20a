package app

import (
	"context"
	"path/filepath"
	"time"

	"github.com/drover-project/drover/internal/api/rapi"
)

// openCertificate reads the certificate that the settings name, or the one in the data directory, which
// the first start makes.
func openCertificate(o Options) (*rapi.CertificateFile, error) {
	if o.Certificate != "" {
		return rapi.ReadCertificate(o.Certificate)
	}
	return rapi.OpenCertificate(filepath.Join(o.Data, "rapi", "rapi.pem"), time.Now())
}

// certificateEvery is how often it is looked at the certificate: one of our own is renewed a month before it ends, and the log tells of
// another that has ended or will soon.
const certificateEvery = 24 * time.Hour

// watch has a certificate told of from now on, accounts, and what else is on this machine.
func (m *member) watch(s *surfaces) {
	m.ganeti.Store(s.ganeti)
	m.cert.Store(s.cert)
	m.users.Store(s.users)
	m.tellCertificate()
}

// tellCertificate renews the certificate if it is one of our own that ends soon, and tells of one that needs to be seen to.
func (m *member) tellCertificate() {
	switch renewed, err := m.cert.Load().Renew(time.Now()); {
	case err != nil:
		m.log.Error("the certificate of RAPI could not be renewed", "error", err)
	case renewed:
		m.log.Warn("the certificate of RAPI was renewed; clients with a copy of it need the new one", "until", m.cert.Load().NotAfter().Format(time.DateOnly))
	}
	if text := m.cert.Load().Trouble(time.Now()); text != "" {
		m.log.Warn("the certificate of RAPI needs to be seen to", "why", text)
	}
}

// replaceCertificate makes the certificate of RAPI anew, because somebody has asked for that.
func (m *member) replaceCertificate(now time.Time) error {
	if err := m.cert.Load().Replace(now); err != nil {
		return err
	}
	m.log.Warn("the certificate of RAPI was renewed; clients with a copy of it need the new one", "until", m.cert.Load().NotAfter().Format(time.DateOnly))
	return nil
}

// keepCertificate tells of the certificate from time to time, until ctx ends.
func (m *member) keepCertificate(ctx context.Context) error {
	return regularly(ctx, certificateEvery, func() error {
		m.tellCertificate()
		return nil
	})
}
