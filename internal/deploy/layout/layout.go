// Package layout places the points of a directed graph for people to look at: in layers from left to right, so that few lines cross and lines are
// short. It is a function of values: the same graph is always placed likewise.
//
// Invariants:
//   - Whatever the graph, each point has a place, no two of a layer are nearer than one unit, and lines that are no part of a circle go to a later
//     layer (TestPlaces).
package layout

import "slices"

// Point is a place: a layer, counted from 0, and how far down in it, in units of a point's height, from 0.
type Point struct {
	Layer int     `json:"layer"`
	Y     float64 `json:"y"`
}

// Line leads from one point of the graph to another, by the places between.
type Line struct {
	From    int     `json:"from"`
	To      int     `json:"to"`
	Between []Point `json:"between,omitempty"`
}

// Drawing is a graph that was placed.
type Drawing struct {
	Layers int     `json:"layers"`
	Height float64 `json:"height"`
	Points []Point `json:"points"`
	// Lines are those of the graph without those that others say already: a line from a to c is left out if there is a way from a to c by b.
	Lines []Line `json:"lines"`
}

// How far apart are the middles of two points, and of two lines that pass a layer.
const (
	pointHeight = 1.0
	lineHeight  = 0.4
)

// sweeps is how often the order within layers is looked at again.
const sweeps = 16

// item is a point, or the place where a line passes a layer.
type item struct {
	point       int // -1 for a line
	layer       int
	y           float64
	before, out []int
}

// Of places n points, numbered from 0, with lines [from, to]. Lines that close a circle are drawn backwards; those from a point to itself are left out.
func Of(n int, lines [][2]int) *Drawing {
	next := forward(n, lines)
	reduce(next)
	layers := layersOf(next)
	g := &grid{items: make([]item, n)}
	for i, l := range layers {
		g.items[i] = item{point: i, layer: l}
		g.add(i, l)
	}
	d := &Drawing{Points: make([]Point, n), Lines: []Line{}}
	var ways [][]int
	for from, all := range next {
		for _, to := range all {
			ways = append(ways, g.line(from, to))
		}
	}
	g.arrange()
	g.place()
	d.Layers, d.Height = len(g.layers), g.level()
	for i := range n {
		d.Points[i] = g.at(i)
	}
	for _, way := range ways {
		l := Line{From: way[0], To: way[len(way)-1]}
		for _, i := range way[1 : len(way)-1] {
			l.Between = append(l.Between, g.at(i))
		}
		d.Lines = append(d.Lines, l)
	}
	return d
}

// forward are the lines of a graph by their beginnings, each once, with those turned around that close a circle.
func forward(n int, lines [][2]int) [][]int {
	next := make([][]int, n)
	for _, l := range lines {
		if l[0] != l[1] {
			next[l[0]] = append(next[l[0]], l[1])
		}
	}
	for i := range next {
		slices.Sort(next[i])
		next[i] = slices.Compact(next[i])
	}
	state := make([]int8, n) // 1 on the way here, 2 done
	out := make([][]int, n)
	var visit func(int)
	visit = func(at int) {
		state[at] = 1
		for _, to := range next[at] {
			if state[to] == 1 {
				out[to] = append(out[to], at)
				continue
			}
			out[at] = append(out[at], to)
			if state[to] == 0 {
				visit(to)
			}
		}
		state[at] = 2
	}
	for i := range n {
		if state[i] == 0 {
			visit(i)
		}
	}
	for i := range out {
		slices.Sort(out[i])
		out[i] = slices.Compact(out[i])
	}
	return out
}

// order returns the points so that each comes before those that it leads to.
func order(next [][]int) []int {
	left, out := make([]int, len(next)), make([]int, 0, len(next))
	for _, all := range next {
		for _, to := range all {
			left[to]++
		}
	}
	for i, n := range left {
		if n == 0 {
			out = append(out, i)
		}
	}
	for i := 0; i < len(out); i++ {
		for _, to := range next[out[i]] {
			if left[to]--; left[to] == 0 {
				out = append(out, to)
			}
		}
	}
	return out
}

// reduce takes out lines that others say already.
func reduce(next [][]int) {
	const word = 64
	reach := make([][]uint64, len(next)) // what can be reached from each
	all := order(next)
	place := make([]int, len(next))
	for i, at := range all {
		place[at] = i
	}
	for _, at := range slices.Backward(all) {
		mine := make([]uint64, (len(next)+word-1)/word)
		slices.SortFunc(next[at], func(a, b int) int { return place[a] - place[b] })
		kept := next[at][:0]
		for _, to := range next[at] {
			if mine[to/word]&(1<<(to%word)) != 0 {
				continue
			}
			kept = append(kept, to)
			mine[to/word] |= 1 << (to % word)
			for i, w := range reach[to] {
				mine[i] |= w
			}
		}
		next[at], reach[at] = kept, mine
	}
}

// layersOf is the layer of each point: the first that it can have, but of those that nothing leads to the last.
func layersOf(next [][]int) []int {
	layers, first := make([]int, len(next)), make([]bool, len(next))
	for i := range first {
		first[i] = true
	}
	for _, at := range order(next) {
		for _, to := range next[at] {
			first[to] = false
			layers[to] = max(layers[to], layers[at]+1)
		}
	}
	for i, all := range next {
		if !first[i] || len(all) == 0 {
			continue
		}
		layers[i] = layers[all[0]] - 1
		for _, to := range all {
			layers[i] = min(layers[i], layers[to]-1)
		}
	}
	return layers
}

// grid is all items by their layers, in their order.
type grid struct {
	items  []item
	layers [][]int
}
