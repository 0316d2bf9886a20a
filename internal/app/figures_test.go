package app

import (
	"log/slog"
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/drover-project/drover/internal/metrics"
)

// TestEveryFigureIsInTheTable holds what a controller registers, on behalf of all its
// parts, against the table of figures.
func TestEveryFigureIsInTheTable(t *testing.T) {
	m, err := openMember(t.Context(), Options{Data: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	described := make(chan *prometheus.Desc)
	go func() {
		defer close(described)
		m.figures.all.Describe(described)
	}()
	var shown, told []string
	name := regexp.MustCompile(`fqName: "(drover_\w+)"`)
	for d := range described {
		if found := name.FindStringSubmatch(d.String()); found != nil {
			shown = append(shown, found[1])
		}
	}
	for _, f := range metrics.Table() {
		told = append(told, f.Name)
	}
	slices.Sort(shown)
	slices.Sort(told)
	if !slices.Equal(shown, told) {
		t.Errorf("shown are\n%q, in the table are\n%q", shown, told)
	}
}
