package metrics

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Panel is a part of the dashboard that packaging/grafana has.
type Panel struct {
	// Row is the heading below which it is.
	Row, Title string
	// Unit is Grafana's name of it.
	Unit    string
	Queries []Query
}

// Query is what a panel asks Prometheus for.
type Query struct {
	// Expr may have $__rate_interval, which is Grafana's.
	Expr string
	// Legend is how Grafana names what comes, after its labels.
	Legend string
	// Empty says why nothing may come though all is well; empty where something has to.
	Empty string
}

// Panels are the dashboard, in the order in which it is read. A controller that stands by shows nothing of the queue, so that sums are of whoever leads.
func Panels() []Panel { return panels }

var panels = []Panel{
	{"Now", "Leads", "bool", []Query{{"drover_leader", "{{instance}}", ""}}},
	{"Now", "Alerts that fire", "short", []Query{{`count by (alertname) (ALERTS{alertname=~"Drover.*",alertstate="firing"})`, "{{alertname}}", "no alert fires, or the rules beside this dashboard are not loaded"}}},
	{"Now", "Nodes", "short", []Query{{"sum by (state) (drover_nodes)", "{{state}}", ""}}},
	{"Now", "Versions", "short", []Query{{"count by (version, revision) (drover_build_info)", "{{version}} {{revision}}", ""}}},
	{"Jobs", "Jobs", "short", []Query{{"sum by (status) (drover_jobs)", "{{status}}", ""}}},
	{"Jobs", "Jobs taken and ended, a second", "ops", []Query{
		{"sum(rate(drover_jobs_submitted_total[$__rate_interval]))", "taken", ""}, {"sum by (status) (rate(drover_jobs_ended_total[$__rate_interval]))", "{{status}}", ""}}},
	{"Jobs", "Jobs that wait", "short", []Query{{"sum by (for) (drover_jobs_waiting)", "for {{for}}", ""}}},
	{"Jobs", "The job that waits longest", "s", []Query{{"max by (for) (drover_jobs_waiting_oldest_seconds)", "for {{for}}", "no job waits"}}},
	{"Jobs", "Slots and locks", "short", []Query{{"sum(drover_slots)", "slots", ""}, {"sum(drover_slots_used)", "used", ""}, {"sum(drover_locks_held)", "locks held", ""}}},
	{"Jobs", "What filter rules hold", "short", []Query{{"sum by (rule) (drover_held_jobs)", "{{rule}}", "no rule holds a job"}}},
	{"Jobs", "How long opcodes run", "s", []Query{
		{"histogram_quantile(0.5, sum by (le) (rate(drover_opcode_duration_seconds_bucket[$__rate_interval])))", "half", ""},
		{"histogram_quantile(0.99, sum by (le) (rate(drover_opcode_duration_seconds_bucket[$__rate_interval])))", "99 of 100", ""},
		{"max(drover_job_running_oldest_seconds)", "that runs longest", ""}}},
	{"Jobs", "How long opcodes wait", "s", []Query{{"histogram_quantile(0.99, sum by (le) (rate(drover_opcode_wait_seconds_bucket[$__rate_interval])))", "99 of 100", ""}}},
	{"Jobs", "Not taken back, and the queue is drained", "short", []Query{{"sum(increase(drover_undo_failures_total[$__rate_interval]))", "steps not taken back", ""}, {"max(drover_queue_drained)", "drained", ""}}},
	{"Store", "Commits: 99 of 100 take less", "s", []Query{{"histogram_quantile(0.99, sum by (le, instance) (rate(drover_store_commit_seconds_bucket[$__rate_interval])))", "{{instance}}", ""}}},
	{"Store", "Transactions and reads, a second", "ops", []Query{
		{"sum by (outcome) (rate(drover_store_transactions_total[$__rate_interval]))", "{{outcome}}", ""}, {"sum by (outcome) (rate(drover_store_reads_total[$__rate_interval]))", "reads {{outcome}}", ""}}},
	{"Store", "Fails", "s", []Query{{"drover_store_failing_seconds", "{{instance}}", ""}}},
	{"Store", "Behind", "short", []Query{{"drover_feed_lag_revisions", "{{instance}} {{reader}}", "neither controllers that stand by nor a broker follow the store"}}},
	{"Store", "Size", "bytes", []Query{{"drover_store_size_bytes", "{{instance}}", ""}}},
	{"Store", "Free on the disk", "bytes", []Query{{"drover_disk_free_bytes", "{{instance}}", ""}, {"drover_disk_size_bytes", "{{instance}}: of", ""}}},
	{"Store", "Archive", "short", []Query{{"max(drover_archive_jobs)", "jobs", ""}, {"max(drover_noted_events)", "events", ""}}},
	{"Store", "Oldest job of the archive, and event", "s", []Query{{"max(drover_archive_oldest_seconds)", "job, ended before", ""}, {"max(drover_noted_events_oldest_seconds)", "event, was before", ""}}},
	{"Store", "Newest backup", "s", []Query{{"min(drover_backup_age_seconds)", "made before", ""}}},
	{"Requests", "Requests, a second", "reqps", []Query{
		{"sum by (api) (rate(drover_requests_total[$__rate_interval]))", "{{api}}", ""},
		{"sum by (api, answered_by) (rate(drover_standby_requests_total[$__rate_interval]))", "{{api}} standby: {{answered_by}}", "no controller stands by"}}},
	{"Requests", "Requests: 99 of 100 take less", "s", []Query{{"histogram_quantile(0.99, sum by (le, api) (rate(drover_request_duration_seconds_bucket[$__rate_interval])))", "{{api}}", ""}}},
	{"Requests", "Connections", "short", []Query{{"sum by (surface) (drover_connections)", "{{surface}}", ""}, {"max by (surface) (drover_connections_limit)", "{{surface}}: at most", ""}}},
	{"Requests", "Connections turned away, a second", "ops", []Query{{"sum by (surface) (rate(drover_connections_refused_total[$__rate_interval]))", "{{surface}}", ""}}},
	{"Requests", "Nobody can log in", "bool", []Query{{"drover_accounts_missing", "{{instance}}", ""}}},
	{"Servers", "Servers whose tags wait", "short", []Query{{"sum(drover_server_tags_pending)", "servers", ""}}},
	{"Servers", "The tag that waits longest", "s", []Query{{"max(drover_server_tags_pending_oldest_seconds)", "asked for before", ""}}},
	{"Servers", "Clusters of servers", "short", []Query{{"sum by (state) (drover_server_clusters)", "{{state}}", ""}}},
	{"Servers", "The broker cannot be told", "s", []Query{{"max(drover_events_failing_seconds)", "for", "there is no broker"}}},
	{"Controllers", "Memory", "bytes", []Query{{`process_resident_memory_bytes{job="drover"}`, "{{instance}}", ""}}},
	{"Controllers", "Processors", "short", []Query{{`rate(process_cpu_seconds_total{job="drover"}[$__rate_interval])`, "{{instance}}", ""}}},
	{"Controllers", "Certificates end in", "s", []Query{
		{"drover_certificate_not_after_seconds - time()", "{{instance}}", ""}, {"drover_peer_certificate_not_after_seconds - time()", "{{instance}}, to its peers", "the controller is alone"}}},
	{"Controllers", "Clock ahead of the database's", "s", []Query{{"drover_clock_ahead_seconds", "{{instance}}", "an embedded store has no clock of its own"}}},
	{"Controllers", "Epoch, and who is drained", "short", []Query{{"max(drover_leader_epoch)", "epoch", ""}, {"drover_controller_drained", "{{instance}} drained", "the controller is alone"}}},
}

