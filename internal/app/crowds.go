package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/drover-project/drover/internal/health"
	"github.com/drover-project/drover/internal/metrics"
)

var (
	openDesc    = metrics.NewGauge("drover_connections")
	placesDesc  = metrics.NewGauge("drover_connections_limit")
	refusedDesc = metrics.NewTotal("drover_connections_refused_total")
)

// collectGates tells how it goes at the gates of the process.
func (m *member) collectGates(out chan<- prometheus.Metric) {
	for _, a := range m.gates.Accounts() {
		out <- prometheus.MustNewConstMetric(openDesc, prometheus.GaugeValue, float64(a.Open), a.Surface.Key)
		out <- prometheus.MustNewConstMetric(placesDesc, prometheus.GaugeValue, float64(a.Places), a.Surface.Key)
		out <- prometheus.MustNewConstMetric(refusedDesc, prometheus.CounterValue, float64(a.Refused), a.Surface.Key)
	}
}

// crowds are the surfaces at which clients are not let in at the moment.
func (m *member) crowds() (all []health.Crowd) {
	for _, a := range m.gates.Accounts() {
		if s := a.Crowded; s != nil {
			all = append(all, health.Crowd{Surface: a.Surface.Name, Trouble: health.Trouble{Text: s.Why, Since: s.Since.UTC()}})
		}
		if s := a.Starved; s != nil {
			all = append(all, health.Crowd{Surface: a.Surface.Name, Trouble: health.Trouble{Text: s.Why, Since: s.Since.UTC()}, Starved: true})
		}
	}
	return all
}
