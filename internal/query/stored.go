package query

import (
	"slices"
	"time"
)

// ofObjects are the items whose rows are objects of the inventory, jobs and rules
// as the store has them.
var ofObjects = [...]string{"job", "filter", "instance", "node", "group", "network"}

// Stored reports whether a query can be answered from what is stored, without
// asking nodes or the queue: by a controller that does not lead. now is what times
// in the query are relative to; the error is that of a query which makes no sense.
func Stored(r Request, now time.Time) (bool, error) {
	it, r, err := r.checked()
	if err != nil {
		return false, err
	}
	if !slices.Contains(ofObjects[:], it.name()) {
		return false, nil
	}
	return it.stored(r, now)
}

func (t *table[R]) stored(r Request, now time.Time) (bool, error) {
	r.Filter = t.resolve(r.Filter, now)
	p, err := t.parse(r)
	if err != nil {
		return false, err
	}
	return p.need == 0 && !slices.ContainsFunc(p.used, t.led), nil
}

// led reports whether the values of a field are the leader's: what holds jobs,
// and where they stand in line, is not stored. What depends on other rows mostly
// does on those.
func (t *table[R]) led(name string) bool {
	f := t.field(name)
	return f != nil && (f.led || f.mutual)
}
