package agentd

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/metrics"
	"github.com/drover-project/drover/internal/version"
)

// figures are what the agent shows at /metrics.
type figures struct {
	agent  *agent.Agent
	id     *known
	linked atomic.Bool
	all    *prometheus.Registry

	isLinked, ends, running, memory, build *prometheus.Desc
}

func newFigures(id *known, a *agent.Agent) *figures {
	f := &figures{
		agent: a, id: id, all: prometheus.NewRegistry(),
		isLinked: metrics.NewGauge("drover_agent_linked"), ends: metrics.NewGauge("drover_agent_certificate_not_after_seconds"),
		running: metrics.NewGauge("drover_agent_instance_running"), memory: metrics.NewGauge("drover_agent_instance_memory_bytes"),
		build: metrics.NewGauge("drover_agent_build_info"),
	}
	f.all.MustRegister(f, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return f
}

// Describe implements prometheus.Collector.
func (f *figures) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{f.isLinked, f.ends, f.running, f.memory, f.build} {
		to <- d
	}
}

// stateTime is how long a driver may take to tell its state to who asks for figures.
const stateTime = 5 * time.Second

// Collect implements prometheus.Collector.
func (f *figures) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(f.isLinked, oneIf(f.linked.Load()))
	gauge(f.ends, float64(f.id.ends().Unix()))
	v := version.Current()
	gauge(f.build, 1, v.Version, v.Commit, v.Go)
	ctx, cancel := context.WithTimeout(context.Background(), stateTime)
	defer cancel()
	s, err := f.agent.State(ctx, false)
	if err != nil || s.Err != nil {
		return // there is nothing to show of instances; absence can be alerted on
	}
	const mebibyte = 1 << 20
	for name, sum := range byName(s.Instances) {
		gauge(f.running, oneIf(sum.running), name)
		gauge(f.memory, float64(sum.memory)*mebibyte, name)
	}
}

// figure is what is shown of the instances of one name.
type figure struct {
	running bool
	memory  int64 // MiB
}

// byName sums instances up by name: what was left behind may have that of what is there now, and a series is there once or all fail.
func byName(instances []hypervisor.Instance) map[string]figure {
	out := map[string]figure{}
	for i := range instances {
		one := &instances[i]
		sum := out[one.Name]
		out[one.Name] = figure{sum.running || one.Active(), sum.memory + int64(one.Memory)}
	}
	return out
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// serve answers at an address until ctx ends: /metrics, and /healthz for those who would start the agent anew.
func (f *figures) serve(ctx context.Context, l net.Listener, o *Options) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(f.all, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) }) // the client may be gone
	s := gate.Monitors.Server(mux, o.Log)
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(l); err != http.ErrServerClosed {
		o.Log.Error("the figures of the agent are not served any more", "error", err)
	}
}

// listen opens the address of the figures; nil where there is none.
func (o *Options) listen(ctx context.Context) (net.Listener, error) {
	if o.Metrics == "" {
		return nil, nil
	}
	l, err := gate.New(gate.Monitors, gate.Files(), o.Log).Listen(ctx, o.Metrics)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot listen for those who ask for figures: %w", err).WithHint("choose another address with --metrics")
	}
	l.Refuse(gate.RefusalHTTP(nil, "text/plain; charset=utf-8", func(why string) []byte { return []byte(why + "\n") }))
	o.Log.Info("figures are at /metrics", "address", l.Addr())
	return l, nil
}
