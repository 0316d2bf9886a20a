package metrics_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/metrics"
	"github.com/drover-project/drover/internal/testkit"
)

const (
	rulesPath   = "../../packaging/prometheus/drover.rules.yml"
	scrapePath  = "../../packaging/prometheus/prometheus.yml"
	runbookPath = "../../docs/runbook.md"
)

// The rules that are packaged must be those of the table.
func TestRulesAreUpToDate(t *testing.T) {
	testkit.Golden(t, *update, rulesPath, metrics.Rules())
}

// TestAlertsAreWhole: an alert asks for figures that there are, and leads to a heading of the runbook; the runbook has each figure that
// it names.
func TestAlertsAreWhole(t *testing.T) {
	text, err := os.ReadFile(runbookPath)
	if err != nil {
		t.Fatal(err)
	}
	runbook := string(text)
	known := map[string]bool{}
	for _, f := range slices.Concat(metrics.Table(), metrics.AgentTable()) {
		known[f.Name] = true
	}
	figure := regexp.MustCompile(`drover_[a-z_]*[a-z]`)
	seen := map[string]bool{}
	for _, a := range metrics.Alerts() {
		for _, name := range figure.FindAllString(a.Expr, -1) {
			if !known[strings.TrimSuffix(name, "_bucket")] {
				t.Errorf("%s asks for %s, which there is not", a.Name, name)
			}
		}
		if !strings.Contains(runbook, "\n## "+a.Page+"\n") {
			t.Errorf("%s leads to %q, which is no heading of the runbook", a.Name, a.Page)
		}
		if seen[a.Name] || !strings.HasPrefix(a.Name, "Drover") || a.Summary == "" || strings.ContainsAny(a.Summary, "'\n") {
			t.Errorf("this alert is there twice, or is not whole: %+v", a)
		}
		seen[a.Name] = true
	}
	for _, name := range figure.FindAllString(runbook, -1) {
		if !known[name] {
			t.Errorf("the runbook names %s, which there is not", name)
		}
	}
	for _, f := range metrics.Table() { // and each page that a figure names is there
		for _, link := range regexp.MustCompile(`runbook\.md#([a-z-]+)`).FindAllStringSubmatch(f.Advice, -1) {
			if !slices.ContainsFunc(regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(runbook, -1), func(h []string) bool { return metrics.Anchor(h[1]) == link[1] }) {
				t.Errorf("%s leads to #%s, which is not in the runbook", f.Name, link[1])
			}
		}
	}
}

// TestNoLabelIsAName: what a controller shows has as many lines as there are opcodes, rules, interfaces and states: no label is a tenant's, an
// instance's or a node's name.
func TestNoLabelIsAName(t *testing.T) {
	bounded := []string{"status", "for", "rule", "opcode", "outcome", "reader", "state", "api", "method", "code", "answered_by", "surface", "version", "revision", "go"}
	for _, f := range metrics.Table() {
		for _, l := range f.Labels {
			if !slices.Contains(bounded, l) {
				t.Errorf("%s has the label %s, of which nobody has said that there are few", f.Name, l)
			}
		}
	}
}

