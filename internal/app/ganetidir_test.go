package app

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/ssconf"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/testkit"
)

func ganetiOptions(dir string) Options {
	return Options{GanetiDir: dir, Log: slog.New(slog.DiscardHandler)}
}

// withConfd opens a directory with confd beside it.
func withConfd(t *testing.T, dir string) (Options, *ganetiDir) {
	t.Helper()
	o := ganetiOptions(dir)
	o.Confd = "127.0.0.1:0"
	g, err := openGanetiDir(t.Context(), o, &Ready{LUXI: "/run/luxi.sock"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.close)
	return o, g
}

// What is in the directory of somebody else stays as it is, and what is missing is made.
func TestGanetiDirectory(t *testing.T) {
	write := func(t *testing.T, dir, name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	open := func(dir string) (*ganetiDir, error) {
		return openGanetiDir(t.Context(), ganetiOptions(dir), &Ready{LUXI: "/run/luxi.sock"})
	}
	for name, prepare := range map[string]func(t *testing.T, dir string){
		"has its configuration": func(t *testing.T, dir string) { write(t, dir, "var/lib/ganeti/config.data", "{}") },
		"is no link":            func(t *testing.T, dir string) { write(t, dir, ganetiSocket, "") },
		"is empty":              func(t *testing.T, dir string) { write(t, dir, ganetiKey, "") },
		"not a directory":       func(t *testing.T, dir string) { write(t, dir, "var", "") },
	} {
		dir := t.TempDir()
		prepare(t, dir)
		if _, err := open(dir); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := filepath.Join(t.TempDir(), "made")
	for range 2 { // the second time everything is there
		if _, err := open(dir); err != nil {
			t.Fatal(err)
		}
	}
	if to, err := os.Readlink(filepath.Join(dir, ganetiSocket)); to != "/run/luxi.sock" || err != nil {
		t.Errorf("the socket leads to %q, %v", to, err)
	}
	key, err := os.ReadFile(filepath.Join(dir, ganetiKey))
	info, statErr := os.Stat(filepath.Join(dir, ganetiKey))
	if err := errors.Join(err, statErr); err != nil || len(key) != 41 || info.Mode().Perm() != 0o600 {
		t.Errorf("a key of %d bytes, %v", len(key), err)
	}
	if _, err := openGanetiDir(t.Context(), ganetiOptions(dir), &Ready{LUXI: "/run/other.sock"}); err != nil {
		t.Error(err)
	}
	if to, _ := os.Readlink(filepath.Join(dir, ganetiSocket)); to != "/run/other.sock" {
		t.Errorf("the socket leads to %q", to)
	}
	if again, _ := os.ReadFile(filepath.Join(dir, ganetiKey)); string(again) != string(key) {
		t.Error("the key is another")
	}
	if _, err := openGanetiDir(t.Context(), ganetiOptions(dir), &Ready{LUXI: filepath.Join(dir, ganetiSocket)}); err != nil { // it listens there itself
		t.Error(err)
	}
	o, g := withConfd(t, dir)
	if string(g.server.Key()) != string(key) || g.here.Confd.String() != "127.0.0.1" {
		t.Errorf("confd answers with %q at %v", g.server.Key(), g.here.Confd)
	}
	o.Confd = g.confd.LocalAddr().String()
	if _, err := openGanetiDir(t.Context(), o, &Ready{}); !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), "confd") {
		t.Errorf("at an address that is taken: %v", err)
	}
}

// Files follow the inventory, also when they could not be written for a while.
func TestGanetiFilesAreKept(t *testing.T) {
	dir := t.TempDir()
	g, err := openGanetiDir(t.Context(), ganetiOptions(dir), &Ready{LUXI: "/run/luxi.sock"})
	if err != nil {
		t.Fatal(err)
	}
	g.again = 10 * time.Millisecond
	p := picture.New()
	named := func(name string) {
		c := cluster.New(cluster.Init{Name: name, UUID: "c", Hypervisors: []string{"fake"}})
		p.Committed(&state.Change{Inventory: cluster.Empty().With(cluster.Put(c))})
		p.Publish()
	}
	file := filepath.Join(dir, ganetiData, ssconf.Prefix+"cluster_name")
	comes := func(what string, about func() bool) {
		t.Helper()
		for limit := time.Now().Add(testkit.Patience()); !about(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("%s never came about", what)
			}
		}
	}
	await := func(want string) {
		t.Helper()
		comes(want, func() bool {
			text, _ := os.ReadFile(file) // it may not be there yet
			return string(text) == want
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	var kept sync.WaitGroup
	kept.Go(func() { _ = g.keep(ctx, p) })
	defer kept.Wait() // before the directory goes
	defer stop()
	named("one")
	await("one\n")
	named("two")
	await("two\n")
	// Nothing can take the place of a directory.
	if err := errors.Join(os.Remove(file), os.MkdirAll(filepath.Join(file, "inside"), 0o700)); err != nil {
		t.Fatal(err)
	}
	named("three")
	comes("the third", func() bool { return g.inventory().Cluster().Name == "three" })
	if err := os.RemoveAll(file); err != nil {
		t.Fatal(err)
	}
	await("three\n")
	if info, err := os.Stat(file); err != nil || info.Mode() != fs.FileMode(0o444) {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// What became of the files is made good when the configuration is sent again, on the machine of who leads by the job itself, elsewhere by the change of the
// cluster that comes with it; a key that somebody has put there counts then.
func TestGanetiFilesAreWrittenAgain(t *testing.T) {
	dir := t.TempDir()
	_, g := withConfd(t, dir)
	if err := g.rewrite(); err != nil {
		t.Errorf("before anything is known: %v", err)
	}
	c := cluster.New(cluster.Init{Name: "one", UUID: "c", Hypervisors: []string{"fake"}})
	inv := cluster.Empty().With(cluster.Put(c))
	p := picture.New()
	p.Committed(&state.Change{Inventory: inv})
	p.Publish()
	g.shown.Store(p)
	if err := g.make(inv); err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(dir, ganetiData, name) }
	spoil := func() {
		t.Helper()
		err := errors.Join(os.Remove(file("ssconf_cluster_name")), os.Remove(file("ssconf_node_list")), os.WriteFile(file("ssconf_node_list"), []byte("other\n"), 0o600),
			os.Remove(filepath.Join(dir, ganetiSocket)), os.WriteFile(file("hmac.key"), []byte("mine\n"), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	good := func(what string) {
		t.Helper()
		name, err := os.ReadFile(file("ssconf_cluster_name"))
		nodes, other := os.ReadFile(file("ssconf_node_list"))
		if string(name) != "one\n" || string(nodes) != "" || errors.Join(err, other) != nil {
			t.Errorf("%s the files are %q and %q, %v", what, name, nodes, errors.Join(err, other))
		}
	}
	spoil()
	if err := g.make(inv.With(cluster.Put(cluster.NewGroup("g", "default", 1)))); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file("ssconf_cluster_name")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("any change writes all files: %v", err)
	}
	if err := g.rewrite(); err != nil {
		t.Error(err)
	}
	good("behind the job")
	if to, err := os.Readlink(filepath.Join(dir, ganetiSocket)); to != "/run/luxi.sock" || err != nil {
		t.Errorf("the socket leads to %q, %v", to, err)
	}
	if string(g.server.Key()) != "mine\n" {
		t.Errorf("confd answers with %q", g.server.Key())
	}
	if err := g.changeKey(); err != nil || string(g.server.Key()) == "mine\n" {
		t.Errorf("confd answers with %q, %v", g.server.Key(), err)
	}
	if key, err := os.ReadFile(file("hmac.key")); err != nil || string(key) != string(g.server.Key()) {
		t.Errorf("confd answers with %q, and its file has %q", g.server.Key(), key)
	}
	spoil()
	if err := g.make(inv.With(cluster.Put(c.Clone()))); err != nil {
		t.Error(err)
	}
	good("behind the change")
	if err := errors.Join(os.RemoveAll(file("ssconf_cluster_name")), os.MkdirAll(file("ssconf_cluster_name/inside"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := g.rewrite(); err == nil {
		t.Error("what cannot be written is not told")
	}
}
