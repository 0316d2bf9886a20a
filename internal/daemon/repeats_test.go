package daemon_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/daemon"
)

// TestWhatRepeatsIsCounted: who is away for an hour is told of in a dozen lines, which say how often in all.
func TestWhatRepeatsIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := daemon.NewLog(&out, "json", slog.LevelInfo, nil)
		away := errors.New("no route to host")
		const every, all = time.Second, 3600
		for i := range all {
			log.Warn("the broker cannot be used", "error", away, "after", time.Duration(i))
			log.With("node", "n1").Error("it is away", "attempt", 7)
			time.Sleep(every)
		}
		if err := daemon.Flush(log); err != nil {
			t.Fatal(err)
		}
		told := map[any]float64{}
		lines := linesOf(t, out.String())
		for _, line := range lines {
			count, more := line["repeated"].(float64)
			if told[line["msg"]]++; more {
				told[line["msg"]] += count - 1
			}
		}
		if len(lines) > 24 || told["the broker cannot be used"] != all || told["it is away"] != all {
			t.Errorf("%d lines tell of %v", len(lines), told)
		}
		if last := lines[len(lines)-1]; last["msg"] == "it is away" && (last["node"] != "n1" || last["attempt"] != 7.0) {
			t.Errorf("the last is %v", last)
		}
	})
}

// TestWhatRepeatsSeldomIsCounted: what comes again within a minute is the same, also when the first count of it is nothing.
func TestWhatRepeatsSeldomIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := daemon.NewLog(&out, "json", slog.LevelInfo, nil)
		const all = 120
		for range all {
			log.Warn("the broker cannot be used")
			time.Sleep(30 * time.Second)
		}
		if err := daemon.Flush(log); err != nil {
			t.Fatal(err)
		}
		told := 0.0
		lines := linesOf(t, out.String())
		for _, line := range lines {
			count, more := line["repeated"].(float64)
			if told++; more {
				told += count - 1
			}
		}
		if len(lines) > 12 || told != all {
			t.Errorf("%d lines tell of %v", len(lines), told)
		}
	})
}

// TestWhatIsNewIsToldAtOnce: another value, another level, something new after a minute of rest, all that is no warning, and more than is remembered.
func TestWhatIsNewIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := daemon.NewLog(&out, "json", slog.LevelDebug, nil)
		want := 0
		told := func(what string, say func()) {
			t.Helper()
			before := strings.Count(out.String(), "\n")
			say()
			want++
			if got := strings.Count(out.String(), "\n"); got != before+1 {
				t.Errorf("%s: %d lines", what, got-before)
			}
		}
		told("the first", func() { log.Warn("a", "node", "n1") })
		told("another node", func() { log.Warn("a", "node", "n2") })
		told("another level", func() { log.Error("a", "node", "n1") })
		told("with another", func() { log.With("job", 2).Warn("a", "node", "n1") })
		told("in a group", func() { log.WithGroup("g").Warn("a", "node", "n1") })
		for range 2 {
			told("no warning", func() { log.Info("b") })
			told("no warning", func() { log.Debug("b") })
		}
		time.Sleep(2 * time.Minute)
		told("after a rest", func() { log.Warn("a", "node", "n1") })
		for i := range 2000 {
			told("many", func() { log.Warn("c", "job", i) })
		}
		told("the same beyond them", func() { log.Warn("c", "job", 1999) })
		if err := daemon.Flush(log); err != nil || strings.Count(out.String(), "\n") != want {
			t.Errorf("%d lines of %d, %v", strings.Count(out.String(), "\n"), want, err)
		}
	})
}
