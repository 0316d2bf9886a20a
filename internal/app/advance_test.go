package app_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
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

// TestANodeThatIsAheadIsTold: a controller whose store was put back leads as if nothing were wrong, until a node refuses an order. The
// log and /readyz say why.
func TestANodeThatIsAheadIsTold(t *testing.T) {
	dir, log := t.TempDir(), &heldLog{}
	c := startWith(t, app.Options{Data: dir, Log: slog.New(slog.NewTextHandler(log, nil))})
	noted := func() string {
		_, h := c.health(t)
		i := slices.IndexFunc(h.Notes, func(p app.Problem) bool { return p.Part == "node" })
		if i < 0 {
			return ""
		}
		return h.Notes[i].Text
	}
	if text := noted(); text != "" {
		t.Errorf("before: %s", text)
	}
	ahead := filepath.Join(dir, "nodes", "node1.drover.example")
	if err := errors.Join(os.MkdirAll(ahead, 0o700), os.WriteFile(filepath.Join(ahead, "epoch"), []byte("4711\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	var id int
	c.call(t, "SubmitJob", &id, []any{map[string]any{"OP_ID": "OP_INSTANCE_CREATE", "instance_name": "ahead", "mode": "create", "os_type": "noop", "disk_template": "diskless",
		"disks": []any{}, "nics": []any{}, "pnode": "node1.drover.example", "name_check": false, "ip_check": false, "reason": []any{}}})
	c.awaitStatus(t, id, "error")
	if text := noted(); !strings.Contains(text, "nodes follow a controller of epoch 4711") || !strings.Contains(text, "store advance") {
		t.Errorf("the note is %q", text)
	}
	if !strings.Contains(log.text(), "level=ERROR") || !strings.Contains(log.text(), "node=node1.drover.example epoch=4711") {
		t.Errorf("the log says %s", log.text())
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}
