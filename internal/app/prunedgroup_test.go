package app_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// archived are the ids of the jobs that a controller lists with those of the archive, in their order.
func (c cluster) archived(t *testing.T) (ids []int) {
	t.Helper()
	var answer struct{ Data [][][2]any }
	c.call(t, "Query", &answer, "job", []string{"id", "archived"}, nil)
	for _, row := range answer.Data {
		ids = append(ids, int(row[0][1].(float64)))
	}
	slices.Sort(ids)
	return ids
}

// TestPrunedJobsAreGoneEverywhere: what is removed from the archive is gone at a controller that stands by, too, and when that one leads; a backup of
// behind it has it no more, and what is restored from that does not give its numbers again.
func TestPrunedJobsAreGoneEverywhere(t *testing.T) {
	t.Parallel()
	url := pgserver.Start(t, false).URL("pruned")
	all := groupWith(t, slices.Repeat([]string{url}, 2), func(*app.Options) {})
	var last int
	for range 4 {
		last = all[0].delay(t)
	}
	all[0].call(t, "AutoArchiveJobs", new(any), -1, 60)
	for i, c := range all {
		until(t, fmt.Sprintf("that c%d has the archive", i+1), func() bool { return len(c.archived(t)) == 5 })
	}
	var pruned struct{ Jobs int }
	if all[0].call(t, "PruneArchive", &pruned, nil, 2, 60); pruned.Jobs != 3 {
		t.Errorf("%d jobs were removed", pruned.Jobs)
	}
	want := []int{last - 1, last}
	for i, c := range all {
		until(t, fmt.Sprintf("that c%d knows what is left", i+1), func() bool { return slices.Equal(c.archived(t), want) })
	}
	all[1].call(t, "MasterFailover", new(any))
	all[0].awaitMasters(t, "c1 standby, c2 leader")
	for i, c := range all {
		if got := c.archived(t); !slices.Equal(got, want) {
			t.Errorf("under another leader c%d lists %v", i+1, got)
		}
	}
	dir := t.TempDir()
	file, place := filepath.Join(dir, "backup.zst"), filepath.Join(dir, "data")
	must(t, app.BackupCommand(), "create", file, "--at", url)
	for _, c := range all {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
	must(t, app.BackupCommand(), "restore", file, "--at", place)
	must(t, app.StoreCommand(), "check", place)
	c := startWith(t, app.Options{Data: place})
	if got := c.archived(t); !slices.Equal(got, want) {
		t.Errorf("restored are %v", got)
	}
	if next := c.delay(t); next <= last+900_000 {
		t.Errorf("job %d of the restored cluster may have been given out before", next)
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}
