package app_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
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
			r := c.awaitLine(t, health.Problem, in.part, in.says)
			if r.Well || !firstThree(r, in.part) {
				t.Errorf("the first lines are %+v", r.Lines[:3])
			}
			until(t, "that the log tells it", func() bool { return in.told(t, log.text()) > 0 })
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
