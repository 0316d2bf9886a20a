package query

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// ordering is how the rows of a query are put in order.
type ordering[R any] struct {
	keys []sortColumn[R]
}

type sortColumn[R any] struct {
	name string
	get  func(*View, R) Cell
	sign int
}

// ParseSort reads field names, with "-" before one for descending order.
func ParseSort(names []string) []SortKey {
	var out []SortKey
	for _, name := range names {
		field, descending := strings.CutPrefix(name, "-")
		out = append(out, SortKey{Field: field, Descending: descending})
	}
	return out
}

func (t *Table[R]) ordering(r Request) (ordering[R], error) {
	var o ordering[R]
	for _, k := range r.Sort {
		f := t.field(k.Field)
		if f == nil {
			return o, t.noField(k.Field)
		}
		sign := 1
		if k.Descending {
			sign = -1
		}
		o.keys = append(o.keys, sortColumn[R]{name: k.Field, get: f.Get, sign: sign})
	}
	// Rows that are equal so far are in the order of their names, which people read.
	if f := t.index[t.NameField]; f != nil && len(o.keys) > 0 && !slices.ContainsFunc(r.Sort, func(k SortKey) bool { return k.Field == t.NameField }) {
		o.keys = append(o.keys, sortColumn[R]{name: t.NameField, get: f.Get, sign: 1})
	}
	return o, nil
}

func (o ordering[R]) names() []string {
	out := make([]string, len(o.keys))
	for i, k := range o.keys {
		out[i] = k.name
	}
	return out
}

// keyed is a row with the values it is sorted by.
type keyed[R any] struct {
	row    R
	id     string
	values []Cell
	// nth tells rows of one identity apart: a name asked for twice is there
	// twice.
	nth int
}

// page sorts the rows and cuts the page out that the options ask for. Without
// sort keys the rows keep the order they have.
func (o ordering[R]) page(v *View, rows []R, opts Options, identity func(R) string, restored func(R) R) ([]R, string, error) {
	if len(o.keys) == 0 && opts.After == "" && opts.Limit <= 0 {
		return rows, "", nil
	}
	list := make([]keyed[R], len(rows))
	seen := make(map[string]int, len(rows))
	for i, r := range rows {
		if i%blockSize == 0 {
			if err := v.Err(); err != nil {
				return nil, "", err
			}
		}
		id := identity(r)
		list[i] = keyed[R]{row: r, id: id, values: o.values(v, restored(r)), nth: seen[id]}
		seen[id]++
	}
	if len(o.keys) > 0 {
		slices.SortStableFunc(list, o.compare)
	}
	list, err := o.after(list, opts.After)
	if err != nil {
		return nil, "", err
	}
	next := ""
	if opts.Limit > 0 && len(list) > opts.Limit {
		list = list[:opts.Limit]
		next = o.token(list[opts.Limit-1])
	}
	out := make([]R, len(list))
	for i := range list {
		out[i] = list[i].row
	}
	return out, next, nil
}

func (o ordering[R]) values(v *View, r R) []Cell {
	out := make([]Cell, len(o.keys))
	for i, k := range o.keys {
		out[i] = k.get(v, r)
	}
	return out
}

// compare is a total order: rows with equal keys are told apart by identity.
func (o ordering[R]) compare(a, b keyed[R]) int {
	for i, k := range o.keys {
		if c := CompareCells(a.values[i], b.values[i]); c != 0 {
			return c * k.sign
		}
	}
	return cmp.Or(CompareIdentities(a.id, b.id), cmp.Compare(a.nth, b.nth))
}

// CompareIdentities puts names and ids in nice order and tells different ones
// apart.
func CompareIdentities(a, b string) int {
	return cmp.Or(cluster.CompareNames(a, b), strings.Compare(a, b))
}

// after drops the rows up to the one that a page token names. When that row is
// gone and rows are sorted, its place is known all the same.
func (o ordering[R]) after(list []keyed[R], token string) ([]keyed[R], error) {
	if token == "" {
		return list, nil
	}
	last, err := o.parseToken(token)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(list, func(k keyed[R]) bool { return k.id == last.id && k.nth == last.nth }); i >= 0 && len(o.keys) == 0 {
		return list[i+1:], nil
	}
	if len(o.keys) == 0 {
		return nil, fault.New(fault.Conflict, "the row where the last page ended is gone").At("after").
			WithHint("sort by a field: then a page can go on where a missing row was")
	}
	i, _ := slices.BinarySearchFunc(list, last, func(k, last keyed[R]) int {
		if o.compare(k, last) <= 0 {
			return -1
		}
		return 1
	})
	return list[i:], nil
}

