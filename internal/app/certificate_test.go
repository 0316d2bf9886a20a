package app_test

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/app"
)

// heldLog is a log that may be read while it is written.
type heldLog struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *heldLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *heldLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// TestCertificatesThatEndAreTold in the log, in /readyz and as a figure; the controller serves on.
func TestCertificatesThatEndAreTold(t *testing.T) {
	const life = 5 * 365 * 24 * time.Hour
	for what, tc := range map[string]struct {
		made time.Time
		want string
	}{
		"ended": {time.Now().Add(-life - time.Hour), "has ended on"}, "ends soon": {time.Now().Add(-life + 29*24*time.Hour), "ends on"},
		"not begun": {time.Now().Add(48 * time.Hour), "begins only on"}, "good": {time.Now(), ""},
	} {
		path := filepath.Join(t.TempDir(), "rapi.pem")
		if _, err := rapi.OpenCertificate(path, tc.made); err != nil {
			t.Fatal(err)
		}
		log := &heldLog{}
		c := startWith(t, app.Options{Data: t.TempDir(), Certificate: path, Log: slog.New(slog.NewTextHandler(log, nil))})
		status, h := c.health(t)
		noted := slices.ContainsFunc(h.Notes, func(p app.Problem) bool { return p.Part == "certificate" && strings.Contains(p.Text, tc.want) })
		if status != http.StatusOK || noted != (tc.want != "") || strings.Contains(log.text(), "certificate of RAPI") != (tc.want != "") {
			t.Errorf("%s: readyz %d %+v, log %s", what, status, h, log.text())
		}
		if _, text := c.page(t, "/metrics"); !strings.Contains(text, "\ndrover_certificate_not_after_seconds ") {
			t.Errorf("%s: there is no figure", what)
		}
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestOwnCertificatesAreRenewed before they end, and at a start behind that; one that somebody put into their place is left alone.
func TestOwnCertificatesAreRenewed(t *testing.T) {
	const life = 5 * 365 * 24 * time.Hour
	for what, tc := range map[string]struct {
		made    time.Time
		renewed bool
	}{
		"ended": {time.Now().Add(-life - time.Hour), true}, "ends soon": {time.Now().Add(-life + 29*24*time.Hour), true}, "good": {time.Now().Add(-life + 31*24*time.Hour), false},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "rapi", "rapi.pem")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		before, err := rapi.OpenCertificate(path, tc.made)
		if err != nil {
			t.Fatal(err)
		}
		log := &heldLog{}
		c := startWith(t, app.Options{Data: dir, Log: slog.New(slog.NewTextHandler(log, nil))})
		state := c.handshake(t)
		_, h := c.health(t)
		if err := c.stop(); err != nil {
			t.Error(err)
		}
		after, err := rapi.ReadCertificate(path)
		if err != nil {
			t.Fatal(err)
		}
		renewed := !after.NotAfter().Equal(before.NotAfter())
		if renewed != tc.renewed || renewed && time.Until(after.NotAfter()) < life-time.Hour || strings.Contains(log.text(), "was renewed") != renewed {
			t.Errorf("%s: renewed: %v, until %v: %s", what, renewed, after.NotAfter(), log.text())
		}
		if served := state.PeerCertificates[0]; !bytes.Equal(served.Raw, after.Current().Certificate[0]) {
			t.Errorf("%s: another one is served, until %v", what, served.NotAfter)
		}
		if slices.ContainsFunc(h.Notes, func(p app.Problem) bool { return p.Part == "certificate" }) {
			t.Errorf("%s: %+v", what, h)
		}
	}
}

// handshake is how a connection to RAPI begins.
func (c cluster) handshake(t *testing.T) tls.ConnectionState {
	t.Helper()
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp", strings.TrimPrefix(c.ready.RAPI, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // nothing was said
	return conn.(*tls.Conn).ConnectionState()
}
