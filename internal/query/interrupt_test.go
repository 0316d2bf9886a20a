package query

import (
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
)

// A query that is interrupted, at whatever moment, looks at no further block of
// rows and fails with the error that interrupted it.
func TestInterruptedQueryEnds(t *testing.T) {
	jobs := bigJobs(1000)
	filter := mustParse(t, `reason =~ m/(OPS-\d*7|ticket \w+9)\b/`)
	ids := []string{"id", "status"}
	all := func(src *Source, filter qlang.Node, opts Options) error {
		_, err := Run(src, "job", ids, filter, opts)
		return err
	}
	for name, ask := range map[string]func(src *Source) error{
		"scan": func(src *Source) error { return all(src, filter, Options{}) },
		"all":  func(src *Source) error { return all(src, nil, Options{}) },
		"sort": func(src *Source) error { return all(src, filter, Options{Sort: ParseSort([]string{"-status"})}) },
		"group": func(src *Source) error {
			_, err := Group(src, Request{What: "job", Filter: filter}, []string{"status"}, []Calc{{Func: "count"}})
			return err
		},
		"explain": func(src *Source) error {
			_, err := Explain(src, Request{What: "job", Fields: ids, Filter: filter})
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
		if err := ask(src); err != nil || name != "all" && looks < len(jobs)/blockSize {
			t.Fatalf("%s: asked %d times, %v", name, looks, err)
		}
		for limit = range looks {
			looks, pulled = 0, 0
			err := ask(src)
			if !errors.Is(err, stop) || looks != limit+1 || name != "all" && pulled > looks*blockSize {
				t.Fatalf("%s, interrupted at look %d: %d looks and %d rows, %v", name, limit, looks, pulled, err)
			}
		}
	}
}
