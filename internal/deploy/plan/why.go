package plan

import (
	"fmt"
	"strconv"

	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/yaql"
)

// Difference is a place where an old and a new value differ.
type Difference struct {
	Path     string // such as .nodes[2].status; empty for the value as a whole
	Old, New any    // nil where there is none on that side
	Gone     bool   // only the old value has it
	Came     bool   // only the new value has it
}

// maxDifferences bounds how many places are told of one comparison.
const maxDifferences = 8

// Differences returns the first places where two values differ, and whether there are more.
func Differences(before, after any) (found []Difference, more bool) {
	w := &differ{}
	w.walk("", before, after)
	if len(w.found) > maxDifferences {
		return w.found[:maxDifferences], true
	}
	return w.found, false
}

type differ struct{ found []Difference }

func (w *differ) walk(path string, before, after any) {
	if len(w.found) > maxDifferences || expression.Equal(before, after) {
		return
	}
	if b, ok := before.(yaql.Mapping); ok {
		if a, ok := after.(yaql.Mapping); ok {
			w.maps(path, b, a)
			return
		}
	}
	b, a := itemsOf(before), itemsOf(after)
	if b == nil || a == nil || len(a) != len(b) {
		w.found = append(w.found, Difference{Path: path, Old: before, New: after})
		return
	}
	for i := range b {
		w.walk(path+"["+strconv.Itoa(i)+"]", b[i], a[i])
	}
}

func (w *differ) maps(path string, before, after yaql.Mapping) {
	before.Range(func(k, v any) bool {
		here := path + "." + fmt.Sprint(k)
		if other, ok := after.Get(k); ok {
			w.walk(here, v, other)
		} else {
			w.found = append(w.found, Difference{Path: here, Old: v, Gone: true})
		}
		return len(w.found) <= maxDifferences
	})
	after.Range(func(k, v any) bool {
		if _, ok := before.Get(k); !ok {
			w.found = append(w.found, Difference{Path: path + "." + fmt.Sprint(k), New: v, Came: true})
		}
		return len(w.found) <= maxDifferences
	})
}

// Decided returns the comparisons that made a reason what it is: those that found a change if the task runs, and all
// otherwise.
func (r *Reason) Decided(runs bool) []*expression.Decision {
	if !runs {
		return r.Decisions
	}
	var out []*expression.Decision
	for _, d := range r.Decisions {
		if d.Changed {
			out = append(out, d)
		}
	}
	return out
}
