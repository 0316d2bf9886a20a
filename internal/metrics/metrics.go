// Package metrics is the table of what /metrics shows: one row a figure, with its
// labels, what it tells, and what to look at when it is odd. What is counted is made
// of a row, so nothing is shown that the table does not tell of; docs/metrics.md is
// the same table.
//
// Invariants:
//   - A figure has one row, and a row is shown by every controller, or by every agent (the tests of app and agentd
//     hold /metrics against their tables).
package metrics

import (
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Kind says how a figure behaves.
type Kind string

// The kinds of figures. A counter only grows, and begins anew with the process; a gauge
// is what is at this moment; a histogram counts how often something took how long.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Figure is a row of the table.
type Figure struct {
	Name string
	Kind Kind
	// Unit is what is counted or measured.
	Unit   string
	Labels []string
	// Help is what the figure tells, in the words that /metrics shows.
	Help string
	// Advice is what to look at, or to do, when the figure is not as it should be.
	Advice string
	// Buckets are the upper bounds of a histogram's.
	Buckets []float64
}

// Named returns the row of a figure. That there is none, or one of another kind, is a
// mistake of the program.
func Named(name string, kind Kind) Figure {
	for _, f := range slices.Concat(table, agentTable) {
		if f.Name == name && f.Kind == kind {
			return f
		}
	}
	panic(fmt.Sprintf("no %s %s is in the table of figures", kind, name))
}

// NewCounter returns the counters of a figure.
func NewCounter(name string) *prometheus.CounterVec {
	f := Named(name, Counter)
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.Name, Help: f.Help}, f.Labels)
}

// NewHistogram returns the histograms of a figure.
func NewHistogram(name string) *prometheus.HistogramVec {
	f := Named(name, Histogram)
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: f.Name, Help: f.Help, Buckets: f.Buckets}, f.Labels)
}

// NewGauge returns the description of a figure that is looked up when somebody asks.
func NewGauge(name string) *prometheus.Desc {
	f := Named(name, Gauge)
	return prometheus.NewDesc(f.Name, f.Help, f.Labels, nil)
}

// NewTotal returns the description of a counter that is kept elsewhere, and looked up when somebody asks.
func NewTotal(name string) *prometheus.Desc {
	f := Named(name, Counter)
	return prometheus.NewDesc(f.Name, f.Help, f.Labels, nil)
}
