package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/metrics"
	"github.com/drover-project/drover/internal/testkit"
)

// prometheus is Debian's, which scrapes a controller under the name of the packaged configuration.
type prometheus struct{ url string }

func startPrometheus(t *testing.T, target string) prometheus {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		testkit.Missingf(t, "prometheus is not installed")
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 200ms, scrape_timeout: 200ms}\nscrape_configs:\n  - {job_name: drover, static_configs: [{targets: [%q]}]}\n", target)
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "--config.file", filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", address)
	out := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(out)
		}
	})
	return prometheus{"http://" + address}
}

// found counts what an expression has at the moment, without what is no number; an error for an expression that is none, nil while nobody answers.
func (p prometheus) found(ctx context.Context, expr string) (n int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/v1/query?query="+url.QueryEscape(expr), http.NoBody)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = answer.Body.Close() }()
	var said struct {
		Status, Error string
		Data          struct {
			Result []struct{ Value [2]any }
		}
	}
	if answer.StatusCode == http.StatusServiceUnavailable || json.NewDecoder(answer.Body).Decode(&said) != nil {
		return 0, nil // it starts
	}
	if said.Status != "success" {
		return 0, fmt.Errorf("%s: %s", expr, said.Error)
	}
	for _, r := range said.Data.Result {
		text, _ := r.Value[1].(string)
		if v, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(v) {
			n++
		}
	}
	return n, nil
}

// TestEachPanelHasData has Prometheus scrape a controller at work, and asks it all that the dashboard asks: something comes of each expression, and
// nothing of those of which the dashboard says why.
func TestEachPanelHasData(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	health := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c := startWith(t, app.Options{Data: t.TempDir(), Health: health, Backups: t.TempDir()})
	p := startPrometheus(t, health)
	left, empty := map[string]bool{}, map[string]bool{}
	for _, panel := range metrics.Panels() {
		for _, q := range panel.Queries {
			expr := strings.ReplaceAll(q.Expr, "$__rate_interval", "4s")
			if q.Empty == "" {
				left[expr] = true
			} else {
				empty[expr] = true
			}
		}
	}
	again, limit := time.NewTicker(50*time.Millisecond), time.After(patience)
	defer again.Stop()
	for len(left) > 0 {
		select {
		case <-again.C:
		case <-limit:
			t.Fatalf("nothing comes of %q", keysOf(left))
		}
		c.delay(t)
		for expr := range left {
			n, err := p.found(t.Context(), expr)
			if err != nil {
				t.Fatal(err)
			}
			if n > 0 {
				delete(left, expr)
			}
		}
	}
	for expr := range empty {
		if n, err := p.found(t.Context(), expr); err != nil || n > 0 {
			t.Errorf("%s has %d series, %v", expr, n, err)
		}
	}
}

func keysOf(m map[string]bool) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	return out
}
