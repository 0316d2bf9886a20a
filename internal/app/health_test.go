package app_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
)

// page returns a page that is served beside RAPI.
func (c cluster) page(t *testing.T, path string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.ready.RAPI+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := trusting().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode, string(body)
}

func (c cluster) health(t *testing.T) (status int, h app.Health) {
	t.Helper()
	status, text := c.page(t, "/readyz")
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return status, h
}

func TestHealthAndFigures(t *testing.T) {
	c := start(t, t.TempDir(), false)
	defer func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}()
	if status, text := c.page(t, "/healthz"); status != http.StatusOK || text != "ok\n" {
		t.Errorf("healthz: %d %q", status, text)
	}
	if status, h := c.health(t); status != http.StatusOK || !h.Ready || len(h.Problems)+len(h.Notes) != 0 {
		t.Errorf("readyz: %d %+v", status, h)
	}
	c.call(t, "QueryJobs", new(any), nil, []string{"id"})
	c.call(t, "ReplaceFilter", new(any), nil, 5, []any{}, "PAUSE", [][]any{})
	c.call(t, "SubmitJob", new(any), []any{map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0.001, "reason": [][]any{{"user", "x", 1}}}})
	c.call(t, "SetDrainFlag", new(any), true)
	for _, text := c.page(t, "/metrics"); !strings.Contains(text, `drover_jobs_waiting{for="filter"} 1`); _, text = c.page(t, "/metrics") {
		runtime.Gosched()
	}
	status, text := c.page(t, "/metrics")
	if status != http.StatusOK {
		t.Fatal(status, text)
	}
	lines := strings.Split(text, "\n")
	if strings.Contains(text, `drover_feed_lag_revisions{`) {
		t.Error("what a controller shows that is alone lags behind nothing")
	}
	for _, want := range []string{
		`drover_jobs{status="running"} 0`, `drover_requests_total{api="luxi",code="ok",method="QueryJobs"} 1`,
		`drover_requests_total{api="rapi",code="200",method="GET"} `, `drover_request_duration_seconds_count{api="luxi",method="QueryJobs"} 1`,
		`drover_jobs_waiting{for="filter"} 1`, `drover_slots_used 0`, `drover_leader 1`, `drover_leader_epoch 1`, `drover_store_revision `,
		`drover_jobs_waiting_oldest_seconds{for="filter"} `, `drover_held_oldest_seconds{rule="`, `drover_job_running_oldest_seconds 0`, `drover_queue_drained 1`,
		`drover_nodes{state="in_service"} 2`, `drover_nodes{state="away"} 0`, `drover_nodes_ahead 0`, `drover_store_failing_seconds 0`, `drover_store_size_bytes `,
		`drover_disk_free_bytes `, `drover_disk_size_bytes `, `drover_accounts_missing 0`, `drover_build_info{`, `drover_store_transactions_total{outcome="committed"} `,
		`drover_store_commit_seconds_count `, `drover_undo_failures_total 0`, `drover_server_tags_pending 0`, `drover_server_tags_pending_oldest_seconds 0`,
		`drover_archive_jobs 0`, `drover_archive_oldest_seconds 0`,
	} {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("there is no line %q in\n%s", want, text)
		}
	}
}

// TestTheArchiveIsCounted: how many jobs are in it, and how long it is since the oldest of them ended.
func TestTheArchiveIsCounted(t *testing.T) {
	clock := &movedClock{}
	c := startWith(t, app.Options{Data: t.TempDir()}.WithClock(clock.now))
	for range 3 {
		c.call(t, "ArchiveJob", new(any), c.delay(t))
	}
	clock.ahead.Store(int64(time.Hour))
	_, text := c.page(t, "/metrics")
	_, age, _ := strings.Cut(text, "\ndrover_archive_oldest_seconds ")
	age, _, _ = strings.Cut(age, "\n")
	if seconds, err := strconv.ParseFloat(age, 64); err != nil || seconds < 3600 || seconds > 3600+patience.Seconds() || !strings.Contains(text, "\ndrover_archive_jobs 3\n") {
		t.Errorf("the oldest ended %s seconds ago, in\n%s", age, text)
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}

// TestStoreTroubleIsTold removes the store under a running controller: what is
// asked for is unavailable, and the health says why. It takes as long as the
// queue has patience with a store.
func TestStoreTroubleIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := start(t, dir, false)
	if err := os.RemoveAll(filepath.Join(dir, "store")); err != nil {
		t.Fatal(err)
	}
	answer := make(chan error, 1)
	client := c.dial(t)
	go func() {
		answer <- client.Call(context.WithoutCancel(t.Context()), "SetDrainFlag", []any{true}, new(any))
	}()
	// The queue tries again for a while before it gives the answer.
	for status, _ := c.health(t); status == http.StatusOK; status, _ = c.health(t) {
		runtime.Gosched()
	}
	status, h := c.health(t)
	if status != http.StatusServiceUnavailable || h.Ready || !slices.ContainsFunc(h.Problems, func(p app.Problem) bool {
		return p.Part == "store" && !p.Since.IsZero() && strings.Contains(p.Text, "was removed while it was in use")
	}) {
		t.Errorf("readyz: %d %+v", status, h)
	}
	_ = c.stop() // it says what has become of the store
	if err := <-answer; err == nil {
		t.Error("a change was acknowledged into the void")
	}
}
