package query

import (
	"strings"

	"github.com/drover-project/drover/internal/qlang"
)

// manyValues are so many that looking one up is quicker than comparing with
// each.
const manyValues = 8

// valueSet decides an "or" of equality tests of one field with many values in
// one look-up, which the old lists of items by name are. texts or ints is nil.
type valueSet struct {
	texts map[string]bool
	ints  map[int64]bool
	mode  Mode
}

// valueSetOf returns the set of an "or", nil if it is not one.
func (t *Table[R]) valueSetOf(or *qlang.Or) (s *valueSet, of *Field[R]) {
	if len(or.Args) < manyValues {
		return nil, nil
	}
	for i, arg := range or.Args {
		c, ok := arg.(*qlang.Compare)
		if !ok || c.Op != qlang.Eq {
			return nil, nil
		}
		if i == 0 {
			of = t.field(c.Field)
			s = &valueSet{mode: of.Mode}
		}
		if c.Field != of.Name || !s.add(c.Value) {
			return nil, nil
		}
	}
	if s.mode == ModeSeconds || s.mode == ModeHostname && s.ints != nil {
		return nil, nil
	}
	return s, of
}

// add takes a value in, unless it is of another type than those before.
func (s *valueSet) add(v qlang.Value) bool {
	switch {
	case !v.IsInt() && s.ints == nil:
		if s.texts == nil {
			s.texts = map[string]bool{}
		}
		s.texts[v.Text] = true
		return true
	case v.IsInt() && v.Int.IsInt64() && s.texts == nil:
		if s.ints == nil {
			s.ints = map[int64]bool{}
		}
		s.ints[v.Int.Int64()] = true
		return true
	}
	return false
}

// has reports whether a value is equal to one of the set; ok is false for a
// value of another type, with which the tests one by one know what to do.
func (s *valueSet) has(value any) (found, ok bool) {
	switch value := value.(type) {
	case string:
		return s.hasText(value), s.texts != nil
	case int64:
		return s.ints[value], s.ints != nil
	}
	return false, false
}

// hasText also takes the first labels of the name of a host.
func (s *valueSet) hasText(text string) bool {
	if s.texts[text] {
		return true
	}
	for i := 0; s.mode == ModeHostname; i++ {
		dot := strings.IndexByte(text[i:], '.')
		if dot < 0 {
			return false
		}
		if i += dot; s.texts[text[:i]] {
			return true
		}
	}
	return false
}

// throughSet puts the look-up in a set before the tests one by one.
func throughSet[R any](s *valueSet, f *Field[R], oneByOne Test[R]) Test[R] {
	return func(v *View, r R) (Verdict, error) {
		c := f.Get(v, r)
		if c.Status != Normal {
			return decide(!f.Strict), nil
		}
		if found, ok := s.has(c.Value); ok {
			return decide(found), nil
		}
		return oneByOne(v, r)
	}
}
