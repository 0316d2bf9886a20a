package app

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/metrics"
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
	missed                 prometheus.Counter
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
	f.all.MustRegister(f.requests, f.requestTime, f.submitted, f.ended, f.opcodeWait, f.opcodeTime, missed, f.stoodBy, f.tickets,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return f
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
	jobsDesc      = metrics.NewGauge("drover_jobs")
	waitingDesc   = metrics.NewGauge("drover_jobs_waiting")
	heldDesc      = metrics.NewGauge("drover_held_jobs")
	slotsDesc     = metrics.NewGauge("drover_slots")
	slotsUsedDesc = metrics.NewGauge("drover_slots_used")
	locksDesc     = metrics.NewGauge("drover_locks_held")
	revisionDesc  = metrics.NewGauge("drover_store_revision")
	lagDesc       = metrics.NewGauge("drover_feed_lag_revisions")
	leaderDesc    = metrics.NewGauge("drover_leader")
	epochDesc     = metrics.NewGauge("drover_leader_epoch")
	certDesc      = metrics.NewGauge("drover_certificate_not_after_seconds")
	clustersDesc  = metrics.NewGauge("drover_server_clusters")
	buildDesc     = metrics.NewGauge("drover_build_info")
)

// Describe implements prometheus.Collector.
func (*gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{jobsDesc, waitingDesc, heldDesc, slotsDesc, slotsUsedDesc, locksDesc, revisionDesc, lagDesc, leaderDesc, epochDesc, certDesc, clustersDesc, buildDesc} {
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
	build := version.Current()
	tell(buildDesc, 1, build.Version, build.Commit, build.Go)
	if cert := g.m.cert.Load(); cert != nil {
		tell(certDesc, float64(cert.NotAfter().Unix()))
	}
	c := g.m.leads()
	if c == nil {
		tell(leaderDesc, 0)
		g.collectStandby(tell)
		return
	}
	shown := c.picture.Load()
	for _, s := range job.Statuses {
		tell(jobsDesc, float64(shown.Jobs.CountIn(s)), string(s))
	}
	census := c.queue.Census()
	for what, n := range waitingFor(&census) {
		tell(waitingDesc, float64(n.Jobs), what)
	}
	held := map[string]int{}
	for j := range shown.Jobs.Unfinished() {
		if j.Hold != nil && j.Hold.Rule != "" {
			held[j.Hold.Rule]++
		}
	}
	for _, r := range shown.Rules {
		if n := held[r.UUID]; n > 0 {
			tell(heldDesc, float64(n), r.UUID)
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
	tell(leaderDesc, 1)
	tell(epochDesc, float64(c.lease.Epoch))
	if c.servers != nil {
		states := map[bool]int{}
		for _, cluster := range c.servers.Clusters() {
			states[cluster.Away.IsZero()]++
		}
		tell(clustersDesc, float64(states[true]), "well")
		tell(clustersDesc, float64(states[false]), "away")
	}
	g.collectLag(tell, shown)
}

// collectStandby tells how far behind a controller is that follows another.
func (g *gauges) collectStandby(tell func(*prometheus.Desc, float64, ...string)) {
	if g.m.group == nil {
		return
	}
	if here := g.m.group.reading.Load(); here != nil {
		g.collectLag(tell, here.picture.Load())
	}
}

func (g *gauges) collectLag(tell func(*prometheus.Desc, float64, ...string), shown *state.State) {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	if newest, err := g.m.store.Revision(ctx); err == nil { // else the store's own figures tell
		tell(revisionDesc, float64(newest))
		tell(lagDesc, float64(max(0, int64(newest)-shown.Revision)), "picture")
	}
}
