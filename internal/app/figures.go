package app

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/metrics"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/version"
)

// figures are what a controller counts while it runs; gauges are what it looks
// up when it is asked.
type figures struct {
	all *prometheus.Registry

	requests               *prometheus.CounterVec
	requestTime            *prometheus.HistogramVec
	submitted, ended       *prometheus.CounterVec
	opcodeWait, opcodeTime *prometheus.HistogramVec
	missed, left           prometheus.Counter
	// stoodBy are requests that came while another controller led, by interface and who
	// answered them.
	stoodBy *prometheus.CounterVec
	// tickets are those for consoles that were shown, by what became of them.
	tickets *prometheus.CounterVec
}

func newFigures() *figures {
	f := &figures{
		all:         prometheus.NewRegistry(),
		requests:    metrics.NewCounter("drover_requests_total"),
		requestTime: metrics.NewHistogram("drover_request_duration_seconds"),
		submitted:   metrics.NewCounter("drover_jobs_submitted_total"),
		ended:       metrics.NewCounter("drover_jobs_ended_total"),
		opcodeWait:  metrics.NewHistogram("drover_opcode_wait_seconds"),
		opcodeTime:  metrics.NewHistogram("drover_opcode_duration_seconds"),
		stoodBy:     metrics.NewCounter("drover_standby_requests_total"),
		tickets:     metrics.NewCounter("drover_console_tickets_total"),
	}
	missed := metrics.NewCounter("drover_journal_gaps_total")
	f.missed = missed.WithLabelValues() // shown also while it is 0
	left := metrics.NewCounter("drover_undo_failures_total")
	f.left = left.WithLabelValues()
	f.all.MustRegister(left, f.requests, f.requestTime, f.submitted, f.ended, f.opcodeWait, f.opcodeTime, missed, f.stoodBy, f.tickets,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return f
}

// expectJobs shows how jobs of each kind end while none has: of a line that begins at 12 nobody can tell that it grew, and 12 jobs
// that fail at once are what an alert is for.
func (f *figures) expectJobs() {
	for _, op := range opcode.All() {
		for _, status := range []job.Status{job.Success, job.Error} {
			f.ended.WithLabelValues(op.ID, string(status))
		}
	}
}

// methods of HTTP that are told apart; there is no end to those that a client
// can think of.
var httpMethods = map[string]bool{"GET": true, "HEAD": true, "PUT": true, "POST": true, "DELETE": true, "OPTIONS": true, "PATCH": true}

// observe returns what an interface calls for each request that it answered.
func (f *figures) observe(api string, log *slog.Logger) func(ctx context.Context, what, outcome string, took time.Duration) {
	return func(ctx context.Context, what, outcome string, took time.Duration) {
		method, _, isHTTP := strings.Cut(what, " ")
		if isHTTP && !httpMethods[method] {
			method = "other"
		}
		f.requests.WithLabelValues(api, method, outcome).Inc()
		f.requestTime.WithLabelValues(api, method).Observe(took.Seconds())
		if !log.Enabled(ctx, slog.LevelDebug) {
			return
		}
		log.DebugContext(ctx, "request", "interface", api, "what", strings.ToValidUTF8(what, "?"), "outcome", outcome, "took", took)
	}
}

// Who answers the requests that come to a controller which stands by.
const (
	byStandby = "standby"
	byLeader  = "leader"
)

// observeStandby is observe for a controller that stands by.
func (f *figures) observeStandby(api string, log *slog.Logger) func(ctx context.Context, what, outcome string, took time.Duration) {
	observe, answered := f.observe(api, log), f.stoodBy.WithLabelValues(api, byStandby)
	return func(ctx context.Context, what, outcome string, took time.Duration) {
		answered.Inc()
		observe(ctx, what, outcome, took)
	}
}

// gauges are what is looked up, most of it in a controller that leads.
type gauges struct{ m *member }

var (
	jobsDesc       = metrics.NewGauge("drover_jobs")
	waitingDesc    = metrics.NewGauge("drover_jobs_waiting")
	waitingOldDesc = metrics.NewGauge("drover_jobs_waiting_oldest_seconds")
	runningOldDesc = metrics.NewGauge("drover_job_running_oldest_seconds")
	drainedDesc    = metrics.NewGauge("drover_queue_drained")
	heldDesc       = metrics.NewGauge("drover_held_jobs")
	heldOldDesc    = metrics.NewGauge("drover_held_oldest_seconds")
	slotsDesc      = metrics.NewGauge("drover_slots")
	slotsUsedDesc  = metrics.NewGauge("drover_slots_used")
	locksDesc      = metrics.NewGauge("drover_locks_held")
	revisionDesc   = metrics.NewGauge("drover_store_revision")
	lagDesc        = metrics.NewGauge("drover_feed_lag_revisions")
	failingDesc    = metrics.NewGauge("drover_store_failing_seconds")
	storeSizeDesc  = metrics.NewGauge("drover_store_size_bytes")
	diskFreeDesc   = metrics.NewGauge("drover_disk_free_bytes")
	diskSizeDesc   = metrics.NewGauge("drover_disk_size_bytes")
	backupAgeDesc  = metrics.NewGauge("drover_backup_age_seconds")
	eventsDesc     = metrics.NewGauge("drover_events_failing_seconds")
	nodesDesc      = metrics.NewGauge("drover_nodes")
	nodesAheadDesc = metrics.NewGauge("drover_nodes_ahead")
	leaderDesc     = metrics.NewGauge("drover_leader")
	memberOutDesc  = metrics.NewGauge("drover_controller_drained")
	epochDesc      = metrics.NewGauge("drover_leader_epoch")
	certDesc       = metrics.NewGauge("drover_certificate_not_after_seconds")
	peerCertDesc   = metrics.NewGauge("drover_peer_certificate_not_after_seconds")
	accountsDesc   = metrics.NewGauge("drover_accounts_missing")
	clustersDesc   = metrics.NewGauge("drover_server_clusters")
	clockDesc      = metrics.NewGauge("drover_clock_ahead_seconds")
	archiveDesc    = metrics.NewGauge("drover_archive_jobs")
	archiveOldDesc = metrics.NewGauge("drover_archive_oldest_seconds")
	notedDesc      = metrics.NewGauge("drover_noted_events")
	notedOldDesc   = metrics.NewGauge("drover_noted_events_oldest_seconds")
	tagsDesc       = metrics.NewGauge("drover_server_tags_pending")
	tagsOldDesc    = metrics.NewGauge("drover_server_tags_pending_oldest_seconds")
	buildDesc      = metrics.NewGauge("drover_build_info")
)

// Describe implements prometheus.Collector.
func (*gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{jobsDesc, waitingDesc, waitingOldDesc, runningOldDesc, drainedDesc, heldDesc, heldOldDesc, slotsDesc, slotsUsedDesc, locksDesc,
		revisionDesc, lagDesc, failingDesc, storeSizeDesc, diskFreeDesc, diskSizeDesc, backupAgeDesc, eventsDesc, nodesDesc, nodesAheadDesc, leaderDesc, memberOutDesc, epochDesc, certDesc, peerCertDesc,
		accountsDesc, clustersDesc, clockDesc, archiveDesc, archiveOldDesc, notedDesc, notedOldDesc, tagsDesc, tagsOldDesc, buildDesc, openDesc, placesDesc, refusedDesc} {
		out <- d
	}
}

// readTime bounds how long figures wait for the store.
const readTime = 2 * time.Second

// Collect implements prometheus.Collector.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	tell := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	g.m.collect(tell)
	g.m.collectGates(out)
	if of := g.m.group; of != nil {
		tell(memberOutDesc, map[bool]float64{true: 1}[of.drained.Load() != nil])
	}
	c := g.m.leads()
	if c == nil {
		tell(leaderDesc, 0)
		g.m.collectStandby(tell)
		return
	}
	tell(leaderDesc, 1)
	tell(epochDesc, float64(c.lease.Epoch))
	g.m.newest(tell)
	shown, now := c.picture.Load(), g.m.now()
	c.collectQueue(tell, shown, now)
	c.collectArchive(tell, now)
	c.collectAround(tell, shown, now)
}

