package state

import (
	"crypto/sha256"
	"slices"

	"github.com/drover-project/drover/yaql"
)

// Class stands for a value: equal classes of one space mean values that no expression can tell apart. Zero is no
// class.
type Class int32

// absent is the class of keys that are not there.
const absent Class = 1

// Space gives out classes of values and numbers of keys. It belongs to one goroutine.
type Space struct {
	numbers map[string]int
	names   []string
	classes map[[sha256.Size]byte]Class
	// Read, if set, is told of every read of a key of a view; the key Whole stands for all of them.
	Read func(v *View, key int)

	fits    map[Class]int
	shapes  map[string]*shape // by their keys
	scratch []byte
}

// Whole is the key of reads that depend on everything in a view.
const Whole = -1

// NewSpace returns a space without classes.
func NewSpace() *Space {
	return &Space{numbers: map[string]int{}, classes: map[[sha256.Size]byte]Class{}, fits: map[Class]int{}, shapes: map[string]*shape{}}
}

// number returns the number of a key.
func (s *Space) number(key string) int {
	n, ok := s.numbers[key]
	if !ok {
		n = len(s.names)
		s.numbers[key] = n
		s.names = append(s.names, key)
	}
	return n
}

// ClassOf returns the class of any value of the language that holds no lazy collections.
func (s *Space) ClassOf(v any) Class {
	s.scratch = appendValue(s.scratch[:0], v)
	return s.class(s.scratch)
}

func (s *Space) class(text []byte) Class {
	sum := sha256.Sum256(text)
	c, ok := s.classes[sum]
	if !ok {
		c = absent + 1 + Class(len(s.classes))
		s.classes[sum] = c
	}
	return c
}

// Part is the common part of a state, or that of one node.
type Part struct {
	data  *yaql.Dict
	aside func(key string) (any, bool) // nil for nothing
	space *Space
	shape *shape // nil until it is asked for
	cells []cell // of the keys, in their order
	whole Class
}

// shape is which keys a part has. Parts of nodes that are alike share it.
type shape struct {
	keys   []string
	index  map[string]int32
	places []int32 // by number of key: the place among the keys, or -1
}

// cell is what is known of a key.
type cell struct {
	value any
	class Class
	there bool
}

// noCell is that of keys that are not there.
var noCell = &cell{class: absent}

// NewPart makes a part of a map of values, as decoded from JSON or YAML; nil is an empty part. Expressions see its
// lists and maps as the mutable kinds, as those of the reference do.
func (s *Space) NewPart(data any) *Part {
	d, ok := yaql.Unconverted(data).(*yaql.Dict)
	if !ok {
		d = yaql.NewDict(0)
	}
	return &Part{data: d, space: s}
}

// Adopt returns a part of the space with the values of one that may be of another space.
func (s *Space) Adopt(p *Part) *Part {
	if p == nil || p.space == s {
		return p
	}
	return &Part{data: p.data, aside: p.aside, space: s}
}

// Beside returns the part with values that expressions find when they ask for them by name, where neither the common part nor the node's own
// has such a key. They are no keys of the part: what is made of it as a whole, or of all its keys, is without them. The function always gives the
// same for a key, from any goroutine.
func (p *Part) Beside(aside func(key string) (value any, there bool)) *Part {
	return &Part{data: p.data, aside: aside, space: p.space}
}

// Data returns the values of the part, which must not be changed.
func (p *Part) Data() *yaql.Dict { return p.data }

// Get returns the value of a key and whether there is one.
func (p *Part) Get(key string) (any, bool) { return p.data.Get(key) }

// Class returns the class of the whole part.
func (p *Part) Class() Class {
	if p.whole == 0 {
		p.whole = p.space.ClassOf(p.data)
	}
	return p.whole
}

// cell returns what is known of a key.
func (p *Part) cell(key int) *cell {
	if at := p.form().place(p.space, key); at >= 0 {
		return &p.cells[at]
	}
	return noCell
}

// form returns the shape of the part, which from now on has cells.
func (p *Part) form() *shape {
	if p.shape == nil {
		p.shape = p.space.shapeOf(p.data)
		p.cells = make([]cell, 0, p.data.Len())
		p.data.Range(func(_, v any) bool {
			p.cells = append(p.cells, cell{value: v, there: true})
			return true
		})
	}
	return p.shape
}

// keys returns the keys of a part in their order.
func (p *Part) keys() []string { return p.form().keys }

// shapeOf returns the shape of a map. Keys of states are texts; others are as if they were not there.
func (s *Space) shapeOf(d *yaql.Dict) *shape {
	s.scratch = s.scratch[:0]
	d.Range(func(k, _ any) bool {
		s.scratch = appendValue(s.scratch, k)
		return true
	})
	if known := s.shapes[string(s.scratch)]; known != nil {
		return known
	}
	out, at := &shape{index: make(map[string]int32, d.Len())}, int32(0)
	d.Range(func(k, _ any) bool {
		if text, ok := k.(string); ok {
			out.index[text] = at
			out.keys = append(out.keys, text)
		}
		at++
		return true
	})
	s.shapes[string(s.scratch)] = out
	return out
}

// place returns the place of a key by its number, -1 if the shape lacks it.
func (x *shape) place(s *Space, key int) int32 {
	for key >= len(x.places) {
		at, there := x.index[s.names[len(x.places)]]
		if !there {
			at = -1
		}
		x.places = append(x.places, at)
	}
	return x.places[key]
}

// union merges two values: a map of the node's over a map of the common part goes key by key, anything else of
// the node's hides what is common.
func union(common, node any) any {
	c, ok := common.(*yaql.Dict)
	n, both := node.(*yaql.Dict)
	if !ok || !both {
		return node
	}
	return yaql.Unconverted(merged(c, n))
}

func merged(c, n *yaql.Dict) *yaql.Dict {
	values := map[string]any{}
	collect := func(d *yaql.Dict) {
		d.Range(func(k, v any) bool {
			key, ok := k.(string)
			if !ok {
				return true
			}
			if under, there := values[key]; there {
				a, isMap := under.(*yaql.Dict)
				b, too := v.(*yaql.Dict)
				if isMap && too {
					v = merged(a, b)
				}
			}
			values[key] = v
			return true
		})
	}
	collect(c)
	collect(n)
	keys := make([]string, 0, len(values))
	for k := range values {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	out := yaql.NewDict(len(keys))
	for _, k := range keys {
		_ = out.Set(k, values[k]) // texts can be keys
	}
	return out
}
