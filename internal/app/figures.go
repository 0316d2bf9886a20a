package app

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/drover-project/drover/internal/job"
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
}

// Buckets of times: requests are quick, jobs may take hours.
var (
	requestBuckets = prometheus.ExponentialBuckets(0.0001, 4, 9)
	jobBuckets     = prometheus.ExponentialBuckets(0.001, 4, 12)
)

func newFigures() *figures {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	f := &figures{
		all:         prometheus.NewRegistry(),
		requests:    counter("drover_requests_total", "Requests answered, by interface, method and outcome.", "api", "method", "code"),
		requestTime: histogram("drover_request_duration_seconds", "Time from a request to its answer, waits that it asked for included.", requestBuckets, "api", "method"),
		submitted:   counter("drover_jobs_submitted_total", "Jobs taken, by their first opcode.", "opcode"),
		ended:       counter("drover_jobs_ended_total", "Jobs that ended, by their first opcode and how.", "opcode", "status"),
		opcodeWait:  histogram("drover_opcode_wait_seconds", "Time from when an opcode could be looked at (its job came, or the opcode before it ended) until it ran.", jobBuckets, "opcode"),
		opcodeTime:  histogram("drover_opcode_duration_seconds", "Time that opcodes ran, by how they ended.", jobBuckets, "opcode", "status"),
		stoodBy: counter("drover_standby_requests_total", "Requests that came while another controller led, by interface and whose answer it was: that of this controller, or the leader's.",
			"api", "answered_by"),
		missed: prometheus.NewCounter(prometheus.CounterOpts{Name: "drover_journal_gaps_total",
			Help: "How often jobs changed faster than they could be counted, so that figures by opcode are too low."}),
	}
	build := version.Current()
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "drover_build_info", Help: "1, with the version that runs.",
		ConstLabels: prometheus.Labels{"version": build.Version, "revision": build.Commit, "go": build.Go}})
	info.Set(1)
	f.all.MustRegister(f.requests, f.requestTime, f.submitted, f.ended, f.opcodeWait, f.opcodeTime, f.missed, f.stoodBy, info,
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

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	jobsDesc      = gauge("drover_jobs", "Jobs that are not archived, by status.", "status")
	waitingDesc   = gauge("drover_jobs_waiting", "Jobs that have not ended and do not run, by what they wait for.", "for")
	heldDesc      = gauge("drover_held_jobs", "Jobs that a filter rule holds, by rule.", "rule")
	slotsDesc     = gauge("drover_slots", "How many jobs may run at once.")
	slotsUsedDesc = gauge("drover_slots_used", "How many jobs run.")
	locksDesc     = gauge("drover_locks_held", "Locks that are held.")
	revisionDesc  = gauge("drover_store_revision", "The newest revision of the store.")
	lagDesc       = gauge("drover_feed_lag_revisions", "How many revisions a reader is behind the store.", "reader")
	leaderDesc    = gauge("drover_leader", "1 while this controller leads.")
	epochDesc     = gauge("drover_leader_epoch", "The epoch under which this controller leads.")
	certDesc      = gauge("drover_certificate_not_after_seconds", "When the certificate of RAPI ends, in seconds since 1970.")
)

// Describe implements prometheus.Collector.
func (*gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{jobsDesc, waitingDesc, heldDesc, slotsDesc, slotsUsedDesc, locksDesc, revisionDesc, lagDesc, leaderDesc, epochDesc, certDesc} {
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
	for what, n := range map[string]int{"filter": census.Held, "depend": census.Dependency, "bucket": census.Bucket, "slot": census.Slot, "lock": census.Lock} {
		tell(waitingDesc, float64(n), what)
	}
	held := map[string]int{}
	for j := range shown.Jobs.Unfinished() {
		if j.Hold != nil {
			held[j.Hold.Rule]++
		}
	}
	for _, r := range shown.Rules {
		if n := held[r.UUID]; n > 0 {
			tell(heldDesc, float64(n), r.UUID)
		}
	}
	tell(slotsDesc, float64(census.Slots))
	tell(slotsUsedDesc, float64(census.Running))
	locks := 0
	for s := range shown.Locks.All() {
		if s.Holders.Len() > 0 {
			locks++
		}
	}
	tell(locksDesc, float64(locks))
	tell(leaderDesc, 1)
	tell(epochDesc, float64(c.lease.Epoch))
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
