package query

import "github.com/drover-project/drover/internal/qlang"

// requestedNames reads a filter as a list of names: it is made of "|", equality
// tests on the name field and null only. Order and repeats are kept. ok is
// false for any other filter, which needs all rows to be looked at; an empty
// list with ok does too.
func requestedNames(n qlang.Node, nameField string) (names []qlang.Value, ok bool) {
	if nameField == "" {
		return nil, false
	}
	switch n := n.(type) {
	case *qlang.All:
		return nil, true
	case *qlang.Or:
		for _, arg := range n.Args {
			more, ok := requestedNames(arg, nameField)
			if !ok {
				return nil, false
			}
			names = append(names, more...)
		}
		return names, true
	case *qlang.Compare:
		if n.Op == qlang.Eq && n.Field == nameField {
			return []qlang.Value{n.Value}, true
		}
	}
	return nil, false
}

// Find resolves names by a look-up; numbers are passed over, as the reference
// does, and when there is nothing else all rows are to be looked at.
func Find[R any](names []qlang.Value, look func(string) (R, error)) (rows []R, ok bool, err error) {
	if onlyNumbers(names) {
		return nil, false, nil
	}
	out := make([]R, 0, len(names))
	for _, n := range names {
		if n.IsInt() {
			continue
		}
		r, err := look(n.Text)
		if err != nil {
			return nil, false, unknownEntity(err)
		}
		out = append(out, r)
	}
	return out, true, nil
}

// onlyNumbers reports whether there is no text among the names.
func onlyNumbers(names []qlang.Value) bool {
	for _, n := range names {
		if !n.IsInt() {
			return false
		}
	}
	return true
}
