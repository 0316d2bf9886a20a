package daemon_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/daemon"
)

// linesOf are the lines of a log in JSON, in the order in which they were written.
func linesOf(t *testing.T, text string) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var of map[string]any
		if err := json.Unmarshal([]byte(line), &of); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		lines = append(lines, of)
	}
	return lines
}

// TestTimesHaveTheirUnit in the name, and are seconds, in all forms.
func TestTimesHaveTheirUnit(t *testing.T) {
	var out bytes.Buffer
	kept := daemon.NewRecent(1000)
	daemon.NewLog(&out, "json", slog.LevelInfo, kept).Info("done", "took", 1500*time.Millisecond)
	if got := linesOf(t, out.String())[0]; got["took_seconds"] != 1.5 || got["took"] != nil {
		t.Errorf("the line is %v", got)
	}
	if text := string(kept.Text()); !strings.HasSuffix(text, " msg=done took_seconds=1.5\n") {
		t.Errorf("what is kept is %s", text)
	}
}
