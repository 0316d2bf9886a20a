package metrics_test

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/metrics"
	"github.com/drover-project/drover/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/metrics.md anew")

const documentPath = "../../docs/metrics.md"

// docs/metrics.md must say what the table says.
func TestDocumentIsUpToDate(t *testing.T) {
	testkit.Golden(t, *update, documentPath, document())
}

func document() string {
	var b strings.Builder
	b.WriteString(`# Figures

What ` + "`/metrics`" + ` shows, beside the usual figures of Go and of the process ([operations.md](operations.md#is-it-well)). This page is made from the
table in internal/metrics (go test ./internal/metrics -run Document -update), where a new figure begins.

A counter only grows, and begins anew with the process; a gauge is what is at this moment; a histogram counts how often something took how
long. A controller that stands by shows what it does itself, and nothing of the queue. No figure is labelled with names of instances, nodes
or users: there are as many lines as there are opcodes, rules and interfaces.
`)
	write := func(f metrics.Figure) {
		labels := ""
		if len(f.Labels) > 0 {
			labels = "{" + strings.Join(f.Labels, ",") + "}"
		}
		fmt.Fprintf(&b, "\n### `%s%s`\n\n%s Unit: %s; %s.\n\n%s\n", f.Name, labels, f.Help, f.Unit, f.Kind, f.Advice)
	}
	for _, f := range metrics.Table() {
		write(f)
	}
	b.WriteString(`
## Of agents

What ` + "`/metrics`" + ` of an agent shows ([nodes.md](nodes.md#settings)), with names of instances: one line each.
`)
	for _, f := range metrics.AgentTable() {
		write(f)
	}
	return b.String()
}

// TestRowsAreWhole: each figure has a name by the rules of Prometheus, says what it is
// measured in, what it tells and what to do.
func TestRowsAreWhole(t *testing.T) {
	name := regexp.MustCompile(`^drover(_[a-z]+)+$`)
	seen := map[string]bool{}
	for _, f := range slices.Concat(metrics.Table(), metrics.AgentTable()) {
		switch {
		case !name.MatchString(f.Name) || seen[f.Name]:
			t.Errorf("the name %q is odd, or there twice", f.Name)
		case (f.Kind == metrics.Counter) != strings.HasSuffix(f.Name, "_total"):
			t.Errorf("%s is a %s", f.Name, f.Kind)
		case (f.Kind == metrics.Histogram) != (len(f.Buckets) > 0):
			t.Errorf("%s, a %s, has %d buckets", f.Name, f.Kind, len(f.Buckets))
		case strings.HasPrefix(f.Unit, "seconds") != strings.HasSuffix(f.Name, "_seconds"):
			t.Errorf("%s is in %s", f.Name, f.Unit)
		case f.Unit == "" || !strings.HasSuffix(f.Help, ".") || !strings.HasSuffix(f.Advice, "."):
			t.Errorf("%s does not say all that a row says: %+v", f.Name, f)
		}
		seen[f.Name] = true
	}
}

func TestWhatIsNotInTheTableIsNotMade(t *testing.T) {
	for _, name := range []string{"drover_unheard_of_total", "drover_jobs"} { // none, and none of this kind
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("there is a counter %s", name)
				}
			}()
			metrics.NewCounter(name)
		}()
	}
}
