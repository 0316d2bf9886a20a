//go:build upgrade

package upgrade_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/store/postgres"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// buildOf builds a program of before.
func buildOf(t *testing.T, p program) (bin string) {
	t.Helper()
	dir := t.TempDir()
	archive := filepath.Join(dir, "tree.tar")
	bin = filepath.Join(dir, "drover")
	for _, cmd := range []*exec.Cmd{
		exec.CommandContext(t.Context(), "git", "-C", testkit.Root(t), "archive", "-o", archive, p.revision),
		exec.CommandContext(t.Context(), "tar", "-xf", archive, "-C", dir),
		exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, "./cmd/drover"),
	} {
		if filepath.Base(cmd.Path) == "go" {
			cmd.Dir = dir
			for _, name := range p.without {
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			for name, change := range p.changes {
				changeOnce(t, filepath.Join(dir, name), change)
			}
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
	}
	return bin
}

// changeOnce puts a text in a file in the place of another, which is there once.
func changeOnce(t *testing.T, file string, change [2]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil && strings.Count(string(text), change[0]) != 1 {
		err = fmt.Errorf("%q is in %s %d times", change[0], file, strings.Count(string(text), change[0]))
	}
	if err == nil {
		err = os.WriteFile(file, []byte(strings.Replace(string(text), change[0], change[1], 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// says runs a command that is to succeed and to say something.
func says(t *testing.T, want, bin string, args ...string) {
	t.Helper()
	if text, err := say(t, bin, args...); err != nil || !strings.Contains(text, want) {
		t.Fatalf("%v: %v\n%s\nwant %q", args, err, text, want)
	}
}

// refuses runs a command that is to fail and to say something.
func refuses(t *testing.T, want, bin string, args ...string) {
	t.Helper()
	if text, err := say(t, bin, args...); err == nil || !strings.Contains(text, want) {
		t.Fatalf("%v: %v\n%s\nwant %q", args, err, text, want)
	}
}

// works has a job done by whoever leads, over the socket of one controller.
func works(t *testing.T, d *testkit.Dev) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*testkit.Patience())
	defer cancel()
	client, err := luxiwire.Dial(ctx, d.Ready.LUXI)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	var id int
	op := map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0.01, "reason": [][]any{{"user", "x", 1}}}
	if err := client.Resend(ctx, 20, "SubmitJob", []any{[]any{op}, fmt.Sprint(time.Now().UnixNano())}, &id); err != nil {
		t.Fatal(err)
	}
	for status := ""; status != "success"; {
		var rows [][]string
		if err := client.Resend(ctx, 20, "QueryJobs", []any{[]int{id}, []string{"status"}}, &rows); err != nil {
			t.Fatal(err)
		}
		if status = rows[0][0]; status == "error" || ctx.Err() != nil {
			t.Fatalf("job %d is %s", id, status)
		}
	}
}

// TestUpgrade holds this program and the last one of each format before its own against one store.
func TestUpgrade(t *testing.T) {
	now := testkit.Build(t)
	for i, p := range lastOf {
		knows := format.First + i
		before := buildOf(t, p)
		t.Run(fmt.Sprintf("an embedded store of format %d", knows), func(t *testing.T) { embeddedStore(t, now, before, knows) })
		if knows == format.First {
			t.Run("a group", func(t *testing.T) { ofAGroup(t, now, before) })
		}
	}
}

// embeddedStore: programs take turns on it until it is raised, and then the one of before, which knows formats up to one, refuses.
func embeddedStore(t *testing.T, now, before string, knows int) {
	t.Helper()
	data := t.TempDir()
	turn := func(bin string, args ...string) *testkit.Dev {
		t.Helper()
		d := startDev(t, bin, data, args...)
		works(t, d)
		return d
	}
	stop := func(d *testkit.Dev, how func()) {
		t.Helper()
		how()
		_ = d.Gone() // one that was killed says so
	}
	d := turn(before)
	says(t, "", before, "--luxi", d.Ready.LUXI, "instance", "add", "shop1", "--os", "noop")
	stop(d, d.Kill)
	d = turn(now, "--auto-finalize=false")
	says(t, fmt.Sprintf("It can be raised to %d", format.Newest), now, "--luxi", d.Ready.LUXI, "cluster", "format", "info")
	says(t, "shop1", now, "--luxi", d.Ready.LUXI, "instance", "list")
	says(t, "", now, "--luxi", d.Ready.LUXI, "instance", "stop", "shop1")
	says(t, "", now, "--luxi", d.Ready.LUXI, "instance", "add", "shop2", "--os", "noop")
	says(t, "", now, "--luxi", d.Ready.LUXI, "instance", "stop", "shop2")
	if knows < format.Images { // what it brings waits
		refuses(t, "needs format", now, "--luxi", d.Ready.LUXI, "image", "add", "early", filepath.Join(data, "none"), "--node", "node1.drover.example")
	}
	if knows < format.Mirrors {
		refuses(t, "needs format", now, "--luxi", d.Ready.LUXI, "instance", "failover", "shop1", "--yes")
	}
	stop(d, d.Kill)
	d = turn(before) // nothing has changed for it
	says(t, "shop1", before, "--luxi", d.Ready.LUXI, "instance", "list")
	says(t, "", before, "--luxi", d.Ready.LUXI, "instance", "start", "shop1") // nodes have what it expects, too
	says(t, "", before, "--luxi", d.Ready.LUXI, "instance", "rename", "shop2", "shop3", "--yes")
	stop(d, d.Terminate)
	d = turn(now)
	says(t, "", now, "--luxi", d.Ready.LUXI, "instance", "stop", "shop1")
	says(t, "", now, "--luxi", d.Ready.LUXI, "instance", "start", "shop3")
	says(t, "", now, "--luxi", d.Ready.LUXI, "cluster", "verify")
	says(t, "It is the newest", now, "--luxi", d.Ready.LUXI, "cluster", "format", "info")
	says(t, "format.raise", now, "--luxi", d.Ready.LUXI, "query", "event", "-o", "what")
	says(t, "shop1", now, "--luxi", d.Ready.LUXI, "instance", "list")
	stop(d, d.Terminate)
	newer := fmt.Sprintf("and this program reads %s", format.Range{Oldest: format.First, Newest: knows})
	if knows == format.First { // its schema has another number, too
		newer = "this program knows versions up to "
		refuses(t, newer, before, "store", "check", data)
	}
	refuses(t, newer, before, "dev", "--data", data, "--rapi", "127.0.0.1:0", "--demo=false")
	says(t, "are consistent", now, "store", "check", data)
	d = turn(now)
	stop(d, d.Terminate)
}

// group is a number of controllers over one database.
type group struct {
	*testing.T
	url, shared string
}

// start starts a controller of the group, by a program.
func (g *group) start(bin, name string) *testkit.Dev {
	g.Helper()
	dir, err := os.MkdirTemp("", "drv") // sockets need short paths
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { _ = os.RemoveAll(dir) })
	return startDev(g, bin, dir, "--name", name, "--store", g.url, "--peer", "127.0.0.1:0", "--mond", "", "--compute", "",
		"--rapi-users", filepath.Join(g.shared, "users"), "--node-data", filepath.Join(g.shared, "nodes"))
}

// leads waits until a controller leads, as another tells.
func (g *group) leads(bin string, asked *testkit.Dev, name string) {
	g.Helper()
	for limit := time.Now().Add(4 * testkit.Patience()); time.Now().Before(limit); {
		text, err := say(g.T, bin, "--luxi", asked.Ready.LUXI, "cluster", "masters", "--output", "json")
		var rows []struct{ Name, Role string }
		if start := strings.IndexByte(text, '['); err == nil && start >= 0 && json.Unmarshal([]byte(text[start:]), &rows) == nil {
			for _, r := range rows {
				if r.Name == name && r.Role == "leader" {
					return
				}
			}
		}
	}
	g.Fatalf("%s does not lead", name)
}

// forget removes what a controller says of itself from the store.
func (g *group) forget(name string) {
	g.Helper()
	s, err := postgres.Open(g.Context(), g.url, postgres.Options{})
	if err == nil {
		_, err = store.Commit(g.Context(), s, store.Tx{Delete: []store.Key{{Kind: "controller", ID: name}}})
		err = errors.Join(err, s.Close())
	}
	if err != nil {
		g.Fatal(err)
	}
}

// leaseEnds waits until the lease of the one that was killed is over, and returns its epoch.
func (g *group) leaseEnds(server *pgserver.Server) (epoch string) {
	g.Helper()
	const over = "SELECT expires < extract(epoch FROM clock_timestamp()) * 1000000 FROM upgrade.lease WHERE name = 'leader'"
	for limit := time.Now().Add(4 * testkit.Patience()); server.SQL(over) != "t"; {
		if time.Now().After(limit) {
			g.Fatal("the lease does not end")
		}
	}
	return server.SQL("SELECT epoch FROM upgrade.lease WHERE name = 'leader'")
}

// ofAGroup: old and new controllers stand by for each other, in any order, until nobody is there whom the new
// format would leave behind; and one of before that runs on unnoticed never leads again.
func ofAGroup(t *testing.T, now, before string) {
	t.Helper()
	server := pgserver.Start(t, false)
	g := &group{t, server.URL("upgrade"), t.TempDir()}
	if err := os.WriteFile(filepath.Join(g.shared, "users"), []byte("op secret write\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c1 := g.start(before, "c1")
	works(t, c1)
	c2 := g.start(before, "c2")
	c3 := g.start(now, "c3")
	for _, d := range []*testkit.Dev{c1, c2, c3} { // an old one leads
		works(t, d)
	}
	says(t, "", now, "--luxi", c3.Ready.LUXI, "cluster", "master-failover")
	g.leads(before, c2, "c3")
	for _, d := range []*testkit.Dev{c1, c2, c3} { // the new one does
		works(t, d)
	}
	says(t, "c1: its program reads format 1", now, "--luxi", c3.Ready.LUXI, "cluster", "format", "info")
	says(t, "", before, "--luxi", c2.Ready.LUXI, "cluster", "master-failover")
	g.leads(now, c3, "c2")
	works(t, c3) // and an old one again
	says(t, "", now, "--luxi", c3.Ready.LUXI, "cluster", "master-failover")
	g.leads(now, c3, "c3")
	c1.Terminate()
	if err := c1.Gone(); err != nil {
		t.Error(err)
	}
	refuses(t, "stays 1: c2", now, "--luxi", c3.Ready.LUXI, "cluster", "format", "raise", "--yes")
	// c2 runs on, and nobody knows of it, as if it had been cut off for more than a day.
	g.forget("c2")
	for text := ""; !strings.Contains(text, "It is the newest"); {
		var err error
		if text, err = say(t, now, "--luxi", c3.Ready.LUXI, "cluster", "format", "info"); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	refuses(t, "this program", before, "store", "check", g.url)
	works(t, c3)
	c3.Kill()
	_ = c3.Gone()
	epoch := g.leaseEnds(server)
	c4 := g.start(now, "c4")
	works(t, c4)
	g.leads(now, c4, "c4")
	if of := server.SQL("SELECT epoch - 1 FROM upgrade.lease WHERE name = 'leader'"); of != epoch {
		t.Errorf("between the epoch %s and c4's another one led, %s", epoch, of)
	}
	c4.Terminate()
	c2.Terminate()
	_ = c2.Gone()
	if err := c4.Gone(); err != nil {
		t.Error(err)
	}
	says(t, "are consistent", now, "store", "check", g.url)
}
