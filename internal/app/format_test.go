package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/testkit/pgserver"
	"github.com/drover-project/drover/internal/testkit/stores"
)

// formatTold is what a controller tells of the format.
type formatTold struct {
	Format, Next, Newest int
	Auto                 bool
	Copy                 string
	Holds                []struct {
		Name, Why string
		Until     time.Time
	}
}

func (c cluster) format(t *testing.T) (f formatTold) {
	t.Helper()
	c.call(t, "QueryFormat", &f)
	return f
}

// awaitFormat asks a controller until the store has a format.
func (c cluster) awaitFormat(t *testing.T, want int) {
	t.Helper()
	again, limit := time.NewTicker(20*time.Millisecond), time.After(patience)
	defer again.Stop()
	for {
		f := c.format(t)
		if f.Format == want {
			return
		}
		select {
		case <-again.C:
		case <-limit:
			t.Fatalf("it is still %+v", f)
		}
	}
}

// raises are the events of raises, as "object by account: reason".
func (c cluster) raises(t *testing.T) (out []string) {
	t.Helper()
	var answer struct {
		Data [][][2]any `json:"data"`
	}
	c.call(t, "Query", &answer, "event", []string{"object", "surface", "reason", "before", "after"}, []any{"=", "what", "format.raise"})
	for _, row := range answer.Data {
		out = append(out, fmt.Sprintf("%v by %v: %v, %v to %v", row[0][1], row[1][1], row[2][1], row[3][1], row[4][1]))
	}
	return out
}

// placeOf is where a controller with a data directory and a URL has its store.
func placeOf(dir, url string) string {
	if url == "" {
		return dir
	}
	return url
}

func wantFormatAt(t *testing.T, place string, want int) {
	t.Helper()
	if n, err := app.FormatAt(t.Context(), place); err != nil || n != want {
		t.Errorf("the store has format %d, %v; want %d", n, err, want)
	}
	must(t, app.StoreCommand(), "check", place)
}

// ofBefore is a store with a cluster, made by this program, as one leaves it that knows of no formats; with the id of a job.
func ofBefore(t *testing.T, url string) (dir string, last int) {
	t.Helper()
	made := t.TempDir()
	c := start(t, made, false)
	last = c.delay(t)
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	app.AsOfBefore(t, made, placeOf(dir, url))
	return dir, last
}

// TestNewStoresBeginAtTheNewestFormat whoever is to raise it, and nobody needs to be told.
func TestNewStoresBeginAtTheNewestFormat(t *testing.T) {
	stores.Each(t, func(t *testing.T, url string) {
		dir := t.TempDir()
		var warned strings.Builder // by handlers, one at a time
		c := startWith(t, app.Options{Data: dir, Store: url, Log: slog.New(slog.NewTextHandler(&warned, &slog.HandlerOptions{Level: slog.LevelWarn}))})
		if f := c.format(t); f.Format != format.Newest || f.Next != f.Format || f.Newest != f.Format || len(f.Holds) != 0 {
			t.Errorf("it is %+v", f)
		}
		if told := c.raises(t); len(told) != 0 {
			t.Errorf("it was raised: %q", told)
		}
		if err := c.stop(); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(warned.String(), "format") {
			t.Errorf("at the first start somebody reads %s", warned.String())
		}
		wantFormatAt(t, placeOf(dir, url), format.Newest)
	})
}

// TestAStoreOfBeforeIsRaised at the start of a controller that is alone, once, and what is there goes on.
func TestAStoreOfBeforeIsRaised(t *testing.T) {
	stores.Each(t, func(t *testing.T, url string) {
		dir, last := ofBefore(t, url)
		wantFormatAt(t, placeOf(dir, url), format.First)
		for range 2 {
			c := startWith(t, app.Options{Data: dir, Store: url, AutoFinalize: true})
			if f := c.format(t); f.Format != format.Newest || !f.Auto {
				t.Errorf("it is %+v", f)
			}
			if told := c.raises(t); len(told) != 1 || !strings.Contains(told[0], fmt.Sprintf("%d by controller: every controller that was heard of in the last day can keep it, map[format:1] to map[format:%d]", format.Newest, format.Newest)) {
				t.Errorf("what is told of it: %q", told)
			}
			last++
			if next := c.delay(t); next != last {
				t.Errorf("behind job %d comes %d", last-1, next)
			}
			if err := c.stop(); err != nil {
				t.Fatal(err)
			}
			wantFormatAt(t, placeOf(dir, url), format.Newest)
		}
		wantCopy(t, dir, url == "")
	})
}

