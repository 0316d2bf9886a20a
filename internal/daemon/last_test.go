package daemon_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/daemon"
	"github.com/drover-project/drover/internal/fault"
)

// TestTheLastLine: what ends a daemon is a line of its log, and where that is JSON nothing else is said.
func TestTheLastLine(t *testing.T) {
	ended := fault.New(fault.Unavailable, "the port is in use").At("rapi").WithHint("choose another")
	for _, form := range []daemon.LogFormat{"json", "text"} {
		var out bytes.Buffer
		log := daemon.NewLog(&out, form, slog.LevelError, nil)
		log.Error("it hurts")
		log.Error("it hurts")
		err := daemon.Last(log, form, ended)
		if !errors.Is(err, ended) || (err.Error() == "") != (form == "json") {
			t.Errorf("%s: it ends with %v", form, err)
		}
		if form == "text" { // whoever runs the command says it
			if text := out.String(); strings.Count(text, "\n") != 2 || !strings.HasSuffix(text, " level=ERROR msg=\"it hurts\" repeated=1\n") {
				t.Errorf("the log is %s", text)
			}
			continue
		}
		lines := linesOf(t, out.String())
		if len(lines) != 3 || lines[1]["repeated"] != 1.0 || lines[2]["error"] != "the port is in use (choose another)" || lines[2]["setting"] != "rapi" {
			t.Errorf("the log is %v", lines)
		}
	}
	if err := daemon.Last(slog.New(slog.DiscardHandler), "json", nil); err != nil {
		t.Error(err)
	}
}
