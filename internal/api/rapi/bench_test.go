package rapi_test

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/gate"
)

// BenchmarkSubmit submits jobs over TLS from eight clients that keep their
// connections, on a real store. A rule keeps the jobs from running.
func BenchmarkSubmit(b *testing.B) {
	r := newRig(b, rigOptions{})
	cert, err := rapi.OpenCertificate(filepath.Join(r.dir, "rapi.pem"), time.Now())
	r.check(err)
	listener, err := gate.New(gate.RAPI, gate.Files(), slog.New(slog.DiscardHandler)).Listen(b.Context(), "127.0.0.1:0")
	r.check(err)
	ctx, cancel := context.WithCancel(b.Context())
	served := make(chan error, 1)
	go func() { served <- r.rapi.Serve(ctx, listener, cert) }()
	r.do(http.MethodPost, "/2/filters", `{"action":"PAUSE"}`)
	const clients = 8
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	url := "https://" + listener.Addr().String() + web1 + "/startup?reason=benchmark"
	work := make(chan struct{})
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for range work {
				submitOnce(b, client, url)
			}
		})
	}
	for b.Loop() {
		work <- struct{}{}
	}
	close(work)
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	client.CloseIdleConnections()
	cancel()
	r.check(<-served)
}

func submitOnce(b *testing.B, client *http.Client, url string) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPut, url, strings.NewReader(`{}`))
	if err != nil {
		b.Error(err)
		return
	}
	req.Header = header("admin", "secret")
	resp, err := client.Do(req)
	if err != nil {
		b.Error(err)
		return
	}
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		b.Errorf("%d %s (%v)", resp.StatusCode, text, err)
	}
	if err := resp.Body.Close(); err != nil {
		b.Error(err)
	}
}
