package state

import (
	"math/big"
	"slices"

	"github.com/drover-project/drover/yaql"
)

// View is a state as one node sees it: the union of the common part and the node's own, in which the node's wins.
// It is the $ of expressions.
type View struct {
	space        *Space
	common, node *Part
	both         map[int]*cell // of keys that are in both parts, or in none
	sorted       []string
}

// View returns the union of two parts. A nil part is empty.
func (s *Space) View(common, node *Part) *View {
	if common == nil {
		common = s.NewPart(nil)
	}
	if node == nil {
		node = s.NewPart(nil)
	}
	return &View{space: s, common: common, node: node}
}

// cell returns what is known of a key.
func (v *View) cell(key int) *cell {
	own := v.node.cell(key)
	if !own.there {
		return v.common.cell(key)
	}
	common := v.common.cell(key)
	if !common.there {
		return own
	}
	return v.made(key, func() *cell { return &cell{value: union(common.value, own.value), there: true} })
}

// cellOrAside returns what an expression finds that asks for a key by its name.
func (v *View) cellOrAside(key int) *cell {
	c := v.cell(key)
	if c.there || v.common.aside == nil {
		return c
	}
	value, there := v.common.aside(v.space.names[key])
	if !there {
		return c
	}
	return v.made(key, func() *cell { return &cell{value: value, there: true} })
}

// made returns the cell of a key that no part has as it is, and makes it the first time.
func (v *View) made(key int, how func() *cell) *cell {
	c := v.both[key]
	if c == nil {
		if v.both == nil {
			v.both = map[int]*cell{}
		}
		c = how()
		v.both[key] = c
	}
	return c
}

// Class returns the class of the value of a key by its number, or that of all values for the key Whole.
func (v *View) Class(key int) Class {
	if key == Whole {
		return v.space.class(appendPair(nil, v.common.Class(), v.node.Class()))
	}
	return v.classOf(v.cellOrAside(key))
}

func (v *View) classOf(c *cell) Class {
	if c.class == 0 {
		c.class = v.space.ClassOf(c.value)
	}
	return c.class
}

func (v *View) read(key int) {
	if v.space.Read != nil {
		v.space.Read(v, key)
	}
}

// Get returns the value of a key and whether there is one.
func (v *View) Get(key any) (any, bool) {
	text, ok := key.(string)
	if !ok {
		return nil, false
	}
	n := v.space.number(text)
	c := v.cellOrAside(n)
	v.read(n)
	return c.value, c.there
}

// Len returns the number of keys.
func (v *View) Len() int {
	v.read(Whole)
	return len(v.keys())
}

// Range calls f for each key and its value, in the order of the keys, until f returns false.
func (v *View) Range(f func(key, value any) bool) {
	v.read(Whole)
	for _, k := range v.keys() {
		if !f(k, v.cell(v.space.number(k)).value) {
			return
		}
	}
}

// Mutable reports true: such maps cannot be keys.
func (*View) Mutable() bool { return true }

// keys returns all keys. Those of a single part keep their order, those of a union are sorted.
func (v *View) keys() []string {
	switch {
	case v.sorted != nil:
	case v.node.data.Len() == 0:
		v.sorted = v.common.keys()
	case v.common.data.Len() == 0:
		v.sorted = v.node.keys()
	default:
		v.sorted = slices.Concat(v.common.keys(), v.node.keys())
		slices.Sort(v.sorted)
		v.sorted = slices.Compact(v.sorted)
	}
	return v.sorted
}

// Differing calls f for each key whose values differ between two views, with the values; nil for absent ones.
func (v *View) Differing(other *View, f func(key string, mine, theirs any)) {
	keys := append(slices.Clone(v.keys()), other.keys()...)
	slices.Sort(keys)
	for _, k := range slices.Compact(keys) {
		n := v.space.number(k)
		if mine, theirs := v.cell(n), other.cell(n); v.classOf(mine) != other.classOf(theirs) {
			f(k, mine.value, theirs.value)
		}
	}
}

// Fits reports whether no list or map in the view has more than n items.
func (v *View) Fits(n int) bool {
	keys := v.keys()
	if len(keys) > n {
		return false
	}
	for _, k := range keys {
		i := v.space.number(k)
		widest, known := v.space.fits[v.Class(i)]
		if !known {
			widest = Widest(v.cell(i).value)
			v.space.fits[v.Class(i)] = widest
		}
		if widest > n {
			return false
		}
	}
	return true
}

// Widest returns the number of items of the longest list or map in a value, and -1 if the value holds anything
// but lists, maps, texts, numbers, truth values and null.
func Widest(v any) int {
	switch x := v.(type) {
	case nil, bool, int64, float64, string, *big.Int, yaql.DateTime:
		return 0
	case *yaql.List:
		return widestOf(x.Items)
	case []any:
		return widestOf(x)
	case *yaql.Dict:
		n, plain := x.Len(), true
		x.Range(func(k, e any) bool {
			_, text := k.(string)
			w := Widest(e)
			plain = plain && text && w >= 0
			n = max(n, w)
			return plain
		})
		if plain {
			return n
		}
	}
	return -1
}

func widestOf(items []any) int {
	n := len(items)
	for _, e := range items {
		w := Widest(e)
		if w < 0 {
			return -1
		}
		n = max(n, w)
	}
	return n
}
