package app_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// command carries out a command of the app and returns what it wrote.
func command(t *testing.T, cmd *cobra.Command, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func must(t *testing.T, cmd *cobra.Command, args ...string) string {
	t.Helper()
	out, err := command(t, cmd, args...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// delay submits a job, waits for its end, and returns its id.
func (c cluster) delay(t testing.TB) (id int) {
	t.Helper()
	c.call(t, "SubmitJob", &id, []any{map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0.001, "reason": [][]any{{"user", "für Müller", 1}}}})
	c.awaitStatus(t, id, "success")
	return id
}

// leaderEpoch returns the epoch under which a cluster is led.
func (c cluster) leaderEpoch(t *testing.T) string {
	t.Helper()
	_, text := c.page(t, "/metrics")
	_, rest, _ := strings.Cut(text, "\ndrover_leader_epoch ")
	epoch, _, _ := strings.Cut(rest, "\n")
	return epoch
}

// TestStateTravels takes a cluster from an embedded store by a backup to
// PostgreSQL, and from there by a copy back to an embedded one.
func TestStateTravels(t *testing.T) {
	server := pgserver.Start(t, true)
	embedded, file := t.TempDir(), filepath.Join(t.TempDir(), "backup")
	c := start(t, embedded, false)
	first := c.delay(t)

	// While the controller runs.
	if out := must(t, app.BackupCommand(), "create", file, "--at", embedded); !strings.Contains(out, " objects as of revision ") {
		t.Errorf("created: %s", out)
	}
	if out := must(t, app.StoreCommand(), "check", embedded); !strings.Contains(out, "are consistent") {
		t.Errorf("checked: %s", out)
	}
	if _, err := command(t, app.StoreCommand(), "copy", embedded, t.TempDir()); !fault.Is(err, fault.Busy) {
		t.Errorf("a store was copied while it was in use: %v", err)
	}
	lost := c.delay(t) // the backup does not know of it
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	must(t, app.BackupCommand(), "verify", file)

	url := server.URL("restored")
	for _, cmd := range []func() (string, error){
		func() (string, error) { return command(t, app.StoreCommand(), "check", url) },
		func() (string, error) { return command(t, app.StoreCommand(), "copy", url, t.TempDir()) },
		func() (string, error) {
			return command(t, app.BackupCommand(), "create", filepath.Join(t.TempDir(), "b"), "--at", url)
		},
	} {
		if out, err := cmd(); !fault.Is(err, fault.NotFound) {
			t.Errorf("a database without a store: %v, %s", err, out)
		}
	}
	must(t, app.BackupCommand(), "restore", file, "--at", url)
	if _, err := command(t, app.BackupCommand(), "restore", file, "--at", url); !fault.Is(err, fault.WrongState) {
		t.Errorf("a store was overwritten: %v", err)
	}
	nodes := t.TempDir()
	c = startWith(t, app.Options{Data: nodes, Store: url})
	var rows [][]any
	c.call(t, "QueryJobs", &rows, nil, []string{"id", "status"})
	if len(rows) != 1 || rows[0][0] != float64(first) || rows[0][1] != "success" {
		t.Errorf("the restored cluster has the jobs %v", rows)
	}
	if next := c.delay(t); next <= lost+900_000 {
		t.Errorf("job %d of the restored cluster may have been given out before", next)
	}
	if epoch := c.leaderEpoch(t); !strings.HasPrefix(epoch, "1.00000") && len(epoch) < 7 {
		t.Errorf("the restored cluster is led with epoch %s", epoch)
	}
	if _, err := command(t, app.StoreCommand(), "copy", url, t.TempDir()); !fault.Is(err, fault.Busy) {
		t.Errorf("a store was copied while it was in use: %v", err)
	}
	last := c.delay(t)
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}

	back := t.TempDir()
	if out := must(t, app.StoreCommand(), "copy", url, back); !strings.Contains(out, "and compared them") {
		t.Errorf("copied: %s", out)
	}
	for _, place := range []string{url, back} {
		must(t, app.StoreCommand(), "check", place)
	}
	c = start(t, back, false)
	if next := c.delay(t); next != last+1 {
		t.Errorf("behind job %d, the copy gives out %d", last, next)
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}

func TestPlacesThatHoldNoStore(t *testing.T) {
	empty := t.TempDir()
	for _, args := range [][]string{{"check", empty}, {"copy", empty, t.TempDir()}} {
		if _, err := command(t, app.StoreCommand(), args...); !fault.Is(err, fault.NotFound) {
			t.Errorf("%v: %v", args, err)
		}
	}
	if _, err := command(t, app.BackupCommand(), "create", filepath.Join(empty, "b"), "--at", empty); !fault.Is(err, fault.NotFound) {
		t.Errorf("a backup of nothing: %v", err)
	}
	for _, c := range []struct {
		cmd  *cobra.Command
		args []string
	}{
		{app.StoreCommand(), []string{"check", "mysql://x"}}, {app.StoreCommand(), []string{"copy", "mysql://x", empty}},
		{app.BackupCommand(), []string{"create", filepath.Join(empty, "b"), "--at", "mysql://x"}},
	} {
		if _, err := command(t, c.cmd, c.args...); !fault.Is(err, fault.Invalid) {
			t.Errorf("%v: %v", c.args, err)
		}
	}
	if err := app.Run(t.Context(), app.Options{Data: empty, Store: "mysql://x", Out: io.Discard, Log: slog.New(slog.DiscardHandler)}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a store of no kind: %v", err)
	}
}

// TestARestoreBesideALeftLog: the database was lost and its log was not; what the backup says counts, and the log is kept.
func TestARestoreBesideALeftLog(t *testing.T) {
	data, file := t.TempDir(), filepath.Join(t.TempDir(), "backup")
	c := start(t, data, false)
	c.delay(t)
	must(t, app.BackupCommand(), "create", file, "--at", data)
	c.delay(t)
	dir := filepath.Join(data, "store")
	log, err := os.ReadFile(filepath.Join(dir, "drover.db-wal"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, "drover.db")), os.WriteFile(filepath.Join(dir, "drover.db-wal"), log, 0o600)); err != nil {
		t.Fatal(err)
	}
	out := must(t, app.BackupCommand(), "restore", file, "--at", data)
	if aside := filepath.Join(dir, "left-behind"); !strings.Contains(out, "is in "+aside) {
		t.Errorf("restored: %s", out)
	} else if kept, err := os.ReadFile(filepath.Join(aside, "drover.db-wal")); err != nil || !bytes.Equal(kept, log) {
		t.Errorf("the log is not what it was: %v", err)
	}
	must(t, app.StoreCommand(), "check", data)
}
