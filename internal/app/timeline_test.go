package app_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/metrics"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// timeline is what Prometheus would have gathered of controllers, had it asked them each minute: what they show at a moment of the test stands there for some
// minutes. Its own tool judges which of the packaged alerts fire in them.
type timeline struct {
	t       *testing.T
	tool    string
	minutes int
	// series are the figures that alerts are about, each with its values so far.
	series map[string]*strings.Builder
	upTo   map[string]int
	checks strings.Builder
}

func newTimeline(t *testing.T) *timeline {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		testkit.Missingf(t, "promtool is not installed")
	}
	return &timeline{t: t, tool: tool, series: map[string]*strings.Builder{}, upTo: map[string]int{}}
}

// watched are controllers that are asked, by their names.
type watched map[string]cluster

// asked is a page of figures, empty where nobody answers.
func (c cluster) asked(ctx context.Context) string {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.ready.RAPI+"/metrics", http.NoBody)
	if err != nil {
		return ""
	}
	answer, err := trusting().Do(r)
	if err != nil {
		return ""
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return ""
	}
	return string(text)
}

// figureOfAlerts is a figure in an expression.
var figureOfAlerts = regexp.MustCompile(`drover_[a-z_]*[a-z]`)

// pages are the figures that controllers show, by their names.
type pages map[string]string

// pages asks them all.
func (of watched) pages(ctx context.Context) pages {
	out := pages{}
	for name, c := range of {
		out[name] = c.asked(ctx)
	}
	return out
}

// show asks controllers for their figures, which stand for some minutes from now on.
func (l *timeline) show(minutes int, of watched) {
	l.t.Helper()
	l.stand(minutes, of.pages(l.t.Context()))
}

// stand has pages stand for some minutes.
func (l *timeline) stand(minutes int, of pages) {
	l.t.Helper()
	wanted := map[string]bool{}
	for _, a := range metrics.Alerts() {
		for _, name := range figureOfAlerts.FindAllString(a.Expr, -1) {
			wanted[name] = true
		}
	}
	for _, instance := range slices.Sorted(maps.Keys(of)) {
		up := "1"
		if of[instance] == "" {
			up = "0"
		}
		l.put("up", "", instance, up, minutes)
		for line := range strings.Lines(of[instance]) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if i := strings.LastIndex(line, "} "); i >= 0 {
				name, value = line[:i+1], strings.TrimSpace(line[i+2:])
			}
			name, labels, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
			if !wanted[name] {
				continue
			}
			if strings.HasSuffix(name, "_not_after_seconds") { // the time line begins in 1970
				end, err := strconv.ParseFloat(value, 64)
				if err != nil {
					l.t.Fatalf("%s: %v", line, err)
				}
				value = strconv.FormatFloat(end-float64(time.Now().Unix())+60*float64(l.minutes), 'f', 0, 64)
			}
			l.put(name, labels, instance, value, minutes)
		}
	}
	for key, upTo := range l.upTo { // what is not shown any more is known to be gone
		if upTo == l.minutes {
			l.series[key].WriteString(" stale")
			l.upTo[key]++
		}
	}
	l.minutes += minutes
}

func (l *timeline) put(name, labels, instance, value string, minutes int) {
	of := fmt.Sprintf("job=%q,instance=%q", "drover", instance)
	if labels != "" {
		of += "," + labels
	}
	key := name + "{" + of + "}"
	b := l.series[key]
	if b == nil {
		b = &strings.Builder{}
		l.series[key] = b
	}
	if gap := l.minutes - l.upTo[key]; gap > 0 {
		fmt.Fprintf(b, " _x%d", gap)
	}
	fmt.Fprintf(b, " %s+0x%d", value, minutes-1)
	l.upTo[key] = l.minutes + minutes
}

// fire says which alerts fire in the last minutes, and that no others do.
func (l *timeline) fire(within int, alerts ...string) {
	fmt.Fprintf(&l.checks, "      - expr: max by (alertname) (max_over_time(ALERTS{alertstate=\"firing\"}[%dm]))\n        eval_time: %dm\n        exp_samples:\n", within-1, l.minutes-1)
	if len(alerts) == 0 {
		l.checks.WriteString("          []\n")
	}
	for _, name := range alerts {
		fmt.Fprintf(&l.checks, "          - {labels: '{alertname=%q}', value: 1}\n", name)
	}
}

// judge has Prometheus' tool say whether it is so.
func (l *timeline) judge() {
	l.t.Helper()
	dir := l.t.TempDir()
	var b strings.Builder
	b.WriteString("rule_files: [drover.rules.yml]\nevaluation_interval: 5m\ntests:\n  - interval: 1m\n    input_series:\n")
	for _, key := range slices.Sorted(maps.Keys(l.series)) {
		fmt.Fprintf(&b, "      - series: '%s'\n        values: '%s'\n", key, strings.TrimSpace(l.series[key].String()))
	}
	b.WriteString("    promql_expr_test:\n" + l.checks.String())
	for name, text := range map[string]string{"drover.rules.yml": metrics.Rules(), "tests.yml": b.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			l.t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(l.t.Context(), l.tool, "test", "rules", "tests.yml")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Errorf("promtool: %v\n%s\n%s", err, out, b.String())
	}
}

// TestEachAlertIsMade: of each packaged alert there is a test that makes its cause.
func TestEachAlertIsMade(t *testing.T) {
	made := map[string]bool{}
	for _, in := range incidents {
		for _, name := range in.alerts {
			made[name] = true
		}
	}
	for _, in := range groupIncidents {
		for _, name := range in.alerts {
			made[name] = true
		}
	}
	for _, a := range metrics.Alerts() {
		if !made[a.Name] {
			t.Errorf("nothing makes what %s is for", a.Name)
		}
	}
}

// TestAlertsAreSilent during ordinary load of a group, with each of its moments as a minute: for as long as $DROVER_SOAK says, else for seconds.
func TestAlertsAreSilent(t *testing.T) {
	t.Parallel()
	const moment = 100 * time.Millisecond
	length := 5 * time.Second
	if text := os.Getenv("DROVER_SOAK"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	all := groupOf(t, pgserver.Start(t, false).URL("silent"), 3)
	l, of := newTimeline(t), watched{"c1": all[0], "c2": all[1], "c3": all[2]}
	tick, over := time.NewTicker(moment), time.After(length)
	defer tick.Stop()
	for n, going := 0, true; going; n++ {
		c := all[n%len(all)]
		name := fmt.Sprintf("web%d", n)
		for _, op := range []map[string]any{create(name, "node1.drover.example"), about("OP_INSTANCE_REBOOT", name), about("OP_INSTANCE_SHUTDOWN", name), {"OP_ID": "OP_INSTANCE_REMOVE", "instance_name": name}} {
			c.ends(t, c.submit(t, op), "success")
		}
		if n%4 == 0 { // a user's mistake
			c.ends(t, c.submit(t, about("OP_INSTANCE_STARTUP", name)), "error")
		}
		if status, _ := c.write(t, "secret", "r"); status != http.StatusOK {
			t.Errorf("a write is answered %d", status)
		}
		l.show(1, of)
		select {
		case <-tick.C:
		case <-over:
			going = false
		}
	}
	l.fire(l.minutes)
	l.judge()
	for _, c := range slices.Backward(all) {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
}
