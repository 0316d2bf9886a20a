package items

import (
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
)

// block is how many rows a query looks at before it asks whether it is interrupted.
const block = 16

// counted yields rows and counts them.
func counted[R any](rows iter.Seq[R], n *int) iter.Seq[R] {
	return func(yield func(R) bool) {
		for r := range rows {
			*n++
			if !yield(r) {
				return
			}
		}
	}
}

// A query that is interrupted, at whatever moment, looks at no further block of
// rows and fails with the error that interrupted it.
func TestInterruptedQueryEnds(t *testing.T) {
	jobs := bigJobs(1000)
	filter := mustParse(t, `reason =~ m/(OPS-\d*7|ticket \w+9)\b/`)
	ids := []string{"id", "status"}
	all := func(src *query.Source, filter qlang.Node, opts query.Options) error {
		_, err := All.Run(src, "job", ids, filter, opts)
		return err
	}
	for name, ask := range map[string]func(src *query.Source) error{
		"scan": func(src *query.Source) error { return all(src, filter, query.Options{}) },
		"all":  func(src *query.Source) error { return all(src, nil, query.Options{}) },
		"sort": func(src *query.Source) error {
			return all(src, filter, query.Options{Sort: query.ParseSort([]string{"-status"})})
		},
		"group": func(src *query.Source) error {
			_, err := All.Group(src, query.Request{What: "job", Filter: filter}, []string{"status"}, []query.Calc{{Func: "count"}})
			return err
		},
		"explain": func(src *query.Source) error {
			_, err := All.Explain(src, query.Request{What: "job", Fields: ids, Filter: filter})
			return err
		},
	} {
		looks, limit, pulled := 0, len(jobs), 0
		stop := errors.New("nobody waits any more")
		src := jobSource(jobs)
		src.Jobs = func(bool) iter.Seq2[*job.Job, error] {
			return readable(counted(slices.Values(jobs), &pulled))
		}
		src.Interrupted = func() error {
			if looks++; looks > limit {
				return stop
			}
			return nil
		}
		if err := ask(src); err != nil || name != "all" && looks < len(jobs)/block {
			t.Fatalf("%s: asked %d times, %v", name, looks, err)
		}
		for limit = range looks {
			looks, pulled = 0, 0
			err := ask(src)
			if !errors.Is(err, stop) || looks != limit+1 || name != "all" && pulled > looks*block {
				t.Fatalf("%s, interrupted at look %d: %d looks and %d rows, %v", name, limit, looks, pulled, err)
			}
		}
	}
}
