package app_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// TestADatabaseThatWasPutBackGoesOnLater: what it gave out before is not given again.
func TestADatabaseThatWasPutBackGoesOnLater(t *testing.T) {
	url, dir := pgserver.Start(t, false).URL("advance"), t.TempDir()
	c := startWith(t, app.Options{Data: dir, Store: url})
	last := c.delay(t)
	if _, err := command(t, app.StoreCommand(), "advance", url, "--yes"); !fault.Is(err, fault.Busy) {
		t.Errorf("under a controller that leads: %v", err)
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := command(t, app.StoreCommand(), "advance", dir, "--yes"); !fault.Is(err, fault.Unsupported) {
		t.Errorf("an embedded store: %v", err)
	}
	if out := must(t, app.StoreCommand(), "advance", url); !strings.Contains(out, "nothing was changed") {
		t.Error(out)
	}
	if out := must(t, app.StoreCommand(), "advance", url, "--yes"); !strings.Contains(out, "goes on behind revision 1000") {
		t.Error(out)
	}
	must(t, app.StoreCommand(), "check", url)
	c = startWith(t, app.Options{Data: dir, Store: url})
	if next := c.delay(t); next != last+1_000_001 {
		t.Errorf("behind job %d comes %d", last, next)
	}
	if epoch, err := strconv.ParseFloat(c.leaderEpoch(t), 64); err != nil || epoch != 1_000_002 {
		t.Errorf("it leads with epoch %v, %v", epoch, err)
	}
	var rows [][]any
	c.call(t, "QueryJobs", &rows, []int{last}, []string{"status"})
	if len(rows) != 1 || rows[0][0] != "success" {
		t.Errorf("the job of before: %v", rows)
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
	must(t, app.StoreCommand(), "check", url)
}
