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

// TestTheLogTellsALife: each turn of a controller's life is one line, and what users do wrong is no alarm.
func TestTheLogTellsALife(t *testing.T) {
	log := make(lines, 10000)
	c := startWith(t, app.Options{Data: t.TempDir(), Name: "alone", Log: slog.New(slog.NewJSONHandler(log, nil))})
	log.await(t, "a controller starts", "store", "embedded")
	log.await(t, "this controller leads", "epoch", 1.0)
	c.call(t, "SubmitJob", new(any), []any{map[string]any{"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "nosuch", "reason": [][]any{{"user", "x", 1}}}})
	for limit := time.After(testkit.Patience()); ; {
		var line struct{ Level, Msg, Error string }
		select {
		case text := <-log:
			if err := json.Unmarshal(text, &line); err != nil {
				t.Fatal(err)
			}
		case <-limit:
			t.Fatal("nothing tells that a job failed")
		}
		if line.Msg == "a job failed" {
			if line.Level != "INFO" || !strings.Contains(line.Error, "nosuch") {
				t.Errorf("it is told as %+v", line)
			}
			break
		}
	}
	c.call(t, "SetDrainFlag", new(any), true)
	log.await(t, "the queue takes no new jobs", "level", "INFO")
	c.call(t, "SetDrainFlag", new(any), false)
	log.await(t, "the queue takes jobs again", "level", "INFO")
	if err := c.stop(); err != nil {
		t.Error(err)
	}
	log.await(t, "the controller stops", "why", "it was told to")
	log.await(t, "the controller has ended", "why", "it was told to")
}
