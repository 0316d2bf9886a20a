package classic

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Form says how info shows one kind of item.
type Form struct {
	Kind   string   // what queries call it
	Fields []string // what has to be asked for
	Show   func(Cells) Record
}

// Cells are the values of one item by field; those that are missing are not
// there. Numbers are json.Number.
type Cells map[string]any

// List returns a field that is a list; nothing where it is none.
func (c Cells) List(field string) []any {
	list, _ := c[field].([]any)
	return list
}

// Object returns a field that is an object; nothing where it is none.
func (c Cells) Object(field string) map[string]any {
	m, _ := c[field].(map[string]any)
	return m
}

// Time shows a field that holds seconds since 1970.
func (c Cells) Time(field string) string {
	n, ok := c[field].(json.Number)
	if !ok {
		return "N/A"
	}
	seconds, err := n.Float64()
	if err != nil {
		return n.String()
	}
	return time.Unix(int64(seconds), 0).Format(time.DateTime)
}

// Params shows each parameter: its own value, or the default in parentheses.
func (c Cells) Params(own, filled string) Record {
	set, all := c.Object(own), c.Object(filled)
	out := Record{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var value any = fmt.Sprintf("default (%s)", Text(all[name]))
		if v, ok := set[name]; ok {
			value = v
		}
		out = append(out, Entry{name, value})
	}
	return out
}

// At returns one entry of a field that lists a value for each device.
func (c Cells) At(field string, i int) any {
	if list := c.List(field); i < len(list) {
		return list[i]
	}
	return nil
}
