package yaql

import "errors"

// source yields values one by one. After the last one and after an error it is not asked again.
type source interface {
	next() (value any, ok bool, err error)
}

// Iterator is a lazy sequence that can be walked through once.
type Iterator struct {
	src  source
	run  *run
	done bool
	busy bool
}

// Next returns the next item and whether there was one. After the end and after an error there is none.
func (it *Iterator) Next() (value any, ok bool, err error) {
	defer rescue(&err)
	return it.next()
}

func (it *Iterator) next() (any, bool, error) {
	if it.done {
		return nil, false, nil
	}
	if it.busy {
		return nil, false, errorf(ValueError, "generator already executing")
	}
	it.busy = true
	err := it.run.enter()
	var v any
	var ok bool
	if err == nil {
		v, ok, err = it.src.next()
	}
	it.run.leave()
	it.busy = false
	if !ok || err != nil {
		it.done = true
		it.src = nil
		return nil, false, err
	}
	return v, true, nil
}

// nextFunc is a source made of a function.
type nextFunc func() (any, bool, error)

func (f nextFunc) next() (any, bool, error) { return f() }

// lazily returns an iterator over what next yields.
func lazily(c *Context, next nextFunc) *Iterator { return &Iterator{src: next, run: c.run} }

// sliceSource yields the items of a slice.
type sliceSource struct {
	items []any
	at    int
	run   *run
}

func (s *sliceSource) next() (any, bool, error) {
	if s.at >= len(s.items) {
		return nil, false, nil
	}
	if err := s.run.step(); err != nil {
		return nil, false, err
	}
	s.at++
	return norm(s.items[s.at-1]), true, nil
}

// limitSource fails when more than limit items are taken.
type limitSource struct {
	src   source
	limit int
	taken int
}

func (s *limitSource) next() (any, bool, error) {
	v, ok, err := s.src.next()
	if !ok || err != nil {
		return nil, false, err
	}
	if s.taken++; s.taken > s.limit {
		return nil, false, tooLarge(s.limit)
	}
	return v, true, nil
}

// memo is an iterator that remembers: everyone who walks through it starts from the beginning.
type memo struct {
	src  source
	seen []any
	run  *run
}

type memoSource struct {
	m  *memo
	at int
}

func (s *memoSource) next() (any, bool, error) {
	if s.at == len(s.m.seen) {
		if s.m.src == nil {
			return nil, false, nil
		}
		v, ok, err := s.m.src.next()
		if !ok || err != nil {
			s.m.src = nil
			return nil, false, err
		}
		s.m.seen = append(s.m.seen, v)
		if err := s.m.run.chargeItems(len(s.m.seen)); err != nil {
			return nil, false, err
		}
	}
	s.at++
	return s.m.seen[s.at-1], true, nil
}

// orderedSource walks through an ordered collection, which is sorted only when the first item is asked for.
type orderedSource struct {
	ordering *ordering
	items    source // nil until then
	run      *run
}

func (s *orderedSource) next() (any, bool, error) {
	if s.items == nil {
		items, err := s.ordering.sorted()
		if err != nil {
			return nil, false, err
		}
		s.items = &sliceSource{items: items, run: s.run}
	}
	return s.items.next()
}

// isIterable reports whether v may be passed where a collection is expected.
func isIterable(cfg *config, v any) bool {
	switch v.(type) {
	case []any, *List, *Set, *View, *Iterator, *ordering, *memo, Sequence:
		return true
	}
	return cfg.iterableDicts && isMapping(v)
}

func isIterator(v any) bool {
	switch v.(type) {
	case *Iterator, *memo:
		return true
	}
	return false
}

// sizeIfSized returns the number of items of the collections that know it.
func sizeIfSized(v any) (int, bool) {
	switch x := v.(type) {
	case []any:
		return len(x), true
	case *List:
		return len(x.Items), true
	case *Set:
		return x.Len(), true
	case *View:
		return dictLen(x.dict), x.kind != valuesView
	case Sequence:
		return x.Len(), true
	}
	if isMapping(v) {
		return dictLen(v), true
	}
	return 0, false
}

