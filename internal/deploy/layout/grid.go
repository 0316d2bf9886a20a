package layout

import (
	"cmp"
	"slices"
)

func (g *grid) add(i, layer int) {
	for len(g.layers) <= layer {
		g.layers = append(g.layers, nil)
	}
	g.layers[layer] = append(g.layers[layer], i)
}

// line adds what a line passes, and returns all that is on its way.
func (g *grid) line(from, to int) []int {
	way := []int{from}
	for layer := g.items[from].layer + 1; layer < g.items[to].layer; layer++ {
		i := len(g.items)
		g.items = append(g.items, item{point: -1, layer: layer})
		g.add(i, layer)
		way = append(way, i)
	}
	way = append(way, to)
	for i := 1; i < len(way); i++ {
		a, b := way[i-1], way[i]
		g.items[a].out = append(g.items[a].out, b)
		g.items[b].before = append(g.items[b].before, a)
	}
	return way
}

func (g *grid) at(i int) Point { return Point{Layer: g.items[i].layer, Y: g.items[i].y} }

// arrange orders each layer by where the neighbours of its items are, forwards and backwards by turns. It keeps the order in which fewest lines cross.
func (g *grid) arrange() {
	best, least := g.copied(), g.crossings()
	for sweep := 0; sweep < sweeps && least > 0; sweep++ {
		places := g.places()
		visit := func(l int, neighbours func(*item) []int) {
			weight := map[int]float64{}
			for n, i := range g.layers[l] {
				weight[i] = mean(neighbours(&g.items[i]), places, float64(n))
			}
			slices.SortStableFunc(g.layers[l], func(a, b int) int { return cmp.Compare(weight[a], weight[b]) })
			for n, i := range g.layers[l] {
				places[i] = float64(n)
			}
		}
		if sweep%2 == 0 {
			for l := range g.layers {
				visit(l, func(x *item) []int { return x.before })
			}
		} else {
			for l := range slices.Backward(g.layers) {
				visit(l, func(x *item) []int { return x.out })
			}
		}
		if n := g.crossings(); n < least {
			best, least = g.copied(), n
		}
	}
	g.layers = best
}

func (g *grid) copied() [][]int {
	out := make([][]int, len(g.layers))
	for i, l := range g.layers {
		out[i] = slices.Clone(l)
	}
	return out
}

// places is where each item stands in its layer.
func (g *grid) places() []float64 {
	out := make([]float64, len(g.items))
	for _, l := range g.layers {
		for n, i := range l {
			out[i] = float64(n)
		}
	}
	return out
}

func mean(of []int, at []float64, none float64) float64 {
	if len(of) == 0 {
		return none
	}
	sum := 0.0
	for _, i := range of {
		sum += at[i]
	}
	return sum / float64(len(of))
}

// crossings is how many pairs of lines cross: inversions between each layer and the next, counted with a tree of sums.
func (g *grid) crossings() (n int) {
	places := g.places()
	for l := range len(g.layers) - 1 {
		tree := make([]int, len(g.layers[l+1])+1)
		drawn := 0
		for _, i := range g.layers[l] {
			out := slices.Clone(g.items[i].out)
			slices.SortFunc(out, func(a, b int) int { return cmp.Compare(places[a], places[b]) })
			for _, to := range out { // those that were drawn and end further down
				n += drawn
				for at := int(places[to]) + 1; at > 0; at -= at & -at {
					n -= tree[at]
				}
			}
			for _, to := range out {
				drawn++
				for at := int(places[to]) + 1; at < len(tree); at += at & -at {
					tree[at]++
				}
			}
		}
	}
	return n
}

func (g *grid) heightOf(i int) float64 {
	if g.items[i].point < 0 {
		return lineHeight
	}
	return pointHeight
}

// place sets how far down items are: near their neighbours, in their order and not nearer to one another than they are high.
func (g *grid) place() {
	for _, layer := range g.layers {
		y := 0.0
		for n, i := range layer {
			if n > 0 {
				y += (g.heightOf(layer[n-1]) + g.heightOf(i)) / 2
			}
			g.items[i].y = y
		}
		for _, i := range layer { // around one middle
			g.items[i].y -= y / 2
		}
	}
	for sweep := range sweeps {
		for n := range g.layers {
			l := n
			if sweep%2 == 1 {
				l = len(g.layers) - 1 - n
			}
			g.settle(g.layers[l])
		}
	}
}

// settle moves the items of a layer to the mean of their neighbours, as near as their order and heights allow (isotonic regression).
func (g *grid) settle(layer []int) {
	type block struct {
		sum   float64
		items int
	}
	var blocks []block
	offset := make([]float64, len(layer))
	for n, i := range layer {
		if n > 0 {
			offset[n] = offset[n-1] + (g.heightOf(layer[n-1])+g.heightOf(i))/2
		}
		x, sum := &g.items[i], 0.0
		all := len(x.before) + len(x.out)
		for _, list := range [][]int{x.before, x.out} {
			for _, j := range list {
				sum += g.items[j].y
			}
		}
		want := x.y
		if all > 0 {
			want = sum / float64(all)
		}
		blocks = append(blocks, block{want - offset[n], 1})
		for last := len(blocks) - 1; last > 0 && blocks[last-1].sum/float64(blocks[last-1].items) > blocks[last].sum/float64(blocks[last].items); last-- {
			blocks[last-1].sum += blocks[last].sum
			blocks[last-1].items += blocks[last].items
			blocks = blocks[:last]
		}
	}
	n := 0
	for _, b := range blocks {
		for range b.items {
			g.items[layer[n]].y = b.sum/float64(b.items) + offset[n]
			n++
		}
	}
}

// level moves everything so that it begins at 0, and returns how high it is.
func (g *grid) level() float64 {
	if len(g.items) == 0 {
		return 0
	}
	least, most := g.items[0].y, g.items[0].y
	for i := range g.items {
		least, most = min(least, g.items[i].y), max(most, g.items[i].y)
	}
	for i := range g.items {
		g.items[i].y -= least
	}
	return most - least + pointHeight
}
