package bench_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/bench"
)

// startDev runs a cluster and returns its ready file.
func startDev(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bench") //nolint:usetesting // short, for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	said, says := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- app.Run(ctx, app.Options{Data: dir, RAPI: "127.0.0.1:0", Compute: "127.0.0.1:0", Nodes: 1, Out: says, Log: slog.New(slog.DiscardHandler)})
		_ = says.Close()
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "is ready") {
			go func() { _, _ = io.Copy(io.Discard, said) }()
			return filepath.Join(dir, "ready.json")
		}
	}
	t.Fatalf("the cluster did not come up: %v", <-ended)
	return ""
}

func run(args ...string) (string, error) {
	cmd := bench.Command()
	cmd.PersistentFlags().String("output", "table", "") // as the root command has it
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func TestQueueIsMeasured(t *testing.T) {
	ready := startDev(t)
	out, err := run("queue", "--ready-file", ready, "--jobs", "100", "--rounds", "5", "--output", "json")
	if err != nil {
		t.Fatal(err)
	}
	var report bench.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if report.Fdatasync[0] <= 0 || len(report.Figures) != 8 {
		t.Errorf("report %s", out)
	}
	for _, f := range report.Figures {
		if f.Name == "" || f.Value <= 0 || f.Target == "" {
			t.Errorf("figure %+v", f)
		}
	}
	out, err = run("queue", "--ready-file", ready, "--jobs", "50", "--rounds", "2")
	if err != nil || strings.Count(out, "\n") != 11 {
		t.Errorf("table %v\n%s", err, out)
	}
}

func TestListsAreMeasured(t *testing.T) {
	ready := startDev(t)
	for range 2 { // the second time the instances are there
		out, err := run("query", "--ready-file", ready, "--instances", "60", "--rounds", "3", "--output", "json")
		if err != nil {
			t.Fatal(err)
		}
		var report bench.Report
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			t.Fatal(err)
		}
		if len(report.Figures) != 10 {
			t.Errorf("report %s", out)
		}
		for _, f := range report.Figures {
			if f.Name == "" || f.Value <= 0 || f.Target == "" {
				t.Errorf("figure %+v", f)
			}
		}
	}
}

func TestTagsAreMeasured(t *testing.T) {
	out, err := run("tags", "--ready-file", startDev(t), "--servers", "5", "--rounds", "3", "--output", "json")
	if err != nil {
		t.Fatal(err)
	}
	var report bench.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Figures) != 3 {
		t.Errorf("report %s", out)
	}
	for _, f := range report.Figures {
		if f.Name == "" || f.Value <= 0 || f.Target == "" {
			t.Errorf("figure %+v", f)
		}
	}
}

func TestMissingReadyFile(t *testing.T) {
	for _, args := range [][]string{{"queue"}, {"query"}, {"queue", "--ready-file", filepath.Join(t.TempDir(), "none")}} {
		if _, err := run(args...); err == nil || !strings.Contains(err.Error(), "ready") {
			t.Errorf("%v: %v", args, err)
		}
	}
}
