package layout_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/deploy/layout"
)

// TestPlaces: whatever the graph, circles in it too, points of a layer do not overlap, what is drawn leads on, and who could be reached still can be.
func TestPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 30).Draw(t, "points")
		var lines [][2]int
		if n > 0 {
			point := rapid.IntRange(0, n-1)
			for range rapid.IntRange(0, 60).Draw(t, "lines") {
				lines = append(lines, [2]int{point.Draw(t, "from"), point.Draw(t, "to")})
			}
		}
		d := layout.Of(n, lines)
		if !reflect.DeepEqual(d, layout.Of(n, lines)) {
			t.Fatal("another time it is placed otherwise")
		}
		for i, p := range d.Points {
			if p.Y < 0 || p.Y+1 > d.Height+1e-9 || p.Layer < 0 || p.Layer >= d.Layers {
				t.Fatalf("point %d is outside: %+v of %+v", i, p, d)
			}
			for _, q := range d.Points[:i] {
				if p.Layer == q.Layer && p.Y-q.Y < 1-1e-9 && q.Y-p.Y < 1-1e-9 {
					t.Fatalf("points overlap: %+v %+v", p, q)
				}
			}
		}
		drawn := make([][]int, n)
		for _, l := range d.Lines {
			from, to := d.Points[l.From], d.Points[l.To]
			if to.Layer <= from.Layer || len(l.Between) != to.Layer-from.Layer-1 {
				t.Fatalf("a line leads from %+v to %+v by %v", from, to, l.Between)
			}
			drawn[l.From] = append(drawn[l.From], l.To)
		}
		var reach func(from, to int) bool
		reach = func(from, to int) bool {
			return slices.ContainsFunc(drawn[from], func(x int) bool { return x == to || reach(x, to) })
		}
		for _, l := range lines {
			if l[0] != l[1] && !reach(l[0], l[1]) && !reach(l[1], l[0]) {
				t.Fatalf("nothing leads from %d to %d", l[0], l[1])
			}
		}
	})
}

// TestLittleCrosses: a diamond, a chain beside a shortcut, and two pairs are drawn as people would.
func TestLittleCrosses(t *testing.T) {
	d := layout.Of(4, [][2]int{{0, 1}, {0, 2}, {1, 3}, {2, 3}, {0, 3}})
	if len(d.Lines) != 4 || d.Layers != 3 || d.Height != 2 || d.Points[0].Y != 0.5 || d.Points[3].Y != 0.5 {
		t.Errorf("a diamond with a shortcut: %+v", d)
	}
	d = layout.Of(4, [][2]int{{0, 3}, {1, 2}})
	if (d.Points[0].Y < d.Points[1].Y) != (d.Points[3].Y < d.Points[2].Y) {
		t.Errorf("two lines cross: %+v", d.Points)
	}
}

// graph is one of n points in the manner of a deployment: many short ways beside one another.
func graph(n, lines int) [][2]int {
	random := rand.New(rand.NewPCG(1, 2))
	out := make([][2]int, 0, lines)
	for range lines {
		to := 1 + random.IntN(n-1)
		out = append(out, [2]int{max(0, to-1-random.IntN(12)), to})
	}
	return out
}

func BenchmarkOf(b *testing.B) {
	for _, size := range [][2]int{{232, 789}, {2000, 3247}} {
		lines := graph(size[0], size[1])
		b.Run(strconv.Itoa(size[0]), func(b *testing.B) {
			for b.Loop() {
				layout.Of(size[0], lines)
			}
		})
	}
}
