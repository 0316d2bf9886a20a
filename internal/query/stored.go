package query

import (
	"slices"
	"time"
)

// Stored reports whether a query can be answered from what is stored, without
// asking nodes or the queue: by a controller that does not lead. now is what times
// in the query are relative to; the error is that of a query which makes no sense.
func (c Catalog) Stored(r Request, now time.Time) (bool, error) {
	it, r, err := c.checked(r)
	if err != nil {
		return false, err
	}
	return it.stored(r, now)
}

// Derived reports whether a query shows, tests or sorts by what follows from more
// than the stored object of a row: such rows change without it.
func (c Catalog) Derived(r Request, now time.Time) (bool, error) {
	it, r, err := c.checked(r)
	if err != nil {
		return false, err
	}
	return it.derived(r, now)
}

func (t *Table[R]) derived(r Request, now time.Time) (bool, error) {
	r.Filter = t.resolve(r.Filter, now)
	p, err := t.parse(r)
	return slices.ContainsFunc(p.used, t.led), err
}

func (t *Table[R]) stored(r Request, now time.Time) (bool, error) {
	if !t.Stored {
		return false, nil
	}
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
func (t *Table[R]) led(name string) bool {
	f := t.field(name)
	return f != nil && (f.Led || f.Mutual)
}
