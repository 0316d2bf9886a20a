package app_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agentd"
	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/daemon"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/health"
	"github.com/drover-project/drover/internal/hypervisor/fake"
)

// incident is something that happens to a controller, with its cause: what `cluster health` has to say of it in its first three lines, and the one line
// of the log that tells it.
type incident struct {
	name  string
	start func(t *testing.T, o *app.Options) // before the controller is started
	make  func(t *testing.T, c cluster, o *app.Options)
	// later is how much later it is looked at, by the controller's clock.
	later time.Duration
	// helps is what the runbook has people do; afterwards jobs run.
	helps func(t *testing.T, c cluster, o *app.Options)
	// alerts are those that fire meanwhile, and neither before nor afterwards.
	alerts []string
	state  health.State // a problem, where it is none of the others
	part   string
	says   string
	level  slog.Level
	log    string
}

var incidents = []incident{
	{name: "a certificate has ended", start: func(t *testing.T, o *app.Options) {
		t.Helper()
		o.Certificate = filepath.Join(t.TempDir(), "rapi.pem")
		putCertificate(t, o, time.Now())
		o.Hangup = hangup
	}, make: func(t *testing.T, _ cluster, o *app.Options) {
		t.Helper()
		putCertificate(t, o, time.Now().AddDate(-6, 0, 0))
		hangup <- syscall.SIGHUP
	}, helps: func(t *testing.T, _ cluster, o *app.Options) {
		t.Helper()
		putCertificate(t, o, time.Now())
		hangup <- syscall.SIGHUP
	}, part: "certificate", says: "has ended on", level: slog.LevelWarn, log: "the certificate of RAPI needs to be seen to", alerts: []string{"DroverCertificateEnds"}},
	{name: "the broker is away", start: func(_ *testing.T, o *app.Options) { o.Events = "amqp://127.0.0.1:1/" },
		later: 3 * time.Minute, part: "events", says: "the broker is not told of events", level: slog.LevelWarn, log: "events cannot be consumed now; it is tried again", alerts: []string{"DroverEventsFail"}},
	{name: "many jobs fail", make: func(t *testing.T, c cluster, _ *app.Options) {
		t.Helper()
		for range 12 {
			c.ends(t, c.submit(t, about("OP_INSTANCE_STARTUP", "nosuch")), "error")
		}
	}, part: "jobs", says: "12 of the 12 jobs that ended within the last hour failed", level: slog.LevelInfo, log: "a job failed", alerts: []string{"DroverJobsFail"}},
	{name: "a node is away", start: func(_ *testing.T, o *app.Options) { o.AgentAddress = "127.0.0.1:0" }, make: func(t *testing.T, c cluster, _ *app.Options) {
		t.Helper()
		token := c.token(t, away)
		_, stop := runAgentAt(t, agentd.Options{Data: t.TempDir()}, &token)
		c.job(t, create("web1", away))
		stop()
	}, part: "nodes", says: "the agents of 1 node are away: " + away, level: slog.LevelWarn, log: "an agent is away", alerts: []string{"DroverNodesAway"}},
	{name: "the store was put back", make: func(t *testing.T, c cluster, o *app.Options) {
		t.Helper()
		ahead := filepath.Join(o.Data, "nodes", "node1.drover.example")
		if err := errors.Join(os.MkdirAll(ahead, 0o700), os.WriteFile(filepath.Join(ahead, "epoch"), []byte("4711\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		c.ends(t, c.submit(t, create("web1", "node1.drover.example")), "error")
	}, part: "nodes", says: "orders of this cluster are refused by 1 node", level: slog.LevelError, log: "a node follows a controller of a later epoch, and refuses the orders of this one", alerts: []string{"DroverDatabasePutBack"}},
	{name: "the queue is drained", make: func(t *testing.T, c cluster, _ *app.Options) {
		t.Helper()
		c.call(t, "SetDrainFlag", new(any), true, []any{[]any{"gnt:user", "new disks", 1}})
	}, helps: func(t *testing.T, c cluster, _ *app.Options) {
		t.Helper()
		c.call(t, "SetDrainFlag", new(any), false)
	}, part: "queue", says: "the queue takes no new jobs drained", level: slog.LevelInfo, log: "the queue takes no new jobs", alerts: []string{"DroverQueueDrained"}},
	{name: "a job waits for a slot", start: inAHurry, make: func(t *testing.T, c cluster, _ *app.Options) {
		t.Helper()
		c.job(t, map[string]any{"OP_ID": "OP_CLUSTER_SET_PARAMS", "max_running_jobs": 1})
		c.submitDelay(t, 3600)
		c.submit(t, map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0.001})
	}, later: 15 * time.Minute, helps: killRunning, part: "jobs", says: "a slot is waited for by 1 job, by job ", level: slog.LevelWarn, log: "jobs wait for long", alerts: []string{"DroverJobsWaitForSlots"}},
	{name: "a job waits for a lock", start: inAHurry, make: func(t *testing.T, c cluster, _ *app.Options) {
		t.Helper()
		onNode := map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 3600.0, "on_nodes": []string{"node1.drover.example"}, "no_locks": false}
		c.awaitStatus(t, c.submit(t, maps.Clone(onNode)), "running")
		onNode["duration"] = 0.001
		c.submit(t, onNode)
	}, later: 2*time.Hour + time.Minute, helps: killRunning, part: "jobs", says: "locks are waited for by 1 job, by job ", level: slog.LevelWarn, log: "jobs wait for long", alerts: []string{"DroverJobWaits"}},
	{name: "a rule was forgotten", make: func(t *testing.T, c cluster, _ *app.Options) {
		t.Helper()
		c.call(t, "ReplaceFilter", new(any), forgotten, 5, []any{[]any{"opcode", []any{"=", "OP_ID", "OP_INSTANCE_STARTUP"}}}, "PAUSE", [][]any{{"gnt:user", "new disks", 1}})
		c.submit(t, about("OP_INSTANCE_STARTUP", "web1"))
	}, later: 26 * time.Hour, helps: func(t *testing.T, c cluster, _ *app.Options) {
		t.Helper()
		c.call(t, "DeleteFilter", new(any), forgotten)
	}, state: health.Note, part: "rule", says: "holds 1 job, job ", level: slog.LevelInfo, log: "a filter rule was put", alerts: []string{"DroverRuleForgotten"}},
	{name: "there is no new backup", start: func(t *testing.T, o *app.Options) {
		t.Helper()
		o.Backups = t.TempDir()
		dir := t.TempDir() // the newest is of another store; that it is there counts
		if err := startWith(t, app.Options{Data: dir}).stop(); err != nil {
			t.Fatal(err)
		}
		must(t, app.BackupCommand(), "create", o.Backups, "--at", dir)
	}, make: func(*testing.T, cluster, *app.Options) {}, later: 49 * time.Hour, helps: func(t *testing.T, c cluster, _ *app.Options) {
		t.Helper()
		c.clock.ahead.Store(0) // the next one is as if it were made then
	}, part: "backup", says: "the newest backup of the store is 2 days old", alerts: []string{"DroverBackupOld"}},
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
	}, helps: func(t *testing.T, _ cluster, o *app.Options) {
		t.Helper()
		if err := os.WriteFile(o.Users, []byte("op secret write\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}, part: "accounts", says: "nobody has an account of RAPI", level: slog.LevelWarn, log: "the RAPI users file cannot be read, so that nobody has an account", alerts: []string{"DroverAccountsMissing"}},
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
	}, later: time.Minute, helps: func(t *testing.T, _ cluster, o *app.Options) {
		t.Helper()
		if err := os.Remove(filepath.Join(o.Data, "filler")); err != nil {
			t.Fatal(err)
		}
	}, part: "store", says: "the disk of the store is full", level: slog.LevelWarn, log: "the store fails; what was decided is written again until it works", alerts: []string{"DroverDiskFillsUp", "DroverStoreFails"}},
	{name: "a cluster of servers is away", start: func(t *testing.T, o *app.Options) {
		t.Helper()
		dir := t.TempDir()
		password := filepath.Join(dir, "password")
		o.ServerClusters = filepath.Join(dir, "clusters.toml")
		table := fmt.Sprintf("[[cluster]]\nname = 'far'\nurl = 'https://127.0.0.1:1'\nuser = 'drover'\npassword-file = %q\n", password)
		if err := errors.Join(os.WriteFile(password, []byte("secret\n"), 0o600), os.WriteFile(o.ServerClusters, []byte(table), 0o600)); err != nil {
			t.Fatal(err)
		}
	}, part: "servers", says: "the cluster far does not answer: its servers wait", level: slog.LevelWarn, log: "a cluster of servers cannot be asked; it is tried again", alerts: []string{"DroverServerClusterAway"}},
	{name: "tags of servers do not come", make: func(t *testing.T, c cluster, _ *app.Options) {
		t.Helper()
		user := computeOf(t, c)
		id := user.create()
		c.call(t, "ReplaceFilter", new(any), forgotten, 0, []any{[]any{"opcode", []any{"=", "OP_ID", "OP_TAGS_SET"}}}, "PAUSE", []any{})
		user.request(http.MethodPut, c.ready.Compute+"/servers/"+id+"/tags/held", nil, nil, http.StatusCreated)
	}, later: time.Hour, helps: func(t *testing.T, c cluster, _ *app.Options) {
		t.Helper()
		c.call(t, "DeleteFilter", new(any), forgotten)
	}, part: "servers", says: "tags of 1 server do not come, of ", level: slog.LevelInfo, log: "a filter rule was put", alerts: []string{"DroverTagsWait"}},
	{name: "a job left something behind", start: func(_ *testing.T, o *app.Options) { o.AgentAddress = "127.0.0.1:0" }, make: func(t *testing.T, c cluster, _ *app.Options) {
		t.Helper()
		dir := t.TempDir()
		token, node := c.token(t, away), newGuests(t, dir)
		node.called = func(call fake.Call) error {
			if call.Method == "prepare" && call.After || call.Method == "remove" {
				return fault.New(fault.Environment, "the hypervisor does not answer")
			}
			return nil
		}
		joins(t, token, dir, node).run(t, token.Addresses)
		c.ends(t, c.submit(t, create("web1", away)), "error")
	}, state: health.Note, part: "jobs", says: "something that 1 job did could not be taken back, job ", level: slog.LevelError, log: "something that a job did could not be taken back", alerts: []string{"DroverUndoFailed"}},
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

// hangup asks the controller of the incident that needs it to read its certificate anew.
var hangup = make(chan os.Signal)

// forgotten is a filter rule.
const forgotten = "0f0f0f0f-1111-4222-8333-444444444444"

// putCertificate puts a certificate of RAPI that was made at a time in the place of what is there.
func putCertificate(t *testing.T, o *app.Options, made time.Time) {
	t.Helper()
	_ = os.Remove(o.Certificate) // there may be none
	if _, err := rapi.OpenCertificate(o.Certificate, made); err != nil {
		t.Fatal(err)
	}
}

// inAHurry has the log tell at once that jobs wait for long.
func inAHurry(_ *testing.T, o *app.Options) { *o = o.WithWaitsEvery(20 * time.Millisecond) }

// killRunning ends what runs.
func killRunning(t *testing.T, c cluster, _ *app.Options) {
	t.Helper()
	var rows [][]any
	c.call(t, "QueryJobs", &rows, nil, []string{"id", "status"})
	for _, row := range rows {
		if row[1] == "running" {
			c.call(t, "CancelJob", new(any), row[0], true)
		}
	}
	until(t, "that all jobs have ended", func() bool { // else the next one waits for what they have, and by the clock it does so for long
		var rows [][]any
		c.call(t, "QueryJobs", &rows, nil, []string{"id", "status"})
		return !slices.ContainsFunc(rows, func(row []any) bool { return row[1] == "running" || row[1] == "waiting" || row[1] == "queued" })
	})
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

// TestIncidents makes what wakes people, each by its cause: whoever looks finds it named in the first three lines, and told in the log in one line; the alerts
// that are for it fire, and no others.
func TestIncidents(t *testing.T) {
	t.Parallel()
	for _, in := range incidents {
		t.Run(in.name, func(t *testing.T) {
			log := &heldLog{}
			clock := &movedClock{}
			o := app.Options{Data: t.TempDir(), Name: "alone", Log: daemon.NewLog(log, "json", slog.LevelInfo, nil)}.WithClock(clock.now)
			if in.start != nil {
				in.start(t, &o)
			}
			c := startWith(t, o)
			c.clock = clock
			l := newTimeline(t)
			if in.make != nil {
				l.show(90, watched{"alone": c})
				l.fire(90)
				in.make(t, c, &o)
			}
			clock.ahead.Store(int64(in.later))
			r := c.awaitLine(t, cmp.Or(in.state, health.Problem), in.part, in.says)
			if r.Well != (in.state == health.Note) || !firstThree(r, in.part) {
				t.Errorf("the first lines are %+v", r.Lines[:3])
			}
			if in.log != "" {
				until(t, "that the log tells it", func() bool { return in.told(t, log.text()) > 0 })
			}
			if in.alerts != nil {
				l.show(90, watched{"alone": c})
				l.fire(90, in.alerts...)
			}
			if in.helps != nil {
				in.helps(t, c, &o)
				c.delay(t)
				until(t, "that it is over", func() bool {
					var r health.Report
					c.call(t, "QueryHealth", &r)
					return !slices.ContainsFunc(r.Lines, func(l health.Line) bool { return l.Part == in.part && strings.Contains(l.What+" "+l.Why, in.says) })
				})
				l.show(150, watched{"alone": c})
				l.fire(30)
			}
			l.judge()
			if err := c.stop(); err != nil {
				t.Error(err)
			}
			if n := in.told(t, log.text()); n != 1 && in.level > slog.LevelInfo {
				t.Errorf("%d lines tell it:\n%s", n, log.text())
			}
		})
	}
}

// movedClock is a clock that can be moved on.
type movedClock struct{ ahead atomic.Int64 }

func (c *movedClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

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
