package app_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agentd"
	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/daemon"
	"github.com/drover-project/drover/internal/health"
)

// incident is something that happens to a controller, with its cause: what `cluster health` has to say of it in its first three lines, and the one line
// of the log that tells it.
type incident struct {
	name  string
	start func(t *testing.T, o *app.Options) // before the controller is started
	make  func(t *testing.T, c cluster, o *app.Options)
	// helps is what the runbook has people do; afterwards jobs run.
	helps func(t *testing.T, o *app.Options)
	state health.State // a problem, where it is none of the others
	part  string
	says  string
	level slog.Level
	log   string
}

var incidents = []incident{
	{name: "a certificate has ended", start: func(t *testing.T, o *app.Options) {
		t.Helper()
		o.Certificate = filepath.Join(t.TempDir(), "rapi.pem")
		if _, err := rapi.OpenCertificate(o.Certificate, time.Now().AddDate(-6, 0, 0)); err != nil {
			t.Fatal(err)
		}
	}, part: "certificate", says: "has ended on", level: slog.LevelWarn, log: "the certificate of RAPI needs to be seen to"},
	{name: "the broker is away", start: func(_ *testing.T, o *app.Options) { o.Events = "amqp://127.0.0.1:1/" },
		part: "events", says: "the broker is not told of events", level: slog.LevelWarn, log: "events cannot be consumed now; it is tried again"},
	{name: "many jobs fail", make: func(t *testing.T, c cluster, _ *app.Options) {
		t.Helper()
		for range 12 {
			c.ends(t, c.submit(t, about("OP_INSTANCE_STARTUP", "nosuch")), "error")
		}
	}, part: "jobs", says: "12 of the 12 jobs that ended within the last hour failed", level: slog.LevelInfo, log: "a job failed"},
	{name: "a node is away", start: func(_ *testing.T, o *app.Options) { o.AgentAddress = "127.0.0.1:0" }, make: func(t *testing.T, c cluster, _ *app.Options) {
		t.Helper()
		token := c.token(t, away)
		_, stop := runAgentAt(t, agentd.Options{Data: t.TempDir()}, &token)
		c.job(t, create("web1", away))
		stop()
	}, part: "nodes", says: "the agents of 1 node are away: " + away, level: slog.LevelWarn, log: "an agent is away"},
	{name: "the store was put back", make: func(t *testing.T, c cluster, o *app.Options) {
		t.Helper()
		ahead := filepath.Join(o.Data, "nodes", "node1.drover.example")
		if err := errors.Join(os.MkdirAll(ahead, 0o700), os.WriteFile(filepath.Join(ahead, "epoch"), []byte("4711\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		c.ends(t, c.submit(t, create("web1", "node1.drover.example")), "error")
	}, part: "nodes", says: "orders of this cluster are refused by 1 node", level: slog.LevelError, log: "a node follows a controller of a later epoch, and refuses the orders of this one"},
	{name: "the queue is drained", make: func(t *testing.T, c cluster, _ *app.Options) {
		t.Helper()
		c.call(t, "SetDrainFlag", new(any), true, []any{[]any{"gnt:user", "new disks", 1}})
	}, part: "queue", says: "the queue takes no new jobs drained", level: slog.LevelInfo, log: "the queue takes no new jobs"},
	{name: "the accounts are gone", start: func(t *testing.T, o *app.Options) {
		t.Helper()
		o.Users = filepath.Join(t.TempDir(), "users")
		if err := os.WriteFile(o.Users, []byte("op secret write\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}, make: func(t *testing.T, _ cluster, o *app.Options) {
		t.Helper()
		if err := os.Remove(o.Users); err != nil {
			t.Fatal(err)
		}
	}, part: "accounts", says: "nobody has an account of RAPI", level: slog.LevelWarn, log: "the RAPI users file cannot be read, so that nobody has an account"},
	{name: "the disk is full", start: func(t *testing.T, o *app.Options) {
		t.Helper()
		if err := syscall.Mount("tmpfs", o.Data, "tmpfs", 0, "size=32m"); err != nil {
			t.Skipf("a small file system takes root: %v", err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(o.Data, 0); err != nil {
				t.Error(err)
			}
		})
	}, make: func(t *testing.T, c cluster, o *app.Options) {
		t.Helper()
		fill(t, filepath.Join(o.Data, "filler"))
		client := c.dial(t)
		t.Cleanup(sync.OnceFunc(func() { _ = client.Close() })) // what was asked is answered when there is room
		go func() {
			for client.Call(t.Context(), "SubmitJob", []any{[]any{map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0.001, "reason": [][]any{{"user", strings.Repeat("x", 1000), 1}}}}}, new(any)) == nil {
				continue
			}
		}()
	}, helps: func(t *testing.T, o *app.Options) {
		t.Helper()
		if err := os.Remove(filepath.Join(o.Data, "filler")); err != nil {
			t.Fatal(err)
		}
	}, part: "store", says: "the disk of the store is full", level: slog.LevelWarn, log: "the store fails; what was decided is written again until it works"},
	{name: "a cluster of servers is away", start: func(t *testing.T, o *app.Options) {
		t.Helper()
		dir := t.TempDir()
		password := filepath.Join(dir, "password")
		o.ServerClusters = filepath.Join(dir, "clusters.toml")
		table := fmt.Sprintf("[[cluster]]\nname = 'far'\nurl = 'https://127.0.0.1:1'\nuser = 'drover'\npassword-file = %q\n", password)
		if err := errors.Join(os.WriteFile(password, []byte("secret\n"), 0o600), os.WriteFile(o.ServerClusters, []byte(table), 0o600)); err != nil {
			t.Fatal(err)
		}
	}, part: "servers", says: "the cluster far does not answer: its servers wait", level: slog.LevelWarn, log: "a cluster of servers cannot be asked; it is tried again"},
	{name: "there are too many connections", start: func(_ *testing.T, o *app.Options) { *o = o.WithFiles(128) }, make: func(t *testing.T, c cluster, _ *app.Options) {
		t.Helper()
		for range 9 { // half of RAPI's 16 places are for one address
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(c.ready.RAPI, "https://"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
		}
	}, state: health.Note, part: "clients", says: "there are already 8 connections from this address", level: slog.LevelWarn, log: "clients are turned away"},
}

// fill takes all room that there is with a file.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for part := make([]byte, 64<<10); len(part) > 0; {
		if _, err = f.Write(part); err != nil {
			part = part[:len(part)/2]
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("there is room left: %v", err)
	}
}

// TestIncidents makes what wakes people, each by its cause: whoever looks finds it named in the first three lines, and told in the log in one line.
func TestIncidents(t *testing.T) {
	t.Parallel()
	for _, in := range incidents {
		t.Run(in.name, func(t *testing.T) {
			log := &heldLog{}
			o := app.Options{Data: t.TempDir(), Name: "alone", Log: daemon.NewLog(log, "json", slog.LevelInfo, nil)}
			if in.start != nil {
				in.start(t, &o)
			}
			c := startWith(t, o)
			if in.make != nil {
				in.make(t, c, &o)
			}
			r := c.awaitLine(t, cmp.Or(in.state, health.Problem), in.part, in.says)
			if r.Well != (in.state == health.Note) || !firstThree(r, in.part) {
				t.Errorf("the first lines are %+v", r.Lines[:3])
			}
			until(t, "that the log tells it", func() bool { return in.told(t, log.text()) > 0 })
			if in.helps != nil {
				in.helps(t, &o)
				c.delay(t)
			}
			if err := c.stop(); err != nil {
				t.Error(err)
			}
			if n := in.told(t, log.text()); n != 1 && in.level > slog.LevelInfo {
				t.Errorf("%d lines tell it:\n%s", n, log.text())
			}
		})
	}
}

// told counts the lines of a log that tell an incident, without those that say how often it came again.
func (in *incident) told(t *testing.T, text string) (n int) {
	t.Helper()
	for line := range strings.Lines(text) {
		var of struct {
			Level, Msg string
			Repeated   int
		}
		if err := json.Unmarshal([]byte(line), &of); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if of.Msg != in.log || of.Repeated > 0 {
			continue
		}
		if n++; of.Level != in.level.String() {
			t.Errorf("it is told as %s", line)
		}
	}
	return n
}
