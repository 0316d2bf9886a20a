package app_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
)

// watched is one step of a watch: it waits for something to be new behind a revision.
func (c cluster) watched(t *testing.T, since int64, what string, fields []string, name string) (revision int64, rows string) {
	t.Helper()
	var u struct {
		Revision int64           `json:"revision"`
		Events   json.RawMessage `json:"events"`
	}
	c.call(t, "Query", &u, what, fields, []any{"==", "name", name}, map[string]any{"watch": since})
	return u.Revision, string(u.Events)
}

// TestNodesTellWhatChanges has a guest of a node that is elsewhere end itself: who watches it is told so at once, though nobody has asked the node and nothing
// is stored; and what its node told last is known when it is away.
func TestNodesTellWhatChanges(t *testing.T) {
	c := startWith(t, app.Options{Data: t.TempDir(), AgentAddress: "127.0.0.1:0"})
	dir := t.TempDir()
	driver := newGuests(t, dir)
	token := c.token(t, away)
	node := joins(t, token, dir, driver)
	stop := node.run(t, token.Addresses)
	c.job(t, create("web1", away))
	c.job(t, create("web2", away))
	revision, rows := c.watched(t, 0, "instance", []string{"name", "oper_state", "told_state"}, "web1")
	if !strings.Contains(rows, "running") {
		t.Fatalf("at first: %s", rows)
	}
	begun := time.Now()
	driver.ends("web1")
	for !strings.Contains(rows, "down") {
		revision, rows = c.watched(t, revision, "instance", []string{"name", "oper_state", "told_state"}, "web1")
	}
	t.Logf("a watch has told of it after %v", time.Since(begun))

	stop()
	until(t, "that the node is away", func() bool { return strings.Contains(c.seen(t, "instance", "web2", "status"), "ERROR_nodedown") })
	if got := c.seen(t, "instance", "web2", "told_state"); got != "[0 running]" {
		t.Errorf("of an instance that ran its node told last %s", got)
	}
	if got := c.seen(t, "instance", "web1", "told_state"); got != "[0 down]" {
		t.Errorf("of an instance that had ended itself its node told last %s", got)
	}
	var told float64
	if _, err := fmt.Sscanf(c.seen(t, "node", away, "told_at"), "[0 %g]", &told); err != nil || time.Since(time.UnixMicro(int64(told*1e6))) > time.Minute {
		t.Errorf("the node has told its state last at %s: %v", c.seen(t, "node", away, "told_at"), err)
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}
