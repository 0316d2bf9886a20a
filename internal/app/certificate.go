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

// certificateEvery is how often the log tells of a certificate that has ended or will soon.
const certificateEvery = 24 * time.Hour

// watch has a certificate told of from now on.
func (m *member) watch(cert *rapi.CertificateFile) {
	m.cert.Store(cert)
	m.tellCertificate()
}

func (m *member) tellCertificate() {
	if text := m.cert.Load().Trouble(time.Now()); text != "" {
		m.log.Warn("the certificate of RAPI needs to be seen to", "why", text)
	}
}

// keepCertificate tells of the certificate from time to time, until ctx ends.
func (m *member) keepCertificate(ctx context.Context) error {
	return regularly(ctx, certificateEvery, func() error {
		m.tellCertificate()
		return nil
	})
}
