package app_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/daemon"
	"github.com/drover-project/drover/internal/health"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/postgres"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// TestBundle: whoever is asked gathers what all controllers tell of themselves, and names those that do not answer.
func TestBundle(t *testing.T) {
	server := pgserver.Start(t, false)
	url := server.URL("bundle")
	all := groupWith(t, []string{url, url}, func(o *app.Options) {
		o.Recent = daemon.NewRecent(4 << 20)
		_, _ = o.Recent.Write(bytes.Repeat([]byte("a line of long ago\n"), 3<<20/19)) // much is told
		o.Log = daemon.NewLog(t.Output(), "text", slog.LevelInfo, o.Recent)
		o.Settings = "name = " + o.Name
	})
	other, err := postgres.Open(t.Context(), url, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	lost := `{"name": "c0/..", "instance": "gone", "address": "127.0.0.1:1", "fingerprint": "00", "started": "2026-01-02T03:04:05Z", "version": "0"}`
	if _, err := store.Commit(t.Context(), other, store.Tx{Put: []store.Put{{Key: store.Key{Kind: "controller", ID: "c0"}, Value: []byte(lost)}}}); err != nil {
		t.Fatal(err)
	}
	for i, c := range all {
		var b health.Bundle
		began := time.Now()
		c.call(t, "MakeBundle", &b)
		text := map[string]string{}
		for _, f := range b.Files {
			text[f.Name] = string(f.Data)
		}
		for file, want := range map[string]string{
			"health.json":                 `"what"`,
			"controller-c1/log.txt":       `msg="this controller leads"`,
			"controller-c2/log.txt":       `msg="this controller stands by"`,
			"controller-c1/settings.toml": "name = c1", "controller-c2/settings.toml": "name = c2",
			"controller-c1/metrics.txt": "\ndrover_leader 1\n", "controller-c2/metrics.txt": "\ndrover_leader 0\n",
			"controller-c1/version.json": `"processors"`, "controller-c2/ready.json": "another controller leads",
			"controller-c2/health.json": `"revision"`, "controller-c1/goroutines.txt": "goroutine ",
			"controller-c1/heap.pb.gz": "\x1f\x8b", "controller-c2/cpu.pb.gz": "",
		} {
			if got, there := text[file]; !there || !strings.Contains(got, want) {
				t.Errorf("asked of c%d, %s has no %q: %.300q", i+1, file, want, got)
			}
		}
		if len(b.Silent) != 1 || !strings.HasPrefix(b.Silent[0], "c0/..: the controller c0/.. does not answer: ") {
			t.Errorf("silent are %q", b.Silent)
		}
		if slices.ContainsFunc(b.Files, func(f health.File) bool { return strings.Contains(f.Name, "..") }) {
			t.Errorf("a file leads elsewhere: %v", b.Files)
		}
		t.Logf("asked of c%d it took %v", i+1, time.Since(began))
	}
	for _, c := range all {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
}