// tokenBody is what a page token holds: the last row's identity and the values
// it was sorted by.
type tokenBody struct {
	ID     string   `json:"id"`
	Names  []string `json:"by,omitempty"`
	Values []any    `json:"at,omitempty"` // [status, value] each
	Nth    int      `json:"nth,omitempty"`
}

func (o ordering[R]) token(k keyed[R]) string {
	body := tokenBody{ID: k.id, Names: o.names(), Nth: k.nth}
	for _, c := range k.values {
		if t, ok := c.Value.(Nanos); ok {
			c.Value = int64(t) // so many digits that they are not taken for seconds
		}
		body.Values = append(body.Values, json.RawMessage(appendCell(nil, c)))
	}
	return base64.RawURLEncoding.EncodeToString(appendOther(nil, body))
}

func (o ordering[R]) parseToken(token string) (keyed[R], error) {
	bad := fault.New(fault.Invalid, "the page token is not one of this query").At("after")
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return keyed[R]{}, bad
	}
	var body tokenBody
	numbers := json.NewDecoder(bytes.NewReader(data))
	numbers.UseNumber() // floats lose digits
	if numbers.Decode(&body) != nil || !slices.Equal(body.Names, o.names()) || len(body.Values) != len(o.keys) {
		return keyed[R]{}, bad
	}
	k := keyed[R]{id: body.ID, nth: body.Nth}
	for _, v := range body.Values {
		pair, ok := cluster.Canonical(v).([]any)
		if !ok || len(pair) != 2 {
			return keyed[R]{}, bad
		}
		status, ok := pair[0].(int64)
		if !ok || status < 0 || status > int64(Offline) {
			return keyed[R]{}, bad
		}
		k.values = append(k.values, Cell{Status: Status(status), Value: pair[1]})
	}
	return k, nil
}

// CompareCells orders values of any type: missing ones last, then null, truth
// values, numbers, texts in nice order, and everything else by its JSON.
func CompareCells(a, b Cell) int {
	if a.Status != b.Status {
		return cmp.Compare(a.Status, b.Status)
	}
	x, y := generic(a.Value), generic(b.Value)
	if c := cmp.Compare(rank(x), rank(y)); c != 0 {
		return c
	}
	switch x := x.(type) {
	case nil:
		return 0
	case Nanos:
		if t, ok := y.(Nanos); ok {
			return cmp.Compare(x, t)
		}
		return x.compare(wholeNumber(y))
	case bool:
		return compareBools(x, y == true)
	case string:
		s, _ := y.(string)
		return cmp.Or(cluster.CompareNames(x, s), strings.Compare(x, s))
	case int64:
		if i, ok := y.(int64); ok {
			return cmp.Compare(x, i)
		}
		return compareMixed(x, asFloat(y))
	case float64:
		if i, ok := y.(int64); ok {
			return -compareMixed(i, x)
		}
		return cmp.Compare(x, asFloat(y))
	}
	return bytes.Compare(AppendValue(nil, x), AppendValue(nil, y))
}

func rank(v any) int {
	switch v.(type) {
	case nil:
		return 0
	case bool:
		return 1
	case int64, float64, Nanos:
		return 2
	case string:
		return 3
	}
	return 4
}

// wholeNumber is a number without what is behind its point.
func wholeNumber(v any) *big.Int {
	if n, ok := v.(int64); ok {
		return big.NewInt(n)
	}
	whole, _ := big.NewFloat(asFloat(v)).Int(nil)
	return whole
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// compareMixed compares without loss: if 2^53+1 were made a float, it would
// equal 2^53, and the order would be none.
func compareMixed(i int64, f float64) int {
	return new(big.Float).SetInt64(i).Cmp(new(big.Float).SetFloat64(f))
}

func asFloat(v any) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	case Nanos:
		return v.seconds()
	}
	return 0
}