// named are the figures in an expression.
var named = regexp.MustCompile(`drover_[a-z_]*[a-z]`)

// relative are links of the table to pages beside docs/metrics.md.
var relative = regexp.MustCompile(`\]\(([a-z-]+\.md)`)

// about is what a panel tells of itself: what the table says of its figures, and why some may be missing.
func (p Panel) about() string {
	var out []string
	seen := map[string]bool{}
	for _, q := range p.Queries {
		for _, name := range named.FindAllString(q.Expr, -1) {
			if f, is := figureOf(name); is && !seen[f.Name] {
				seen[f.Name] = true
				out = append(out, "`"+f.Name+"`: "+f.Help+" *"+f.Advice+"*")
			}
		}
		if q.Empty != "" {
			out = append(out, "Nothing comes of `"+q.Expr+"` while "+q.Empty+".")
		}
	}
	return relative.ReplaceAllString(strings.Join(out, "\n\n"), "]("+strings.TrimSuffix(pages, "runbook.md")+"$1")
}

// figureOf is the figure of the table that a name in an expression is, of a histogram its buckets.
func figureOf(name string) (Figure, bool) {
	for _, f := range Table() {
		if f.Name == strings.TrimSuffix(name, "_bucket") {
			return f, true
		}
	}
	return Figure{}, false
}

// Dashboard are the panels as Grafana reads a dashboard: three in a line, below the headings of their rows.
func Dashboard() string {
	const width, height, across = 8, 7, 3
	source := map[string]any{"type": "prometheus", "uid": "${datasource}"}
	out := []map[string]any{}
	row, n, y := "", 0, 0
	for _, p := range panels {
		if p.Row != row {
			y += height * ((n + across - 1) / across)
			out = append(out, map[string]any{"id": len(out) + 1, "type": "row", "title": p.Row, "collapsed": false, "panels": []any{}, "gridPos": map[string]int{"x": 0, "y": y, "w": width * across, "h": 1}})
			row, n, y = p.Row, 0, y+1
		}
		targets := []map[string]any{}
		for i, q := range p.Queries {
			targets = append(targets, map[string]any{"refId": string(rune('A' + i)), "expr": q.Expr, "legendFormat": q.Legend, "datasource": source})
		}
		out = append(out, map[string]any{
			"id": len(out) + 1, "type": "timeseries", "title": p.Title, "description": p.about(), "datasource": source, "targets": targets,
			"fieldConfig": map[string]any{"defaults": map[string]any{"unit": p.Unit}, "overrides": []any{}},
			"gridPos":     map[string]int{"x": width * (n % across), "y": y + height*(n/across), "w": width, "h": height},
		})
		n++
	}
	text, err := json.MarshalIndent(map[string]any{
		"uid": "drover", "title": "Drover", "tags": []string{"drover"}, "schemaVersion": 39, "version": 1, "editable": true, "refresh": "30s",
		"time": map[string]string{"from": "now-6h", "to": "now"}, "panels": out, "annotations": map[string]any{"list": []any{}},
		"templating": map[string]any{"list": []any{map[string]any{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "current": map[string]any{}, "hide": 0}}},
	}, "", "  ")
	if err != nil {
		panic(err) // texts and numbers
	}
	return string(text) + "\n"
}
