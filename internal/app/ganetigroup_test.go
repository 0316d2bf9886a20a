package app_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// TestGanetiDirectories: who stands by keeps its files, too, and goes on doing so when it leads.
func TestGanetiDirectories(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t, false)
	var dirs []string
	all := groupWith(t, slices.Repeat([]string{server.URL("ganeti")}, 2), func(o *app.Options) {
		o.GanetiDir, o.Confd = filepath.Join(o.Data, "ganeti"), "127.0.0.1:0"
		dirs = append(dirs, o.GanetiDir)
	})
	defer func() {
		for _, c := range all {
			if err := c.stop(); err != nil {
				t.Error(err)
			}
		}
	}()
	hold := func(want string) {
		t.Helper()
		for i, dir := range dirs {
			until(t, "controller "+all[i].ready.LUXI+" writes "+want, func() bool {
				text, _ := os.ReadFile(filepath.Join(dir, "var/lib/ganeti/ssconf_cluster_tags")) // it may not be there yet
				return string(text) == want
			})
		}
	}
	if status, _ := all[1].write(t, "secret", "one"); status >= 300 {
		t.Fatalf("the cluster gets no tag: %d", status)
	}
	hold("a\n")
	all[1].call(t, "MasterFailover", new(any))
	all[0].awaitLeader(t, "c2")
	all[1].jobEnds(t, map[string]any{"OP_ID": "OP_TAGS_SET", "kind": "cluster", "tags": []string{"b"}})
	hold("a\nb\n")
	for i := range all {
		if all[i].ready.Confd == "" {
			t.Error("there is no confd")
		}
	}
}