// wantCopy looks for a copy of the embedded store in a data directory, as it was before its format was raised to the newest.
func wantCopy(t *testing.T, dir string, want bool) {
	t.Helper()
	place := filepath.Join(dir, fmt.Sprintf("before-format-%d", format.Newest))
	if _, err := os.Stat(place); want != (err == nil) {
		t.Fatalf("a copy in %s: %v", place, err)
	}
	if want {
		wantFormatAt(t, place, format.First)
	}
}

// TestAStoreIsRaisedOnlyWithACopy, unless it is wanted without one: at a start, and by an operator, who is told what to do.
func TestAStoreIsRaisedOnlyWithACopy(t *testing.T) {
	var warned strings.Builder // by handlers, one at a time
	made, last := ofBefore(t, "")
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=8m"); err != nil {
		t.Skip("only root can make a small disk: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(small, 0); err != nil {
			t.Error(err)
		}
	})
	must(t, app.StoreCommand(), "copy", made, small)
	c := startWith(t, app.Options{Data: small, AutoFinalize: true, Log: slog.New(slog.NewTextHandler(&warned, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if f := c.format(t); f.Format != format.First || f.Next != format.Newest {
		t.Errorf("it is %+v", f)
	}
	if next := c.delay(t); next != last+1 {
		t.Errorf("behind job %d comes %d", last, next)
	}
	if err := c.dial(t).Call(t.Context(), "RaiseFormat", []any{}, new(any)); err == nil || !strings.Contains(err.Error(), "it needs up to ") || !strings.Contains(err.Error(), "--no-copy") {
		t.Errorf("an operator raised it: %v", err)
	}
	var f formatTold
	c.call(t, "RaiseFormat", &f, nil, true)
	if f.Format != format.First || f.Next != format.Newest || f.Copy != "" {
		t.Errorf("without a copy: %+v", f)
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(warned.String(), "the format of the store is not raised: there is no copy of before") {
		t.Errorf("nobody is told: %s", warned.String())
	}
	wantCopy(t, small, false)

	dir, _ := ofBefore(t, "")
	c = startWith(t, app.Options{Data: dir, AutoFinalize: true, NoCopy: true})
	if f := c.format(t); f.Format != format.Newest {
		t.Errorf("it is %+v", f)
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	wantCopy(t, dir, false)
}

// TestTheWayBackByTheCopy: a backup of it is restored elsewhere, and what was there before the raise goes on behind ids of its own.
func TestTheWayBackByTheCopy(t *testing.T) {
	dir, last := ofBefore(t, "")
	c := startWith(t, app.Options{Data: dir, AutoFinalize: true})
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	file, back := filepath.Join(t.TempDir(), "before.zst"), t.TempDir()
	must(t, app.BackupCommand(), "create", file, "--at", filepath.Join(dir, fmt.Sprintf("before-format-%d", format.Newest)))
	must(t, app.BackupCommand(), "restore", file, "--at", back)
	wantFormatAt(t, back, format.First)
	c = startWith(t, app.Options{Data: back})
	if f := c.format(t); f.Format != format.First {
		t.Errorf("it is %+v", f)
	}
	if next := c.delay(t); next <= last {
		t.Errorf("behind job %d comes %d", last, next)
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
}

// TestAnOperatorRaisesTheFormat where controllers are not to do it by themselves.
func TestAnOperatorRaisesTheFormat(t *testing.T) {
	dir, _ := ofBefore(t, "")
	c := startWith(t, app.Options{Data: dir})
	if f := c.format(t); f.Format != format.First || f.Next != format.Newest || f.Auto {
		t.Errorf("it is %+v", f)
	}
	var f formatTold
	c.call(t, "RaiseFormat", &f, [][]any{{"user", "all are upgraded", 1}})
	if f.Format != format.First || f.Next != format.Newest || f.Copy != filepath.Join(dir, fmt.Sprintf("before-format-%d", format.Newest)) {
		t.Errorf("raised: %+v", f)
	}
	wantFormatAt(t, f.Copy, format.First)
	if told := c.raises(t); len(told) != 1 || !strings.Contains(told[0], fmt.Sprintf("%d by luxi: all are upgraded", format.Newest)) {
		t.Errorf("what is told of it: %q", told)
	}
	c.call(t, "RaiseFormat", &f)
	if f.Format != format.Newest || f.Next != format.Newest || len(c.raises(t)) != 1 {
		t.Errorf("raised again: %+v", f)
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	wantFormatAt(t, dir, format.Newest)
}

// registered puts the registration of a controller into a store in the form of programs that know of no formats,
// and perhaps when it was heard of last; what is returned takes it out again.
func registered(t *testing.T, db *pgx.Conn, name string, heard time.Time) (gone func()) {
	t.Helper()
	put := func(kind string, value map[string]any) {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(t.Context(), "INSERT INTO object (kind, place, revision, at, value) SELECT $1, $2, revision, 0, $3 FROM head", kind, name, text); err != nil {
			t.Fatal(err)
		}
	}
	put("controller", map[string]any{"name": name, "instance": "life of " + name, "address": "127.0.0.1:1", "fingerprint": "00", "started": time.Now(), "version": "0.1.0"})
	if !heard.IsZero() {
		put("controller-heard", map[string]any{"instance": "life of " + name, "time": heard})
	}
	return func() {
		if _, err := db.Exec(t.Context(), "DELETE FROM object WHERE kind = 'controller' AND place = $1", name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFormatOfAGroup(t *testing.T) {
	server := pgserver.Start(t, false)
	t.Run("waits for programs of before", func(t *testing.T) { waitsForProgramsOfBefore(t, server.URL("before")) })
	t.Run("waits for a day", func(t *testing.T) { waitsForADay(t, server.URL("day")) })
	t.Run("who does not know it never leads", func(t *testing.T) { unfitNeverLeads(t, server.URL("unfit")) })
}

// waitsForProgramsOfBefore has a group whose third member may be of before: nothing is raised
// as long as it is there, and everything works.
func waitsForProgramsOfBefore(t *testing.T, url string) {
	t.Helper()
	ofBefore(t, url)
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	gone := registered(t, db, "c9", time.Time{})
	all := groupWith(t, []string{url, url}, func(o *app.Options) { o.AutoFinalize = true })
	for i, c := range all {
		f := c.format(t)
		if f.Format != format.First || f.Next != format.First || f.Newest != format.Newest || len(f.Holds) != 1 || f.Holds[0].Name != "c9" ||
			!strings.Contains(f.Holds[0].Why, "reads format 1 and writes 1, not 2") || time.Until(f.Holds[0].Until) < 23*time.Hour {
			t.Errorf("controller %d tells %+v", i+1, f)
		}
		var rows []struct {
			Name    string
			Formats format.Program
		}
		c.call(t, "QueryMasters", &rows)
		if len(rows) != 3 || rows[0].Formats != format.Own() || rows[2].Formats != format.Told(nil) {
			t.Errorf("controller %d lists %+v", i+1, rows)
		}
		err := c.dial(t).Call(t.Context(), "RaiseFormat", []any{}, new(any))
		if err == nil || !strings.Contains(err.Error(), "stays 1: c9: its program reads format 1") {
			t.Errorf("controller %d raises it: %v", i+1, err)
		}
		c.delay(t)
	}
	gone()
	all[1].awaitFormat(t, format.Newest)
	if told := all[1].raises(t); len(told) != 1 {
		t.Errorf("what is told of it: %q", told)
	}
	if err := all[0].stop(); err != nil {
		t.Error(err)
	}
	all[1].delay(t)
	if f := all[1].format(t); f.Format != format.Newest {
		t.Errorf("who took over tells %+v", f)
	}
	if err := all[1].stop(); err != nil {
		t.Error(err)
	}
	wantFormatAt(t, url, format.Newest)
}

// waitsForADay: what an earlier leader noted counts.
func waitsForADay(t *testing.T, url string) {
	t.Helper()
	ofBefore(t, url)
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	registered(t, db, "c8", time.Now().Add(-2*format.Grace))
	recent := registered(t, db, "c9", time.Now().Add(-format.Grace/2))
	c := groupWith(t, []string{url}, func(o *app.Options) { o.AutoFinalize = true })[0]
	if f := c.format(t); len(f.Holds) != 1 || f.Holds[0].Name != "c9" || time.Until(f.Holds[0].Until) > format.Grace/2 {
		t.Errorf("it is %+v", f)
	}
	recent()
	c.awaitFormat(t, format.Newest)
	var noted []string
	rows, err := db.Query(t.Context(), "SELECT place FROM object WHERE kind = 'controller-heard' ORDER BY place")
	if err == nil {
		noted, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil || strings.Join(noted, " ") != "c1 c8" {
		t.Errorf("noted are %v, %v", noted, err)
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}

// unfitNeverLeads gives a store a format that this program does not know, and takes it away again.
func unfitNeverLeads(t *testing.T, url string) {
	t.Helper()
	first := groupWith(t, []string{url}, func(*app.Options) {})[0]
	first.delay(t)
	db, err := pgx.Connect(t.Context(), url)
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
	dir := t.TempDir()
	second := startWith(t, app.Options{Data: dir, Store: url, Name: "c2", Peer: "127.0.0.1:0", LUXI: filepath.Join(dir, "l")})
	why := fmt.Sprintf("this controller cannot lead: the store has format %d, and this program reads 1-%d", format.Newest+1, format.Newest)
	second.awaitNote(t, why)
	second.delay(t) // by the one that leads
	var rows []struct{ Name, Role, Note string }
	second.call(t, "QueryMasters", &rows)
	if len(rows) != 2 || rows[1].Role != "standby" || !strings.HasPrefix(rows[1].Note, why) || rows[0].Note != "" {
		t.Errorf("it is shown as %+v", rows)
	}
	if err := first.stop(); err != nil {
		t.Error(err)
	}
	// Nobody else is there, and it leaves the lead alone; so does one that is alone.
	if err := app.Run(t.Context(), app.Options{Data: t.TempDir(), Store: url, RAPI: "127.0.0.1:0", Nodes: 1, Out: io.Discard, Log: slog.New(slog.DiscardHandler)}); !fault.Is(err, fault.Unsupported) {
		t.Errorf("one that is alone: %v", err)
	}
	if _, text := second.page(t, "/metrics"); !strings.Contains(text, "\ndrover_leader 0\n") {
		t.Error("it leads")
	}
	set(format.Newest)
	second.delay(t)
	if _, h := second.health(t); len(h.Notes) != 0 {
		t.Errorf("it leads, and tells %+v", h.Notes)
	}
	if err := second.stop(); err != nil {
		t.Error(err)
	}
}

// awaitNote waits until a controller, which is ready, notes something.
func (c cluster) awaitNote(t *testing.T, want string) {
	t.Helper()
	again, limit := time.NewTicker(20*time.Millisecond), time.After(patience)
	defer again.Stop()
	for {
		_, h := c.health(t)
		for _, n := range h.Notes {
			if h.Ready && n.Part == "format" && strings.HasPrefix(n.Text, want) && !n.Since.IsZero() {
				return
			}
		}
		select {
		case <-again.C:
		case <-limit:
			t.Fatalf("it tells %+v", h)
		}
	}
}

// TestNodesFollowTheFormat: what a node has is where programs of before look for it until the format is raised, and under UUIDs
// from then on; it is the same to whoever asks, and has the mark of the job that made it.
func TestNodesFollowTheFormat(t *testing.T) {
	dir, _ := ofBefore(t, "")
	c := startWith(t, app.Options{Data: dir})
	node := filepath.Join(dir, "nodes", "node1.drover.example")
	run := func(op map[string]any) (id int) {
		t.Helper()
		op["instance_name"], op["reason"] = "one", []any{}
		c.call(t, "SubmitJob", &id, []any{op})
		c.awaitStatus(t, id, "success")
		return id
	}
	made := run(map[string]any{"OP_ID": "OP_INSTANCE_CREATE", "mode": "create", "disk_template": "diskless", "disks": []any{}, "nics": []any{},
		"os_type": "noop", "pnode": "node1.drover.example", "name_check": false, "ip_check": false})
	if _, err := os.Stat(filepath.Join(node, "hypervisor", "one.json")); err != nil {
		t.Errorf("a program of before does not find it: %v", err)
	}
	var f formatTold
	c.call(t, "RaiseFormat", &f)
	run(map[string]any{"OP_ID": "OP_INSTANCE_SHUTDOWN", "timeout": 0})
	if info, err := os.Stat(filepath.Join(node, "hypervisor")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("a program of before finds an empty node: %v, %v", info, err)
	}
	files, err := filepath.Glob(filepath.Join(node, "instances", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the node has %q, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	var record struct {
		UUID, Name, State string
		MadeBy            struct {
			Life string
			Job  int
		} `json:"made_by"`
	}
	if err == nil {
		err = json.Unmarshal(text, &record)
	}
	if err != nil || record.Name != "one" || record.UUID+".json" != filepath.Base(files[0]) || record.State != "stopped" || record.MadeBy.Job != made || record.MadeBy.Life == "" {
		t.Errorf("it is %s, %v", text, err)
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	c = startWith(t, app.Options{Data: dir})
	run(map[string]any{"OP_ID": "OP_INSTANCE_STARTUP"})
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	if life := app.LifeAt(t, dir); !strings.Contains(life, record.MadeBy.Life) {
		t.Errorf("it was made in the life %s of the store, which has %s", record.MadeBy.Life, life)
	}
}
