package app_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// cluster is a development cluster that runs inside the test, until it is stopped or the test is over.
type cluster struct {
	ready app.Ready
	stop  func() error
	clock *movedClock // where a test moves it on
}

// start runs a cluster on the data in the directory and waits until it listens.
func start(t testing.TB, dir string, demo bool) cluster {
	t.Helper()
	return startWith(t, app.Options{Data: dir, Demo: demo})
}

// run runs a controller until it is stopped or the test is over, and then closes what it told. Without that the controllers of a test
// that failed would go on, and end the whole run when they log.
func run(t testing.TB, o app.Options, told ...io.Closer) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- app.Run(ctx, o)
		for _, c := range told {
			_ = c.Close()
		}
	}()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = stop() })
	return stop
}

// startWith is start with further options.
func startWith(t testing.TB, o app.Options) cluster {
	t.Helper()
	dir := o.Data
	told, tell := io.Pipe()
	o.RAPI, o.Mond, o.Compute, o.Nodes, o.Out = "127.0.0.1:0", cmp.Or(o.Mond, "127.0.0.1:0"), "127.0.0.1:0", 2, tell
	o.ReadyFile = filepath.Join(dir, "elsewhere.json")
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	c := cluster{stop: run(t, o, tell)}
	if _, err := told.Read(make([]byte, 4096)); err != nil {
		t.Fatal(err, c.stop())
	}
	go func() { _, _ = io.Copy(io.Discard, told) }()
	text, err := os.ReadFile(filepath.Join(dir, "elsewhere.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &c.ready); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c cluster) dial(t testing.TB) *luxiwire.Client {
	t.Helper()
	client, err := luxiwire.Dial(t.Context(), c.ready.LUXI)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func (c cluster) call(t testing.TB, method string, result any, args ...any) {
	t.Helper()
	client := c.dial(t)
	defer func() { _ = client.Close() }() // there may be only so many, and tests ask again and again
	if err := client.Call(t.Context(), method, args, result); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

func TestDevKeepsItsStateAcrossStarts(t *testing.T) {
	t.Run("embedded", func(t *testing.T) { keepsItsState(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) { keepsItsState(t, pgserver.Start(t, true).URL("dev")) })
}

func keepsItsState(t *testing.T, url string) {
	t.Helper()
	dir := t.TempDir()
	start := func(t *testing.T, dir string, demo bool) cluster {
		t.Helper()
		return startWith(t, app.Options{Data: dir, Demo: demo, Store: url})
	}
	c := start(t, dir, false)
	c.delay(t)
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
	err := app.Run(t.Context(), app.Options{Data: dir, RAPI: "127.0.0.1:0", Nodes: 1, Out: io.Discard, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		t.Fatal("a second controller runs on the same data")
	}
	t.Log(err)
}

// TestMonitoringTellsWhyAnInstanceChanged: the agent of an instance's node tells
// monitoring what the instance does, and by whose wish it last changed; a stop
// of what is stopped already changes nothing of that.
func TestMonitoringTellsWhyAnInstanceChanged(t *testing.T) {
	c := start(t, t.TempDir(), false)
	defer func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}()
	run := func(why string, op map[string]any) {
		t.Helper()
		op["reason"] = [][]any{{"user", why, 1}}
		var id int
		c.call(t, "SubmitJob", &id, []any{op})
		c.awaitStatus(t, id, "success")
	}
	run("made", map[string]any{"OP_ID": "OP_INSTANCE_CREATE", "instance_name": "web1.example", "mode": "create", "disk_template": "diskless",
		"disks": []any{}, "nics": []any{}, "os_type": "noop", "pnode": "node1.drover.example", "name_check": false, "ip_check": false})
	run("kernel", map[string]any{"OP_ID": "OP_INSTANCE_SHUTDOWN", "instance_name": "web1.example"})
	run("again", map[string]any{"OP_ID": "OP_INSTANCE_SHUTDOWN", "instance_name": "web1.example"})
	url := c.ready.Mond["node1.drover.example"]
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/1/report/instance/inst-status-fake", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var report struct {
		Data struct {
			Instances []struct {
				Name        string   `json:"name"`
				ActualState string   `json:"actualState"`
				StateReason [][3]any `json:"state_reason"`
			} `json:"instances"`
		} `json:"data"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&report); err != nil {
		t.Fatal(err)
	}
	if len(report.Data.Instances) != 1 || report.Data.Instances[0].ActualState != "shutdown" {
		t.Fatalf("the report is %+v", report)
	}
	trail := report.Data.Instances[0].StateReason
	if len(trail) == 0 || trail[0][1] != "kernel" || trail[len(trail)-1][0] != "gnt:daemon:noded:shutdown" {
		t.Errorf("the trail is %v", trail)
	}
}

// TestASocketForAGroupAndANamedCluster: settings say who may open the socket, and what a new cluster is called; one that is there keeps its name.
func TestASocketForAGroupAndANamedCluster(t *testing.T) {
	dir := t.TempDir()
	named := func(name string) (mode os.FileMode, cluster string) {
		c := startWith(t, app.Options{Data: dir, LUXI: filepath.Join(dir, "l"), LUXIGroup: strconv.Itoa(os.Getgid()), ClusterName: name})
		info, err := os.Stat(c.ready.LUXI)
		if err != nil {
			t.Fatal(err)
		}
		var values []string
		c.call(t, "QueryConfigValues", &values, []string{"cluster_name"})
		if err := c.stop(); err != nil {
			t.Error(err)
		}
		return info.Mode().Perm(), values[0]
	}
	for _, name := range []string{"Prod.example.", "other.example"} {
		if mode, got := named(name); mode != 0o660 || got != "prod.example" {
			t.Errorf("with the name %s the socket has mode %o, and the cluster is %s", name, mode, got)
		}
	}
}
