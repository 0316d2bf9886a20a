package app_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
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

// TestAllIsJSONToTheLastLine: also what ends a controller that cannot begin, and one whose configuration has a mistake.
func TestAllIsJSONToTheLastLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	config := filepath.Join(t.TempDir(), "drover.toml")
	for path, text := range map[string]string{file: "", config: "log-format = \"json\"\nnodes = 0\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for want, args := range map[string][]string{
		"cannot make the data directory": {"--log-format", "json", "--data", filepath.Join(file, "data"), "--rapi", "127.0.0.1:0"},
		"there is no setting nodez":      {"--log-format", "json", "--config", filepath.Join(t.TempDir(), "drover.toml")},
		"nodes: a cluster has one node":  {"--config", config},
	} {
		if strings.HasPrefix(want, "there") {
			if err := os.WriteFile(args[3], []byte("nodez = 1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, err := command(t, app.ServeCommand(), args...)
		if err == nil || err.Error() != "" {
			t.Errorf("%s: it ends with %v", want, err)
		}
		var line struct{ Level, Error string }
		for text := range strings.Lines(out) {
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				t.Errorf("%s: %v: %s", want, err, text)
			}
		}
		if line.Level != "ERROR" || !strings.Contains(line.Error, want) {
			t.Errorf("%s: the last line is %+v", want, line)
		}
	}
}

// TestTheLogTellsALife: each turn of a controller's life is one line, and what users do wrong is no alarm.
func TestTheLogTellsALife(t *testing.T) {
	log := make(lines, 10000)
	c := startWith(t, app.Options{Data: t.TempDir(), Name: "alone", Log: slog.New(slog.NewJSONHandler(log, nil))})
	log.await(t, "a controller starts", "store", "embedded")
	log.await(t, "this controller leads", "epoch", 1.0)
	c.delay(t)
	for told := 0; told == 0; { // each line of it up to its end
		var line map[string]any
		select {
		case text := <-log:
			if err := json.Unmarshal(text, &line); err != nil {
				t.Fatal(err)
			}
		case <-time.After(testkit.Patience()):
			t.Fatal("nothing tells that a job ended")
		}
		if line["job"] == nil {
			continue
		}
		told++
		if line["msg"] != "a job ended" || line["status"] != "success" || line["waited"] == nil || line["took"] == nil {
			t.Errorf("a line of a job is %v", line)
		}
	}
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
		if line.Msg == "a job began" || line.Msg == "a request handed in a job" {
			t.Errorf("there is a line %q", line.Msg)
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
