package app_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/testkit"
)

// lines is a log that gives each line to whoever reads it. It drops what
// nobody has room for.
type lines chan []byte

func (l lines) Write(line []byte) (int, error) {
	select {
	case l <- append([]byte(nil), line...):
	default:
	}
	return len(line), nil
}

// await reads until a line has this message and this value.
func (l lines) await(t *testing.T, message, key string, value any) {
	t.Helper()
	for limit := time.After(testkit.Patience()); ; {
		var line map[string]any
		select {
		case text := <-l:
			if err := json.Unmarshal(text, &line); err != nil {
				t.Fatal(err)
			}
		case <-limit:
			t.Fatalf("there is no line %q with %s=%v", message, key, value)
		}
		if line["msg"] == message && line[key] == value {
			return
		}
	}
}

// TestJournal reads in the log, and in the figures, what becomes of a job and of a rule.
func TestJournal(t *testing.T) {
	log := make(lines, 10000)
	c := startWith(t, app.Options{Data: t.TempDir(), Log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	c.call(t, "SubmitJob", new(any), []any{map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0.001, "reason": [][]any{{"user", "x", 1}}}})
	log.await(t, "a job ended", "status", "success")
	if _, figures := c.page(t, "/metrics"); !strings.Contains(figures, `drover_jobs_submitted_total{opcode="OP_TEST_DELAY"} 1`) ||
		!strings.Contains(figures, `drover_jobs_ended_total{opcode="OP_TEST_DELAY",status="success"} 1`) {
		t.Errorf("the job is not counted:\n%s", figures)
	}
	c.call(t, "ReplaceFilter", new(any), nil, 5, []any{}, "CONTINUE", [][]any{})
	log.await(t, "a filter rule was put", "priority", 5.0)
	c.call(t, "QueryFilters", new(any), nil, []string{"uuid"})
	log.await(t, "request", "what", "QueryFilters")
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}