// limited applies the iterator limit to a collection: at once to those that know their size, later to others.
func limited(c *Context, v any) (any, error) {
	limit := c.run.cfg.limitIterators
	if limit < 0 {
		return v, nil
	}
	if n, ok := sizeIfSized(v); ok {
		if n > limit {
			return nil, tooLarge(limit)
		}
		return v, nil
	}
	src, err := iterate(c, v)
	if err != nil {
		return nil, err
	}
	return &Iterator{src: &limitSource{src: src, limit: limit}, run: c.run}, nil
}

// iterate starts a walk through a collection. One-shot iterators continue where they are.
func iterate(c *Context, v any) (source, error) {
	switch x := v.(type) {
	case []any:
		return &sliceSource{items: x, run: c.run}, nil
	case *Iterator:
		return x, nil
	case *memo:
		return &memoSource{m: x}, nil
	case *ordering:
		return &orderedSource{ordering: x, run: c.run}, nil
	}
	c.run.opens(v)
	if items, ok := itemsOf(v); ok {
		return &sliceSource{items: items, run: c.run}, nil
	}
	return nil, errorf(TypeError, "'%s' object is not iterable", typeName(v))
}

// opens counts what it takes to list the items of a collection before the first of them is looked at.
func (r *run) opens(v any) {
	switch x := v.(type) {
	case *Set:
		r.copies(x.Len())
	case *View:
		r.owe(dictLen(x.dict)) // the keys of maps of the host are sorted
	case map[string]any, *Dict, Mapping:
		r.owe(dictLen(v))
	case Sequence:
		r.owe(x.Len())
	}
}

// itemsOf returns the items of collections that are not lazy: lists, sets, views, and the keys of maps.
func itemsOf(v any) ([]any, bool) {
	switch x := v.(type) {
	case *Set:
		return x.Items(), true
	case *View:
		return x.Items(), true
	}
	if items, ok := seqItems(v); ok {
		return items, true
	}
	if isMapping(v) {
		return (&View{kind: keysView, dict: v}).Items(), true
	}
	return nil, false
}

// errStop ends a walk early. It never leaves this package.
var errStop = errors.New("stop")

// each calls f for every item of a collection until f fails; errStop ends the walk without an error.
func each(c *Context, v any, f func(x any) error) error {
	items, ok := v.([]any)
	if !ok {
		c.run.opens(v)
		items, ok = itemsOf(v)
	}
	if ok {
		for _, x := range items {
			if err := c.run.step(); err != nil {
				return err
			}
			if err := f(norm(x)); err != nil {
				return stopped(err)
			}
		}
		return nil
	}
	src, err := iterate(c, v)
	if err != nil {
		return err
	}
	for {
		x, ok, err := src.next()
		if err != nil || !ok {
			return err
		}
		if err := f(x); err != nil {
			return stopped(err)
		}
	}
}

func stopped(err error) error {
	if err == errStop { //nolint:errorlint // never wrapped
		return nil
	}
	return err
}

// listOf returns the items of a collection. The slice may be that of the collection itself.
func listOf(c *Context, v any) ([]any, error) {
	if items, ok := v.([]any); ok {
		return items, nil
	}
	if items, ok := itemsOf(v); ok {
		return items, c.run.spend(len(items))
	}
	var out []any
	if it, ok := v.(*Iterator); ok {
		if b, ok := it.src.(bulk); ok && !it.done && !it.busy {
			it.busy = true
			items, err := b.drain()
			it.done, it.busy, it.src = true, false, nil
			if err != nil {
				return nil, err
			}
			return items, c.run.chargeItems(len(items))
		}
	}
	err := each(c, v, func(x any) error {
		if len(out)&1023 == 1023 {
			if err := c.run.chargeItems(len(out)); err != nil {
				return err
			}
		}
		out = append(out, x)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, c.run.chargeItems(len(out))
}

// bulk is a source that can yield all remaining items faster than one by one.
type bulk interface {
	drain() ([]any, error)
}