// teller shows the value of a figure.
type teller func(d *prometheus.Desc, value float64, labels ...string)

// truth is 1 for what is so.
func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// collect tells what every controller has, whether it leads or not.
func (m *member) collect(tell teller) {
	build := version.Current()
	tell(buildDesc, 1, build.Version, build.Commit, build.Go)
	if cert := m.cert.Load(); cert != nil {
		tell(certDesc, float64(cert.NotAfter().Unix()))
	}
	if m.group != nil && m.group.cert != nil {
		tell(peerCertDesc, float64(m.group.cert.NotAfter().Unix()))
	}
	if users := m.users.Load(); users != nil {
		tell(accountsDesc, truth(users.Trouble() != ""))
	}
	failing := 0.0
	if t := m.meter.Trouble(); t != nil {
		failing = max(0, m.now().Sub(t.Since).Seconds())
	}
	tell(failingDesc, failing)
	if d, known := m.clockAhead(context.Background()); known {
		tell(clockDesc, d.Seconds())
	}
	if b := m.backups.look(m.now()); b != nil && !b.Missing {
		age := math.Inf(1) // somebody wants backups, and there is none
		if !b.Newest.IsZero() {
			age = max(0, m.now().Sub(b.Newest).Seconds())
		}
		tell(backupAgeDesc, age)
	}
	if d := m.disk(); d != nil {
		tell(diskFreeDesc, float64(d.Free))
		tell(diskSizeDesc, float64(d.Size))
		if d.Store > 0 {
			tell(storeSizeDesc, float64(d.Store))
		}
	}
}

