package app_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/daemon"
	"github.com/drover-project/drover/internal/health"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// groupIncidents are what happens to several controllers, each with the alerts that fire meanwhile.
var groupIncidents = []struct {
	name   string
	make   func(t *testing.T, url string, alerts []string)
	alerts []string
}{
	{"the lead changes", leadChanges, []string{"DroverLeadChanges"}},
	{"a controller is gone", controllerIsGone, []string{"DroverControllerDown"}},
	{"an upgrade is taken back", upgradeIsTakenBack, []string{"DroverNoLeader"}},
	{"the store is slow", storeIsSlow, []string{"DroverStoreSlow"}},
	{"a standby lags", standbyLags, []string{"DroverStandbyLags"}},
	{"a clock is wrong", clockIsWrong, []string{"DroverClocksDiffer"}},
	{"two lead", twoLead, []string{"DroverTwoLeaders"}},
}

// TestIncidentsOfAGroup makes what happens to several controllers by its causes, as TestIncidents what happens to one.
func TestIncidentsOfAGroup(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t, false)
	for i, in := range groupIncidents {
		t.Run(in.name, func(t *testing.T) { in.make(t, server.URL(fmt.Sprintf("incident%d", i)), in.alerts) })
	}
}

// told checks that a log has a line of a message at a level.
func told(t *testing.T, log *heldLog, level slog.Level, text string) {
	t.Helper()
	in := incident{level: level, log: text}
	until(t, "that the log tells: "+text, func() bool { return in.told(t, log.text()) > 0 })
}

// leadChanges has the lead go to and fro.
func leadChanges(t *testing.T, url string, alerts []string) {
	t.Helper()
	log, clock := &heldLog{}, &movedClock{}
	clock.ahead.Store(int64(-3 * time.Minute)) // both were started a while ago
	all := groupWith(t, []string{url, url}, func(o *app.Options) {
		o.Log = daemon.NewLog(log, "json", slog.LevelInfo, nil)
		*o = o.WithClock(clock.now)
	})
	clock.ahead.Store(0)
	l, both := newTimeline(t), watched{"c1": all[0], "c2": all[1]}
	l.show(90, both)
	l.fire(90)
	for i := range 5 {
		before := both.pages(t.Context())
		all[(i+1)%2].call(t, "MasterFailover", new(any))
		all[(i+1)%2].delay(t)
		after := both.pages(t.Context())
		// They are not asked at the same moment: for a while both seem to lead.
		l.stand(1, pages{"c1": []string{before["c1"], after["c1"]}[i%2], "c2": []string{after["c2"], before["c2"]}[i%2]})
		l.stand(3, after)
	}
	for _, c := range all {
		if r := c.awaitLine(t, health.Note, "lead", "c2 leads for "); !firstThree(r, "lead") || !strings.Contains(fmt.Sprint(r.Lines[:3]), "another led until then") {
			t.Errorf("the first lines are %+v", r.Lines[:3])
		}
	}
	told(t, log, slog.LevelWarn, "this controller no longer leads, and stands by")
	told(t, log, slog.LevelInfo, "this controller leads")
	l.show(10, both)
	l.fire(30, alerts...)
	l.show(90, both)
	l.fire(30)
	l.judge()
	for _, c := range all {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
}

// controllerIsGone ends the one that leads.
func controllerIsGone(t *testing.T, url string, alerts []string) {
	t.Helper()
	all := groupOf(t, url, 2)
	l, both := newTimeline(t), watched{"c1": all[0], "c2": all[1]}
	l.show(30, both)
	l.fire(30)
	if err := all[0].stop(); err != nil {
		t.Error(err)
	}
	all[1].delay(t)
	l.show(30, both)
	l.fire(30, alerts...)
	l.judge()
	if err := all[1].stop(); err != nil {
		t.Error(err)
	}
}

// upgradeIsTakenBack has a program stand by that does not know the format of the store, and the last one end that does.
func upgradeIsTakenBack(t *testing.T, at string, alerts []string) {
	t.Helper()
	newer := groupWith(t, []string{at}, func(*app.Options) {})[0]
	db, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	set := func(n int) {
		if _, err := db.Exec(t.Context(), "UPDATE object SET value = $1 WHERE kind = $2 AND place = $3", format.Encode(n), string(store.FormatKey.Kind), store.FormatKey.ID); err != nil {
			t.Fatal(err)
		}
	}
	set(format.Newest + 1)
	log, dir := &heldLog{}, t.TempDir()
	older := startWith(t, app.Options{Data: dir, Store: at, Name: "c2", Peer: "127.0.0.1:0", LUXI: filepath.Join(dir, "l"), Log: daemon.NewLog(log, "json", slog.LevelInfo, nil)})
	l := newTimeline(t)
	for _, c := range []cluster{newer, older} {
		if r := c.awaitLine(t, health.Problem, "member", "controller c2 cannot lead"); r.Well || !firstThree(r, "member") {
			t.Errorf("the first lines are %+v", r.Lines[:3])
		}
	}
	told(t, log, slog.LevelError, "this controller cannot lead, and forwards everything to one that can")
	l.show(30, watched{"c1": newer, "c2": older})
	l.fire(30)
	if err := newer.stop(); err != nil {
		t.Error(err)
	}
	if r := older.awaitLine(t, health.Problem, "lead", "no controller leads"); !firstThree(r, "lead") || !firstThree(r, "member") {
		t.Errorf("the first lines are %+v", r.Lines[:3])
	}
	l.show(30, watched{"c2": older})
	l.fire(25, alerts...)
	set(format.Newest)
	older.delay(t)
	l.show(30, watched{"c2": older})
	l.fire(25)
	l.judge()
	if err := older.stop(); err != nil {
		t.Error(err)
	}
}

// storeIsSlow has each commit wait for what another of the database's users holds.
func storeIsSlow(t *testing.T, at string, alerts []string) {
	t.Helper()
	c := groupWith(t, []string{at}, func(*app.Options) {})[0]
	db, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	l, of := newTimeline(t), watched{"c1": c}
	l.show(30, of)
	l.fire(30)
	for range 5 {
		held := make(chan error, 1)
		tx, err := db.Begin(t.Context())
		if err == nil {
			_, err = tx.Exec(t.Context(), "SELECT revision FROM head FOR UPDATE")
		}
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := tx.Exec(context.Background(), "SELECT pg_sleep(0.8)") // by the database's clock
			held <- errors.Join(err, tx.Commit(context.Background()))
		}()
		c.delay(t)
		if err := <-held; err != nil {
			t.Fatal(err)
		}
		l.show(3, of)
	}
	l.fire(15, alerts...)
	c.delay(t)
	l.show(60, of)
	l.fire(30)
	l.judge()
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}

