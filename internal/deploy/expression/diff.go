package expression

import (
	"strings"

	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/yaql"
)

// Diff tells what came to a value and what went, without looking into its parts: items of lists and sets, lines of
// texts, entries of maps. Of values of different types, and of scalars that differ, the whole is added and deleted;
// of equal scalars nothing is, which is null.
func Diff(before, after any) (added, deleted any) {
	switch b := before.(type) {
	case string:
		if a, ok := after.(string); ok {
			return listDiff(lines(b), lines(a))
		}
	case yaql.Tuple:
		if a, ok := after.(yaql.Tuple); ok {
			return listDiff(b, a)
		}
	case *yaql.Set:
		if a, ok := after.(*yaql.Set); ok {
			return setDiff(b, a)
		}
	}
	if b, ok := listItems(before); ok {
		if a, ok := listItems(after); ok {
			return listDiff(b, a)
		}
	}
	if b, ok := before.(yaql.Mapping); ok {
		if a, ok := after.(yaql.Mapping); ok {
			return mapDiff(b, a)
		}
	}
	if Equal(before, after) {
		return nil, nil
	}
	return after, before
}

// listItems returns the items of a list. Tuples are no lists.
func listItems(v any) ([]any, bool) {
	switch x := v.(type) {
	case []any:
		return x, true
	case *yaql.List:
		return x.Items, true
	}
	return nil, false
}

// lines cuts a text as Python's splitlines does.
func lines(s string) []any {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune("\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029", r) {
			return '\n'
		}
		return r
	}, s)
	s = strings.TrimSuffix(s, "\n")
	if s == "" {
		return nil
	}
	var out []any
	for l := range strings.SplitSeq(s, "\n") {
		out = append(out, l)
	}
	return out
}

func setDiff(before, after *yaql.Set) (added, deleted any) {
	return without(after, before), without(before, after)
}

func without(s, other *yaql.Set) *yaql.Set {
	var items []any
	for _, e := range s.Items() {
		if !other.Has(e) {
			items = append(items, e)
		}
	}
	out, _ := yaql.NewSet(items...) // they were in a set
	return out
}

func mapDiff(before, after yaql.Mapping) (added, deleted any) {
	return entriesWithout(after, before), entriesWithout(before, after)
}

func entriesWithout(m, other yaql.Mapping) *yaql.Dict {
	out := yaql.NewDict(0)
	m.Range(func(k, v any) bool {
		if o, ok := other.Get(k); !ok || !Equal(v, o) {
			_ = out.Set(k, v) // it was a key
		}
		return true
	})
	return out
}

func listDiff(before, after []any) (added, deleted any) {
	plus, minus := []any{}, []any{}
	for _, op := range opcodes(standIns(before), standIns(after)) {
		minus = append(minus, before[op.i1:op.i2]...)
		plus = append(plus, after[op.j1:op.j2]...)
	}
	return &yaql.List{Items: plus}, &yaql.List{Items: minus}
}

// standIns returns for each item what is equal for equal items.
func standIns(items []any) []string {
	out := make([]string, len(items))
	for i, x := range items {
		out[i] = state.Likeness(x)
	}
	return out
}

// change says that items i1 to i2 of one list became j1 to j2 of the other.
type change struct{ i1, i2, j1, j2 int }

// block is a run of n equal items.
type block struct{ i, j, n int }

// opcodes returns what differs between two lists, by the method of Ratcliff and Obershelp as Python's difflib has
// it: the longest run of equal items, and then the same on both sides of it.
func opcodes(a, b []string) []change {
	m := matcher{a: a, b: b, places: placesOf(b)}
	var out []change
	i, j := 0, 0
	for _, k := range append(m.blocks(), block{len(a), len(b), 0}) {
		if i < k.i || j < k.j {
			out = append(out, change{i, k.i, j, k.j})
		}
		i, j = k.i+k.n, k.j+k.n
	}
	return out
}

// popularFrom is the length from which items that make up more than one in a hundred are no anchors.
const popularFrom = 200

func placesOf(b []string) map[string][]int {
	places := map[string][]int{}
	for j, x := range b {
		places[x] = append(places[x], j)
	}
	if len(b) >= popularFrom {
		limit := len(b)/100 + 1
		for x, at := range places {
			if len(at) > limit {
				delete(places, x)
			}
		}
	}
	return places
}

type matcher struct {
	a, b   []string
	places map[string][]int
}

type window struct{ alo, ahi, blo, bhi int }

// blocks returns the runs of equal items, in order.
func (m *matcher) blocks() []block {
	var out []block
	var find func(w window)
	stack := []window{{0, len(m.a), 0, len(m.b)}}
	find = func(w window) {
		k := m.longest(w)
		if k.n == 0 {
			return
		}
		out = append(out, k)
		if w.alo < k.i && w.blo < k.j {
			stack = append(stack, window{w.alo, k.i, w.blo, k.j})
		}
		if k.i+k.n < w.ahi && k.j+k.n < w.bhi {
			stack = append(stack, window{k.i + k.n, w.ahi, k.j + k.n, w.bhi})
		}
	}
	for len(stack) > 0 {
		w := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		find(w)
	}
	sortBlocks(out)
	return out
}

// longest returns the longest run of equal items in a window, of several the one that begins first.
func (m *matcher) longest(w window) block {
	best := block{w.alo, w.blo, 0}
	lengths := map[int]int{}
	for i := w.alo; i < w.ahi; i++ {
		next := map[int]int{}
		for _, j := range m.places[m.a[i]] {
			if j < w.blo {
				continue
			}
			if j >= w.bhi {
				break
			}
			k := lengths[j-1] + 1
			next[j] = k
			if k > best.n {
				best = block{i - k + 1, j - k + 1, k}
			}
		}
		lengths = next
	}
	for best.i > w.alo && best.j > w.blo && m.a[best.i-1] == m.b[best.j-1] {
		best.i, best.j, best.n = best.i-1, best.j-1, best.n+1
	}
	for best.i+best.n < w.ahi && best.j+best.n < w.bhi && m.a[best.i+best.n] == m.b[best.j+best.n] {
		best.n++
	}
	return best
}
