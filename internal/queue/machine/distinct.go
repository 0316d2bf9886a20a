package machine

import "slices"

// Distinct keeps the values of a list apart: each stands in it once. It belongs
// to one list.
type Distinct[K comparable] struct {
	seen map[K]bool // of the list, once it is long
}

// fewValues are so many that it is quicker to compare with all of them than to keep
// a map.
const fewValues = 8

// Append returns the list with a value, at its end if it was not in it.
func (d *Distinct[K]) Append(list []K, value K) []K {
	if len(list) < fewValues {
		if slices.Contains(list, value) {
			return list
		}
		return append(list, value)
	}
	if d.seen == nil {
		d.seen = make(map[K]bool, 2*fewValues)
		for _, other := range list {
			d.seen[other] = true
		}
	}
	if d.seen[value] {
		return list
	}
	d.seen[value] = true
	return append(list, value)
}
