package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/health"
)

// TestWatch: an instance that went down by itself is started again, with the reason; not while watchers are paused; and one for which nothing helps is left
// alone, as health says.
func TestWatch(t *testing.T) {
	t.Parallel()
	c := startWith(t, app.Options{Data: t.TempDir(), WatchEvery: 50 * time.Millisecond})
	defer func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}()
	c.job(t, map[string]any{"OP_ID": "OP_INSTANCE_CREATE", "instance_name": "web", "mode": "create", "disk_template": "diskless", "os_type": "noop",
		"disks": []any{}, "nics": []any{}, "name_check": false, "ip_check": false})
	status := func() string { return c.seen(t, "instance", "web", "status") }
	stop := func() {
		t.Helper()
		c.job(t, map[string]any{"OP_ID": "OP_INSTANCE_SHUTDOWN", "instance_name": "web", "no_remember": true})
	}
	until(t, "the instance runs", func() bool { return strings.Contains(status(), "running") })

	c.call(t, "SetWatcherPause", new(any), float64(time.Now().Unix()+3600))
	stop()
	time.Sleep(200 * time.Millisecond) // several looks; too few of them would let the test pass
	if got := status(); !strings.Contains(got, "ERROR_down") {
		t.Errorf("while watchers are paused it is %s", got)
	}
	c.call(t, "SetWatcherPause", new(any), nil)
	until(t, "it runs again", func() bool { return strings.Contains(status(), "running") })
	var answer struct{ Data [][][2]any }
	c.call(t, "Query", &answer, "job", []string{"summary"}, nil)
	if n := strings.Count(fmt.Sprint(answer.Data), "INSTANCE_STARTUP(web)"); n != 1 {
		t.Errorf("%d jobs started it: %v", n, answer.Data)
	}
	until(t, "it says why it runs", func() bool {
		return strings.Contains(c.seen(t, "instance", "web", "last_change_reason"), "Restarting instance web")
	})

	// A rule that refuses what watchers ask for: no attempt helps.
	c.call(t, "ReplaceFilter", new(any), nil, 0, []any{[]any{"reason", []any{"=", "source", "gnt:watcher"}}}, "REJECT", []any{[]any{"test", "not now", 1}})
	stop()
	c.awaitLine(t, health.Problem, "instances", "did not stay up: web")
	c.call(t, "Query", &answer, "job", []string{"status"}, []any{"==", "status", "canceled"})
	if len(answer.Data) != 4 { // it was the fifth: it had not been up for long
		t.Errorf("it was tried %d times more: %s", len(answer.Data), fmt.Sprint(answer.Data))
	}
}