// ruleTests are what Prometheus is fed, and the alerts that fire behind it. A new alert needs its series under "all is ill", and one that keeps it quiet
// under "all is well".
const ruleTests = `rule_files: [drover.rules.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    name: all is well
    input_series:
      - {series: 'up{job="drover",instance="c1"}', values: '1x180'}
      - {series: 'drover_leader{instance="c1"}', values: '1x180'}
      - {series: 'drover_leader{instance="c2"}', values: '0x180'}
      - {series: 'drover_leader_epoch{instance="c1"}', values: '4x180'}
      - {series: 'drover_store_failing_seconds{instance="c1"}', values: '0x180'}
      - {series: 'drover_disk_free_bytes{instance="c1"}', values: '4000000000x180'}
      - {series: 'drover_disk_size_bytes{instance="c1"}', values: '40000000000x180'}
      - {series: 'drover_feed_lag_revisions{instance="c2",reader="picture"}', values: '3x180'}
      - {series: 'drover_queue_drained{instance="c1"}', values: '0x180'}
      - {series: 'drover_jobs_waiting_oldest_seconds{instance="c1",for="slot"}', values: '30x180'}
      - {series: 'drover_jobs_ended_total{instance="c1",status="success"}', values: '0+10x180'}
      - {series: 'drover_jobs_ended_total{instance="c1",status="error"}', values: '0+1x180'}
      - {series: 'drover_certificate_not_after_seconds{instance="c1"}', values: '10000000x180'}
      - {series: 'drover_accounts_missing{instance="c1"}', values: '0x180'}
      - {series: 'drover_backup_age_seconds{instance="c1"}', values: '9000000000x180'}
      - {series: 'drover_backup_age_seconds{instance="c2"}', values: '80000+60x180'}
      - {series: 'drover_nodes{instance="c1",state="away"}', values: '0x180'}
      - {series: 'drover_nodes_ahead{instance="c1"}', values: '0x180'}
      - {series: 'drover_clock_ahead_seconds{instance="c2"}', values: '-0.3x180'}
      - {series: 'drover_server_tags_pending_oldest_seconds{instance="c1"}', values: '12x180'}
      - {series: 'drover_undo_failures_total{instance="c1"}', values: '3x180'}
    alert_rule_test:
QUIET
  - interval: 1m
    name: all is ill
    input_series:
      - {series: 'up{job="drover",instance="c1"}', values: '0x180'}
      - {series: 'drover_leader{instance="c1"}', values: '0x180'}
      - {series: 'drover_leader_epoch{instance="c1"}', values: '4+1x180'}
      - {series: 'drover_store_failing_seconds{instance="c1"}', values: '0+60x180'}
      - {series: 'drover_store_commit_seconds_bucket{instance="c1",le="0.5"}', values: '0x180'}
      - {series: 'drover_store_commit_seconds_bucket{instance="c1",le="2"}', values: '0+60x180'}
      - {series: 'drover_store_commit_seconds_bucket{instance="c1",le="+Inf"}', values: '0+60x180'}
      - {series: 'drover_disk_free_bytes{instance="c1"}', values: '1000000x180'}
      - {series: 'drover_disk_size_bytes{instance="c1"}', values: '40000000000x180'}
      - {series: 'drover_feed_lag_revisions{instance="c2",reader="picture"}', values: '1000x180'}
      - {series: 'drover_queue_drained{instance="c1"}', values: '1x180'}
      - {series: 'drover_jobs_waiting_oldest_seconds{instance="c1",for="slot"}', values: '0+60x180'}
      - {series: 'drover_jobs_waiting_oldest_seconds{instance="c1",for="lock"}', values: '0+60x180'}
      - {series: 'drover_held_oldest_seconds{instance="c1",rule="u-1"}', values: '90000x180'}
      - {series: 'drover_jobs_ended_total{instance="c1",status="success"}', values: '0+1x180'}
      - {series: 'drover_jobs_ended_total{instance="c1",status="error"}', values: '0+10x180'}
      - {series: 'drover_certificate_not_after_seconds{instance="c1"}', values: '600000x180'}
      - {series: 'drover_accounts_missing{instance="c1"}', values: '1x180'}
      - {series: 'drover_backup_age_seconds{instance="c1"}', values: '200000+60x180'}
      - {series: 'drover_backup_age_seconds{instance="c2"}', values: '9000000000x180'}
      - {series: 'drover_events_failing_seconds{instance="c1"}', values: '0+60x180'}
      - {series: 'drover_nodes{instance="c1",state="away"}', values: '2x180'}
      - {series: 'drover_nodes_ahead{instance="c1"}', values: '1x180'}
      - {series: 'drover_server_clusters{instance="c1",state="away"}', values: '1x180'}
      - {series: 'drover_clock_ahead_seconds{instance="c2"}', values: '-3x180'}
      - {series: 'drover_server_tags_pending_oldest_seconds{instance="c1"}', values: '0+60x180'}
      - {series: 'drover_undo_failures_total{instance="c1"}', values: '0x120 0+1x60'}
    promql_expr_test:
      - expr: count(count by (alertname) (ALERTS{alertstate="firing"}))
        eval_time: 150m
        exp_samples: [{labels: '{}', value: FIRING}]
  - interval: 1m
    name: two lead
    input_series:
      - {series: 'drover_leader{instance="c1"}', values: '1x180'}
      - {series: 'drover_leader{instance="c2"}', values: '1x180'}
    promql_expr_test:
      - expr: count by (alertname) (ALERTS{alertstate="firing"})
        eval_time: 150m
        exp_samples: [{labels: '{alertname="DroverTwoLeaders"}', value: 1}]
`

// TestRulesFire has Prometheus' own tool judge the rules: each fires when its cause is there, and none while all is well.
func TestRulesFire(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		testkit.Missingf(t, "promtool is not installed")
	}
	dir := t.TempDir()
	quiet := ""
	for _, a := range metrics.Alerts() {
		quiet += "      - {eval_time: 150m, alertname: " + a.Name + ", exp_alerts: []}\n"
	}
	text := strings.Replace(ruleTests, "QUIET\n", quiet, 1)
	text = strings.Replace(text, "FIRING", strconv.Itoa(len(metrics.Alerts())-1), 1) // two cannot lead while none does
	scrape, err := os.ReadFile(scrapePath)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"drover.rules.yml": metrics.Rules(), "tests.yml": text, "prometheus.yml": string(scrape), "drover-rapi.crt": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "config", "--syntax-only", "prometheus.yml"}, {"check", "rules", "drover.rules.yml"}, {"test", "rules", "tests.yml"}} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
