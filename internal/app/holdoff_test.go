package app

import (
	"testing"
	"time"

	"github.com/drover-project/drover/internal/store/postgres"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// TestACopyThatIsKilledHoldsOffNobody: a copy keeps controllers from leading by a lease
// that it would have to renew.
func TestACopyThatIsKilledHoldsOffNobody(t *testing.T) {
	url := pgserver.Start(t, false).URL("copied")
	s, err := postgres.Open(t.Context(), url, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	release, err := holdOff(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Lease(t.Context(), leaseName)
	if err != nil || l.Holder == "" || time.Until(l.Expires) > 2*leaseTime {
		t.Errorf("the lease is %+v, %v", l, err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	if l, err := s.Lease(t.Context(), leaseName); err != nil || l.Holder != "" {
		t.Errorf("after the copy the lease is %+v, %v", l, err)
	}
}