// collectStandby tells how far behind a controller is that follows another.
func (m *member) collectStandby(tell teller) {
	if m.group == nil {
		return
	}
	newest, known := m.newest(tell)
	if !known {
		return
	}
	shown := int64(0) // while it cannot follow the store at all
	if here := m.group.reading.Load(); here != nil {
		shown = here.picture.Load().Revision
	}
	tell(lagDesc, float64(max(0, newest-shown)), "picture")
}

// newest tells the revision of the store, unless that does not say it: then its own figures tell.
func (m *member) newest(tell teller) (revision int64, known bool) {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	newest, err := m.store.Revision(ctx)
	if err != nil {
		return 0, false
	}
	tell(revisionDesc, float64(newest))
	return int64(newest), true
}

// collectQueue tells how the queue is.
func (c *controller) collectQueue(tell teller, shown *state.State, now time.Time) {
	since := func(t job.Time) float64 { return max(0, now.Sub(time.UnixMicro(int64(t))).Seconds()) }
	for _, s := range job.Statuses {
		tell(jobsDesc, float64(shown.Jobs.CountIn(s)), string(s))
	}
	census := c.queue.Census()
	for what, n := range waitingFor(&census) {
		tell(waitingDesc, float64(n.Jobs), what)
		if n.Jobs > 0 {
			tell(waitingOldDesc, since(n.Since), what)
		}
	}
	running := 0.0
	if census.Running.Jobs > 0 {
		running = since(census.Running.Since)
	}
	tell(runningOldDesc, running)
	tell(drainedDesc, truth(shown.Flags.Drained))
	held := heldJobs(shown)
	for _, r := range shown.Rules {
		if n := held[r.UUID]; n.Jobs > 0 {
			tell(heldDesc, float64(n.Jobs), r.UUID)
			tell(heldOldDesc, since(n.Since), r.UUID)
		}
	}
	tell(slotsDesc, float64(census.Slots))
	tell(slotsUsedDesc, float64(census.Running.Jobs))
	locks := 0
	for s := range shown.Locks.All() {
		if s.Holders.Len() > 0 {
			locks++
		}
	}
	tell(locksDesc, float64(locks))
}

// collectArchive tells how many jobs the archive has, how many events there are, and how old they are, unless the store does not say it.
func (c *controller) collectArchive(tell teller, now time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	span, err := c.queue.Span(ctx)
	if err != nil {
		return
	}
	tell(archiveDesc, float64(span.Jobs()))
	oldest := 0.0
	if span.Ended != 0 {
		oldest = max(0, now.Sub(time.UnixMicro(int64(span.Ended))).Seconds())
	}
	tell(archiveOldDesc, oldest)
	events, first, err := c.queue.EventSpan(ctx)
	if err != nil {
		return
	}
	tell(notedDesc, float64(events))
	oldest = 0
	if !first.IsZero() {
		oldest = max(0, now.Sub(first).Seconds())
	}
	tell(notedOldDesc, oldest)
}

// collectAround tells how nodes, clusters of servers and the broker are.
func (c *controller) collectAround(tell teller, shown *state.State, now time.Time) {
	nodes := c.tellNodes(shown.Inventory)
	well := nodes.All
	for state, n := range map[string]int{"offline": len(nodes.Offline), "drained": len(nodes.Drained), "away": len(nodes.Away)} {
		tell(nodesDesc, float64(n), state)
		well -= n
	}
	tell(nodesDesc, float64(well), "in_service")
	tell(nodesAheadDesc, float64(len(nodes.Ahead)))
	if c.servers != nil {
		states := map[bool]int{}
		for _, cluster := range c.servers.Clusters() {
			states[cluster.Away.IsZero()]++
		}
		tell(clustersDesc, float64(states[true]), "well")
		tell(clustersDesc, float64(states[false]), "away")
		tags, oldest := tellTags(shown), 0.0
		if tags.Servers > 0 {
			oldest = max(0, now.Sub(tags.Since).Seconds())
		}
		tell(tagsDesc, float64(tags.Servers))
		tell(tagsOldDesc, oldest)
	}
	if e := c.tellEvents(shown.Revision); e != nil {
		failing := 0.0
		if e.Trouble != nil {
			failing = max(0, now.Sub(e.Trouble.Since).Seconds())
		}
		tell(eventsDesc, failing)
		tell(lagDesc, float64(e.Behind), "events")
	}
}
