package app_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/luxiwire"
)

// cluster is a development cluster that runs inside the test.
type cluster struct {
	ready app.Ready
	stop  func() error
}

// start runs a cluster on the data in the directory and waits until it listens.
func start(t *testing.T, dir string, demo bool) cluster {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	told, tell := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- app.Dev(ctx, app.DevOptions{
			Data: dir, RAPI: "127.0.0.1:0", Nodes: 2, Demo: demo, Out: tell,
			ReadyFile: filepath.Join(dir, "elsewhere.json"), Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		})
		_ = tell.Close()
	}()
	if _, err := told.Read(make([]byte, 4096)); err != nil {
		t.Fatal(err, <-done)
	}
	go func() { _, _ = io.Copy(io.Discard, told) }()
	c := cluster{stop: func() error { cancel(); return <-done }}
	text, err := os.ReadFile(filepath.Join(dir, "elsewhere.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &c.ready); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c cluster) call(t *testing.T, method string, result any, args ...any) {
	t.Helper()
	client, err := luxiwire.Dial(t.Context(), c.ready.LUXI)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if err := client.Call(t.Context(), method, args, result); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

func TestDevKeepsItsStateAcrossStarts(t *testing.T) {
	dir := t.TempDir()
	c := start(t, dir, false)
	var id int
	c.call(t, "SubmitJob", &id, []any{map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0.001, "reason": [][]any{{"user", "für Müller", 1}}}})
	var change [2]json.RawMessage
	for status := ""; status != "success"; {
		c.call(t, "WaitForJobChange", &change, id, []string{"status"}, []string{status}, 0, 10)
		var values []string
		if err := json.Unmarshal(change[0], &values); err != nil {
			t.Fatal(err)
		}
		status = values[0]
	}
	password := c.ready.RAPIPassword
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}

	c = start(t, dir, false)
	defer func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}()
	var rows [][]any
	c.call(t, "QueryJobs", &rows, nil, []string{"id", "status"})
	if len(rows) != 1 || rows[0][1] != "success" {
		t.Errorf("jobs after a restart: %v", rows)
	}
	if c.ready.RAPIPassword != password {
		t.Error("the RAPI password changed")
	}
}

func TestDemoData(t *testing.T) {
	c := start(t, t.TempDir(), true)
	defer func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}()
	for held := 0; held == 0; {
		var rows [][]any
		c.call(t, "QueryJobs", &rows, nil, []string{"id", "held_by"})
		for _, row := range rows {
			if row[1] != nil {
				held++
			}
		}
		if len(rows) > 0 && held == 0 {
			var change any // wait for something to happen, instead of asking again at once
			c.call(t, "WaitForJobChange", &change, rows[len(rows)-1][0], []string{"held_by"}, []any{nil}, 0, 1)
		}
	}
}

func TestRAPINeedsAnAccountToWrite(t *testing.T) {
	c := start(t, t.TempDir(), false)
	defer func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}()
	client := trusting()
	for _, tc := range []struct {
		method, password string
		want             int
	}{
		{http.MethodGet, "", 200}, {http.MethodPut, "", 401}, {http.MethodPut, "wrong", 401}, {http.MethodPut, c.ready.RAPIPassword, 200},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tc.method, c.ready.RAPI+"/2/tags?tag=a", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if tc.password != "" {
			r.SetBasicAuth(c.ready.RAPIUser, tc.password)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != tc.want {
			t.Errorf("%s with password %q: %d, want %d", tc.method, tc.password, answer.StatusCode, tc.want)
		}
	}
}

func TestSecondControllerIsRefused(t *testing.T) {
	dir := t.TempDir()
	c := start(t, dir, false)
	defer func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}()
	err := app.Dev(t.Context(), app.DevOptions{Data: dir, RAPI: "127.0.0.1:0", Nodes: 1, Out: io.Discard, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		t.Fatal("a second controller runs on the same data")
	}
	t.Log(err)
}