// standbyLags has one that stands by reach its database by a way that carries next to nothing.
func standbyLags(t *testing.T, at string, alerts []string) {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	way := newLine(t, filepath.Join(q.Get("host"), ".s.PGSQL.5432"))
	host, port, _ := net.SplitHostPort(way.listener.Addr().String()) // an address has both
	q.Set("host", host)
	q.Set("port", port)
	all := groupWith(t, []string{at, "postgres:///?" + q.Encode()}, func(*app.Options) {})
	l, both := newTimeline(t), watched{"c1": all[0], "c2": all[1]}
	l.show(30, both)
	l.fire(30)
	way.thin.Store(true)
	for range 150 {
		all[0].call(t, "SubmitJob", new(any), []any{map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0.001, "reason": [][]any{{"user", strings.Repeat("x", 8000), 1}}}})
	}
	for _, c := range all {
		if r := c.awaitLine(t, health.Problem, "member", "controller c2 is "); r.Well || !firstThree(r, "member") {
			t.Errorf("the first lines are %+v", r.Lines[:3])
		}
	}
	until(t, "that it shows how far behind it is", func() bool {
		_, lag, _ := strings.Cut(all[1].asked(t.Context()), "\ndrover_feed_lag_revisions{reader=\"picture\"} ")
		n, _ := strconv.Atoi(strings.SplitN(lag, "\n", 2)[0])
		return n > 100
	})
	l.show(30, both)
	l.fire(25, alerts...)
	way.thin.Store(false)
	until(t, "that it has caught up", func() bool {
		var r health.Report
		all[0].call(t, "QueryHealth", &r)
		return r.Well || !slices.ContainsFunc(r.Lines, func(l health.Line) bool { return l.Part == "member" && l.State == health.Problem })
	})
	l.show(30, both)
	l.fire(25)
	l.judge()
	for _, c := range slices.Backward(all) {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
}

// clockIsWrong has a controller whose clock is ahead of the database's.
func clockIsWrong(t *testing.T, url string, alerts []string) {
	t.Helper()
	log, clock := &heldLog{}, &movedClock{}
	clock.ahead.Store(int64(time.Hour))
	all := groupWith(t, []string{url, url}, func(o *app.Options) {
		if o.Name == "c2" {
			o.Log = daemon.NewLog(log, "json", slog.LevelInfo, nil)
			*o = o.WithClock(clock.now)
		}
	})
	l, both := newTimeline(t), watched{"c1": all[0], "c2": all[1]}
	for _, c := range all {
		if r := c.awaitLine(t, health.Problem, "clock", "the clock of c2 is 1h0m0s ahead"); r.Well || !firstThree(r, "clock") {
			t.Errorf("the first lines are %+v", r.Lines[:3])
		}
	}
	told(t, log, slog.LevelWarn, "the clock of this machine is not that of the database")
	l.show(30, both)
	l.fire(25, alerts...)
	clock.ahead.Store(0)
	l.show(30, both)
	l.fire(25)
	l.judge()
	if r := all[0].awaitLine(t, health.OK, "member", "2 controllers (c1, c2)"); !r.Well {
		t.Errorf("of clocks that agree: %+v", r)
	}
	for _, c := range slices.Backward(all) {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
}

// twoLead watches two controllers as one group that have a store each.
func twoLead(t *testing.T, _ string, alerts []string) {
	t.Helper()
	one, other := start(t, t.TempDir(), false), start(t, t.TempDir(), false)
	l := newTimeline(t)
	l.show(30, watched{"c1": one})
	l.fire(30)
	l.show(30, watched{"c1": one, "c2": other})
	l.fire(25, alerts...)
	l.judge()
	for _, c := range []cluster{one, other} {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
}
