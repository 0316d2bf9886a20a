package metrics

import (
	"fmt"
	"strings"
)

// Alert is a rule that says when somebody is to look.
type Alert struct {
	Name string
	// Expr is what Prometheus evaluates, over figures of the tables.
	Expr string
	// For is how long that has to hold, as Prometheus writes it; empty for not at all.
	For string
	// Urgent wakes somebody; what is not is looked at by day.
	Urgent bool
	// Summary is what has happened, in Prometheus' templates.
	Summary string
	// Page is the heading of docs/runbook.md that tells what to do.
	Page string
}

// Alerts are the rules that packaging/prometheus has. A controller that stands by shows nothing of the queue, so they are of whoever leads.
func Alerts() []Alert { return alerts }

var alerts = []Alert{
	{"DroverControllerDown", `up{job="drover"} == 0`, "2m", false, "controller {{ $labels.instance }} does not answer", "A controller does not answer"},
	{"DroverNoLeader", `(sum(drover_leader) or vector(0)) == 0`, "1m", true, "no controller leads", "No controller leads"},
	{"DroverTwoLeaders", `sum(drover_leader) > 1`, "1m", true, "{{ $value }} controllers say that they lead", "No controller leads"},
	{"DroverLeadChanges", `changes(max(drover_leader_epoch)[30m:1m]) > 3`, "", false, "the lead went over {{ $value }} times in half an hour", "The lead changes again and again"},
	{"DroverStoreFails", `drover_store_failing_seconds > 30`, "", true, "the store fails {{ $labels.instance }}", "The database is away"},
	{"DroverStoreSlow", `histogram_quantile(0.99, sum by (le) (rate(drover_store_commit_seconds_bucket[5m]))) > 0.5`, "10m", false, "one commit in a hundred takes {{ $value }} seconds", "The database is away"},
	{"DroverDiskFillsUp", `drover_disk_free_bytes < 0.05 * drover_disk_size_bytes and drover_disk_free_bytes < 1073741824`, "5m", true, "{{ $value | humanize1024 }} bytes are free at {{ $labels.instance }}", "The disk is full"},
	{"DroverStandbyLags", `min_over_time(drover_feed_lag_revisions{reader="picture"}[2m]) > 100`, "", false, "{{ $labels.instance }} is {{ $value }} revisions behind its store", "A controller does not answer"},
	{"DroverQueueDrained", `drover_queue_drained == 1`, "1h", false, "the queue takes no new jobs for more than an hour", "The queue is drained"},
	{"DroverJobsWaitForSlots", `drover_jobs_waiting_oldest_seconds{for="slot"} > 600`, "", false, "a job waits for a slot for {{ $value | humanizeDuration }}", "A job waits"},
	{"DroverJobWaits", `drover_jobs_waiting_oldest_seconds{for="lock"} > 3600`, "", false, "a job waits for a lock for {{ $value | humanizeDuration }}", "A job waits"},
	{"DroverRuleForgotten", `drover_held_oldest_seconds > 86400`, "", false, "the rule {{ $labels.rule }} holds a job for {{ $value | humanizeDuration }}", "A job waits"},
	{"DroverJobsFail", `sum(increase(drover_jobs_ended_total{status="error"}[1h])) > 0.5 * sum(increase(drover_jobs_ended_total[1h])) and sum(increase(drover_jobs_ended_total[1h])) >= 10`, "", true,
		"{{ $value }} jobs failed within an hour, more than half of all", "Many jobs fail"},
	{"DroverCertificateEnds", `drover_certificate_not_after_seconds - time() < 7 * 86400 or drover_peer_certificate_not_after_seconds - time() < 7 * 86400`, "", true, "a certificate of {{ $labels.instance }} ends in {{ $value | humanizeDuration }}", "A certificate has ended"},
	{"DroverAccountsMissing", `drover_accounts_missing == 1`, "1m", true, "nobody can log in at {{ $labels.instance }}", "Nobody can log in"},
	{"DroverBackupOld", `min(drover_backup_age_seconds) > 2 * 86400`, "10m", false, "the newest backup was made {{ $value | humanizeDuration }} ago", "There is no new backup"},
	{"DroverEventsFail", `drover_events_failing_seconds > 120`, "", false, "the broker is not told of events for {{ $value | humanizeDuration }}", "Events do not arrive"},
	{"DroverNodesAway", `drover_nodes{state="away"} > 0`, "5m", false, "the agents of {{ $value }} nodes are away", "Nodes are away"},
	{"DroverDatabasePutBack", `drover_nodes_ahead > 0`, "", true, "{{ $value }} nodes refuse the orders of this cluster", "The database was put back"},
	{"DroverClocksDiffer", `abs(drover_clock_ahead_seconds) > 2`, "5m", false, "the clock of {{ $labels.instance }} is {{ $value }} seconds ahead of that of the database", "Clocks differ"},
	{"DroverTagsWait", `drover_server_tags_pending_oldest_seconds > 1800`, "", false, "a server waits for a tag for {{ $value | humanizeDuration }}", "Tags of servers do not come"},
	{"DroverUndoFailed", `increase(drover_undo_failures_total[1h]) > 0`, "", false, "something that a job did could not be taken back", "A job left something behind"},
	{"DroverServerClusterAway", `drover_server_clusters{state="away"} > 0`, "5m", false, "{{ $value }} clusters of servers do not answer", "A cluster of servers is away"},
}

// pages is where the runbook is read.
const pages = "https://github.com/drover-project/drover/blob/main/docs/runbook.md"

// Anchor is the part of a link that names a heading.
func Anchor(heading string) string { return strings.ReplaceAll(strings.ToLower(heading), " ", "-") }

// Rules are the alerts as a file of rules for Prometheus.
func Rules() string {
	var b strings.Builder
	b.WriteString("# Alerts of Drover, for rule_files of Prometheus. The job that scrapes the controllers is called drover (prometheus.yml beside this).\n" +
		"# Made from the table in internal/metrics/alerts.go: go test ./internal/metrics -run Rules -update\n" +
		"groups:\n  - name: drover\n    rules:\n")
	for _, a := range alerts {
		severity := "warning"
		if a.Urgent {
			severity = "critical"
		}
		fmt.Fprintf(&b, "      - alert: %s\n        expr: '%s'\n", a.Name, strings.ReplaceAll(a.Expr, "'", "''"))
		if a.For != "" {
			fmt.Fprintf(&b, "        for: %s\n", a.For)
		}
		fmt.Fprintf(&b, "        labels:\n          severity: %s\n        annotations:\n          summary: '%s'\n          runbook_url: %s#%s\n", severity, a.Summary, pages, Anchor(a.Page))
	}
	return b.String()
}
