package metrics

import "github.com/prometheus/client_golang/prometheus"

// Table is the table, in the order in which it is read.
func Table() []Figure { return table }

// Bounds of times: requests are quick, commits a little slower, and jobs may take hours.
var (
	requestTimes = prometheus.ExponentialBuckets(0.0001, 4, 9)
	commitTimes  = prometheus.ExponentialBuckets(0.0005, 2, 15)
	jobTimes     = prometheus.ExponentialBuckets(0.001, 4, 12)
)

var table = []Figure{
	{
		Name: "drover_jobs", Kind: Gauge, Unit: "jobs", Labels: []string{"status"},
		Help:   "Jobs that are not archived, by status.",
		Advice: "Many that have ended: they are archived `archive-after` their end. Many that have not: the next figure says why.",
	},
	{
		Name: "drover_jobs_waiting", Kind: Gauge, Unit: "jobs", Labels: []string{"for"},
		Help:   "Jobs that have not ended and do not run, by what they wait for.",
		Advice: "`filter`: a rule (`drover filter stats`); `depend`: another job; `node`: the agent of a node, which is away; `bucket`: a place under a rule's limit; `slot`: raise `max_running_jobs`, or wait; `lock`: `drover lock list`. `drover top holds` shows all of it.",
	},
	{
		Name: "drover_jobs_waiting_oldest_seconds", Kind: Gauge, Unit: "seconds", Labels: []string{"for"},
		Help:   "For how long the job waits that waits longest, by what it waits for; there where one waits.",
		Advice: "`drover cluster health` names the job, `drover job explain` says what it waits for; [a job waits](runbook.md#a-job-waits).",
	},
	{
		Name: "drover_job_running_oldest_seconds", Kind: Gauge, Unit: "seconds",
		Help:   "For how long the opcode runs that runs longest; 0 if none runs.",
		Advice: "Longer than such opcodes take: `drover job list --running`, then `drover job watch`.",
	},
	{
		Name: "drover_queue_drained", Kind: Gauge, Unit: "1 or 0",
		Help:   "1 while the queue takes no new jobs.",
		Advice: "`drover cluster health` says who drained it, when and why; `drover job undrain` ends it.",
	},
	{
		Name: "drover_held_jobs", Kind: Gauge, Unit: "jobs", Labels: []string{"rule"},
		Help:   "Jobs that a filter rule holds, by rule.",
		Advice: "A rule that was forgotten: `drover filter info RULE` says who added it, when and why.",
	},
	{
		Name: "drover_held_oldest_seconds", Kind: Gauge, Unit: "seconds", Labels: []string{"rule"},
		Help:   "For how long a filter rule holds the job that it holds longest, by rule.",
		Advice: "Days: a rule that was forgotten, as above.",
	},
	{
		Name: "drover_slots", Kind: Gauge, Unit: "jobs",
		Help:   "How many jobs may run at once.",
		Advice: "`drover cluster modify --max-running-jobs N`.",
	},
	{
		Name: "drover_slots_used", Kind: Gauge, Unit: "jobs",
		Help:   "How many jobs run.",
		Advice: "As many as `drover_slots` for long: jobs wait for a slot (`drover job list --running`).",
	},
	{
		Name: "drover_locks_held", Kind: Gauge, Unit: "locks",
		Help:   "Locks that are held.",
		Advice: "`drover lock list` says by which jobs.",
	},
	{
		Name: "drover_jobs_submitted_total", Kind: Counter, Unit: "jobs", Labels: []string{"opcode"},
		Help:   "Jobs taken, by their first opcode.",
		Advice: "A rate that nobody expects: `drover query reason` says who asks, and why.",
	},
	{
		Name: "drover_jobs_ended_total", Kind: Counter, Unit: "jobs", Labels: []string{"opcode", "status"},
		Help:   "Jobs that ended, by their first opcode and how.",
		Advice: "Of `error`: `drover job list --error --sort -end_ts --limit 20`, then `drover job info`. Of `canceled`: a rule that refuses, or a person (`drover query event`).",
	},
	{
		Name: "drover_opcode_wait_seconds", Kind: Histogram, Unit: "seconds", Labels: []string{"opcode"}, Buckets: jobTimes,
		Help:   "Time from when an opcode could be looked at (its job came, or the opcode before it ended) until it ran.",
		Advice: "Long: see `drover_jobs_waiting`.",
	},
	{
		Name: "drover_opcode_duration_seconds", Kind: Histogram, Unit: "seconds", Labels: []string{"opcode", "status"}, Buckets: jobTimes,
		Help:   "Time that opcodes ran, by how they ended.",
		Advice: "Longer than usual: nodes that answer slowly (`drover node list`), or scripts of operating systems.",
	},
	{
		Name: "drover_journal_gaps_total", Kind: Counter, Unit: "gaps",
		Help:   "How often jobs changed faster than they could be counted, so that figures by opcode are too low.",
		Advice: "Each gap stands in the log. The figures by opcode are estimates then; those of the queue and the store are exact.",
	},
	{
		Name: "drover_undo_failures_total", Kind: Counter, Unit: "steps",
		Help:   "Steps of jobs that failed, or were ended, which could not be taken back.",
		Advice: "Each stands in the log, with its job: [a job left something behind](runbook.md#a-job-left-something-behind).",
	},
	{
		Name: "drover_archive_jobs", Kind: Gauge, Unit: "jobs",
		Help:   "About how many jobs the archive has: as many as there are ids from its oldest job to its newest.",
		Advice: "About a kilobyte of the store each; `archive-keep` has the old ones go ([operations.md](operations.md#keeping)).",
	},
	{
		Name: "drover_archive_oldest_seconds", Kind: Gauge, Unit: "seconds",
		Help:   "How long ago the oldest job of the archive ended; 0 where that has none.",
		Advice: "With an age in `archive-keep`: much more than that means that jobs are not removed; the log says why.",
	},
	{
		Name: "drover_noted_events", Kind: Gauge, Unit: "events",
		Help:   "About how many events are kept of what was done that is no job (`drover query event`): as many as there are numbers from the oldest to the newest.",
		Advice: "A few hundred bytes of the store each; at most 100,000, unless `archive-keep` has an age for them ([operations.md](operations.md#keeping)).",
	},
	{
		Name: "drover_noted_events_oldest_seconds", Kind: Gauge, Unit: "seconds",
		Help:   "How long ago the oldest of them was; 0 where there is none.",
		Advice: "With an age of events in `archive-keep`: much more than that means that they are not removed; the log says why.",
	},
	{
		Name: "drover_store_transactions_total", Kind: Counter, Unit: "transactions", Labels: []string{"outcome"},
		Help:   "Transactions handed to the store, by outcome: committed, refused on their own account, or failed.",
		Advice: "Any that `failed`: `/readyz` and the log say what is wrong with the store. `refused` is ordinary.",
	},
	{
		Name: "drover_store_commit_seconds", Kind: Histogram, Unit: "seconds", Buckets: commitTimes,
		Help:   "Time from handing a transaction to the store to its answer.",
		Advice: "Much above 0.05: a slow disk, or a database that is far away or busy. Everything that is acknowledged waits for it.",
	},
	{
		Name: "drover_store_reads_total", Kind: Counter, Unit: "reads", Labels: []string{"outcome"},
		Help:   "Reads of the store, by outcome: done or failed.",
		Advice: "Any that `failed`: as with transactions.",
	},
	{
		Name: "drover_store_revision", Kind: Gauge, Unit: "revisions",
		Help:   "The newest revision of the store.",
		Advice: "Missing: the store does not answer within two seconds.",
	},
	{
		Name: "drover_feed_lag_revisions", Kind: Gauge, Unit: "revisions", Labels: []string{"reader"},
		Help:   "How many revisions a reader is behind the store: `picture`, what a controller that stands by shows (all of them while it cannot follow the store), or `events`, what the broker was told. 0 when nothing lags.",
		Advice: "Growing for longer than seconds, `picture`: the controller has no processor time, or cannot follow its database; what it shows is as old. `events`: see `drover_events_failing_seconds`.",
	},
	{
		Name: "drover_store_failing_seconds", Kind: Gauge, Unit: "seconds",
		Help:   "For how long the store has failed this controller; 0 while it works.",
		Advice: "[The database is away](runbook.md#the-database-is-away), or [the disk is full](runbook.md#the-disk-is-full).",
	},
	{
		Name: "drover_store_size_bytes", Kind: Gauge, Unit: "bytes",
		Help:   "How much an embedded store has of its disk, with its log. Of a database its server tells.",
		Advice: "It grows by about a kilobyte a job; the archive is kept.",
	},
	{
		Name: "drover_clock_ahead_seconds", Kind: Gauge, Unit: "seconds",
		Help:   "How far the clock of the machine is ahead of the database's, by which leases end; negative if it is behind. Of an embedded store there is none.",
		Advice: "More than 2 either way: [clocks differ](runbook.md#clocks-differ). The difference of two controllers is that of their clocks.",
	},
	{
		Name: "drover_disk_free_bytes", Kind: Gauge, Unit: "bytes",
		Help:   "What is free on the disk of the data directory, for the controller.",
		Advice: "Below a twentieth of the disk: make room. When it is full, an embedded store takes no changes.",
	},
	{
		Name: "drover_disk_size_bytes", Kind: Gauge, Unit: "bytes",
		Help:   "The size of the disk of the data directory.",
		Advice: "Compare with `drover_disk_free_bytes`.",
	},
	{
		Name: "drover_backup_age_seconds", Kind: Gauge, Unit: "seconds",
		Help:   "How long ago the newest backup was made of those that this machine has (setting `backups`); `+Inf` where there is none in that directory, absent where there is no such directory.",
		Advice: "The least of all controllers counts: [there is no new backup](runbook.md#there-is-no-new-backup).",
	},
	{
		Name: "drover_events_failing_seconds", Kind: Gauge, Unit: "seconds",
		Help:   "For how long the broker cannot be used; 0 while it can. There where one is named.",
		Advice: "[Events do not arrive](runbook.md#events-do-not-arrive). What was not told is told when it answers.",
	},
	{
		Name: "drover_nodes", Kind: Gauge, Unit: "nodes", Labels: []string{"state"},
		Help:   "Nodes, by how they are: `in_service`, `away` (their agents are not connected), `drained`, `offline`. Each counts once.",
		Advice: "Any `away` for longer than a restart takes: [nodes are away](runbook.md#nodes-are-away).",
	},
	{
		Name: "drover_nodes_ahead", Kind: Gauge, Unit: "nodes",
		Help:   "Nodes that follow a controller of a later epoch, and refuse the orders of this one.",
		Advice: "Any: [the database was put back](runbook.md#the-database-was-put-back).",
	},
	{
		Name: "drover_server_clusters", Kind: Gauge, Unit: "clusters", Labels: []string{"state"},
		Help:   "Clusters that servers are on: `well`, or `away`, which do not answer.",
		Advice: "Any `away`: their servers wait, and no others; `drover server cluster list` says which, since when and why.",
	},
	{
		Name: "drover_server_tags_pending", Kind: Gauge, Unit: "servers",
		Help:   "Servers with a tag that their cluster does not show yet as it is wanted. Those count that may still come there without anybody's doing.",
		Advice: "For longer than jobs take: the next figure.",
	},
	{
		Name: "drover_server_tags_pending_oldest_seconds", Kind: Gauge, Unit: "seconds",
		Help:   "How long ago the oldest of those tags was asked for; 0 if there is none.",
		Advice: "[Tags of servers do not come](runbook.md#tags-of-servers-do-not-come).",
	},
	{
		Name: "drover_leader", Kind: Gauge, Unit: "1 or 0",
		Help:   "1 while this controller leads.",
		Advice: "The sum over a group is 1, but for the moment in which the lead goes over. 0 for longer than a few seconds: `drover cluster masters`, `/readyz` and the logs of all of them.",
	},
	{
		Name: "drover_controller_drained", Kind: Gauge, Unit: "1 or 0",
		Help:   "1 while this controller is drained, and leads only if no other could. Absent for one that is alone.",
		Advice: "`drover cluster masters` notes by whom, and why; `drover cluster undrain-controller` ends it. 1 where drover_leader is 1, too: no other controller could lead.",
	},
	{
		Name: "drover_leader_epoch", Kind: Gauge, Unit: "epochs",
		Help:   "The epoch under which this controller leads.",
		Advice: "It grows by one each time the lead is taken. Often: leaders lose their lease (a slow database, a machine that stands still).",
	},
	{
		Name: "drover_requests_total", Kind: Counter, Unit: "requests", Labels: []string{"api", "method", "code"},
		Help:   "Requests answered, by interface, method and outcome.",
		Advice: "Outcomes 5xx and `internal`: the log has a line for each, with the id of the request. 401: guessing, or a password that changed.",
	},
	{
		Name: "drover_request_duration_seconds", Kind: Histogram, Unit: "seconds", Labels: []string{"api", "method"}, Buckets: requestTimes,
		Help:   "Time from a request to its answer, waits that it asked for included.",
		Advice: "Compare with `drover_store_commit_seconds`. Waits for jobs and changes are long by themselves.",
	},
	{
		Name: "drover_standby_requests_total", Kind: Counter, Unit: "requests", Labels: []string{"api", "answered_by"},
		Help:   "Requests that came while another controller led, by interface and whose answer it was: that of this controller, or the leader's.",
		Advice: "`leader` alone though most only read: the standby has no read lease (its clock, or its way to the leader).",
	},
	{
		Name: "drover_console_tickets_total", Kind: Counter, Unit: "tickets", Labels: []string{"outcome"},
		Help:   "Tickets for consoles of servers, and of instances on the page, that were shown, by what became of them: `opened`, `used` (before), `expired`, `foreign` (for another console, or of who may act there no more), `crowded` (as many consoles are open as there may be), `unknown`.",
		Advice: "Others than `opened`: `drover query event` has `console.refuse`, by whom and from where. Many `unknown`: somebody guesses, or the controller that leads has changed.",
	},
	{
		Name: "drover_connections", Kind: Gauge, Unit: "connections", Labels: []string{"surface"},
		Help:   "Connections that are let in, by surface ([limits](limits.md#connections)).",
		Advice: "Near `drover_connections_limit`: [too many connections](runbook.md#too-many-connections).",
	},
	{
		Name: "drover_connections_limit", Kind: Gauge, Unit: "connections", Labels: []string{"surface"},
		Help:   "How many connections there may be at once, by surface.",
		Advice: "It follows from how many files the process may open: `LimitNOFILE`.",
	},
	{
		Name: "drover_connections_refused_total", Kind: Counter, Unit: "connections", Labels: []string{"surface"},
		Help:   "Connections that were turned away, or ended for the sake of others before they had shown who they are, by surface.",
		Advice: "Growing: [too many connections](runbook.md#too-many-connections).",
	},
	{
		Name: "drover_certificate_not_after_seconds", Kind: Gauge, Unit: "seconds since 1970",
		Help:   "When the certificate of RAPI ends, in seconds since 1970.",
		Advice: "Renew it before: from 30 days before that the log and the notes of `/readyz` say so, too.",
	},
	{
		Name: "drover_peer_certificate_not_after_seconds", Kind: Gauge, Unit: "seconds since 1970",
		Help:   "When the certificate ends that the controller shows to others of its group, in seconds since 1970.",
		Advice: "A start of the controller renews it, from 30 days before.",
	},
	{
		Name: "drover_accounts_missing", Kind: Gauge, Unit: "1 or 0",
		Help:   "1 while the file of RAPI's accounts cannot be read, or is empty, so that nobody can log in.",
		Advice: "[Nobody can log in](runbook.md#nobody-can-log-in).",
	},
	{
		Name: "drover_build_info", Kind: Gauge, Unit: "1", Labels: []string{"version", "revision", "go"},
		Help:   "1, with the version that runs.",
		Advice: "More than one version in a group for longer than an upgrade takes: one was forgotten.",
	},
}
