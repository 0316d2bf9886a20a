package app_test

import (
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/health"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// awaitLine asks how the cluster is until a line says so, and returns the report. What a line says may take a moment to be known.
func (c cluster) awaitLine(t *testing.T, state health.State, part, what string) health.Report {
	t.Helper()
	again, limit := time.NewTicker(20*time.Millisecond), time.After(patience)
	defer again.Stop()
	for {
		var r health.Report
		c.call(t, "QueryHealth", &r)
		if slices.ContainsFunc(r.Lines, func(l health.Line) bool {
			return l.State == state && l.Part == part && strings.Contains(l.What+" "+l.Why, what)
		}) {
			return r
		}
		select {
		case <-again.C:
		case <-limit:
			t.Fatalf("nothing says %s %s %q in %+v", state, part, what, r)
		}
	}
}

// firstThree tells whether one of the first three lines is about a part.
func firstThree(r health.Report, part string) bool {
	return slices.ContainsFunc(r.Lines[:min(3, len(r.Lines))], func(l health.Line) bool { return l.Part == part })
}

// TestHealthOfAnIncident makes what may happen to a controller that is alone, one thing after the other, and has it named.
func TestHealthOfAnIncident(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pem, users := filepath.Join(dir, "rapi.pem"), filepath.Join(dir, "users")
	if _, err := rapi.OpenCertificate(pem, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(users, []byte("op secret write\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := startWith(t, app.Options{Data: filepath.Join(dir, "data"), Name: "alone", Certificate: pem, Users: users})
	r := c.awaitLine(t, health.OK, "member", "controller alone, version ")
	for _, l := range r.Lines {
		if l.State == health.Problem && l.Part != "disk" { // which may be full where this runs
			t.Errorf("of a new cluster it is said: %+v", l)
		}
	}
	c.awaitLine(t, health.OK, "disk", "; the store takes ")
	c.call(t, "SetDrainFlag", new(any), true, []any{[]any{"gnt:user", "new disks", 1}})
	if r := c.awaitLine(t, health.Problem, "queue", "new disks"); r.Well || !firstThree(r, "queue") {
		t.Errorf("of a drained queue: %+v", r)
	}
	c.call(t, "SetDrainFlag", new(any), false)
	if err := os.WriteFile(users, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := c.awaitLine(t, health.Problem, "accounts", users+" is empty"); !firstThree(r, "accounts") {
		t.Errorf("of an empty file of accounts: %+v", r)
	}
	if err := os.WriteFile(users, []byte("# nobody\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := c.awaitLine(t, health.OK, "queue", "takes jobs"); slices.ContainsFunc(r.Lines, func(l health.Line) bool { return l.Part == "accounts" }) {
		t.Errorf("that nobody is to have an account is a problem: %+v", r)
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}

// TestHealthOfBackups: that there is none is told as soon as a directory for them is there, and the newest is known when it is made.
func TestHealthOfBackups(t *testing.T) {
	dir := t.TempDir()
	data, backups := filepath.Join(dir, "data"), filepath.Join(dir, "backups")
	c := startWith(t, app.Options{Data: data, Name: "alone", Backups: backups})
	if r := c.awaitLine(t, health.Note, "backup", "alone has no directory "+backups); slices.ContainsFunc(r.Lines, func(l health.Line) bool { return l.State == health.Problem && l.Part == "backup" }) {
		t.Errorf("where nobody wants backups: %+v", r)
	}
	if _, text := c.page(t, "/metrics"); strings.Contains(text, "drover_backup_age_seconds") {
		t.Error("where nobody wants backups there is a figure of them")
	}
	if err := os.Mkdir(backups, 0o700); err != nil {
		t.Fatal(err)
	}
	if r := c.awaitLine(t, health.Problem, "backup", "alone has none in "+backups); r.Well || !firstThree(r, "backup") {
		t.Errorf("of a directory without any: %+v", r)
	}
	if _, text := c.page(t, "/metrics"); !strings.Contains(text, "\ndrover_backup_age_seconds +Inf\n") {
		t.Errorf("the age of none is\n%s", text)
	}
	t.Setenv("DROVER_LUXI", c.ready.LUXI)
	must(t, app.BackupCommand(), "create", backups, "--at", data, "--if-leading")
	if out := must(t, app.BackupCommand(), "verify", backups, "--if-leading", "--restore-into", dir); !strings.Contains(out, "found their store consistent") {
		t.Errorf("its trial says %s", out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("a trial left %v, %v", left, err)
	}
	c.awaitLine(t, health.OK, "backup", "the newest of 1 in "+backups+" of alone is ")
	if _, text := c.page(t, "/metrics"); strings.Contains(text, "\ndrover_backup_age_seconds +Inf\n") || !strings.Contains(text, "\ndrover_backup_age_seconds ") {
		t.Errorf("the age of one is\n%s", text)
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}

// TestHealthOfAGroup: whoever is asked names a controller that is gone, and a database that is away.
func TestHealthOfAGroup(t *testing.T) {
	t.Parallel()
	at := pgserver.Start(t, false).URL("health")
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	way := newLine(t, filepath.Join(q.Get("host"), ".s.PGSQL.5432"))
	host, port, _ := net.SplitHostPort(way.listener.Addr().String()) // an address has both
	q.Set("host", host)
	q.Set("port", port)
	log := &heldLog{}
	all := groupWith(t, slices.Repeat([]string{"postgres:///?" + q.Encode()}, 2), func(o *app.Options) { o.Log = slog.New(slog.NewTextHandler(log, nil)) })
	until(t, "that the log tells who stands by", func() bool { return strings.Contains(log.text(), `msg="this controller stands by" name=c2 leader=c1 `) })
	for _, c := range all {
		c.awaitLine(t, health.OK, "lead", "c1 leads for ")
		c.awaitLine(t, health.OK, "member", "2 controllers (c1, c2), version ")
		c.awaitLine(t, health.OK, "certificate", "good until ")
	}
	db, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(t.Context()) }()
	gone := registered(t, db, "c9", time.Time{})
	for _, c := range all {
		if r := c.awaitLine(t, health.Problem, "member", "controller c9 does not answer"); r.Well || !firstThree(r, "member") {
			t.Errorf("of one that is gone: %+v", r)
		}
	}
	gone()
	way.set(true)
	for _, c := range all {
		if r := c.awaitLine(t, health.Problem, "store", "the store "); r.Lines[0].Part != "store" {
			t.Errorf("of a database that is away: %+v", r)
		}
	}
	if r := all[1].awaitLine(t, health.Problem, "lead", "c1 does not know whether it still leads"); !firstThree(r, "store") || !firstThree(r, "lead") {
		t.Errorf("when nobody hears who leads: %+v", r)
	}
	way.set(false)
	all[1].awaitLine(t, health.OK, "store", "works")
	for _, c := range all {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
}
