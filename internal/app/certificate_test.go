package app_test

import (
	"bytes"
	"log/slog"
	"net/http"
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
